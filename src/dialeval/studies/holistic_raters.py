"""Do HolisticEval's raters agree with each other? Its Tables 3, 4 and 9, exactly.

Each rater is held against the mean of the other nine; mean and largest over the ten raters. The
caption of Table 4 says "pairwise", but its numbers are these (the pairwise mean is .51).
"""

from __future__ import annotations

from pathlib import Path

import dialeval
from dialeval.agreement.coefficient import largest_of, mean_of
from dialeval.agreement.rated import ratings_table
from dialeval.agreement.raters import leave_one_out
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study

PAPER = (
    "Pang, Nijkamp, Han, Zhou, Liu, Tu: Towards Holistic and Automatic Evaluation of Open-Domain"
    " Dialogue Generation. ACL 2020"
)
CITED = "Pang et al., ACL 2020"
RECOMPUTED = "recomputed"
"""The source of numbers that no paper prints: worked out from released files, apart from dialeval.
The studies that have such numbers say so under what is known to differ."""
COLUMNS = ("Pearson, mean", "Pearson, max", "Spearman, mean", "Spearman, max")
PRINTED = {
    "coherence": ("Table 3", "context_data_release.csv", "0.61 0.91 0.57 0.87"),
    "fluency": ("Table 4", "fluency_data_release.csv", "0.70 0.88 0.70 0.85"),
    "consistency, baseline": ("Table 9", "self_consistency/baseline", "0.61 0.75 0.62 0.74"),
    "consistency, WS": ("Table 9", "self_consistency/word_net", "0.64 0.80 0.64 0.79"),
    "consistency, CTG": ("Table 9", "self_consistency/seq2seq", "0.65 0.75 0.66 0.76"),
}


def measure(setting: Setting) -> Findings:
    measured = []
    for what, (_, file, _) in PRINTED.items():
        measured += _rows(what, setting.data["holistic"] / file)
    return Findings(measured)


def _rows(what: str, path: Path) -> list[Measured]:
    samples = list(dialeval.load(path))
    (quality,) = {quality for sample in samples for quality in sample.ratings}
    raters = leave_one_out(*ratings_table(samples, quality))
    summaries = [
        summary(found)
        for found in ([r.pearson for r in raters], [r.spearman for r in raters])
        for summary in (mean_of, largest_of)
    ]
    return [
        Measured(f"{what}: {column}", found.value, n=len(samples), reason=found.reason)
        for column, found in zip(COLUMNS, summaries, strict=True)
    ]


STUDY = Study(
    name="holistic-raters",
    paper=PAPER,
    cited=CITED,
    repeats="HolisticEval, Tables 3, 4, 9: how well its ten raters agree",
    needs=(Data("holistic", tuple(file for _, file, _ in PRINTED.values())),),
    published=tuple(
        Published(f"{what}: {column}", number, source)
        for what, (source, _, numbers) in PRINTED.items()
        for column, number in zip(COLUMNS, numbers.split(), strict=True)
    ),
    differs=(
        "Tables 5 and 6 cannot be repeated: the ratings of diversity were not released.",
        'Table 4\'s caption says "pairwise"; its numbers are leave-one-out, as in Table 3.',
    ),
    measure=measure,
)
