"""PONE's four case studies: what its paper calls BLEU, to six digits.

Table 6 of the paper prints four digits and shortened texts; the notebook that the authors released
has the texts that were scored, and six digits. `bleu:mode=released` says what is computed.
"""

from __future__ import annotations

from dialeval.registry import make_metric
from dialeval.sample import Sample
from dialeval.studies.study import Findings, Measured, Published, Setting, Study

SOURCE = "released notebook; Table 6 prints four digits"
CASES = {
    "0.255528": (
        "Let's line up . The steak is very inviting . I'll have it .",
        "I didn \N{RIGHT SINGLE QUOTATION MARK} t know that . That sounds pretty good ."
        " Can you come here for a few minutes ?",
    ),
    "0.232523": (
        "Can you operate computers skillfully ?",
        "So you don't have a printer in the box ?",
    ),
    "0.198792": (
        "My name is Dunlin and I live in Beijing . I was born in 1980 . I will graduate from"
        " Peking University this July . I have majored in accounting .",
        "Thank you very much .",
    ),
    "0.192591": (
        "You should go get yours .",
        "Yes , it is . Let's go and have a drink .",
    ),
}
"""Published BLEU-4 -> reference, response."""


def measure(setting: Setting) -> Findings:
    measured = []
    for mode in ("released", "paper"):
        metric = make_metric("bleu", mode=mode)
        for number, (reference, response) in enumerate(CASES.values(), 1):
            sample = Sample(id=str(number), response=response, references=(reference,))
            score = metric.score(sample, ())
            released = mode == "released"
            value = None if score.value is None else score.value / (1 if released else 100)
            ours = Measured(_what(number), value, f"bleu, {mode}", comparable=released)
            measured.append(ours)
    return Findings(measured)


def _what(number: int) -> str:
    return f"case {number}: BLEU-4"


STUDY = Study(
    name="pone-bleu",
    paper=(
        "Lan, Mao, Wei, Gao, Huang: PONE: A Novel Automatic Evaluation Metric for Open-Domain"
        " Generative Dialogue Systems. TOIS 2020"
    ),
    cited="Lan et al., TOIS 2020",
    repeats="PONE, Table 6: BLEU of four responses",
    published=tuple(
        Published(_what(number), printed, SOURCE) for number, printed in enumerate(CASES, 1)
    ),
    differs=(
        "The released code passes the words of the reference where references are expected, so"
        " letters are matched with words. BLEU as it is defined is shown beside it, from 0 to 1.",
    ),
    measure=measure,
)
