"""Fits what a whole dialogue is worth, given what its turns are: `OF_DIALOGUE` of `metrics/judge`.

    python scripts/fit_judge_of_dialogues.py [--judge judge-minilm-l6]

Prints the constants to be written there, and how well they do. They are learned from 600 chats of
ConvAI2 with a chatbot (or a person in its place). A language model (Claude) read each of them and
rated the chatbot for coherence, understanding, being liked, being interesting, and overall, from 1
to 5: `training/examples/chat_ratings.tsv` has the name of the chat and the five digits. What is
learned is the rank of their mean. In five folds, each chat is judged by what the others taught;
beside it stands what the chat's own user said of it.

Which features there are was chosen on these chats by such folds, one after the other.
"""

from __future__ import annotations

import argparse
from importlib import resources

import numpy as np

from dialeval.cli.terminal import counting_bar
from dialeval.engine.answers import AnswerCache, Answerer, default_cache_path
from dialeval.metrics.judge import assessed, dialogue_features
from dialeval.metrics.mme import judged_turns
from dialeval.models.source import Models
from dialeval.question import ASPECTS, Assessment
from dialeval.readers import load
from dialeval.training.examples.rated_answers import uniform_ranks
from dialeval.training.judge_ratings import spearman

STRENGTH = 0.3
"""How much large weights cost; the features have deviation 1."""

FOLDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--judge", default="judge-minilm-l6")
    judge = parser.parse_args().judge
    table = resources.files("dialeval.training.examples").joinpath("chat_ratings.tsv")
    rated = dict(line.split("\t") for line in table.read_text("utf-8").splitlines())
    chats = [s for s in load("convai2-human") if s.response is None and s.id in rated]
    asked = [[assessed(turn, judge) for turn in judged_turns(chat, True)] for chat in chats]
    with AnswerCache(default_cache_path()) as cache, counting_bar("judging turns") as progress:
        answerer = Answerer(Models(), cache)
        answers = answerer.answer((one for own in asked for one in own), progress)
    rows, ratings, users = [], [], []
    for chat, own in zip(chats, asked, strict=True):
        found = np.array([Assessment.read(answers[one]).ratings for one in own])
        overall, novelty = (found[:, ASPECTS.index(name)] for name in ("overall", "novelty"))
        rows.append(dialogue_features(chat, overall.tolist(), novelty.tolist()))
        ratings.append(np.mean([int(digit) for digit in rated[chat.id]]))
        said = [rating.mean for rating in chat.ratings.values()]
        users.append(np.nan if not said or said[0] is None else said[0])
    names = list(rows[0])
    features = np.array([[row[name] for name in names] for row in rows])
    y, user = np.array(ratings), np.array(users)
    folds = np.random.default_rng(0).permutation(len(y)) % FOLDS
    judged = np.zeros(len(y))
    for fold in range(FOLDS):
        mean, deviation, weights = fitted(features[folds != fold], y[folds != fold])
        judged[folds == fold] = ((features[folds == fold] - mean) / deviation) @ weights
    turns = features[:, names.index("mean of the turns")]
    print(f"{len(y)} chats; Spearman with the language model, and with the user of the chat:")
    for what, own in (("the mean of the turns", turns), ("the dialogue, five folds", judged)):
        print(f"  {what}: {spearman(own, y):.3f}, {spearman(own, user):.3f}")
    mean, deviation, weights = fitted(features, y)
    # The ratings of dialogues spread as those of turns do, on average over these chats.
    weights *= turns.std() / (((features - mean) / deviation) @ weights).std()
    print(f"LEVEL = {turns.mean():.3f}")
    for name, weight, middle, spread in zip(names, weights, mean, deviation, strict=True):
        print(f'    "{name}": Term({weight:.3f}, {middle:.3f}, {spread:.3f}),')


def fitted(features: np.ndarray, ratings: np.ndarray) -> tuple[np.ndarray, ...]:
    """Mean and deviation of the features, and the weights of a ridge regression."""
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    x, y = (features - mean) / deviation, uniform_ranks(ratings)
    cost = STRENGTH * np.eye(x.shape[1])
    return mean, deviation, np.linalg.solve(x.T @ x / len(y) + cost, x.T @ y / len(y))


if __name__ == "__main__":
    main()
