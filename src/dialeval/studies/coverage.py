"""Every table and figure of the four papers: which command repeats it, and how far.

complete    all of its numbers come out, or ours stand in every cell
partial     some do; `missing` says what does not, and why
needs data  nothing can be measured without data or ratings that are not public, or not here
no numbers  an example, a drawing or settings: there is nothing to measure

`dialeval study` lists them. Where a study lacks data on this machine, its tables need data,
whatever stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dialeval.studies.study import STUDIES, Missing, find_missing, find_study

State = Literal["complete", "partial", "needs data", "no numbers"]


@dataclass(frozen=True)
class PaperTable:
    """A table or figure of a paper.

    command  what repeats it, without `dialeval`
    missing  what is missing and why; for a complete one, what to know about it
    """

    paper: str
    table: str
    command: str
    state: State
    missing: str = ""

    @property
    def study(self) -> str | None:
        """The study of the command, if it is one."""
        words = self.command.split()
        return words[1] if words[:1] == ["study"] and words[1] in STUDIES else None


HOLISTIC, PONE, FULL, MME = "HolisticEval", "PONE", "FULL", "MME-CRS"
TABLES_OF = {HOLISTIC: 9, PONE: 9, FULL: 3, MME: 6}
"""The number of tables of each paper."""

NO_TEST_FILES = "the test files are not public; --set FILE adds the columns of those that you have"

OWN_RATINGS = "study holistic-tables --set ratings.db"

NO_GROUPS = (
    "ratings of diversity were not released: ask people (dialeval rate runs/bot/variants"
    " --qualities diversity); the entropies of the released groups: study ngram-entropy"
)

NO_GPT_2 = "the tuned GPT-2 cannot be had any more: ours are other language models, or --model"

PONE_TABLES = "study pone --set usr-topical"

OTHER_ANSWERS = (
    "the authors' answers and ratings are not public: of any rated set (--set), or of your chatbots"
    " and raters (--systems bots/* --raters ratings.db)"
)

TABLES = (
    PaperTable(HOLISTIC, "Table 1", "metrics consistency", "no numbers", "example dialogues"),
    PaperTable(
        HOLISTIC,
        "Table 2",
        "study holistic-tables",
        "complete",
        "the pair is row 126 of the released file; the printed scores need the authors' weights",
    ),
    PaperTable(
        HOLISTIC,
        "Table 3",
        "study holistic-tables",
        "complete",
        f"the rows of raters match; {NO_GPT_2}, and RUBER+BERT's were not released either",
    ),
    PaperTable(
        HOLISTIC,
        "Table 4",
        "study holistic-tables",
        "complete",
        f"the rows of raters match; {NO_GPT_2}",
    ),
    PaperTable(HOLISTIC, "Table 5", OWN_RATINGS, "needs data", NO_GROUPS),
    PaperTable(HOLISTIC, "Table 6", OWN_RATINGS, "needs data", NO_GROUPS),
    PaperTable(
        HOLISTIC,
        "Table 7",
        "study holistic-tables",
        "complete",
        "the dialogue is sample 9 of the set of CTG; the printed score needs roberta-large-mnli",
    ),
    PaperTable(
        HOLISTIC,
        "Table 8",
        "study holistic-tables",
        "complete",
        "the row WS matches; the released predictions of the other rows compare with a wrong text"
        " and give other numbers; study holistic-consistency asks any inference model",
    ),
    PaperTable(HOLISTIC, "Table 9", "study holistic-raters", "complete"),
    PaperTable(
        HOLISTIC, "Figures 1 and 2", "study holistic-figures --plot DIR", "complete", NO_GPT_2
    ),
    PaperTable(
        HOLISTIC,
        "Figure 3",
        "study holistic-figures --set ratings.db --plot DIR",
        "needs data",
        NO_GROUPS,
    ),
    PaperTable(
        HOLISTIC,
        "section 4.3",
        "train lm --pairs --full --model gpt2 --data dailydialog -o DIR",
        "partial",
        "the card has the test perplexity beside the published 16.5; GPT-2 needs the hub",
    ),
    PaperTable(
        HOLISTIC,
        "section 5.5",
        OWN_RATINGS,
        "needs data",
        "the authors' 50 dialogues and their ratings were not released: ask people (dialeval rate"
        " runs/bot --qualities coherence,fluency,diversity,consistency); r and p between the four"
        " metrics: holistic SYSTEM --queries FILE -o DIR",
    ),
    PaperTable(PONE, "Table 1", PONE_TABLES, "partial", f"kappa, three kinds; {OTHER_ANSWERS}"),
    PaperTable(PONE, "Table 2", PONE_TABLES, "partial", f"all rows; {OTHER_ANSWERS}"),
    PaperTable(PONE, "Table 3", PONE_TABLES, "partial", f"all rows, by quality; {OTHER_ANSWERS}"),
    PaperTable(
        PONE, "Table 4", PONE_TABLES, "no numbers", "examples of weighted and random negatives"
    ),
    PaperTable(PONE, "Table 5", "train pone --help", "no numbers", "settings: the defaults"),
    PaperTable(
        PONE,
        "Table 6",
        "study pone-bleu",
        "partial",
        "BLEU to the printed digits; the columns of learned metrics need the authors' weights, and"
        " study pone shows all columns of your answers",
    ),
    PaperTable(
        PONE,
        "Table 7",
        "study pone-ablation",
        "partial",
        f"all rows, by seeds; study pone has them by system; {OTHER_ANSWERS}",
    ),
    PaperTable(
        PONE,
        "Table 8",
        PONE_TABLES,
        "partial",
        f"all rows, for the sum of the turns and their weighted mean; {OTHER_ANSWERS}",
    ),
    PaperTable(
        PONE,
        "Table 9",
        f"{PONE_TABLES} --positives ctg:model=DIR",
        "partial",
        "EDA against a generator, which dialeval train seq2seq --turns 1 trains first;"
        f" {OTHER_ANSWERS}",
    ),
    PaperTable(
        PONE,
        "section 3.4.5",
        f"{PONE_TABLES} --sweep -o DIR",
        "partial",
        "the average gain, and sweeps of t and k with the numbers of the authors' release beside"
        f" ours; {OTHER_ANSWERS}",
    ),
    PaperTable(
        PONE,
        "Figure 1",
        "study pone-ablation --plot FILE",
        "no numbers",
        "a sketch; the picture shows the boundaries of trained scorers, as the appendix does",
    ),
    PaperTable(
        FULL,
        "Table 1",
        "study full-follow-ups",
        "complete",
        "the first ten rows of Table 3; the printed numbers need BlenderBot-400M",
    ),
    PaperTable(
        FULL,
        "Table 2",
        "study full-table --set fed",
        "partial",
        "ten of the twelve metrics run at once, DialogRPT with a model of the hub; QuestEval is"
        " quoted: it takes T5 models that ask and answer questions, which only the hub has; the row"
        " of FULL needs BlenderBot-400M",
    ),
    PaperTable(
        FULL,
        "Table 3",
        "study full-follow-ups",
        "complete",
        "all 63 rows, published beside ours; the printed numbers need BlenderBot-400M",
    ),
    PaperTable(
        FULL,
        "Figure 2",
        "study full-follow-ups --model NAME --plot FILE",
        "partial",
        "a bar for each language model that is here; the nine of the paper need the hub, and it"
        " prints no numbers",
    ),
    PaperTable(
        FULL,
        "section 5.2",
        "study follow-up-selection",
        "complete",
        "four of the five follow-ups come out of Table 3; one was chosen by hand",
    ),
    PaperTable(
        MME,
        "Table 1",
        "study dstc10",
        "partial",
        "dstc6 and persona-see cannot be had any more",
    ),
    PaperTable(MME, "Table 2", "study dstc10 --set FILE", "needs data", NO_TEST_FILES),
    PaperTable(
        MME,
        "Table 3",
        "study dstc10",
        "partial",
        "all 66 cells as published, their means and ranks checked (study dstc10-table);"
        f" {NO_TEST_FILES}",
    ),
    PaperTable(
        MME,
        "Table 4",
        "study mme-ablation",
        "partial",
        "on development sets, each left out; submission 5 needs judges on BERT (train mme"
        " --backbone bert-base-uncased)",
    ),
    PaperTable(
        MME, "Table 5", "study mme-ablation", "partial", "on development sets, each left out"
    ),
    PaperTable(
        MME,
        "Table 6",
        "study mme-ablation",
        "partial",
        f"on development sets, each left out; by column: study dstc10; {NO_TEST_FILES}",
    ),
    PaperTable(MME, "Figure 1", "compose show mme-crs", "no numbers", "the architecture"),
)


def tables_here(
    lacking: Callable[[str], Sequence[Missing]] | None = None,
) -> list[PaperTable]:
    """Returns the tables; those whose study lacks data on this machine need data."""
    lacks = lacking or _lacking
    found = []
    for one in TABLES:
        missing = [str(lack) for lack in lacks(one.study)] if one.study else []
        if missing and one.state != "needs data":
            one = replace(one, state="needs data", missing="; ".join(missing))
        found.append(one)
    return found


def _lacking(study: str) -> Sequence[Missing]:
    wanted = find_study(study)
    return find_missing((*wanted.needs, *wanted.may_use[:1]), (*wanted.models, *wanted.asks))


def table_cells(tables: Sequence[PaperTable]) -> tuple[list[str], list[list[str]]]:
    """Header and rows, as cells."""
    header = ["paper", "table", "state", "command", "what is missing, and why"]
    rows = [[one.paper, one.table, one.state, one.command, one.missing] for one in tables]
    return header, rows
