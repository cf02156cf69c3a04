"""The judges of `metrics/corpus_judges.py` that are heads on frozen sentence vectors.

`dialeval train deb`: is this an answer to these turns? (Sai et al., TACL 2020, section 5)

DEB is BERT that learned the next utterance on Reddit and was tuned on DailyDialog++: right answers
that people wrote, against wrong ones that share words with the context and against random ones.
Here a head on frozen sentence vectors learns both at once:

    dailydialog++   each context of dev.json with its five right answers, and five of its ten wrong
                    ones, drawn again in every epoch
    corpora         pairs of dialogues of people (in place of Reddit), each once with its response
                    and once with a random one

A tenth of the contexts is held out to choose the best epoch by. Contexts of test.json are measured
on: with adversarial and with random answers, as in the paper's Table 6.

`dialeval train maude`: what people said next, against what is broken or said elsewhere.

(Sinha et al., ACL 2020, sections 3.1 and 4.1) Every response is right after its turns. Wrong are

    random   an utterance of another dialogue
    drop     the response, each word of which is dropped with probability .5
    order    its words in another order
    repeat   its first word or its first two, the last of them repeated to the same length

The first `edits` pairs have an edited response besides the random one, by the three rules in turn;
their texts have to be embedded. Both classes of a batch have the same weight. The released code
also draws back-translations (right ones and random ones) and responses of models: they need a
translator and chatbots of the corpus, and are left out.

`dialeval train predictive-engage`: is this answer engaging? (Ghazarian et al., AAAI 2020)

Everything that a speaker said in a conversation that its partner rated 3 of 5 or higher counts as
engaging, and everything in others as not: the paper's heuristic (section 4), by which ratings of
ConvAI become labels of utterances. Its own labels of single replies (the data set `engage`) are
learned from beside them; the paper tunes on them afterwards. The two classes of a batch have the
same weight, and the epoch of the highest AUC on held-out conversations is kept.

ConvAI 2017 is not public any more in a place that we know. `convai2-human`, the conversations of
people with bots of ConvAI2, takes its place; a file of ConvAI 2017 is read as well.

`dialeval train dyna-eval`: dialogues of people, against the same ones out of joint.

(Zhang et al., ACL 2021) Every dialogue is right as it was held. Wrong are

    replaced  the dialogue with one utterance of another one in the place of its own
    shuffled  the dialogue with all that one speaker said in another order; the other's stays

In every epoch each dialogue of four turns or more is read once as it is, and once in either wrong
form, drawn again; both classes of a batch have the same weight. The head tells them apart by
cross-entropy. The authors rank the right one above the wrong one by a margin, train the sentence
encoder as well, and have a judge for each wrong form. Only the dialogues that are drawn are
embedded. A long dialogue is read from its end. `flow-score` learns from dialogues, too, and is
tested with the same wrong ones (`DialogueHead`).

`dialeval train flow-score`: foretell what is said next, from the turns before it.

(Li et al., ACL 2021) An LSTM reads the sentence vectors of a dialogue one by one, and says after
each what the vector of the next utterance will be. The loss is the squared distance, which is the
loss of context flow modelling in the paper, as C_k is a sum of vectors here. The authors also
train GPT-2 to write the response, and to guess its words from what was foretold, on Reddit.

It learns from dialogues as they were held. Held-out ones are put out of joint as for `dyna-eval`:
the card says how often a dialogue of people has a better FlowScore than a wrong one, and how far
off a flow is that foretells the mean vector always.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.errors import UsageError
from dialeval.options import option
from dialeval.training.recipe import (
    Measures,
    Progress,
    epochs_option,
    held_out_option,
    patience_option,
)
from dialeval.training.recipes.sentence_head import HeadExamples, PreparedHead, SentenceHead

if TYPE_CHECKING:
    import numpy as np

    from dialeval.training.examples.corpora import Dialogue, WrittenAnswers
    from dialeval.training.examples.engagement import Engaging
    from dialeval.training.examples.pair_corpus import Example, Pair, PairCorpus
    from dialeval.training.learners.sentence_head import FlowLearner


VALIDATION = 0.1
"""Share of the contexts to learn from that are validated on."""


@dataclass(frozen=True, kw_only=True)
class Deb(SentenceHead):
    """Teach a head to tell right answers from wrong ones that people wrote to look right.

    The data are dailydialog++ and, to learn from more dialogues, any corpora.
    """

    name = "deb"
    metric = "deb"

    contexts: int | None = option(
        None, "Learn from at most this many contexts of DailyDialog++.", low=20
    )
    pairs: int = option(20_000, "Learn from at most this many pairs of the corpora.", low=0)
    held_out: int = held_out_option(300, "contexts of test.json")

    @property
    def about(self) -> str:
        return (
            "Is a response an answer to these turns? A head on frozen sentence vectors that learned"
            " from DailyDialog++: right answers against adversarial and random ones."
        )

    def examples_of(self, data: Sequence[Path]) -> HeadExamples:
        import numpy as np

        from dialeval.datasets.locate import resolve_folder
        from dialeval.training.examples.corpora import (
            known_exchanges,
            read_written_answers,
            without_rated_contexts,
            written_file,
        )
        from dialeval.training.examples.pair_corpus import (
            ExampleSets,
            drawn,
            load_pairs,
            with_random_responses,
        )

        folders = {path: resolve_folder(path) for path in data}
        written = [place for place in folders.values() if (place / "dev.json").is_file()]
        if len(written) != 1:
            raise UsageError("train deb learns from one folder of DailyDialog++: --data FOLDER")
        [folder] = written
        every = list(read_written_answers(written_file(folder, "dev.json")))
        contexts, left_out = without_rated_contexts(every, known_exchanges())
        contexts = drawn(contexts, self.contexts, np.random.default_rng(0))
        size = max(1, round(VALIDATION * len(contexts)))
        validation, learn = contexts[:size], contexts[size:]
        if not learn:
            raise UsageError(f"{folder}: {len(contexts)} contexts to learn from are too few")
        test = drawn(
            list(read_written_answers(written_file(folder, "test.json"))),
            self.held_out,
            np.random.default_rng(0),
        )
        others = [path for path in data if folders[path] != folder]
        corpus = load_pairs(others, "weighted") if others else None
        pairs = (
            drawn(corpus.train, self.pairs, np.random.default_rng([self.seed, 1])) if corpus else []
        )

        def of_epoch(epoch: int) -> list[Example]:
            generator = np.random.default_rng([self.seed, 2 + epoch])
            found = [one for own in learn for one in _mixed(own, generator)]
            if corpus:
                found += with_random_responses(corpus.texts, pairs, generator)
            return found

        held_out = np.random.default_rng(0)
        facts = corpus.left_out.facts() if corpus else {}
        return HeadExamples(
            ExampleSets(
                of_epoch,
                [one for own in validation for one in _mixed(own, held_out)],
                _digest_of_contexts(contexts) + (corpus.digest() if corpus else ""),
                {
                    "contexts of DailyDialog++ to learn from": len(learn),
                    "contexts of DailyDialog++ to validate on": len(validation),
                    "corpora": corpus.name if corpus else "none",
                    "pairs of the corpora": len(pairs),
                    "sha256 of the contexts": _digest_of_contexts(contexts),
                    **left_out.facts(),
                    **{name: value for name, value in facts.items() if "dialogues" in name},
                },
                measured={
                    "test, adversarial answers": [
                        one for own in test for one in _against(own, own.adversarial)
                    ],
                    "test, random answers": [
                        one for own in test for one in _against(own, own.random)
                    ],
                },
            ),
            corpus.texts if corpus else (),
            [text for own in learn for text in (*own.adversarial, *own.random)],
        )


def _mixed(own: WrittenAnswers, generator: np.random.Generator) -> list[Example]:
    """Returns the right answers, and as many wrong ones of both kinds."""
    wrong = (*own.adversarial, *own.random)
    chosen = generator.permutation(len(wrong))[: len(own.right)].tolist()
    return _against(own, [wrong[place] for place in chosen])


def _against(own: WrittenAnswers, wrong: Sequence[str]) -> list[Example]:
    from dialeval.training.examples.pair_corpus import Example

    return [
        *(Example(own.turns, answer, 1.0) for answer in own.right),
        *(Example(own.turns, answer, 0.0) for answer in wrong),
    ]


def _digest_of_contexts(contexts: Sequence[WrittenAnswers]) -> str:
    import hashlib

    sha = hashlib.sha256()
    for own in contexts:
        texts = (*own.turns, *own.right, *own.adversarial, *own.random)
        sha.update("\x1f".join(texts).encode("utf-8", "surrogatepass") + b"\x1e")
    return sha.hexdigest()


RULES = ("drop", "order", "repeat")


@dataclass(frozen=True, kw_only=True)
class Maude(SentenceHead):
    """Teach MAUDE to tell responses of people from broken and random ones."""

    name = "maude"
    metric = "maude"
    head = "turns"
    balanced = True

    pairs: int = option(15_000, "Learn from at most this many pairs; 0: from all.", low=0)
    edits: int = option(6_000, "Edit the responses of this many of these pairs.", low=0)
    held_out: int = held_out_option(600, "pairs each")

    units: tuple[int, ...] = field(default=(80, 200))
    """Width of the turns and of the LSTM (300 in the paper: 8 MB), and of the hidden layer."""

    @property
    def about(self) -> str:
        return (
            "Would people say this next? MAUDE: a recurrent network over frozen sentence vectors"
            " that learned right responses against edited and random ones."
        )

    def examples_of(self, data: Sequence[Path]) -> HeadExamples:
        import numpy as np

        from dialeval.training.examples.pair_corpus import (
            ExampleSets,
            corpus_facts,
            drawn,
            load_pairs,
            with_random_responses,
        )

        corpus = load_pairs(data, "weighted")
        pairs = drawn(corpus.train, self.pairs or None, np.random.default_rng([self.seed, 1]))
        edited = _edited(corpus, pairs[: self.edits], np.random.default_rng([self.seed, 2]))

        def of_epoch(epoch: int) -> list[Example]:
            generator = np.random.default_rng([self.seed, 3 + epoch])
            return [*with_random_responses(corpus.texts, pairs, generator), *edited]

        def held_out(own: Sequence[Pair]) -> tuple[list[Example], list[Example]]:
            generator = np.random.default_rng(0)
            some = drawn(own, self.held_out, generator)
            right_or_random = with_random_responses(corpus.texts, some, generator)
            return right_or_random, _edited(corpus, some, generator)

        validation, test = held_out(corpus.validation), held_out(corpus.test)
        of_test = {
            rule: [*test[0][::2], *test[1][place :: len(RULES)]] for place, rule in enumerate(RULES)
        }
        return HeadExamples(
            ExampleSets(
                of_epoch,
                [*validation[0], *validation[1]],
                corpus.digest(),
                corpus_facts(corpus)
                | {"pairs to learn from": len(pairs), "edited responses": len(edited)},
                measured={
                    "test, random utterances": test[0],
                    **{f"test, words by rule {rule}": own for rule, own in of_test.items()},
                },
            ),
            corpus.texts,
        )


def drop_words(words: Sequence[str], generator: np.random.Generator) -> list[str]:
    """Drops each word with probability .5; one word stays."""
    kept = [word for word in words if generator.random() < 0.5]
    return kept or [words[int(generator.integers(len(words)))]]


def shuffle_words(words: Sequence[str], generator: np.random.Generator) -> list[str]:
    return [words[place] for place in generator.permutation(len(words)).tolist()]


def repeat_words(words: Sequence[str], generator: np.random.Generator) -> list[str]:
    """Repeats one of the first two words from its place on, to the same number of words."""
    start = int(generator.integers(min(2, len(words))))
    return [*words[:start], *[words[start]] * (len(words) - start)]


def _edited(
    corpus: PairCorpus, pairs: Sequence[Pair], generator: np.random.Generator
) -> list[Example]:
    """Returns an edited response of each pair, by the rules in turn."""
    from dialeval.training.examples.pair_corpus import Example

    rules = (drop_words, shuffle_words, repeat_words)
    found = []
    for place, pair in enumerate(pairs):
        words = corpus.texts[pair.response].split()
        text = " ".join(rules[place % len(rules)](words, generator))
        # A response of one or two words can stay what it was: then it is no wrong one.
        target = float(text == " ".join(words))
        found.append(Example(corpus.turns(pair), text, target))
    return found


@dataclass(frozen=True, kw_only=True)
class PredictiveEngage(SentenceHead):
    """Teach a head which replies are engaging, from ratings of conversations.

    The data are rated conversations: convai2-human, engage, topical-chat, or a file of ConvAI 2017.
    """

    name = "predictive-engage"
    metric = "predictive-engage"
    head = "mean"
    balanced = True

    turns: int = 1
    epochs: int = epochs_option(60)
    patience: int = patience_option(10)
    dropout: float = option(0.5, "Drop this share of units (.8 in the paper).", low=0.0, high=0.9)
    per_source: int = option(
        5_000, "Learn from at most this many responses of each source; 0: from all.", low=0
    )

    units: tuple[int, ...] = field(default=(64, 32, 8))

    @property
    def about(self) -> str:
        return (
            "Is a reply engaging? A head on the mean of two frozen sentence vectors that learned"
            " from conversations that partners rated (3 of 5 or higher: engaging)."
        )

    def examples_of(self, data: Sequence[Path]) -> HeadExamples:
        import numpy as np

        from dialeval.training.examples.engagement import at_most_of_each, load_engagement
        from dialeval.training.examples.pair_corpus import ExampleSets

        found = load_engagement(data)
        generator = np.random.default_rng([self.seed, 1])
        learn = _engaging_examples(at_most_of_each(found.train, self.per_source, generator))
        validation = at_most_of_each(found.validation, self.per_source, generator)
        return HeadExamples(
            ExampleSets(
                lambda epoch: learn,
                _engaging_examples(validation),
                found.digest(),
                {
                    "sha256": found.digest(),
                    "replies to learn from": len(learn),
                    "of them engaging": sum(one.target > 0.5 for one in learn),
                    "replies to validate on": len(validation),
                    **found.left_out.facts(),
                },
                by_source={
                    source: _engaging_examples([one for one in validation if one.source == source])
                    for source in sorted({one.source for one in validation})
                },
            )
        )


def _engaging_examples(found: Sequence[Engaging]) -> list[Example]:
    """Labels: 3 of 5 is the middle of the scale, and counts as engaging."""
    from dialeval.training.examples.pair_corpus import Example

    return [Example(one.context[-1:], one.text, float(one.target >= 0.5)) for one in found]


FEWEST = 4
"""Turns of a dialogue: of fewer, one speaker has a single one."""


@dataclass(frozen=True, kw_only=True)
class DialogueHead(SentenceHead):
    """Teach a head on whole dialogues; held-out ones are put out of joint to test it."""

    turns: int = option(30, "Read at most this many turns before the last one.", low=3)
    dialogues: int = option(6_000, "Learn from at most this many dialogues; 0: from all.", low=0)
    held_out: int = held_out_option(300, "dialogues each")

    @abstractmethod
    def of_epoch(self, dialogues: Sequence[Dialogue], epoch: int) -> list[Example]:
        """Returns what is learned from in an epoch."""

    def examples_of(self, data: Sequence[Path]) -> HeadExamples:
        import numpy as np

        from dialeval.training.examples.corpora import load_unrated
        from dialeval.training.examples.pair_corpus import ExampleSets

        corpus, left_out = load_unrated(data)
        most_read = self.turns + 1
        train, validation, test = (
            long_dialogues(corpus.name, own, most_read, most, seed)
            for own, most, seed in (
                (corpus.train, self.dialogues, self.seed),
                (corpus.validation, self.held_out, 0),
                (corpus.test, self.held_out, 0),
            )
        )
        held_out = dialogues_and_wrong_ones(test, np.random.default_rng(0))
        return HeadExamples(
            ExampleSets(
                lambda epoch: self.of_epoch(train, epoch),
                dialogues_and_wrong_ones(validation, np.random.default_rng(0)),
                corpus.digest(),
                {"corpus": corpus.name, "sha256": corpus.digest(), **left_out.facts()}
                | {"dialogues to learn from": len(train)},
                measured={
                    "test, replaced utterances": [
                        one for n, one in enumerate(held_out) if n % 3 < 2
                    ],
                    "test, shuffled speakers": [
                        one for n, one in enumerate(held_out) if n % 3 != 1
                    ],
                },
            )
        )


@dataclass(frozen=True, kw_only=True)
class DynaEval(DialogueHead):
    """Teach DynaEval to tell real dialogues from copies with replaced or shuffled turns."""

    name = "dyna-eval"
    metric = "dyna-eval"
    head = "graph"
    balanced = True

    units: tuple[int, ...] = field(default=(48,))
    """Width of one direction of the LSTM."""

    @property
    def about(self) -> str:
        return (
            "Does a dialogue go as dialogues of people do? DynaEval: a graph of the turns over"
            " frozen sentence vectors that learned dialogues against replaced and shuffled ones."
        )

    def of_epoch(self, dialogues: Sequence[Dialogue], epoch: int) -> list[Example]:
        import numpy as np

        return dialogues_and_wrong_ones(dialogues, np.random.default_rng([self.seed, 2 + epoch]))


def long_dialogues(
    corpus: str, dialogues: Sequence[Dialogue], most_read: int, most: int, seed: int
) -> list[Dialogue]:
    """Draws dialogues that are long enough; 0: all. What is cut off their beginning is not read in
    another dialogue either."""
    import numpy as np

    from dialeval.training.examples.pair_corpus import drawn

    long = [dialogue[-most_read:] for dialogue in dialogues if len(dialogue) >= FEWEST]
    if len(long) < 2:
        raise UsageError(
            f"{corpus}: it takes two dialogues of {FEWEST} turns or more in each split"
            " to put an utterance of one into the other. Take more dialogues."
        )
    return drawn(long, most or None, np.random.default_rng([seed, 1]))


def replace_one(
    dialogue: Dialogue, other: Dialogue, generator: np.random.Generator
) -> tuple[str, ...]:
    """Returns the dialogue with one utterance of the other one in the place of one of its own."""
    turns = list(dialogue)
    turns[int(generator.integers(len(turns)))] = other[int(generator.integers(len(other)))]
    return tuple(turns)


def shuffle_speaker(dialogue: Dialogue, generator: np.random.Generator) -> tuple[str, ...]:
    """Returns the dialogue with what one speaker said in another order; two speakers take turns."""
    turns = list(dialogue)
    first = int(generator.integers(2))
    own = turns[first::2]
    turns[first::2] = [own[place] for place in generator.permutation(len(own)).tolist()]
    return tuple(turns)


TRIES = 10


def dialogues_and_wrong_ones(
    dialogues: Sequence[Dialogue], generator: np.random.Generator
) -> list[Example]:
    """Returns each dialogue as it is, replaced and shuffled."""
    from dialeval.training.examples.pair_corpus import Example

    found = []
    for place, dialogue in enumerate(dialogues):
        # Any dialogue but this one.
        step = 1 + int(generator.integers(len(dialogues) - 1))
        other = dialogues[(place + step) % len(dialogues)]
        replaced = shuffled = dialogue
        for _ in range(TRIES):
            if replaced == dialogue:
                replaced = replace_one(dialogue, other, generator)
            if shuffled == dialogue:
                shuffled = shuffle_speaker(dialogue, generator)
        # Where all that is said is the same, another order is no wrong one.
        found += [
            Example(turns[:-1], turns[-1], float(turns == dialogue))
            for turns in (dialogue, replaced, shuffled)
        ]
    return found


@dataclass(frozen=True, kw_only=True)
class FlowScore(DialogueHead):
    """Teach FlowScore to predict the next utterance of a dialogue."""

    name = "flow-score"
    metric = "flow-score"
    head = "flow"
    border = None

    units: tuple[int, ...] = field(default=(192,))
    """Width of the LSTM."""

    @property
    def about(self) -> str:
        return (
            "Does a dialogue go on as its flow foretells? FlowScore: an LSTM over frozen sentence"
            " vectors that learned what is said next."
        )

    def learner(self) -> type[FlowLearner]:
        from dialeval.training.learners.sentence_head import FlowLearner

        return FlowLearner

    def of_epoch(self, dialogues: Sequence[Dialogue], epoch: int) -> list[Example]:
        from dialeval.training.examples.pair_corpus import Example

        return [Example(turns[:-1], turns[-1], 1.0) for turns in dialogues]

    def measured(self, name: str, examples: Sequence[Example], logits: Any) -> dict[str, float]:
        from dialeval.training.learners.sentence_head import area_under_curve, targets_of

        area = area_under_curve(logits, targets_of(examples))
        return {f"AUC on {name} ({len(examples):,} examples)": area}

    def measure(self, prepared: PreparedHead, progress: Progress) -> Measures:
        from dialeval.training.learners.sentence_head import FlowLearner

        found, learner = super().measure(prepared, progress), prepared.learner
        assert isinstance(learner, FlowLearner)
        test = prepared.sets.measured["test, replaced utterances"]
        scores = {
            **found.scores,
            "squared distance from what was foretold, test": learner.distance(test),
            "squared distance from the mean vector, test": learner.distance_from_mean(test),
        }
        return Measures(scores, by_source=found.by_source)
