"""The data sets that dialeval knows by name: parts, files, and where the public copies lie.

`files.tsv` beside this file lists every file: its path below the data directory, size, sha256 and
public address. The hashes are those of the copies that dialeval was developed with. The addresses
were found in public repositories and their documentation, but never fetched from while this list
was written: where the bytes there differ, `get` says so and leaves the choice to the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

from dialeval.errors import UsageError, did_you_mean

Kind = Literal["rated", "corpus", "language"]
"""
rated     dialogues that people judged
corpus    dialogues to learn from; some carry ratings that the speakers themselves gave
language  what the metrics learn besides dialogue: inference pairs, facts of common sense
"""

Scale = tuple[int, int]


@dataclass(frozen=True, slots=True)
class File:
    """One file of a data set.

    name    its path below the folder of the set, with `/`
    sha256  of the copy that dialeval was developed and measured with
    url     its public address; `...zip#NAME` is the file called NAME in that archive. Empty where
            no address is known that serves this very file
    """

    name: str
    size: int
    sha256: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """What one reader reads of a data set: a file or a folder of it.

    qualities  what people rated -> (lowest, highest) rating
    """

    name: str
    path: str
    format: str
    items: int
    qualities: Mapping[str, Scale] = field(default_factory=dict)


@dataclass(frozen=True)
class Dataset:
    """A data set by name.

    place    its folder below the data directory
    items    how much it holds, in words
    raters   how many people judged an item, in words; empty where nobody did
    source   the page of its authors
    by_hand  how to get the files that have no public address; empty where all have one
    parts    what `dialeval.load` reads; empty where no reader makes samples of the set
    """

    name: str
    kind: Kind
    place: str
    summary: str
    items: str
    citation: str
    source: str
    licence: str
    raters: str = ""
    by_hand: str = ""
    parts: tuple[Part, ...] = ()
    files: tuple[File, ...] = ()

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def qualities(self) -> dict[str, tuple[Scale, ...]]:
        """Quality -> its scales; parts may use different ones under one name."""
        found: dict[str, dict[Scale, None]] = {}
        for part in self.parts:
            for quality, scale in part.qualities.items():
                found.setdefault(quality, {})[scale] = None
        return {quality: tuple(scales) for quality, scales in found.items()}

    def part(self, name: str) -> Part | None:
        return next((part for part in self.parts if part.name == name), None)


def _files(place: str) -> tuple[File, ...]:
    return tuple(
        File(path.removeprefix(place + "/"), int(size), sha256, url)
        for path, size, sha256, url in _ROWS
        if path.startswith(place + "/")
    )


def _rows() -> list[list[str]]:
    table = resources.files("dialeval.datasets").joinpath("files.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in table.splitlines()[1:]]


def _scales(scale: Scale, *qualities: str) -> dict[str, Scale]:
    return dict.fromkeys(qualities, scale)


_ROWS = _rows()
_FOLDERS: Mapping[Kind, str] = {"rated": "rated/", "corpus": "corpora/", "language": ""}
_FED_TURN = {
    **_scales((0, 2), "Interesting", "Engaging", "Specific", "Relevant", "Correct"),
    **_scales((0, 2), "Semantically appropriate", "Fluent"),
    **_scales((0, 1), "Understandable"),
    **_scales((0, 4), "Overall"),
}
_FED_DIALOGUE = {
    **_scales((0, 2), "Coherent", "Error recovery", "Diverse", "Depth", "Likeable"),
    **_scales((0, 2), "Understanding", "Flexible", "Informative", "Inquisitive"),
    **_scales((0, 1), "Consistent"),
    **_scales((0, 4), "Overall"),
}
_USR = {
    **_scales((0, 1), "Understandable", "Uses Knowledge"),
    **_scales((1, 3), "Natural", "Maintains Context", "Engaging"),
    **_scales((1, 5), "Overall"),
}
_DSTC9 = {
    **_scales((1, 3), "coherent", "diverse", "error_recovery", "flexible", "informative"),
    **_scales((1, 3), "inquisitive", "likeable", "topic_depth", "understanding"),
    **_scales((0, 1), "consistent"),
    **_scales((1, 5), "overall"),
}
_ZHAO = _scales((1, 5), "content", "grammar", "relevance", "appropriateness")


def _dstc10(name: str, items: int, qualities: Mapping[str, Scale]) -> Part:
    return Part(name, f"{name}_eval.json", "dstc10", items, qualities)


def _consistency(name: str, folder: str) -> Part:
    path, rated = f"self_consistency/{folder}", _scales((1, 5), "consistency")
    return Part(name, path, "holistic-consistency", 100, rated)


def _diversity(name: str, file: str) -> Part:
    return Part(name, f"augmented_dataset/Response_Diversity/{file}.csv", "holistic-diversity", 100)


def _daily(split: str, items: int) -> Part:
    return Part(split, f"{split}/dialogues_{split}.txt", "dailydialog", items)


def _topical(name: str, items: int) -> Part:
    return Part(
        name.replace("_", "-"),
        f"{name}.json",
        "topical-chat",
        items,
        _scales((1, 5), "turn_rating"),
    )


def _convai2(name: str, file: str, items: int) -> Part:
    return Part(name, f"{file}.json", "convai2", items, _scales((1, 5), "eval_score"))


def _dataset(kind: Kind, name: str, *, place: str = "", **facts: Any) -> Dataset:
    """Returns an entry with its files. The folder is that of its kind, unless `place` names one."""
    place = place or f"{_FOLDERS[kind]}{name}"
    return Dataset(name, kind, place, files=_files(place), **facts)


_ENTRIES = (
    _dataset(
        "rated",
        "fed",
        summary="FED: answers and whole dialogues of Meena, Mitsuku and people",
        items="375 turns, 125 dialogues",
        citation="Mehri & Eskenazi 2020a",
        source="https://github.com/maximedb/full",
        licence="not stated",
        raters="5",
        parts=(Part("all", "fed_data.json", "fed", 500, {**_FED_TURN, **_FED_DIALOGUE}),),
    ),
    _dataset(
        "rated",
        "usr-topical",
        summary="USR: 60 contexts of Topical-Chat, six answers each",
        items="360 turns",
        citation="Mehri & Eskenazi 2020b",
        source="https://github.com/Shikib/usr",
        licence="not stated",
        raters="3",
        parts=(Part("all", "tc_usr_data.json", "usr", 360, _USR),),
    ),
    _dataset(
        "rated",
        "dstc10",
        summary="12 of the 14 development sets of DSTC10 track 5, in its form",
        items="24025 turns, 125 dialogues",
        citation="Zhang et al. 2021",
        source="https://github.com/e0397123/dstc10_metric_track",
        licence="not stated",
        raters="3 to 11",
        by_hand="register at https://chateval.org/dstc10 and unzip human_evaluation_data.zip; the"
        " files of humod and dstc7 here were put back into that form from those of IM2 (Jiang et"
        " al. 2022), and the contexts of dstc7 have lost their stop words there",
        parts=(
            _dstc10("fed-turn", 375, _FED_TURN),
            _dstc10("fed-dial", 125, _FED_DIALOGUE),
            _dstc10("topical-usr", 360, _USR),
            _dstc10("dailydialog-zhao", 900, _ZHAO),
            _dstc10("dailydialog-grade", 300, _scales((1, 5), "relevance")),
            _dstc10("dailydialog-gupta", 500, _scales((1, 5), "overall")),
            _dstc10("persona-usr", 300, _USR),
            _dstc10("persona-zhao", 900, _scales((1, 5), "appropriateness")),
            _dstc10("convai2-grade", 600, _scales((1, 5), "relevance")),
            _dstc10("empathetic-grade", 300, _scales((1, 5), "relevance")),
            _dstc10("humod", 9500, {**_scales((1, 5), "relevance"), "language_usage": (1, 3)}),
            _dstc10("dstc7", 9990, _scales((1, 5), "informativeness", "overall", "relevance")),
        ),
    ),
    _dataset(
        "rated",
        "dstc9",
        summary="DSTC9 track 3: whole dialogues of people with eleven systems",
        items="2080 dialogues",
        citation="Gunasekara et al. 2020",
        source="https://github.com/ictnlp/DialoFlow",
        licence="MIT",
        raters="1 to 3",
        by_hand="the repository has ratings and dialogues in files of its own form; here they stand"
        " in one file, a dialogue a line, as `dialeval data formats` describes it (jsonl)",
        parts=(Part("all", "dialogues.jsonl", "jsonl", 2080, _DSTC9),),
    ),
    _dataset(
        "rated",
        "grade-dailydialog",
        summary="GRADE: answers of two systems to contexts of DailyDialog; only means are released",
        items="300 turns",
        citation="Huang et al. 2020",
        source="https://github.com/li3cmz/GRADE",
        licence="not stated",
        raters="8 to 11",
        parts=(Part("all", "", "grade", 300, _scales((1, 5), "coherence")),),
    ),
    _dataset(
        "rated",
        "holistic",
        summary="HolisticEval: coherence, fluency, self-consistency and diversity of one system",
        items="700 turns, 1118 groups",
        citation="Pang et al. 2020",
        source="https://github.com/alexzhou907/dialogue_evaluation",
        licence="not stated",
        raters="10",
        by_hand=(
            "the tenth rater of self_consistency and the released predictions (mnli.pred) were"
            " collected from the repository; the other raters can be fetched"
        ),
        parts=(
            Part(
                "coherence",
                "context_data_release.csv",
                "holistic",
                200,
                _scales((1, 5), "coherence"),
            ),
            Part(
                "fluency", "fluency_data_release.csv", "holistic", 200, _scales((1, 5), "fluency")
            ),
            _consistency("consistency", "baseline"),
            _consistency("consistency-ws", "word_net"),
            _consistency("consistency-ctg", "seq2seq"),
            _diversity("diversity-ws", "WS"),
            _diversity("diversity-ctg", "CTG"),
            Part("diversity-toy", "diversity_toy.txt", "holistic-toy", 918),
        ),
    ),
    _dataset(
        "rated",
        "engage",
        summary="Predictive Engagement: generated and human answers to queries of DailyDialog",
        items="600 turns",
        citation="Ghazarian et al. 2020",
        source="https://github.com/PlusLabNLP/PredictiveEngagement",
        licence="MIT",
        raters="3",
        parts=(
            Part(
                "all",
                "Eng_Scores_queries_gen_gtruth_replies.csv",
                "engage",
                600,
                _scales((1, 5), "engagement"),
            ),
        ),
    ),
    _dataset(
        "corpus",
        "dailydialog",
        summary="conversations for learners of English, with acts and emotions",
        items="13118 dialogues",
        citation="Li et al. 2017",
        source="http://yanran.li/dailydialog",
        licence="CC BY-NC-SA 4.0",
        parts=(_daily("train", 11118), _daily("validation", 1000), _daily("test", 1000)),
    ),
    _dataset(
        "corpus",
        "dailydialog++",
        summary="turns of DailyDialog with right, adversarial wrong and random wrong responses",
        items="2170 contexts with 15 responses each, 7641 with right ones only",
        citation="Sai et al. 2020",
        source="https://github.com/iitmnlp/DailyDialog-plusplus",
        licence="MIT",
        by_hand="dev.json, test.json and data_positives.json from the repository of its authors",
    ),
    _dataset(
        "corpus",
        "empathetic",
        summary="conversations about a feeling, one file for each of 32 emotions",
        items="24856 dialogues",
        citation="Rashkin et al. 2019",
        source="https://github.com/facebookresearch/EmpatheticDialogues",
        licence="CC BY-NC 4.0",
        by_hand="this form (columns Dialog_ID, Type, Actor, Text, Label) has no known address",
        parts=(Part("all", "", "empathetic", 24856),),
    ),
    _dataset(
        "corpus",
        "personachat",
        summary="conversations of people who were given a persona: the validation set of ConvAI2",
        items="1000 dialogues",
        citation="Zhang et al. 2018",
        source="https://parl.ai/projects/convai2",
        licence="not stated",
        by_hand="valid_other is part of what ParlAI downloads for its task convai2",
        parts=(Part("self", "valid_self_original_no_cands.txt", "personachat", 1000),),
    ),
    _dataset(
        "corpus",
        "topical-chat",
        summary="conversations of people about articles, every turn rated by the partner",
        items="1617 dialogues, 35143 turns",
        citation="Gopalakrishnan et al. 2019",
        source="https://github.com/alexa/Topical-Chat",
        licence="CDLA-Sharing-1.0",
        raters="1",
        parts=(
            _topical("valid_freq", 11681),
            _topical("valid_rare", 11692),
            _topical("test_rare", 11770),
        ),
    ),
    _dataset(
        "corpus",
        "convai2-human",
        summary="chats of people with the bots of ConvAI2, most of them rated by who chatted",
        items="4407 dialogues",
        citation="Dinan et al. 2019",
        source="http://convai.io/data",
        licence="not stated",
        raters="1",
        by_hand="the exports of July 2018 are known as files of the challenge, without an address",
        parts=(
            _convai2("volunteers", "data_volunteers", 1111),
            _convai2("intermediate", "data_intermediate", 291),
            _convai2("export-4", "export_2018-07-04_train", 427),
            _convai2("export-5", "export_2018-07-05_train", 438),
            _convai2("export-6", "export_2018-07-06_train", 723),
            _convai2("export-7", "export_2018-07-07_train", 1417),
        ),
    ),
    _dataset(
        "language",
        "nli",
        summary="pairs of sentences: entailment, neutral, contradiction (MNLI, SNLI, DECODE, ...)",
        items="102540 pairs",
        citation="Williams et al. 2018, and others",
        source="https://cims.nyu.edu/~sbowman/multinli",
        licence="MNLI terms, CC BY-SA, CC BY-NC-SA, MIT",
        by_hand=(
            "MNLI and SNLI from their authors' pages, SICK from its own,"
            " the dialogue pairs from https://github.com/GU-CLASP/DNLI, DECODE's contradictions in"
            " the form of ProSeCCo (decode/contradictions.tsv: seg1, seg2, label)"
        ),
    ),
    _dataset(
        "language",
        "conceptnet",
        place="lexical/conceptnet",
        summary="facts of common sense (CN-100K), synonyms and antonyms",
        items="102400 facts",
        citation="Li et al. 2016",
        source="https://ttic.uchicago.edu/~kgimpel/commonsense.html",
        licence="CC BY-SA 4.0",
        by_hand="CN-100K in this form (relation, head, tail) has no known address",
    ),
)

DATASETS: Mapping[str, Dataset] = {dataset.name: dataset for dataset in _ENTRIES}


def find_entry(name: str) -> tuple[Dataset, Part | None]:
    """Returns the data set called `name`, or the part `set/part`; raises `UsageError` if there is
    none."""
    whole, _, inner = name.partition("/")
    dataset = DATASETS.get(whole)
    if dataset is None:
        raise UsageError(f"no data set {name!r}.{did_you_mean(whole, DATASETS)} See: dialeval data")
    if not inner:
        return dataset, None
    if (part := dataset.part(inner)) is None:
        names = [part.name for part in dataset.parts]
        raise UsageError(
            f"the data set {whole!r} has no part {inner!r}.{did_you_mean(inner, names)}"
            f" Parts: {', '.join(names) or 'none'}"
        )
    return dataset, part
