"""GRADE (Huang et al. 2020): a folder with parallel files, one line per rated answer.

    eval_data/dailydialog/transformer_ranker/human_ctx.txt      Hello .|||How are you ?
    eval_data/dailydialog/transformer_ranker/human_hyp.txt      Fine .
    eval_data/dailydialog/transformer_ranker/human_ref.txt      Very well , thanks .
    human_score/dailydialog/transformer_ranker/human_score.txt  3.4

Give the folder that holds `eval_data`, or one up to two levels above it. The quality is
`coherence`, 1 to 5. The released number is the mean over the raters of an item: it is kept as the
rating of one anonymous rater. Ids are `dailydialog-transformer_ranker-0001`; systems that answer
the same context share an item. Files of different length are an error: lines belong together.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from dialeval.readers import fields
from dialeval.readers.ratings import GRADE, number
from dialeval.readers.reader import Place, Reader, ReadOptions, UnreadableError
from dialeval.readers.source import Source
from dialeval.sample import Rating, Sample

TEXTS = ("human_ctx.txt", "human_hyp.txt", "human_ref.txt")
QUALITY = "coherence"


def _roots(folder: Path) -> list[Path]:
    for pattern in ("eval_data", "*/eval_data", "*/*/eval_data"):
        if found := sorted(path.parent for path in folder.glob(pattern) if path.is_dir()):
            return found
    return []


def recognises(source: Source) -> bool:
    return source.is_directory and bool(_roots(source.path))


def read(source: Source, place: Place, options: ReadOptions) -> Iterator[Sample]:
    roots = _roots(source.path) if source.is_directory else []
    folders = [
        (root, folder)
        for root in roots
        for folder in sorted(root.glob("eval_data/*/*"))
        if folder.is_dir()
    ]
    if not folders:
        raise UnreadableError(
            "there is no eval_data/DATASET/SYSTEM/human_ctx.txt below this folder"
        )
    if source.path not in roots:
        found = ", ".join(str(root) for root in roots)
        place.warning("", f"only the data of GRADE in {found} is read, nothing else in the folder")
    items = {folder.parent: fields.Items() for _, folder in folders}
    for root, folder in folders:
        yield from _system(source, root, folder, items[folder.parent], place, options)


def _system(
    source: Source,
    root: Path,
    folder: Path,
    items: fields.Items,
    place: Place,
    options: ReadOptions,
) -> Iterator[Sample]:
    dataset, system = folder.parent.name, folder.name
    scores = root / "human_score" / dataset / system / "human_score.txt"
    paths = [*(folder / name for name in TEXTS), scores]
    scale = options.scales.get(QUALITY) or GRADE[QUALITY]
    columns = (_lines(source.beside(path), place) for path in paths)
    for index, cells in enumerate(zip_longest(*columns), 1):
        place.path, place.line = str(folder / TEXTS[0]), index
        errors = place.problems.errors
        if None in cells:
            short = ", ".join(
                path.name for path, cell in zip(paths, cells, strict=True) if cell is None
            )
            raise UnreadableError(
                f"lines belong together, but from here on {short} has none", index
            )
        context_text, response, reference, score = cells
        context = fields.turns_of_lines(context_text.split("|||"))
        place.path = str(folder / TEXTS[1])
        response = fields.response(response, place)
        place.path = str(scores)
        said = number(score, QUALITY, place, scale)
        place.path = str(folder / TEXTS[2])
        sample = Sample(
            id=f"{dataset}-{system}-{index:04d}",
            context=context,
            response=response,
            references=fields.texts(reference, "reference", place),
            system=system,
            dialogue=(item := f"{dataset}-{items.name(context, system)}"),
            item=item,
            ratings={QUALITY: Rating((said,), scale)},
        )
        place.path = str(folder / TEXTS[0])
        if place.problems.errors == errors:
            yield sample
        else:
            place.problems.skipped += 1


def _lines(source: Source, place: Place) -> Iterator[str]:
    try:
        for _, line in source.lines(Place(place.problems, source.name)):
            yield line.replace("\0", "\ufffd")
    except UnreadableError as error:
        error.path = source.name
        raise


READER = Reader("grade", "GRADE: a folder with eval_data and human_score", recognises, read)
