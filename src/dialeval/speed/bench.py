"""All contests in about a minute: the sizes are small, the work is the real one."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dialeval.errors import UsageError, did_you_mean
from dialeval.speed.contest import Contest, Outcome, Skipped, hold
from dialeval.speed.machine import Limits, describe_machine, measure_limits
from dialeval.speed.texts import example_dialogues, example_pairs

PAIRS = 2000
ENCODED_PAIRS = 100
DIALOGUES = 3
ITEMS, ROUNDS = 1000, 500


@dataclass(frozen=True)
class Entry:
    """A contest that can be held: `make` fails with ImportError where the peer is not installed,
    with a UsageError where a model is not here."""

    peer: str
    make: Callable[[], Contest]
    rounds: int = 3


def _rouge() -> Contest:
    from dialeval.speed.overlap import rouge

    return rouge(example_pairs(PAIRS))


def _bleu() -> Contest:
    from dialeval.speed.overlap import bleu

    return bleu(example_pairs(PAIRS))


def _chrf() -> Contest:
    from dialeval.speed.overlap import chrf

    return chrf(example_pairs(PAIRS))


def _bertscore() -> Contest:
    from dialeval.speed.encoding import bertscore

    return bertscore(_different_pairs(ENCODED_PAIRS))


def _vectors() -> Contest:
    from dialeval.speed.encoding import embeddings

    return embeddings([text for pair in _different_pairs(ENCODED_PAIRS) for text in pair])


def _full() -> Contest:
    from dialeval.speed.likelihood import full_causal

    return full_causal(example_dialogues(DIALOGUES))


def _bootstrap() -> Contest:
    from dialeval.speed.resampling import bootstrap_correlation

    return bootstrap_correlation(ITEMS, ROUNDS)


def _permutation() -> Contest:
    from dialeval.speed.resampling import permutation_test

    return permutation_test(ITEMS, ROUNDS)


def _different_pairs(count: int) -> list[tuple[str, str]]:
    """No text twice: both sides would encode it once only."""
    pairs = enumerate(example_pairs(count))
    return [(f"{one} {number}", f"{other} {number}") for number, (one, other) in pairs]


CONTESTS: Mapping[str, Entry] = {
    "full": Entry("one pass per follow-up", _full, rounds=2),
    "bertscore": Entry("bert-score", _bertscore),
    "vectors": Entry("sentence-transformers", _vectors),
    "rouge": Entry("rouge-score", _rouge),
    "bleu": Entry("sacrebleu", _bleu),
    "chrf": Entry("sacrebleu", _chrf),
    "bootstrap": Entry("scipy", _bootstrap),
    "permutation": Entry("scipy", _permutation),
}
LIMITS = "limits"


@dataclass(frozen=True)
class Measured:
    """Ratios, what could not be measured, and what the machine can do at best."""

    machine: Mapping[str, Any]
    outcomes: Sequence[Outcome]
    skipped: Sequence[Skipped]
    limits: Limits | None

    def to_record(self) -> dict[str, Any]:
        return {
            "machine": dict(self.machine),
            "contests": [one.to_record() for one in self.outcomes],
            "skipped": [one.to_record() for one in self.skipped],
            "limits": self.limits.to_record() if self.limits else None,
        }


def measure(
    names: Sequence[str] = (),
    *,
    threads: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Measured:
    """The contests of these names (all of them without names), and the limits of the machine."""
    chosen = list(dict.fromkeys(names)) or [*CONTESTS, LIMITS]
    for name in chosen:
        if name not in CONTESTS and name != LIMITS:
            known = [*CONTESTS, LIMITS]
            raise UsageError(
                f"no contest {name!r}.{did_you_mean(name, known)} There are: {', '.join(known)}"
            )
    outcomes: list[Outcome] = []
    skipped: list[Skipped] = []
    limits: Limits | None = None
    with _quiet_peers():
        if threads is not None:
            _set_threads(threads)
        for number, name in enumerate(chosen):
            progress(number, len(chosen))
            peer = "the peak of this machine" if name == LIMITS else CONTESTS[name].peer
            try:
                if name == LIMITS:
                    limits = measure_limits(example_dialogues(DIALOGUES * 2))
                else:
                    outcomes.append(hold(CONTESTS[name].make(), CONTESTS[name].rounds))
            except ImportError as error:
                skipped.append(Skipped(name, peer, f"{error.name or error} is not installed"))
            except UsageError as error:
                skipped.append(Skipped(name, peer, str(error)))
        progress(len(chosen), len(chosen))
    return Measured(describe_machine(), outcomes, skipped, limits)


def _set_threads(threads: int) -> None:
    try:
        import torch
    except ImportError:  # string metrics and statistics have no threads
        return
    torch.set_num_threads(threads)


@contextmanager
def _quiet_peers() -> Iterator[None]:
    """Peers remark on what they load, and would look for news of it on the network."""
    before = {name: os.environ.get(name) for name in ("HF_HUB_OFFLINE", "TQDM_DISABLE")}
    os.environ.update(dict.fromkeys(before, "1"))
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(disabled)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
