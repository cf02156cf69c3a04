import json
import random
import threading
import time
from dataclasses import replace

import pytest

import dialeval
from dialeval.augment.queries import Query, QueryVariant
from dialeval.errors import InputError, JobError, UsageError
from dialeval.probe import open_probe, probe
from dialeval.probe.directory import ProbeDirectory
from dialeval.probe.exchange import cut_torn_line
from dialeval.sample import Turn, Variant
from dialeval.systems import ReplyError, open_system

from .made_up_bots import Bot, queries


def samples(directory):
    return {sample.id: sample for sample in dialeval.load(directory)}


def test_diversity_asks_every_wording_in_the_place_of_the_query(tmp_path):
    bot = Bot()
    probe(bot, queries(1), tmp_path / "p", protocol="diversity")
    history = ["Hello!", "Hi."]
    words = ["query 1", "wording 1 of 1", "wording 2 of 1"]
    assert bot.asked == [[*history, text] for text in words]
    (sample,) = samples(tmp_path / "p").values()
    assert sample.context == (Turn("Hello!", "user"), Turn("Hi.", "system"))
    assert sample.variants == tuple(Variant(text, f"re: {text}") for text in words)
    assert sample.response is None
    assert (sample.system, sample.dialogue) == ("bot", "q1")


def test_consistency_puts_a_paraphrase_after_the_answer(tmp_path):
    bot = Bot()
    probe(bot, queries(1), tmp_path / "p", protocol="consistency", paraphrases=2)
    said = ["Hello!", "Hi.", "query 1"]
    first, second = (
        [*said, "re: query 1", "wording 1 of 1"],
        [*said, "re: query 1", "wording 2 of 1"],
    )
    assert bot.asked == [said, first, second]
    found = samples(tmp_path / "p")
    assert [turn.text for turn in found["q1/consistency-1"].context] == first
    assert [turn.speaker for turn in found["q1/consistency-1"].context] == [
        "user",
        "system",
    ] * 2 + ["user"]
    assert found["q1/consistency-2"].response == "re: wording 2 of 1"
    assert found["q1/consistency-1"].variants == ()


def test_both_protocols_share_the_query_itself(tmp_path):
    bot = Bot()
    summary = probe(bot, queries(2), tmp_path / "p")
    assert len(bot.asked) == 2 * (1 + 2 + 1)
    assert summary.samples == {"diversity": 2, "consistency": 2}
    assert (summary.asked, summary.answered, summary.failed) == (8, 8, 0)


def test_facts_are_told_before_the_dialogue(tmp_path):
    bot = Bot()
    probe(bot, [replace(queries(1)[0], facts=("I am Bob.", "I am 7."))], tmp_path / "p")
    assert bot.asked[0] == ["I am Bob.\nI am 7.", "Hello!", "Hi.", "query 1"]
    exchange = open_probe(tmp_path / "p").exchanges["q1", "original"]
    assert [m["role"] for m in exchange.messages] == ["system", "user", "assistant", "user"]
    assert samples(tmp_path / "p")["q1/diversity"].facts == ("I am Bob.", "I am 7.")
    assert len(samples(tmp_path / "p")["q1/diversity"].context) == 2


def test_the_result_does_not_depend_on_the_order_in_which_replies_come(tmp_path):
    def late(said):
        time.sleep(random.Random(said[-1]).uniform(0.0, 0.02))
        return f"re: {said[-1]} {len(said)}"

    one, many = Bot(late), Bot(late, at_once=8)
    probe(one, queries(12), tmp_path / "one")
    probe(many, queries(12), tmp_path / "many")
    assert sorted(one.asked) == sorted(many.asked)
    assert one.asked != many.asked
    for name in ("samples.jsonl", "queries.jsonl", "probe.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()
    assert list(open_probe(tmp_path / "one").exchanges) == list(
        open_probe(tmp_path / "many").exchanges
    )


def test_what_fails_costs_itself_and_is_counted(tmp_path):
    def moody(said):
        if said[-1] == "wording 1 of 1":
            raise ReplyError("tired", "not now")
        if said[-1] == "query 2":
            raise ValueError("no such thing")
        return "" if said[-1] == "wording 2 of 3" else f"re: {said[-1]}"

    summary = probe(Bot(moody), queries(4), tmp_path / "p")
    assert {f.reason: f.count for f in summary.failures} == {
        "tired": 2,
        "ValueError": 1,
        "empty reply": 1,
    }
    assert summary.failures[0].examples == ("q1, variant 1: not now", "q1, again 1: not now")
    found = samples(tmp_path / "p")
    assert [v.query for v in found["q1/diversity"].variants] == ["query 1", "wording 2 of 1"]
    assert [v.query for v in found["q2/diversity"].variants] == ["wording 1 of 2", "wording 2 of 2"]
    assert "q1/consistency-1" not in found
    assert "q2/consistency-1" not in found
    assert {"q3/consistency-1", "q4/consistency-1"} <= set(found)
    assert (summary.gaps.variants, summary.gaps.diversity, summary.gaps.consistency) == (3, 0, 2)


def test_a_probe_goes_on_and_asks_only_what_is_missing(tmp_path):
    asked_first = []

    def dies_soon(said):
        asked_first.append(said)
        if len(asked_first) > 5:
            raise KeyboardInterrupt
        return f"re: {said[-1]}"

    class Dying(Bot):
        def reply(self, history):
            try:
                return super().reply(history)
            except KeyboardInterrupt as stop:
                raise ReplyError("stopped") from stop

    probe(Dying(dies_soon), queries(4), tmp_path / "p")
    bot = Bot()
    summary = probe(bot, queries(4), tmp_path / "p")
    assert len(bot.asked) == 4 * 4 - 5
    assert not [said for said in bot.asked if said in asked_first[:5]]
    assert (summary.asked, summary.answered) == (11, 16)
    whole = Bot()
    probe(whole, queries(4), tmp_path / "whole")
    assert (tmp_path / "p/samples.jsonl").read_bytes() == (
        tmp_path / "whole/samples.jsonl"
    ).read_bytes()
    again = Bot()
    assert probe(again, queries(4), tmp_path / "p").asked == 0
    assert again.asked == []


def test_a_torn_last_line_is_asked_again(tmp_path):
    probe(Bot(), queries(2), tmp_path / "p")
    recorded = tmp_path / "p/exchanges.jsonl"
    content = recorded.read_bytes()
    recorded.write_bytes(content[:-20])
    bot = Bot()
    assert probe(bot, queries(2), tmp_path / "p").asked == 1
    assert [said[-1] for said in bot.asked] == ["wording 1 of 2"]
    assert len(recorded.read_bytes().splitlines()) == len(content.splitlines())


@pytest.mark.parametrize("torn", [b"", b"x", b"x" * 200_000])
@pytest.mark.parametrize("whole", [b"", b"one\n", b"one\ntwo\n", b"y" * 70_000 + b"\n"])
def test_only_what_follows_the_last_line_end_is_dropped(tmp_path, whole, torn):
    path = tmp_path / "exchanges.jsonl"
    path.write_bytes(whole + torn)
    cut_torn_line(path)
    assert path.read_bytes() == whole


def test_a_damaged_line_in_the_middle_is_named(tmp_path):
    probe(Bot(), queries(1), tmp_path / "p")
    recorded = tmp_path / "p/exchanges.jsonl"
    lines = recorded.read_text().splitlines()
    recorded.write_text("\n".join([lines[0], lines[1][:-9], *lines[2:]]) + "\n")
    with pytest.raises(InputError, match=r"exchanges\.jsonl:2: is damaged"):
        open_probe(tmp_path / "p")


def test_other_settings_are_refused_and_named(tmp_path):
    bot = Bot()
    bot.settings = {"temperature": 0.5, "kind": "made up"}
    probe(bot, queries(1), tmp_path / "p")
    other = Bot()
    other.settings = {"kind": "made up"}
    with pytest.raises(UsageError) as caught:
        probe(other, queries(2), tmp_path / "p", protocol="diversity")
    said = str(caught.value)
    assert "system.temperature: 0.5 there, not set here" in said
    assert 'protocol: "both" there, "diversity" here' in said
    assert "queries.count: 1 there, 2 here" in said
    assert "system.kind" not in said
    assert "--overwrite" in said
    summary = probe(other, queries(2), tmp_path / "p", protocol="diversity", overwrite=True)
    assert summary.asked == 6
    assert set(samples(tmp_path / "p")) == {"q1/diversity", "q2/diversity"}


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match=r"thesis\.txt"):
        probe(Bot(), queries(1), tmp_path, overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "precious"


def test_one_process_at_a_time(tmp_path):
    with (
        ProbeDirectory(tmp_path / "p").exclusive(),
        pytest.raises(JobError, match="another process"),
    ):
        probe(Bot(), queries(1), tmp_path / "p")


def test_a_system_that_is_down_is_not_asked_for_ever(tmp_path):
    def down(said):
        raise ReplyError("cannot connect", "refused", down=True)

    bot = Bot(down)
    with pytest.raises(JobError, match=r"seems to be down \(cannot connect: refused\)"):
        probe(bot, queries(100), tmp_path / "p")
    assert len(bot.asked) == 10
    with pytest.raises(InputError, match="unfinished"):
        samples(tmp_path / "p")
    assert probe(Bot(), queries(100), tmp_path / "p").answered == 400


@pytest.mark.parametrize("at_once", [1, 8])
def test_a_refusal_that_holds_for_all_questions_is_met_once(tmp_path, at_once):
    def refuse(said):
        raise ReplyError("HTTP 401", "bad key", down=True, advice="Check the key: --key-env.")

    bot = Bot(refuse, at_once=at_once)
    with pytest.raises(JobError, match=r"refuses \(HTTP 401: bad key\)\. Check the key"):
        probe(bot, queries(20), tmp_path / "p")
    assert len(bot.asked) == 1
    assert probe(Bot(), queries(20), tmp_path / "p").answered == 80


def test_a_refusal_after_an_answer_costs_its_question_only(tmp_path):
    def moody(said):
        if said[-1] == "wording 1 of 3":
            raise ReplyError("HTTP 403", down=True, advice="Check the key.")
        return "fine"

    assert probe(Bot(moody), queries(4), tmp_path / "p", protocol="diversity").failed == 1


def test_a_first_question_that_hangs_does_not_hold_up_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr("dialeval.probe.exchange.ALONE", 0.05)
    others = threading.Event()

    def slow_start(said):
        if said[-1] == "query 1" and len(said) == 3:
            assert others.wait(10)
        elif said[-1] == "wording 2 of 4":
            others.set()
        return "fine"

    summary = probe(Bot(slow_start, at_once=2), queries(4), tmp_path / "p", protocol="diversity")
    assert summary.answered == 12


def test_failures_of_single_questions_never_count_as_down(tmp_path):
    bot = Bot(lambda said: "")
    assert probe(bot, queries(30), tmp_path / "p").failed == len(bot.asked) == 90


def test_queries_without_variants_are_augmented_and_those_with_some_are_not(tmp_path):
    plain = [Query("q1", "Do you like big dogs and small cats?")]
    bot = Bot()
    probe(bot, plain, tmp_path / "p", protocol="diversity", augment=["eda"], seed=1)
    assert len(bot.asked) > 2
    asked = Bot()
    assert (
        probe(asked, plain, tmp_path / "p", protocol="diversity", augment=["eda"], seed=1).asked
        == 0
    )
    given = Bot()
    probe(given, queries(1), tmp_path / "q", protocol="diversity")
    assert len(given.asked) == 3


def test_queries_without_any_variant_are_not_asked(tmp_path):
    bot = Bot()
    summary = probe(bot, [*queries(1), Query("bare", "Alone?")], tmp_path / "p")
    assert summary.bare == 1
    assert not [said for said in bot.asked if "Alone?" in said]
    with pytest.raises(UsageError, match="nothing to compare"):
        probe(bot, [Query("bare", "Alone?")], tmp_path / "q", augment=[])


def test_a_variant_that_is_the_query_again_is_left_out_and_counted(tmp_path):
    """As in HolisticEval's releases: lower case, punctuation apart."""
    again, other = QueryVariant("alone ?", "nouns"), QueryVariant("by yourself ?", "verbs")
    given = [
        Query("q1", "Alone?", variants=(again, other)),
        Query("q2", "Alone?", variants=(again,)),
    ]
    bot = Bot()
    summary = probe(bot, given, tmp_path / "p")
    assert [said[-1] for said in bot.asked] == ["Alone?", "by yourself ?", "by yourself ?"]
    assert (summary.variants, summary.unchanged, summary.bare) == ({"verbs": 1}, 2, 1)
    assert probe(Bot(), given, tmp_path / "p").unchanged == 2


def test_a_recording_can_be_replayed(tmp_path):
    probe(Bot(lambda said: f"{len(said)} {said[-1]}"), queries(5), tmp_path / "p")
    replay = open_system(f"replay:{tmp_path / 'p'}")
    summary = probe(replay, queries(5), tmp_path / "again", name="bot")
    assert summary.failed == 0
    assert (tmp_path / "again/samples.jsonl").read_bytes() == (
        tmp_path / "p/samples.jsonl"
    ).read_bytes()


def test_a_reply_may_hold_any_kind_of_line_end(tmp_path):
    odd = "one\u2028two\x85three"
    probe(Bot(lambda said: odd), queries(1), tmp_path / "p", protocol="diversity")
    (sample,) = open_probe(tmp_path / "p").samples
    assert {variant.response for variant in sample.variants} == {odd}


def test_a_batch_that_fails_costs_one_question(tmp_path):
    sizes = []

    class Batched(Bot):
        batch = 4

        def replies(self, histories):
            sizes.append(len(histories))
            return [self.reply(history) for history in histories]

    def moody(said):
        if said[-1] == "wording 2 of 2":
            raise RuntimeError("bad luck")
        return f"re: {said[-1]}"

    bot = Batched(moody)
    summary = probe(bot, queries(4), tmp_path / "p", protocol="diversity")
    assert summary.failed == 1
    assert summary.answered == 11
    assert sizes == [4, 4, 4]


def test_every_exchange_is_on_the_disk_when_it_ends(tmp_path):
    path = tmp_path / "p/exchanges.jsonl"
    seen = []

    def look(said):
        seen.append(len(path.read_bytes().splitlines()) if path.exists() else 0)
        return "fine"

    probe(Bot(look), queries(2), tmp_path / "p", protocol="diversity")
    assert seen == list(range(6))
    for line in path.read_text().splitlines():
        assert json.loads(line)["reply"] == "fine"
