"""The parts that let a report colour the words of a response by their log-probability."""

from __future__ import annotations

from collections.abc import Mapping

from dialeval.metric import Part
from dialeval.question import TokenLogProbs
from dialeval.scores import PartValue

TOKEN_PARTS = (
    Part("log_probs", "log-probability of each token", many=True),
    Part("starts", "where each token starts in the response, in characters", many=True),
    Part("ends", "where each token ends", many=True),
)


def token_parts(tokens: TokenLogProbs) -> Mapping[str, PartValue]:
    return {
        "log_probs": tokens.log_probs,
        "starts": tuple(float(start) for start, _ in tokens.spans),
        "ends": tuple(float(end) for _, end in tokens.spans),
    }
