"""Starting a job, or going on with the one that is there: the same command does both.

A database holds one job. What is asked for again must fit it: the same dialogues, in the same kind
of job. Options that are left out are those of the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dialeval.errors import UsageError
from dialeval.rating.design import Design, design
from dialeval.rating.job import Job
from dialeval.rating.material import Material
from dialeval.rating.opening import Progress, add_raters, create_store, open_store
from dialeval.rating.store import Store

USUAL_RATERS = 3


@dataclass(frozen=True)
class Started:
    """`is_new`: the job was made just now. `remarks` say what was left out of it."""

    store: Store
    is_new: bool
    remarks: tuple[str, ...] = ()


def start(
    place: str,
    material: Sequence[Material],
    job: Job,
    *,
    raters: int | None = None,
    organiser: str = "",
    given: Sequence[str] = (),
    most_pairs: int | None = None,
    progress: Progress = lambda done, total: None,
) -> Started:
    """Makes the job of this material in the database, or goes on with the one that it holds.

    `given` names the fields of `job` that somebody asked for; the others follow the stored job.
    """
    store = open_store(place)
    if store is not None:
        try:
            _check_same(store, material, job, given, most_pairs)
            _check_organiser(store, organiser)
            if raters is not None:
                _fit_raters(store, raters)
        except BaseException:
            store.close()
            raise
        return Started(store, is_new=False)
    if not material:
        raise UsageError(f"{place} holds no rating job yet: name the dialogues to rate")
    designed = design(material, job, most_pairs)
    _check_shares(designed.job, raters or USUAL_RATERS)
    store = create_store(
        place, designed.job, raters or USUAL_RATERS, organiser=organiser, progress=progress
    )
    if store.digest != designed.job.digest():
        raise UsageError(f"{store.address.shown} was filled with another job at the same moment")
    return Started(store, is_new=True, remarks=designed.remarks)


def _check_same(
    store: Store,
    material: Sequence[Material],
    job: Job,
    given: Sequence[str],
    most_pairs: int | None,
) -> None:
    stored, place = store.job, store.address.shown
    for name in given:
        if getattr(job, name) != getattr(stored, name):
            option = {"kind": "compare", "per_item": "per-item"}.get(name, name)
            raise UsageError(
                f"{place} holds a job with another --{option}. A job never changes once raters may"
                " have begun: leave the option out, or choose another --db."
            )
    if material and _again(material, stored, most_pairs).job.digest() != store.digest:
        raise UsageError(
            f"{place} holds a job about other dialogues. Choose another --db; or, to go on with"
            " that job, leave out the files."
        )


def _again(material: Sequence[Material], stored: Job, most_pairs: int | None) -> Design:
    return design(material, replace(stored, sources=(), directions={}), most_pairs)


def _check_organiser(store: Store, organiser: str) -> None:
    if organiser and organiser != store.organiser:
        raise UsageError(f"{store.address.shown} has another --token: leave the option out")


def _fit_raters(store: Store, raters: int) -> None:
    known = len(store.raters())
    if raters < known:
        raise UsageError(
            f"{store.address.shown} has {known} raters, and none can be taken away. Their links"
            " are printed when --raters is left out."
        )
    if raters > known:
        add_raters(store, raters)


def _check_shares(job: Job, raters: int) -> None:
    if job.per_item > raters:
        raise UsageError(f"--per-item {job.per_item}: there are only {raters} raters (--raters)")
