"""`study pone`: from chatbots and raters to the tables of the paper, in small."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra 'models'")

from generation.tiny_networks import save_network  # noqa: E402
from training.made_up_topics import TOPICS, Topics  # noqa: E402

import dialeval  # noqa: E402
from dialeval.agreement.coefficient import Coefficient  # noqa: E402
from dialeval.errors import UsageError  # noqa: E402
from dialeval.sample import Rating, Sample, Turn  # noqa: E402
from dialeval.studies.pone_tables import (  # noqa: E402  # noqa: E402  # noqa: E402
    SWEEPS,
    TABLE_2,
    TABLE_7,
    TABLE_8,
    TABLE_9,
    average_gain,
    cell_of,
    columns_by_system,
    people_of,
    printed_column,
    printed_row,
    sweep_table,
    undefined,
)
from dialeval.studies.result import run_study, save_folder  # noqa: E402
from dialeval.studies.study import find_study  # noqa: E402

ASKED = ["length", "bleu:mode=released"]


def rate(records, path):
    """Three raters, from 1 to 6: answers on the topic of the query are better."""
    for number, record in enumerate(records):
        topic = next((t for t in TOPICS if t in record["context"][-1]["text"]), "?")
        good = 4 if topic in record["response"] else 1
        record["ratings"] = {
            "overall": {"values": [good, good + 1, good + number % 3], "scale": [1, 6]},
            "fluency": {"values": [1 + number % 6, 1 + number % 4, 2], "scale": [1, 6]},
        }
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def pairs(turns=1):
    generator = np.random.default_rng(3)
    for number in range(24):
        asked, answered = generator.choice(TOPICS, 2)
        before = [{"text": f"hello {number}"}] * (turns - 1)
        yield {
            "id": str(number),
            "context": [*before, {"text": f"what of {asked} {number}"}],
            "response": f"some {answered} {number}" + " indeed" * (number * number % 7),
            "references": [f"nice {asked}"],
        }


def test_the_average_gain_is_that_of_the_abstract():
    gains = [
        (getattr(rows["BERT-RUBER"], name), getattr(rows["PONE"], name))
        for rows in TABLE_7.values()
        for name in ("pearson", "spearman")
    ]
    assert average_gain(gains) == pytest.approx(0.1318, abs=1e-4)
    assert TABLE_2["Transformer Cornell"]["VX"].spearman_p == 0.47733
    assert TABLE_9["CopyNet Dailydialog"]["PONE EDA"].pearson == 0.47452


def test_a_row_of_a_generator_stands_beside_that_of_seq2seq():
    """All of Tables 7 and 8 are of Seq2Seq's positives; Table 9 has them under another name."""
    rows = ("PONE, ctg bot", "PONE-Ne, ctg bot, sum", "PONE-Ne, sum", "PONE EDA", "BERT-RUBER")
    for table, own in ((TABLE_7, "PONE"), (TABLE_9, "PONE Seq2Seq")):
        printed = table["CopyNet Dailydialog"]
        found = [printed_row(name, printed) for name in rows]
        assert found[0] == own
        assert found[3:] == ["PONE EDA", "BERT-RUBER"]
    assert [printed_row(name, TABLE_8["HRED Dailydialog"]) for name in rows[1:3]] == ["PONE-Ne"] * 2


def test_a_cell_is_the_largest_over_the_raters_as_released(golden):
    case = golden["human_agreement"]
    ratings = np.array(case["ratings_raters_x_items"], dtype=float).T
    samples = [
        Sample(str(i), (Turn("a"),), "b", ratings={"overall": Rating(tuple(row), (1.0, 6.0))})
        for i, row in enumerate(ratings.tolist())
    ]
    (column,) = columns_by_system(samples, "golden")
    cell = cell_of(case["metric"], column, "overall")
    released = case["metric_corr_PONE_released(max over annotators)"]
    standard = case["metric_corr_with_mean_rating(standard)"]
    for name in ("pearson", "spearman"):
        assert cell.largest[name].value == pytest.approx(released[name], abs=1e-9)
        assert cell.mean[name].value == pytest.approx(standard[name], abs=1e-9)
        assert people_of(column, "overall")[1][name].value == pytest.approx(
            case["human_max"][name], abs=1e-9
        )


def test_beside_a_column_stands_what_was_printed_of_such_a_system():
    assert printed_column("bots/my-transformer", TABLE_2) == "Transformer Dailydialog"
    assert printed_column("transformer-cornell", TABLE_2) == "Transformer Cornell"
    assert printed_column("copynet", TABLE_2) == "Seq2Seq-attn Dailydialog"
    assert printed_column("copynet", TABLE_7) == "CopyNet Dailydialog"
    assert printed_column("seq2seq-tencent", TABLE_7) == "Seq2Seq-attn Tencent"
    assert printed_column("usr-topical", TABLE_7) == "Seq2Seq-attn Dailydialog"
    assert printed_column("my-recosa", TABLE_8) == "ReCoSa Dailydialog"
    assert printed_column("usr-topical", TABLE_8) == "HRED Dailydialog"


def test_the_swept_values_have_the_released_ones_beside_them():
    ours = {"ours, P": [(0.05, 0.5), (1.0, 0.2)], "ours, S": [(0.05, 0.4)]}
    table = sweep_table("t", ours, SWEEPS["t"])
    assert table.rows == (("0.05", 0.5, 0.4, 0.421, 0.416), ("1", 0.2, None, 0.412, 0.415))


def test_what_is_undefined_is_counted():
    constant, known = Coefficient(None, 9, reason="constant"), Coefficient(0.5, 9)
    nothing = Coefficient(None, 0, reason="no pairs")
    found = [
        {"pearson": constant, "spearman": known},
        {"pearson": nothing, "spearman": nothing},
    ]
    assert undefined(found) == 1


def test_a_rated_set_gets_all_tables(corpora):
    path = rate(list(pairs(turns=2)), corpora / "mine.jsonl")
    study = find_study("pone")
    result = run_study(study, source=Topics(), metrics=ASKED, sets=[path], seeds=1)
    few = run_study(study, source=Topics(), metrics=ASKED, sets=[path], seeds=1, limit=10)
    assert next(row[1] for row in few.tables[1].rows if row[0] == "length") == "10"
    titles = [table.title for table in result.tables if not table.for_programs]
    numbers = [title.split(":")[0].removeprefix("Table ") for title in titles]
    assert numbers == ["1", "2", "3", "4", "6", "7", "8", "9"]
    tables = dict(zip(numbers, result.tables, strict=False))
    assert [row[0] for row in tables["2"].rows] == [
        "Human(Avg)", "Human(Max)", "BLEU-4", "length", "BERT-RUBER",
    ]  # fmt: skip
    stats = pytest.importorskip("scipy.stats")
    samples = list(dialeval.load(path))
    lengths = [float(len(sample.response.split())) for sample in samples]
    rated = np.array([sample.ratings["fluency"].values for sample in samples], dtype=float)
    row = next(row for row in tables["3"].rows if row[0] == "length")
    varied = [one for one in rated.T if len(set(one)) > 1]  # the third rater says 2 of everything
    found = [stats.pearsonr(lengths, one) for one in varied]
    assert row[2] == pytest.approx(max(one[0] for one in found))
    assert row[3] == pytest.approx(min(one[1] for one in found))
    assert row[6] == pytest.approx(stats.pearsonr(lengths, rated.mean(axis=1))[0])
    assert abs(row[6]) > 0.01
    rules = [row[0] for row in tables["8"].rows[2:]]
    assert "BERT-RUBER, sum" in rules
    assert "PONE, weighted" in rules
    assert tables["4"].rows[-1][0] == "printed"
    ours = [row for row in tables["6"].rows if row[0] == "ours"]
    assert [row[-1] for row in ours] == sorted(row[-1] for row in ours)
    assert 0 <= ours[0][-1] < ours[-1][-1] <= 1
    assert all(row[2].startswith("nice ") for row in ours)  # the true reply
    assert tables["2"].title.endswith("printed: Seq2Seq-attn Dailydialog)")
    assert result.rows[0].published.printed == "0.1318"
    assert "train seq2seq" in " ".join(result.notes)
    save_folder(result, corpora / "tables")
    written = {file.name for file in (corpora / "tables").iterdir()}
    assert written == {"tables.md", "tables.json", "tables.csv", "tables.tex"}


def test_systems_answer_are_rated_and_become_columns(corpora, monkeypatch):
    """The issue is the flow: ask, rate, tables by system, printed numbers of such a system."""
    bots = [save_network(corpora / "bots" / name, name, turns=1) for name in ("seq2seq", "hred")]
    out = corpora / "tables"
    monkeypatch.setattr("dialeval.studies.pone_scorers.BEAMS", {"max_new_tokens": 5})
    with pytest.raises(UsageError, match="name a folder, -o"):
        dialeval.study("pone", systems=bots)
    study = find_study("pone")
    save_folder(run_study(study, source=Topics(), systems=bots, limit=12), out)
    records = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    assert [record["system"] for record in records] == ["seq2seq"] * 12 + ["hred"] * 12
    assert all(len(record["context"]) == 1 and record["references"] for record in records)
    rated = rate(records, corpora / "rated.jsonl")
    result = run_study(
        study, source=Topics(), metrics=ASKED, systems=bots, raters=[rated], seeds=1, sweep=True
    )
    second = [table for table in result.tables if table.title.startswith("Table 2")]
    assert [table.title.split(",")[0] for table in second] == ["Table 2: seq2seq", "Table 2: hred"]
    printed = {row[0]: row[-4:] for row in second[0].rows}
    assert printed["BERT-RUBER"] == (0.4, 0.0002, 0.4247, 0.0)
    assert printed["length"] == (None,) * 4
    assert set(result.pictures) == {"sweep-t.svg", "sweep-k.svg"}
    swept = {table.title: table for table in result.tables if table.title.startswith("Sweep")}
    assert [row[0] for row in swept["Sweep of k"].rows] == ["1", "3", "5", "7", "9"]
    assert "released: Xiaohuangji, P" in result.pictures["sweep-t.svg"].svg()
    with pytest.raises(UsageError, match="no rated answers of recosa"):
        run_study(study, source=Topics(), systems=["bots/recosa"], raters=[rated])


def silent_at_times(history):
    """A chatbot that says nothing to some queries."""
    return "" if "cats" in history[-1]["content"] else "fine"


def mute(history):
    return " "


def test_a_chatbot_that_says_nothing_is_counted(corpora):
    """It reads all turns, and is asked where there are two."""
    heard, study = [], find_study("pone")
    bot = f"python:{__name__}:silent_at_times"
    with pytest.raises(UsageError, match="has a query after another turn"):
        run_study(study, source=Topics(), systems=[bot])
    other = corpora / "longer.jsonl"
    lines = [{"context": [f"hello {n}", f"do you like {TOPICS[n % len(TOPICS)]} {n}"],
              "response": f"well {n}"} for n in range(400)]  # fmt: skip
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    wanted = {"source": Topics(), "limit": 12, "corpus": other}
    asked = run_study(study, systems=[bot], progress=lambda *told: heard.append(told), **wanted)
    (table,) = asked.tables
    row = dict(zip(table.header, table.rows[0], strict=True))
    lines = asked.files["answers.jsonl"].splitlines()
    assert row["queries"] == "12"
    assert row["answers"] == str(len(lines))
    assert 0 < len(lines) < 12
    assert row["different"] == "1"
    assert f"--systems {bot} " in asked.notes[-1]
    assert heard[-1] == (100, 100)
    assert len(heard) > 2
    with pytest.raises(UsageError, match="answers none of 12 queries"):
        run_study(study, systems=[f"python:{__name__}:mute"], **wanted)


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        ({}, "say whose answers are judged"),
        ({"sets": ["a.jsonl"], "raters": ["b.db"]}, "say whose answers are judged"),
    ],
)
def test_what_does_not_say_whose_answers_is_refused(corpora, asked, wrong):
    with pytest.raises(UsageError, match=wrong):
        run_study(find_study("pone"), source=Topics(), **asked)


def test_other_studies_ask_no_chatbots():
    with pytest.raises(UsageError, match="asks no chatbot"):
        run_study(find_study("pone-bleu"), systems=["bots/hred"])
    with pytest.raises(UsageError, match="trains nothing"):
        run_study(find_study("pone-bleu"), pairs=10)
    with pytest.raises(UsageError, match="trains nothing"):
        run_study(find_study("pone-bleu"), corpus=Path("films"))


def test_scorers_learn_from_another_corpus_and_chatbots_answer_its_queries(corpora, monkeypatch):
    other = corpora / "others.jsonl"
    lines = [{"context": [f"say {t} {n}"], "response": f"{t} it is {n}"}
             for n in range(60) for t in TOPICS]  # fmt: skip
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setenv("DIALEVAL_DATA", str(corpora / "nothing-here"))
    study, path = find_study("pone"), rate(list(pairs()), corpora / "mine.jsonl")
    with pytest.raises(UsageError, match="'dailydialog' is not here"):
        run_study(study, source=Topics(), metrics=["length"], sets=[path], seeds=1)
    monkeypatch.setattr("dialeval.studies.pone_scorers.BEAMS", {"max_new_tokens": 5})
    bot = save_network(corpora / "bots" / "seq2seq", "seq2seq", turns=1)
    asked = run_study(study, source=Topics(), systems=[bot], limit=3, corpus=other)
    queries = [json.loads(line)["context"] for line in asked.files["answers.jsonl"].splitlines()]
    assert [query[-1]["text"][:4] for query in queries] == ["say "] * 3
    assert f"--corpus {other}" in asked.notes[-1]
    result = run_study(
        study, source=Topics(), metrics=["length"], sets=[path], seeds=1, corpus=other
    )
    negatives = next(table for table in result.tables if table.title.startswith("Table 4"))
    assert all(" it is " in row[1] for row in negatives.rows if row[0] == "ours")


def test_the_sizes_of_the_scorers_are_options():
    from dialeval.studies.pone_scorers import Sizes, variants

    found = variants("minilm-l6", sizes=Sizes(pairs=7, seeds=2), context="sum")
    assert {(one.pairs, one.seeds, one.context) for one in found.values()} == {(7, 2, "sum")}
    assert replace(found["PONE"], sampler="random") == found["PONE-Ne"]
