import json

import pytest

import dialeval
from dialeval.augment import Query, QueryVariant, read_queries, write_queries
from dialeval.augment.queries import query_of
from dialeval.errors import InputError, JobError, UsageError
from dialeval.sample import Sample, Turn


def lines(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_what_is_written_is_read_back_unchanged(tmp_path):
    queries = [
        Query(
            "a",
            "User: who?\n",
            (Turn("Hi!", "system"), Turn("User: x")),
            ("Be kind.",),
            (QueryVariant("Whom?", "verbs"), QueryVariant("who?", "")),
        ),
        Query("b", "Zoë 🙂"),
    ]
    assert write_queries(queries, tmp_path / "q.jsonl") == 2
    assert list(read_queries(tmp_path / "q.jsonl")) == queries


def test_the_written_form_is_the_one_that_is_documented(tmp_path):
    query = Query("a", "Who?", (Turn("Hi!", "system"),), variants=(QueryVariant("Whom?", "nouns"),))
    write_queries([query], tmp_path / "q.jsonl")
    assert json.loads((tmp_path / "q.jsonl").read_text()) == {
        "id": "a",
        "context": [{"speaker": "system", "text": "Hi!"}],
        "query": "Who?",
        "variants": [{"query": "Whom?", "how": "nouns"}],
    }


def test_a_text_file_holds_a_query_per_line(tmp_path):
    (tmp_path / "q.txt").write_text("How are you?\r\n\n  What time is it? \n")
    assert list(read_queries(tmp_path / "q.txt")) == [
        Query("q-000001", "How are you?"),
        Query("q-000002", "What time is it?"),
    ]


def test_a_context_without_a_query_ends_in_it(tmp_path):
    path = lines(tmp_path / "q.jsonl", {"id": 7, "context": ["Hi.", "Hello.", "Who are you?"]})
    assert list(read_queries(path)) == [Query("7", "Who are you?", (Turn("Hi."), Turn("Hello.")))]


@pytest.mark.parametrize("text", ['["One?", "Two?"]', '"One?"\n"Two?"\n'])
def test_plain_json_texts_are_queries(tmp_path, text):
    (tmp_path / "q.json").write_text(text)
    assert [query.query for query in read_queries(tmp_path / "q.json")] == ["One?", "Two?"]


def test_the_query_of_a_chat_is_what_the_user_said_before_each_answer(tmp_path):
    said = [("system", "Be kind."), ("user", "Hi!"), ("assistant", "Hello."), ("user", "Who?")]
    said.append(("assistant", "Bob."))
    messages = [{"role": role, "content": text} for role, text in said]
    path = lines(tmp_path / "chat.jsonl", {"id": "c", "messages": messages})
    for asked, facts in (("leave-out", ()), ("facts", ("Be kind.",))):
        assert list(read_queries(path, system_prompt=asked)) == [
            Query("c#1", "Hi!", (), facts),
            Query("c#3", "Who?", (Turn("Hi!", "user"), Turn("Hello.", "system")), facts),
        ]
    assert list(read_queries(path)) == list(read_queries(path, system_prompt="leave-out"))


@pytest.mark.parametrize(
    ("name", "record"),
    [
        (
            "chat",
            lambda said: {"id": "c", "messages": [{"role": r, "content": t} for r, t in said]},
        ),
        (
            "sharegpt",
            lambda said: {"id": "c", "conversations": [{"from": r, "value": t} for r, t in said]},
        ),
    ],
)
def test_what_a_user_said_last_in_a_chat_is_asked_though_nobody_answered(tmp_path, name, record):
    said = [("user", "Hi!"), ("assistant", "Hello."), ("user", "Who?")]
    path = lines(tmp_path / f"{name}.jsonl", record(said), {**record(said[:1]), "id": "d"})
    queries = read_queries(path)
    assert list(queries) == [
        Query("c#1", "Hi!"),
        Query("c#3", "Who?", (Turn("Hi!", "user"), Turn("Hello.", "system"))),
    ]  # and "Hi!" of the second chat was asked already
    [note] = queries.counts.kept
    assert "1 samples have the context of an earlier one" in str(note)
    assert [sample.id for sample in dialeval.load(path)] == ["c#1"]  # there is one to judge


def test_a_system_prompt_is_asked_for_in_vain_where_there_is_no_chat_log(tmp_path):
    (tmp_path / "q.txt").write_text("Who?\n")
    with pytest.raises(UsageError, match="is for chat logs"):
        read_queries(tmp_path / "q.txt", system_prompt="facts")


def test_a_context_that_rival_systems_answered_is_asked_once(tmp_path):
    rows = [{"id": i, "context": ["Hi?"], "response": r} for i, r in enumerate("ab")]
    queries = read_queries(lines(tmp_path / "d.jsonl", *rows))
    assert [query.id for query in queries] == ["0"]
    assert "1 samples have the context of an earlier one" in str(queries.counts.kept[0])


def test_a_turn_of_the_system_is_never_the_query():
    context = (Turn("Hi?", "user"), Turn("Hello.", "system"), Turn("Still there?", "system"))
    assert query_of(Sample("a", context, "Well.")) == Query("a", "Hi?")
    assert query_of(Sample("a", context[1:], "Well.")) is None


def test_all_bad_lines_are_reported_with_file_line_and_field(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text(
        '{"query": "fine"}\n{broken\n{"query": 3}\n{"id": 4}\n{"query": "  "}\n[1]\n'
        '{"query": "x", "variants": [{"how": "a"}, 5]}\n{"id": "q-000001", "query": "again"}\n'
    )
    with pytest.raises(InputError) as failed:
        list(read_queries(path))
    found = [(problem.line, problem.field) for problem in failed.value.problems]
    assert found == [
        (2, ""),
        (3, "query"),
        (4, "query"),
        (5, "query"),
        (6, ""),
        (6, "query"),
        (7, "variants[0].query"),
        (7, "variants[1]"),
        (8, "id"),
    ]
    assert [query.query for query in read_queries(path, bad="skip")] == ["fine"]


def test_binary_and_missing_files_are_refused(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"\x00\x01\x02" * 50)
    (tmp_path / "e.txt").write_text("")
    for name in ("x.txt", "e.txt", "none.txt"):
        with pytest.raises(InputError, match=name):
            read_queries(tmp_path / name)


def test_files_of_the_same_name_do_not_clash(tmp_path):
    paths = []
    for folder in "ab":
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "q.txt")
        paths[-1].write_text(f"{folder}?\n")
    assert [query.id for query in read_queries(*paths)] == ["q-000001", "q-2-000001"]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text("old")

    def queries():
        yield Query("a", "x")
        raise JobError("stopped")

    with pytest.raises(JobError):
        write_queries(queries(), path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["q.jsonl"]


def test_a_data_set_goes_by_its_name(datasets, monkeypatch):
    monkeypatch.setenv("DIALEVAL_DATA", str(datasets))
    assert len(list(read_queries("holistic/coherence"))) == 200
    with pytest.raises(InputError, match="Did you mean 'holistic/coherence'"):
        read_queries("holstic/coherence")
