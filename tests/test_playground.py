"""The playground: what it answers, and what its server lets in."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ptxmm.analysis.strength.dials import Turn, dials, turned
from ptxmm.cat import index, left_out_of, load
from ptxmm.cli.asking import Answering
from ptxmm.cli.serve import LOCAL
from ptxmm.cli.settings import Settings
from ptxmm.formats.litmus import parse, write
from ptxmm.formats.patch import Rewrite, patched
from ptxmm.web.answers import answer
from ptxmm.web.gallery import RuleEntry, models
from ptxmm.web.rate import Rate
from ptxmm.web.requests import MOST_BYTES
from ptxmm.web.server import HEADERS, Serving, application
from tests.commands import Run
from tests.playground_texts import KERNEL, ROWS
from tests.support import ROOT

LITMUS = ROOT / "litmus"
PAGE = ROOT / "ptxmm" / "web" / "page"
MP = (LITMUS / "mp" / "MP+rel+acq.litmus").read_text(encoding="utf-8")
SB = (LITMUS / "sb" / "SB+fence.sc.litmus").read_text(encoding="utf-8")


def ask(kind: str, text: str = MP, **fields: Any) -> dict[str, Any]:
    """The answer to a request, in this process."""
    found: dict[str, Any] = json.loads(answer(json.dumps({"ask": kind, "text": text, **fields}).encode(), 30))
    return found


def rows(found: dict[str, Any]) -> set[tuple[str, ...]]:
    return {tuple(row["values"]) for row in found["rows"]}


# -- Answers


def test_a_verdict_with_all_final_states() -> None:
    found = ask("check")
    assert (found["answer"], found["observation"], found["holds"], found["conclusion"]) == (
        "check",
        "never",
        False,
        "expected",
    )
    assert found["columns"] == ["P1:r0", "P1:r1"] and found["listed"]
    assert rows(found) == {("0", "0"), ("0", "1"), ("1", "1")}


def test_all_registers_and_memory() -> None:
    assert ask("check", all_state=True)["columns"] == ["P1:r0", "P1:r1", "data", "flag"]


@pytest.mark.parametrize(
    ("fields", "observation"),
    [
        ({"without": ["Causality"]}, "sometimes"),
        ({"model": "sc"}, "never"),
        ({"turns": [{"thread": "P0", "index": 1, "order": "relaxed", "scope": "gpu"}]}, "sometimes"),
        ({"turns": [{"thread": "P0", "index": 1, "order": "release", "scope": "cta"}]}, "sometimes"),
        ({"turns": [{"thread": "P0", "index": 1, "order": "release", "scope": "cta"}], "level": "warp"}, "never"),
        ({"level": "sys"}, "sometimes"),
        ({"level": "cta"}, "never"),
    ],
)
def test_what_the_switches_and_sliders_change(fields: dict[str, Any], observation: str) -> None:
    assert ask("check", **fields)["observation"] == observation


def test_a_reading_is_chosen() -> None:
    assert ask("check", readings={"dep": "syn"})["notes"][0]["text"] == "reading dep=syn"


def test_the_text_follows_the_sliders_and_keeps_its_layout() -> None:
    turns = [{"thread": "P1", "index": 0, "order": "relaxed", "scope": "cta"}]
    found = ask("check", turns=turns, level="cta")
    expected = MP.replace("ld.acquire.gpu.global.u32 r0, [flag] ", "ld.relaxed.cta.global.u32 r0, [flag] ")
    expected = expected.replace("P0 @ cta 0                          ", "P0 @ cta 0, gpu 0                   ")
    assert found["text"] == expected.replace(
        "P1 @ cta 1                           ", "P1 @ cta 0, gpu 0                    "
    )


def test_a_fence_is_taken_away_and_its_slider_stays() -> None:
    turns = [{"thread": "P0", "index": 1, "order": "none"}]
    found = ask("check", SB, turns=turns)
    assert found["observation"] == "sometimes" and found["text"].count("fence.sc") == SB.count("fence.sc") - 1
    assert found["dials"] == ask("check", SB)["dials"]


@pytest.mark.parametrize("path", ["mp/MP+rel+acq", "sb/SB+fence.sc", "proxies/*", "cluster/*", "mbarrier/*", "rmw/*"])
def test_every_position_of_every_slider_is_a_program(path: str) -> None:
    """The text that a slider makes is read back, and the dial of the instruction stands where the slider was put."""
    coverage = load("ptx-8.5").coverage
    positions = 0
    for file in sorted(LITMUS.glob(f"{path}.litmus"))[:5]:
        test = parse(file.read_text(encoding="utf-8"))[0]
        for dial in dials(test, coverage):
            for order, scope in product(dial.orders, dial.scopes or (None,)):
                wanted, changed = turned(test, (Turn(dial.thread, dial.index, order, scope),), coverage)
                text = patched(test, [Rewrite(*site, False, op) for site, op in changed.items()], wanted) or write(
                    wanted
                )
                again = [d for d in dials(parse(text)[0], coverage) if (d.thread, d.index) == (dial.thread, dial.index)]
                positions += 1
                if order != "none":
                    assert again[0].orders[again[0].order] == order
                    assert order == "weak" or scope is None or again[0].scopes[again[0].scope] == scope
    assert positions > 8


def test_a_file_of_several_tests() -> None:
    found = ask("check", ROWS)
    assert (found["format"], found["observation"], found["dials"]) == ("nvlitmus", "always", [])
    assert found["parts"] == ["playground.r1.1: .gpu | assert", "playground.r1.2: .cta | permit"]
    other = ask("check", ROWS, part=1, model="ptx-7.5")
    assert (other["observation"], other["conclusion"]) == ("sometimes", "expected")
    assert ask("check", other["litmus"])["observation"] == "sometimes"
    assert ask("check", ROWS, part=9)["text"] == other["text"]
    (problem,) = ask("check", ROWS.replace("acquire", "aquire"))["problems"]
    assert (problem["line"], problem["column"], problem["hint"]) == (8, 5, "did you mean `.acquire`?")


def test_a_kernel_and_what_it_claims() -> None:
    found = ask("check", KERNEL)
    assert (found["format"], found["holds"], found["conclusion"]) == ("ptx", False, "contradicted")
    assert found["parts"] == ["mp: condition", "mp: no data races"] and found["claim"] is None
    claim = ask("check", KERNEL, part=1)
    assert (claim["claim"], claim["holds"], claim["rows"]) == ("no data races", False, []) and claim["execution"]
    assert [d["text"] for d in ask("check", found["litmus"])["dials"]] == [
        "st.global.u32 [data], 42",
        "st.relaxed.gpu.global.u32 [flag], 1",
        "ld.acquire.gpu.global.u32 r0, [flag]",
        "ld.global.u32 r1, [data]",
        "st.global.u32 [out], r1",
    ]
    assert ask("fences", KERNEL)["result"]["holds"] is False
    assert ask("explain", KERNEL)["result"]["verdict"] == "allowed"


@pytest.mark.parametrize("fields", [{"level": "cta"}, {"turns": [{"thread": "P0", "index": 0, "order": "weak"}]}])
def test_a_kernel_stays_as_it_is(fields: dict[str, Any]) -> None:
    """What is claimed of it would be lost with its launch."""
    found = ask("check", KERNEL.replace("races", 'traps = "none"\n// ptxmm: races'), part=2, **fields)
    (problem,) = found["problems"]
    assert (problem["kind"], problem["message"]) == (
        "usage",
        "the threads and instructions of a kernel stay as they are",
    )


def test_of_a_kernel_no_other_file_says_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither ``NAME.toml`` nor ``NAME.cu`` beside it, as they are for files."""
    monkeypatch.chdir(tmp_path)
    comments, module = KERNEL.split(".version", 1)
    for name in ("playground", "<playground>"):
        (tmp_path / f"{name}.cu").write_text(comments)
        (tmp_path / f"{name}.toml").write_text(re.sub("^// ptxmm: ", "", comments, flags=re.MULTILINE))
    (problem,) = ask("check", f".version{module}")["problems"]
    assert problem["message"] == "nothing is said of a launch" and "// ptxmm: grid" in problem["hint"]
    (problem,) = ask("check", "__global__ void f() {}\n")["problems"]
    assert "nvcc needs its file" in problem["message"]


def test_errors_have_their_places() -> None:
    text = "PTX x\n{ .global .u32 x = 0; }\n P0 ;\n st.globl.u32 [x], 1 ;\nexists (x == 1)\n"
    (problem,) = ask("check", text)["problems"]
    assert (problem["line"], problem["column"], problem["width"]) == (4, 4, 6)
    assert problem["hint"] == "did you mean `.global`?"


def test_why_and_why_not() -> None:
    found = ask("explain", state="P1:r0=1, P1:r1=0")
    assert found["result"]["verdict"] == "forbidden" and found["result"]["misses"]
    assert found["result"]["groups"][0]["reasons"][0]["axiom"] == "Causality"
    allowed = ask("explain", state="P1:r0=1, P1:r1=1")["result"]
    assert found["picture"].startswith("<svg ") and "graph" not in json.dumps(found["result"])
    assert allowed["verdict"] == "allowed" and [t["thread"] for t in allowed["execution"]["threads"]] == ["P0", "P1"]


def stages(path: str, **fields: Any) -> dict[str, dict[str, Any]]:
    """The stages of an execution, by their names."""
    found = ask("explain", (LITMUS / f"{path}.litmus").read_text(encoding="utf-8"), **fields)
    return {stage["name"]: stage for stage in found["stages"]}


def test_the_stages_are_those_of_chapter_8() -> None:
    found = stages("sb/SB+fence.sc")
    assert list(found) == ["events", "po", "rf", "co", "ms", "obs", "fsc", "sync", "bc", "cause", "axioms"]
    assert found["sync"]["lines"] == ["P0:11 → P1:11: synchronizes by Fence-SC order (8.9.4 (1))"]
    assert [clause["section"] for clause in found["sync"]["clauses"]] == ["8.9.4 (1)"]
    assert found["cause"]["lines"] == ["P0:10 → P1:12: causality order (8.9.5 causality)"]
    assert found["axioms"]["lines"][0].startswith("Causality (8.10.6 (2)): From-reads contradicts causality order")
    assert found["axioms"]["clauses"][0]["text"].startswith("If a write W precedes an overlapping read R in causality")


def test_the_stages_of_what_is_allowed() -> None:
    found = stages("mp/MP")
    assert found["obs"]["lines"] == found["sync"]["lines"] == found["cause"]["lines"] == []
    assert [line.split(": ")[1] for line in found["ms"]["lines"]] == ["not morally strong"] * 2
    allowed, why = found["axioms"]["lines"]
    assert allowed == "every axiom of ptx-8.5 holds: the execution is allowed"
    assert why.startswith("Causality would forbid it if causality order led from the store P0:")
    assert "ms" in stages("mp/MP", model="sc")


def test_fences_with_the_repaired_programs() -> None:
    text = (LITMUS / "mp" / "MP.litmus").read_text(encoding="utf-8")
    found = ask("fences", text)
    assert found["result"]["holds"] is False and len(found["changed"]) == len(found["result"]["repairs"]) > 0
    assert all(ask("check", changed)["observation"] == "never" for changed in found["changed"])


def test_integers_that_javascript_would_round_are_text() -> None:
    text = "PTX big\n{ .global .u64 x = 0; }\n P0 ;\n st.global.u64 [x], 9007199254740993 ;\nexists (x == 0)\n"
    assert ask("fences", text)["answer"] == "analysis"
    result = ask("explain", text, state="x=9007199254740993")["result"]
    assert "9007199254740993" in json.dumps(result) and result["verdict"] == "allowed"
    assert not [number for number in re.findall(r": (\d{17,})", json.dumps(result)) if int(number) > 1 << 53]


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (b"", "no request"),
        (b"[1]", "no request"),
        (b'{"ask": "run", "text": ""}', "no request"),
        (b'{"ask": "check", "text": "x", "file": "/etc/passwd"}', "unknown field"),
        (b'{"ask": "check", "text": ""}', "empty"),
        (b'{"ask": "check", "text": "x", "model": "/etc/passwd"}', "no such model"),
        (b'{"ask": "check", "text": "x", "model": "ptx-8.5[without=x]"}', "no such model"),
        (b'{"ask": "check", "text": "x", "readings": {"dep": "no"}}', "dep"),
        (b'{"ask": "check", "text": "x", "unroll": 1000000}', "no request"),
        (b" " * MOST_BYTES + b"{}", "bytes"),
    ],
)
def test_what_is_no_request(request_: bytes, message: str) -> None:
    found = json.loads(answer(request_, 5))
    assert found["answer"] == "error" and message in found["problems"][0]["message"]


@pytest.mark.parametrize(
    "turn",
    [
        {"thread": "P9", "index": 0, "order": "weak"},
        {"thread": "P0", "index": -1, "order": "weak"},
        {"thread": "P0", "index": 99, "order": "weak"},
        {"thread": "P0", "index": 0, "order": "acquire"},
        {"thread": "P0", "index": 0, "order": "release", "scope": "galaxy"},
    ],
)
def test_a_turn_that_no_slider_has(turn: dict[str, Any]) -> None:
    assert "has the order" in ask("check", turns=[turn])["problems"][0]["message"]


def test_nothing_of_a_test_comes_back_as_markup() -> None:
    text = MP.replace("MP+rel+acq", "<script>alert(1)</script>")
    found = answer(json.dumps({"ask": "check", "text": text}).encode(), 30)
    assert b"<" not in found and json.loads(found)["test"] == "<script>alert(1)</script>"


# -- The server


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with Answering(1, Settings(timeout=20, memory=1024)) as answering:
        app = application(answering.ask, LITMUS, Serving(1, ("localhost",)))
        with TestClient(app, base_url="http://localhost") as client:
            yield client


def test_the_page_and_all_that_it_loads(client: TestClient) -> None:
    page = client.get("/").text
    assert "<script type=" in page and not re.search(r"<script(?![^>]* src=)|\son\w+=|style=|<style", page)
    loaded = re.findall(r'(?:src|href)="(page/[^"]+)"', page)
    files = {f"page/{path.relative_to(PAGE)}" for path in PAGE.rglob("*") if path.suffix in (".js", ".css")}
    assert set(loaded) >= files
    for name in loaded:
        assert client.get(f"/{name}").status_code == 200
    scripts = "".join(path.read_text(encoding="utf-8") for path in PAGE.glob("*.js"))
    assert not re.search(
        r"https?://(?!www\.w3\.org/2000/svg)|innerHTML|insertAdjacentHTML|document\.write|eval\(", scripts
    )


@pytest.mark.parametrize("path", ["/", "/page/style.css", "/catalog.json", "/litmus/mp/MP", "/nowhere", "/api"])
def test_every_response_is_guarded(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert HEADERS.items() <= dict(response.headers).items()
    policy = response.headers["content-security-policy"]
    assert "unsafe" not in policy and policy.startswith("default-src 'none'")


def test_the_catalogue(client: TestClient) -> None:
    found = client.get("/catalog.json").json()
    assert [model["name"] for model in found["models"]] == list(index().models)
    assert {test["family"] for test in found["tests"]} == {path.name for path in LITMUS.iterdir() if path.is_dir()}
    assert len(found["tests"]) == len(list(LITMUS.glob("*/*.litmus")))
    bugs = [test for test in found["tests"] if test["family"] == "bugs"]
    assert all(test["bug"] and test["variant"] in ("buggy", "fixed", "variant") for test in bugs)
    axioms = next(model for model in found["models"] if model["name"] == "ptx-8.5")["axioms"]
    assert {
        "name": "Causality",
        "text": "communication order cannot contradict causality order",
        "section": "8.10.6",
    } in axioms
    assert client.get("/litmus/mp/MP+rel+acq").text == MP


def test_every_rule_of_the_catalogue_can_be_left_out() -> None:
    """And only it: the model has all others."""
    for entry in models():
        rules = rules_of(entry.name)
        assert rules
        for rule in rules:
            assert load(left_out_of(entry.name, (rule.item,))).left_out == (rule.item,)
    (rule,) = [rule for rule in rules_of("ptx-8.5") if rule.item == "sync-all:1"]
    assert (rule.written, rule.text, rule.section) == (
        "sync-pattern",
        "synchronizes by release and acquire patterns",
        "8.9.4",
    )


def rules_of(model: str) -> list[RuleEntry]:
    (entry,) = [entry for entry in models() if entry.name == model]
    return [rule for definition in entry.definitions for rule in definition.rules]


def test_a_request_is_answered_in_another_process(client: TestClient) -> None:
    response = client.post("/api", json={"ask": "check", "text": MP})
    assert response.status_code == 200 and response.json()["observation"] == "never"
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (413, {"content": b"x" * (MOST_BYTES + 1), "headers": {"content-type": "application/json"}}),
        (415, {"content": b"{}", "headers": {"content-type": "text/plain"}}),
        (415, {"content": b"{}"}),
        (400, {"json": {}, "headers": {"host": "evil.example"}}),
    ],
)
def test_what_is_refused_before_it_is_read(client: TestClient, status: int, fields: dict[str, Any]) -> None:
    assert client.post("/api", **fields).status_code == status


@pytest.mark.parametrize("host", ["localhost", "localhost:8585", "127.0.0.1:8585", "[::1]:8585", "[::1]"])
def test_the_names_of_this_machine(host: str) -> None:
    app = application(lambda data: b"{}", LITMUS, Serving(1, LOCAL))
    with TestClient(app) as client:
        assert client.get("/", headers={"host": host}).status_code == 200


def test_an_endless_answer_ends_with_its_time() -> None:
    loop = "PTX l\n{ .global .u32 x = 0; }\n" + " | ".join(f"P{i}" for i in range(8)) + " ;\n"
    loop += "".join(
        " | ".join(f"atom.relaxed.gpu.global.add.u32 r{n}, [x], 1" for _ in range(8)) + " ;\n" for n in range(9)
    )
    with Answering(1, Settings(timeout=0.2, memory=512)) as answering:
        found = json.loads(answering.ask(json.dumps({"ask": "check", "text": loop, "all_state": True}).encode()))
        assert (found["status"] if found["answer"] == "check" else found["problems"][0]["kind"]) == "timeout"


def test_a_broken_watcher_is_replaced() -> None:
    with Answering(1, Settings(timeout=20, memory=1024)) as answering:
        (watcher,) = answering._all
        watcher.process.kill()
        watcher.process.join()
        assert "internal error" in answering.ask(b"{}").decode()
        assert json.loads(answering.ask(json.dumps({"ask": "check", "text": MP}).encode()))["observation"] == "never"


def test_an_address_asks_so_often_and_no_more() -> None:
    now = [0.0]
    rate = Rate(3, lambda: now[0])
    assert [rate.allows("127.0.0.2") for _ in range(4)] == [True, True, True, False]
    assert rate.allows("127.0.0.3")
    now[0] = 20.0
    assert [rate.allows("127.0.0.2") for _ in range(2)] == [True, False]
    assert [rate.allows(f"2001:db8::{n}") for n in range(4)] == [True, True, True, False]


def test_the_server_answers_an_address_so_often() -> None:
    app = application(lambda data: b'{"answer": "test"}', LITMUS, Serving(1, ("*",), rate=2))
    with TestClient(app) as client:
        codes = [client.post("/api", json={}).status_code for _ in range(3)]
    assert codes == [200, 200, 429]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--public"], "--public needs --rate and --workers"),
        (["--public", "--rate", "60"], "--public needs --workers"),
        (["--host", "0.0.0.0"], "lets other machines in"),
        (["--host", "example.org"], "lets other machines in"),
        (["--name", "example.org"], "--name is for --public"),
    ],
)
def test_it_does_not_start_open(run_command: Run, arguments: list[str], message: str) -> None:
    result = run_command("serve", *arguments)
    assert result.code == 2 and message in result.err and not result.out


def test_a_port_that_is_taken(run_command: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run_command("serve", "--port", str(taken.getsockname()[1]))
    assert result.code == 2 and "can't listen at 127.0.0.1" in result.err and "--port 0" in result.err
