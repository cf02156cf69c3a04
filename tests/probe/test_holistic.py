"""All four metrics on the same dialogues, with made-up bots and models: numbers by hand."""

import json
import math

import numpy as np
import pytest
from made_up import HolisticModels
from scipy.stats import pearsonr, t

import dialeval
from dialeval.augment.queries import Query, QueryVariant
from dialeval.errors import UsageError
from dialeval.probe.holistic_result import Judged, mean_of, relations_among
from dialeval.sample import Turn
from dialeval.systems import ReplyError

from .made_up_bots import Bot

PLAIN_DIVERSITY = ["diversity:dispersion=false,n=1"]


def query(name, context=("Hello!", "Hi.")):
    return Query(
        name,
        f"{name} ?",
        tuple(Turn(text, who) for text, who in zip(context, ("user", "system"), strict=False)),
        variants=(
            QueryVariant(f"{name} in other words ?", "verbs", "ws"),
            QueryVariant(f"{name} once more ?", "nouns", "ws"),
            QueryVariant(f"something like {name} ?", "beam 1", "ctg"),
        ),
    )


def judge(*systems, queries, out, **more):
    settings = {
        "models": HolisticModels(),
        "metrics": PLAIN_DIVERSITY,
        "cache": out.parent / "answers.db",
    }
    return dialeval.holistic(*systems, queries=queries, out=out, **{**settings, **more})


def test_first_answers_groups_and_queries_put_again_are_scored_each_by_its_own_metrics(tmp_path):
    bot = Bot(lambda said: {"a": "yes", "b": "yes yes", "c": "no no no"}[letter(said)])
    result = judge(bot, queries=[query("a"), query("b"), query("c")], out=tmp_path / "h")
    # a query, its three variants, and after its answer a paraphrase of each augmenter
    assert len(bot.asked) == 3 * (1 + 3 + 2)
    assert ["Hello!", "Hi.", "a ?", "yes", "a in other words ?"] in bot.asked
    assert ["Hello!", "Hi.", "a ?", "yes", "something like a ?"] in bot.asked
    row = result.rows["bot"]
    assert list(result.columns) == [
        "coherence",
        "fluency",
        "diversity ws",
        "diversity ctg",
        "consistency plain",
        "consistency ws",
        "consistency ctg",
    ]
    assert {mean.n for mean in row.values()} == {3}
    # raw coherence -1, -2, -3; low = -2.9, so that (x - low) / 2.9 = 1.9/2.9, .9/2.9 and 0
    assert row["coherence"].value == pytest.approx((1.9 + 0.9) / 2.9 / 3)
    assert row["fluency"].value == 0.0  # all are alike
    assert row["diversity ws"].value == 0.0  # one word each
    # "no" contradicts with .75, everything else with .25
    assert row["consistency plain"].value == pytest.approx((0.75 + 0.75 + 0.25) / 3)
    assert row["consistency ctg"].value == pytest.approx((0.75 + 0.75 + 0.25) / 3)


def letter(said):
    """The query that was asked: its name is the only word of one letter."""
    return next(word for word in said[-1].split() if word in ("a", "b", "c"))


def test_each_augmenter_has_a_group_with_the_answer_to_the_query_itself(tmp_path):
    bot = Bot(lambda said: "x y" if said[-1] == "a ?" else "x z")
    result = judge(bot, queries=[query("a")], out=tmp_path / "h")
    # ws: x y, x z, x z: p(x) = 1/2, p(y) = 1/6, p(z) = 1/3; ctg: x y, x z: 1/2, 1/4, 1/4
    three = math.log(2) / 2 + math.log(6) / 6 + math.log(3) / 3
    assert result.rows["bot"]["diversity ws"].value == pytest.approx(three)
    assert result.rows["bot"]["diversity ctg"].value == pytest.approx(1.5 * math.log(2))
    shown = {query.id for query in dialeval.show(tmp_path / "h" / "variants")}
    assert shown == {"a (ws)", "a (ctg)"}


def test_a_failed_question_is_asked_again_and_the_runs_are_made_of_all_answers(tmp_path):
    def moody(said):
        if said[-1] == "b ?" and not well:
            raise ReplyError("busy")
        return f"fine {letter(said)}"

    well: list[int] = []
    queries = [query("a"), query("b")]
    bot = Bot(moody)
    first = judge(bot, queries=queries, out=tmp_path / "h").rows["bot"]
    assert (first["coherence"].n, first["consistency ws"].n) == (1, 1)
    before = len(bot.asked)
    well.append(1)
    second = judge(bot, queries=queries, out=tmp_path / "h")
    assert len(bot.asked) == before + 3  # the query, and what waited for its answer
    assert second.rows["bot"]["coherence"].n == second.rows["bot"]["consistency ws"].n == 2
    third = judge(bot, queries=queries, out=tmp_path / "h")
    assert third.rows == second.rows
    assert len(bot.asked) == before + 3


def test_a_query_without_a_variant_is_judged_by_its_answer(tmp_path):
    plain = [Query(name, f"{name} ?") for name in ("a", "b")]
    result = judge(Bot(), queries=plain, out=tmp_path / "h", with_=["ctg"])
    assert result.rows["bot"]["coherence"].n == 2
    assert result.rows["bot"]["consistency plain"].value is None
    assert "nothing said before" in result.rows["bot"]["consistency plain"].reason
    assert "diversity ctg" not in result.columns
    assert any("no query has a variant" in note for note in result.notes)


def test_two_systems_share_one_scale_and_a_third_can_join(tmp_path):
    def bot(name, words):
        made = Bot(lambda said: " ".join(["yes"] * words))
        made.name = name
        return made

    short, long, longer = bot("short", 1), bot("long/er", 3), bot("longest", 5)
    both = judge(short, long, queries=[query("a"), query("b")], out=tmp_path / "h")
    # raw -1, -1, -3, -3 on one scale with low = -3: 2/3 and 0
    assert both.rows["short"]["coherence"].value == pytest.approx(2 / 3)
    assert both.rows["long/er"]["coherence"].value == 0.0
    assert len(both.relations) == 1
    asked = len(short.asked)
    all_three = judge(short, long, longer, queries=[query("a"), query("b")], out=tmp_path / "h")
    assert list(all_three.rows) == ["short", "long/er", "longest"]
    assert [one.by for one in all_three.relations] == ["turn", "system"]
    assert len(short.asked) == asked
    # the scale of the first two, kept
    again = judge(
        *(short, long),
        queries=[query("a"), query("b")],
        out=tmp_path / "other",
        calibration=tmp_path / "h",
    )
    assert again.rows["short"]["coherence"].value == pytest.approx((5 - 1) / 5, abs=0.05)


def test_relations_are_pearsons_over_queries_across_levels():
    random = np.random.default_rng(3)
    coherence, diversity = random.normal(size=20), random.normal(size=20)
    judged = [
        *(Judged("bot", str(i), "coherence", "", float(x)) for i, x in enumerate(coherence)),
        *(Judged("bot", str(i), "diversity", "ws", float(x) - 1) for i, x in enumerate(diversity)),
        *(Judged("bot", str(i), "diversity", "ctg", float(x) + 1) for i, x in enumerate(diversity)),
        *(Judged("bot", str(i), "diversity", "random", 9.0 * i) for i in range(20)),
    ]
    (found,) = relations_among(judged, "h")
    expected = pearsonr(coherence, diversity)
    assert found.names == ("coherence", "diversity")
    assert found.values[0][1] == pytest.approx(expected.statistic)
    assert found.p[0][1] == pytest.approx(expected.pvalue)
    assert found.n[0][1] == 20


def test_a_mean_has_students_interval_and_says_what_is_missing():
    values = [0.1, 0.4, 0.7]
    judged = [Judged("bot", str(i), "fluency", "", value) for i, value in enumerate(values)]
    found = mean_of([*judged, Judged("bot", "x", "fluency", "", None, "empty response")])
    half = t.ppf(0.975, 2) * np.std(values, ddof=1) / math.sqrt(3)
    assert (found.low, found.high) == pytest.approx((0.4 - half, 0.4 + half))
    assert (found.n, found.total, found.reason) == (3, 4, "1 empty response")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"metrics": ["judge"]}, "HolisticEval has no metric 'judge'"),
        ({"names": ["one", "two"]}, "1 systems, but 2 names"),
        ({"queries": []}, "there is no query to ask"),
        ({"with_": ["eda"]}, "was made with other settings:\n  augmented_with.specs"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path, more, message):
    judge(Bot(), queries=[query("a")], out=tmp_path / "h")
    with pytest.raises(UsageError, match=message.replace(".", r"\.")):
        judge(Bot(), **{"queries": [query("a")], "out": tmp_path / "h", **more})


def test_a_command_that_failed_before_it_had_its_queries_binds_nobody(tmp_path):
    with pytest.raises(UsageError, match="no augmenter 'nothing'"):
        judge(Bot(), queries=[query("a")], out=tmp_path / "h", with_=["nothing"])
    assert (tmp_path / "h" / "holistic.json").is_file()
    result = judge(Bot(), queries=[query("a"), query("b")], out=tmp_path / "h")
    assert result.rows["bot"]["coherence"].n == 2


def test_systems_of_one_name_and_foreign_directories_are_refused(tmp_path):
    with pytest.raises(UsageError, match="two systems are called 'bot'"):
        judge(Bot(), Bot(), queries=[query("a")], out=tmp_path / "h")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(UsageError, match=r"it holds 'thesis.tex'"):
        judge(Bot(), queries=[query("a")], out=tmp_path / "mine")


def test_the_directory_holds_the_result_and_a_picture(tmp_path):
    result = judge(Bot(), queries=[query("a"), query("b"), query("c")], out=tmp_path / "h")
    record = json.loads((tmp_path / "h" / "result.json").read_text())
    assert record == json.loads(json.dumps(result.to_record()))
    assert record["relations"][0]["over"] == "queries"
    assert len(record["relations"][0]["pairs"]) == 6
    assert "<svg" in (tmp_path / "h" / "holistic.svg").read_text()
    means, pairs = result.tables()
    assert means.rows[0][0] == "bot"
    assert pairs.header == ("pair", "r", "p", "n")
