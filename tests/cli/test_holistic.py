"""`dialeval holistic` against a server on this machine, with made-up models."""

import json

import pytest
from made_up import HolisticModels
from systems.loopback import serving


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr("dialeval.chat_http.FIRST_WAIT", 0.01)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(
        "dialeval.scoring._built_in_models", lambda metrics, servers: HolisticModels()
    )
    with serving() as running:
        yield running


def write_queries(path, *words):
    with path.open("w") as file:
        for i, word in enumerate(words):
            variants = [{"query": f"{word} {how} {i}?", "by": how} for how in ("ws", "ctg")]
            record = {"id": f"q{i}", "query": f"{word} query {i}?", "variants": variants}
            file.write(json.dumps(record) + "\n")
    return str(path)


def test_one_command_prints_a_row_and_relations_and_leaves_runs(dialeval, server, tmp_path):
    queries = write_queries(tmp_path / "q.jsonl", "a", "b", "c")
    command = ("holistic", server.address, "--queries", queries, "-o", str(tmp_path / "h"))
    diversity = ("-m", "diversity:dispersion=false")
    done = dialeval(*command, *diversity)
    assert done.code == 0, done.err
    assert "consistency ctg" in done.out
    assert "coherence, fluency" in done.out
    assert f"picture: {tmp_path / 'h' / 'holistic.svg'}" in done.out
    record = json.loads(dialeval(*command, *diversity, "--json").out)
    assert record["systems"]["polite"]["coherence"]["n"] == 3
    assert record["probes"][0]["asked"] == 0  # all was there
    assert dialeval("show", str(tmp_path / "h" / "variants"), "--top", "1").code == 0
    assert "q0/first" in dialeval("export", str(tmp_path / "h" / "answers"), "--to", "csv").out


def test_bad_usage_is_one_line_and_exits_with_2(dialeval, server, tmp_path):
    queries = write_queries(tmp_path / "q.jsonl", "a")
    wrong = dialeval("holistic", server.address, "--queries", queries, "-o", str(tmp_path / "h"),
                     "-m", "coherent")  # fmt: skip
    assert (wrong.code, wrong.out) == (2, "")
    assert "HolisticEval has no metric 'coherent'. Did you mean 'coherence'?" in wrong.err
    missing = dialeval("holistic", server.address, "--queries", str(tmp_path / "no.txt"), "-o", "x")
    assert missing.code == 2
    assert "no.txt" in missing.err
