"""What do the learned parts know beyond the source and the length of a response?

    DIALEVAL_DATA=DIR python scripts/measure_parts.py [PART ...] [--data NAME ...] [--write]

PART is the name of a shipped part or a directory of `dialeval train`; all shipped ones if left out.
Each is measured on examples that it did not learn from, each source alone, and `--write` adds the
table to its card: `dialeval models card PART` shows it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dialeval.cli.terminal import print_table, say
from dialeval.errors import DialevalError, UsageError
from dialeval.model_store.locate import locate
from dialeval.training.card import source_cells
from dialeval.training.measure_part import PER_SOURCE, add_to_card, measure_part

SHIPPED = Path(__file__).parent.parent / "src" / "dialeval" / "adapters"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--data", action="append", type=Path, default=[])
    parser.add_argument("--per-source", type=int, default=PER_SOURCE)
    parser.add_argument("--write", action="store_true", help="add the table to the card")
    given = parser.parse_args()
    for part in given.parts or sorted(place.name for place in SHIPPED.iterdir() if place.is_dir()):
        try:
            found = measure_part(part, given.data, per_source=given.per_source)
        except UsageError as error:
            say(f"{part}: {error}", style="yellow")
            continue
        header, *rows = source_cells([one.to_record() for one in found])
        say(part)
        print_table(header, rows, right=range(1, len(header)))
        if given.write:
            add_to_card(locate(part).directory, found)
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except DialevalError as error:
        say(str(error), stderr=True, style="red")
        raise SystemExit(error.exit_code) from None
