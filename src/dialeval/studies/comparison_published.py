"""What DialEvalMetrics printed for sets that are rated here too (Yeh et al., 2021, README).

Pearson/Spearman with the overall quality of a set; `*` marks p >= .05, as in the README.
"""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "DialEvalMetrics"

SETS = (
    ("usr-topical", "turn", "Overall"),
    ("grade-dailydialog", "turn", "coherence"),
    ("engage", "turn", "engagement"),
    ("holistic/coherence", "turn", "coherence"),
    ("fed", "turn", "Overall"),
    ("fed", "dialogue", "Overall"),
)
"""Set, level, quality: the columns below."""

OURS = {
    "BLEU-4": "bleu",
    "METEOR": "meteor",
    "ROUGE-L": "rouge",
    "BERTScore": "bertscore",
    "RUBER": "ruber",
    "BERT-RUBER": "bert-ruber",
    "PONE": "pone",
    "FED": "fed",
    "USL-H": "usl-h",
    "Deep AM-FM": "deep-am-fm",
}
"""Metric as printed -> the label of the metric here that has its name. Not one of them is made with
the same model and options: see what is known to differ."""

_PRINTED = """
BLEU-4           | .216/.296   | .075*/.184   |           |           |             |
METEOR           | .336/.391   | .096*/.010*  |           |           |             |
ROUGE-L          | .275/.287   | .154/.147    |           |           |             |
ADEM             | -.060*/-.061* | .064*/.071* |          |           |             |
BERTScore        | .298/.325   | .129/.100*   |           |           |             |
BLEURT           | .216/.261   | .176/.133    |           |           |             |
QuestEval        | .300/.338   | .020*/.006*  | .296/.341 | .285/.260 | .037*/.093* | -.032*/.080*
RUBER            | .247/.259   | -.084*/-.094* |          |           |             |
BERT-RUBER       | .342/.348   | .134/.128    |           |           |             |
PONE             | .271/.274   | .163/.163    |           |           |             |
MAUDE          | .044*/.083* | -.036*/-.073* | .104/.060* | .275/.364 | .018*/-.094* | -.047*/-.280
DEB              | .180/.116   | .337/.363    | .516/.580 | .584/.663 | .230/.187   | -.130*/.006*
GRADE            | .200/.217   | .278/.253    | .600/.622 | .678/.697 | .134/.118   | -.034*/-.065*
DynaEval         | -.032*/-.022* | .108*/.120 | .167/.160 | -.023*/-.009* | .319/.323 | .503/.547
USR              | .412/.423   | .057*/.057*  | .582/.640 | .589/.645 | .114/.117   | .093*/.062*
USL-H            | .322/.340   | .108*/.093*  | .688/.699 | .486/.537 | .201/.189   | .073*/.152*
DialogRPT        | .120/.105*  | -.000*/.037* | .489/.533 | .283/.332 | -.118/-.086* | -.221/-.214
Deep AM-FM       | .285/.268   | .026*/.022*  |           |           |             |
HolisticEval     | -.147/-.123 | .025*/.020*  | .368/.365 | .670/.764 | .122/.125   | -.276/-.304
PredictiveEngage | .222/.310   | -.133/-.135  | .429/.414 | -.033*/.060* | .024*/.094* | .026*/.155*
FED              | -.124/-.135 | .080*/.064*  | .164/.159 | .485/.507 | .120/.095   | .222/.320
FlowScore      | .095*/.082* |              |           |           | -.065*/-.055* | -.073*/-.003*
"""


@dataclass(frozen=True)
class PrintedPair:
    """Pearson and Spearman as they are printed: `.075*`."""

    pearson: str
    spearman: str

    def __str__(self) -> str:
        return f"{self.pearson}/{self.spearman}"


def _read(text: str) -> dict[str, dict[tuple[str, str, str], PrintedPair]]:
    found: dict[str, dict[tuple[str, str, str], PrintedPair]] = {}
    for line in text.strip().splitlines():
        name, *cells = (cell.strip() for cell in line.split("|"))
        found[name] = {
            key: PrintedPair(*cell.split("/"))
            for key, cell in zip(SETS, cells, strict=True)
            if cell
        }
    return found


PUBLISHED = _read(_PRINTED)
"""Metric as printed -> (set, level, quality) -> its two correlations."""


def value(printed: str) -> float:
    """`-.060*` -> -0.06."""
    return float(printed.rstrip("*"))
