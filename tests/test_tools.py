"""Runs go to other tools, and ratings come from them: files of the form that the tools write."""

from __future__ import annotations

import json
import sys
import types
from typing import Any

import pytest

import dialeval
from dialeval.errors import InputError, UsageError
from dialeval.sample import Sample, Turn


@pytest.fixture
def run(tmp_path):
    samples = [
        Sample("t1", context=(Turn("Hi", "user"),), response="Ahoy there", system="pirate"),
        Sample("t2", context=(Turn("Bye", "user"),), response="", system="pirate"),
    ]
    return dialeval.score(samples, ["length", "bleu:n=2"], out=tmp_path / "first")


def test_langfuse_gets_a_score_for_each_value_with_the_id_of_the_trace(run, tmp_path):
    """The fields are those of `langfuse.api.CreateScoreRequest`."""
    dialeval.export(run, to="langfuse", out=tmp_path / "scores.json")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert [(s["traceId"], s["name"], s["value"]) for s in scores] == [
        ("t1", "length", 2.0),
        ("t2", "length", 0.0),
    ]
    known = {"id", "traceId", "name", "value", "dataType", "metadata", "comment"}
    assert all(set(score) <= known for score in scores)
    dialeval.export(run, to="langfuse", out=tmp_path / "again.json")
    assert [s["id"] for s in json.loads((tmp_path / "again.json").read_text())] == [
        s["id"] for s in scores
    ]


def test_scores_of_langfuse_observations_go_back_to_their_traces(tmp_path):
    """`CreateScoreRequest` takes `observationId` beside `traceId`."""
    asked, said = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ahoy there"}
    one = {"id": "o1", "traceId": "t1", "type": "GENERATION", "input": [asked], "output": said}
    path = tmp_path / "observations.jsonl"
    whole = {"id": "t3", "sessionId": "s", "input": "Hi", "output": "Ahoy", "observations": []}
    records = [one, {**one, "id": "o2"}, {**one, "id": "o3", "traceId": "t2", "sessionId": "s"}]
    path.write_text("".join(json.dumps(record) + "\n" for record in [*records, whole]))
    run = dialeval.score(dialeval.load(path), ["length"], out=tmp_path / "observed")
    dialeval.export(run, to="langfuse", out=tmp_path / "scores.json")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert [(s["traceId"], s.get("observationId"), s["value"]) for s in scores] == [
        ("t1", "o1", 2.0),
        ("t1", "o2", 2.0),
        ("t2", "o3", 2.0),
        ("t3", None, 1.0),
    ]
    assert len({score["id"] for score in scores}) == 4


def test_argilla_gets_records_that_come_back_as_the_same_texts(run, tmp_path):
    path = tmp_path / "records.json"
    dialeval.export(run, to="argilla", out=path)
    first = json.loads(path.read_text())[0]
    assert first["fields"] == {"context": "Hi", "response": "Ahoy there"}
    assert first["metadata"] == {"system": "pirate", "dialogue": "", "length": 2.0}
    back = list(dialeval.load(path))
    assert [(s.id, s.response, s.system) for s in back] == [
        ("t1", "Ahoy there", "pirate"),
        ("t2", "", "pirate"),
    ]


class Recorder:
    """Stands in for a module: keeps what it is called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, args, kwargs))
            if name == "get_experiment_by_name":
                return None
            if name == "create_run":
                return types.SimpleNamespace(info=types.SimpleNamespace(run_id="r"))
            return self

        return call


def test_mlflow_gets_means_signatures_and_the_table(run, tmp_path, monkeypatch):
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, "mlflow", recorder)
    dialeval.export(run, to="mlflow", out=tmp_path / "mlruns")
    calls = recorder.calls
    place = f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}"
    assert calls[0] == ("MlflowClient", (), {"tracking_uri": place})
    assert [args[1:] for name, args, _ in calls if name == "log_metric"] == [("pirate/length", 1.0)]
    assert [args[1] for name, args, _ in calls if name == "log_param"] == ["length", "bleu_n_2"]
    assert any(args[2] == "scores.csv" for name, args, _ in calls if name == "log_text")
    assert calls[-1][0] == "set_terminated"


def test_wandb_writes_an_offline_run(run, tmp_path, monkeypatch):
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, "wandb", recorder)
    dialeval.export(run, to="wandb", out=tmp_path / "wandb")
    (_, _, how), (_, _, table), (_, (logged,), _), last = recorder.calls
    assert (how["mode"], how["dir"]) == ("offline", str(tmp_path / "wandb"))
    assert table["data"][0] == ["t1", "pirate", "Hi", "Ahoy there", 2.0, None]
    assert logged["pirate/length"] == 1.0
    assert last[0] == "finish"


@pytest.mark.parametrize("tool", ["mlflow", "wandb"])
def test_a_tool_that_is_absent_or_has_no_folder_is_said(run, tmp_path, monkeypatch, tool):
    monkeypatch.setitem(sys.modules, tool, None)
    with pytest.raises(UsageError, match=f"pip install {tool}"):
        dialeval.export(run, to=tool, out=tmp_path / "folder")
    with pytest.raises(UsageError, match="name a folder with -o"):
        dialeval.export(run, to=tool)


TASKS = [
    {
        "id": 7,
        "data": {"context": "User: Hi!", "response": "Ahoy!", "system": "pirate"},
        "annotations": [
            {
                "id": 1,
                "completed_by": 3,
                "was_cancelled": False,
                "result": [
                    {"id": "a", "from_name": "overall", "to_name": "chat", "type": "rating",
                     "value": {"rating": 4}},
                    {"id": "b", "from_name": "fluency", "to_name": "chat", "type": "choices",
                     "value": {"choices": ["5"]}},
                    {"id": "c", "from_name": "why", "to_name": "chat", "type": "textarea",
                     "value": {"text": ["It is short."]}},
                ],
            },
            {
                "id": 2,
                "completed_by": {"id": 4, "email": "someone"},
                "was_cancelled": False,
                "result": [
                    {"id": "d", "from_name": "overall", "to_name": "chat", "type": "number",
                     "value": {"number": 2}}
                ],
            },
            {"id": 3, "completed_by": 5, "was_cancelled": True, "result": []},
        ],
        "predictions": [],
        "meta": {},
        "project": 1,
    },
    {"id": 8, "data": {"response": "Fine."}, "annotations": []},
]  # fmt: skip


def test_a_label_studio_export_is_read_with_its_ratings(tmp_path):
    path = tmp_path / "project-1.json"
    path.write_text(json.dumps(TASKS))
    samples = dialeval.load(path)
    first, second = list(samples)
    assert samples.formats == {str(path): "label-studio"}
    assert (first.id, first.response, first.context[0].text) == ("7", "Ahoy!", "Hi!")
    assert first.ratings["overall"].values == (4.0, 2.0)
    assert first.ratings["overall"].raters == ("3", "4")
    assert first.ratings["fluency"].values == (5.0, None)
    assert set(first.ratings) == {"overall", "fluency"}
    assert second.ratings == {}
    assert [p.field for p in samples.problems if p.severity == "warning"] == ["why[3]"]


RECORDS = [
    {
        "id": "r1",
        "status": "completed",
        "_server_id": "0f",
        "fields": {"context": "Hi!", "response": "Ahoy!"},
        "metadata": {"system": "pirate"},
        "suggestions": {},
        "vectors": {},
        "responses": {
            "overall": [{"value": 4, "user_id": "u1"}, {"value": 1, "user_id": "u2"}],
            "labels": [{"value": ["a", "b"], "user_id": "u1"}],
        },
    }
]


def test_records_of_argilla_are_read_with_their_ratings(tmp_path):
    path = tmp_path / "records.json"
    path.write_text(json.dumps(RECORDS))
    samples = dialeval.load(path)
    (one,) = list(samples)
    assert samples.formats == {str(path): "argilla"}
    assert (one.id, one.system) == ("r1", "pirate")
    assert one.ratings["overall"].values == (4.0, 1.0)
    assert set(one.ratings) == {"overall"}
    assert len([p for p in samples.problems if p.field == "labels[u1]"]) == 1


def test_raters_of_both_tools_can_be_compared(tmp_path):
    path = tmp_path / "project-1.json"
    tasks = [
        {**TASKS[1], "id": n, "annotations": [
            {"completed_by": rater, "result": [
                {"from_name": "overall", "type": "rating", "value": {"rating": 1 + (n + rater) % 5}}
            ]} for rater in (1, 2)]}
        for n in range(6)
    ]  # fmt: skip
    path.write_text(json.dumps(tasks))
    (report,) = dialeval.raters(path)
    assert (report.quality, report.report.n_items, report.report.n_raters) == ("overall", 6, 2)


def test_texts_under_other_names_are_named_with_columns(tmp_path):
    path = tmp_path / "project-1.json"
    path.write_text(json.dumps([{"id": 1, "data": {"bot": "Hi."}, "annotations": []}]))
    with pytest.raises(InputError, match="response"):
        list(dialeval.load(path))
    (one,) = dialeval.load(path, columns={"response": "bot"})
    assert one.response == "Hi."


# With the packages themselves, where they are installed: `pip install langfuse argilla
# label-studio-sdk wandb mlflow`. None of them talks to a server here.


own_warnings = pytest.mark.filterwarnings("ignore")
"""What other packages do that is deprecated is not our concern."""


def real(name: str) -> Any:
    return pytest.importorskip(name, reason=f"needs the package {name}")


@own_warnings
def test_langfuse_itself_takes_the_scores(run, tmp_path):
    request = real("langfuse.api").CreateScoreRequest
    parse = real("langfuse.api.core.pydantic_utilities").parse_obj_as
    dialeval.export(run, to="langfuse", out=tmp_path / "scores.json")
    for score in json.loads((tmp_path / "scores.json").read_text()):
        taken = parse(request, score)
        assert (taken.trace_id, taken.value) == (score["traceId"], score["value"])
        assert taken.data_type.value == "NUMERIC"


@own_warnings
def test_argilla_itself_reads_the_records(run, tmp_path):
    records = real("argilla.records._io")
    path = tmp_path / "records.json"
    dialeval.export(run, to="argilla", out=path)
    first, second = records.JsonIO._records_from_json(path)  # `records.from_json` adds a server
    assert (first.id, second.id) == ("t1", "t2")
    assert first.fields["response"] == "Ahoy there"
    assert first.metadata["length"] == 2.0
    assert first.api_model().external_id == "t1"


@own_warnings
def test_what_argilla_itself_writes_is_read_with_its_ratings(tmp_path):
    argilla = real("argilla")
    from uuid import UUID

    ann, bob = UUID(int=1), UUID(int=2)
    record = argilla.Record(
        id="r1",
        fields={"context": "Hi!", "response": "Ahoy!"},
        metadata={"system": "pirate"},
        responses=[
            argilla.Response("overall", 4, user_id=ann, status="submitted"),
            argilla.Response("overall", 2, user_id=bob, status="submitted"),
            argilla.Response("fluency", 1, user_id=bob, status="draft"),
        ],
    )
    path = tmp_path / "records.json"
    real("argilla.records._io").JsonIO.to_json([record], path)
    (one,) = dialeval.load(path)
    assert (one.id, one.response, one.system) == ("r1", "Ahoy!", "pirate")
    assert one.ratings["overall"].values == (4.0, 2.0)
    assert one.ratings["overall"].raters == (str(ann), str(bob))


LABEL_CONFIG = """<View>
  <Text name="chat" value="$response"/>
  <Rating name="overall" toName="chat"/>
  <Choices name="fluency" toName="chat"><Choice value="4"/><Choice value="5"/></Choices>
  <TextArea name="why" toName="chat"/>
</View>"""


@own_warnings
def test_the_tasks_of_these_tests_are_what_label_studio_itself_takes():
    interface = real("label_studio_sdk.label_interface").LabelInterface(LABEL_CONFIG)
    first = TASKS[0]["annotations"][0]
    assert interface._validate_object(first, return_errors=True) == []
    wrong = json.loads(json.dumps(first))
    wrong["result"][0]["value"] = {"stars": 4}
    assert interface._validate_object(wrong, return_errors=True) != []


@own_warnings
def test_wandb_itself_writes_a_run_that_its_own_schema_reads(run, tmp_path):
    wandb = real("wandb")
    internal = real("wandb.proto.wandb_internal_pb2")
    dialeval.export(run, to="wandb", out=tmp_path / "wandb")
    wandb.teardown()  # otherwise at the end of the process: its service writes the rest
    (file,) = tmp_path.rglob("*.wandb")
    records = [internal.Record.FromString(one) for one in leveldb_log(file.read_bytes())]
    (history,) = [one.history for one in records if one.WhichOneof("record_type") == "history"]
    logged = {tuple(item.nested_key): json.loads(item.value_json) for item in history.item}
    assert logged["pirate/length",] == 1.0
    assert (logged["scores", "nrows"], logged["scores", "ncols"]) == (2, 6)
    (table,) = tmp_path.rglob("*.table.json")
    assert json.loads(table.read_text())["data"][0] == ["t1", "pirate", "Hi", "Ahoy there", 2, None]


def leveldb_log(content: bytes) -> list[bytes]:
    """The records of a .wandb file: a header of 7 bytes, then the log format of LevelDB."""
    found, place, part = [], 7, b""
    while place + 7 <= len(content):
        room = 32768 - place % 32768
        if room < 7:
            place += room
            continue
        length, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        part += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            found.append(part)
            part = b""
    return found


@own_warnings
def test_mlflow_itself_has_the_means_the_signatures_and_the_table(run, tmp_path):
    real("alembic")
    mlflow = real("mlflow")
    for _ in range(2):
        dialeval.export(run, to="mlflow", out=tmp_path / "mlruns")
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlruns' / 'mlflow.db'}")
    place = client.get_experiment_by_name("dialeval").experiment_id
    first, second = client.search_runs([place])
    assert first.data.metrics == second.data.metrics == {"pirate/length": 1.0}
    assert first.data.params["length"].startswith("length|v")
    assert first.info.status == "FINISHED"
    (table,) = (tmp_path / "mlruns" / "artifacts" / first.info.run_id).rglob("scores.csv")
    assert "Ahoy there" in table.read_text()
