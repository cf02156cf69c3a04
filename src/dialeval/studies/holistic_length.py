"""How far does the length of the response alone go on HolisticEval's ratings?

Minus the number of words, against the mean of ten raters. No paper prints these numbers; they were
worked out from the released files apart from dialeval. RUBER with BERT, a learned metric, stands in
HolisticEval's Table 3 with .47 and .51 for coherence.
"""

from __future__ import annotations

import dialeval
from dialeval.agreement.correlation import Name, correlations
from dialeval.studies.holistic_raters import CITED, PAPER, RECOMPUTED
from dialeval.studies.study import Data, Findings, Measured, Published, Setting, Study

FILES = {"coherence": "context_data_release.csv", "fluency": "fluency_data_release.csv"}
KNOWN = {"coherence": ("0.448", "0.494"), "fluency": ("0.628", "0.648")}
NAMES: tuple[Name, ...] = ("pearson", "spearman")


def measure(setting: Setting) -> Findings:
    measured = []
    for quality, file in FILES.items():
        samples = list(dialeval.load(setting.data["holistic"] / file))
        lengths = setting.score(samples, ["length"]).scores("length")
        shortness = [None if length is None else -length for length in lengths]
        ratings = [sample.ratings[quality].mean for sample in samples]
        found = correlations(shortness, ratings, names=NAMES)
        measured += [
            Measured(f"{quality}: {name.capitalize()}", one.value, n=one.n, reason=one.reason)
            for name, one in found.items()
        ]
    return Findings(measured)


STUDY = Study(
    name="holistic-length",
    paper=PAPER,
    cited=CITED,
    repeats="minus the number of words, against HolisticEval's ratings: the baseline to beat",
    needs=(Data("holistic", tuple(FILES.values())),),
    published=tuple(
        Published(f"{quality}: {name.capitalize()}", number, RECOMPUTED)
        for quality, numbers in KNOWN.items()
        for name, number in zip(NAMES, numbers, strict=True)
    ),
    differs=(
        "Recomputed: from the released files, apart from dialeval.",
        "The paper has no length baseline. Its Table 3 has RUBER+BERT with 0.47 / 0.51 and GPT-2"
        " with 0.59 / 0.65 for coherence; its Table 4 GPT-2 with 0.43 / 0.32 for fluency.",
    ),
    measure=measure,
)
