"""The frame of the commands that analyse tests: exit codes, the JSON document, time limits, processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct

import ptxmm.cli.tasks as tasks
from ptxmm import parse
from ptxmm.analysis.result import Failure, Note, Status, expired
from ptxmm.analysis.words import Exit
from ptxmm.cat import Model
from ptxmm.cli.analyses import analysis
from ptxmm.cli.exits import exit_of
from ptxmm.cli.inputs import Job, failure
from ptxmm.cli.settings import Settings
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.test import Test
from tests.commands import Ran, Run, steady
from tests.support import finished

Golden = Callable[[str, str], None]

RACY = """PTX racy
Expect=ptx-8.5:sometimes
{
  .global .u32 x = 0;
}
 P0 @ cta 0               | P1 @ cta 1               ;
 st.weak.global.u32 [x], 1 | ld.weak.global.u32 r0, [x] ;
exists (P1:r0 == 1)
"""
CALM = RACY.replace("PTX racy", "PTX calm").replace("weak", "relaxed.gpu")
SB = """PTX SB
{
  .global .u32 x = 0;
  .global .u32 y = 0;
}
 P0 @ cta 0                       | P1 @ cta 1                       ;
 st.relaxed.gpu.global.u32 [x], 1 | st.relaxed.gpu.global.u32 [y], 1 ;
 ld.relaxed.gpu.global.u32 r0, [y] | ld.relaxed.gpu.global.u32 r1, [x] ;
exists (P0:r0 == 0 /\\ P1:r1 == 0)
"""
LOOP = """PTX loop
{
  .global .u32 x = 0;
}
 P0 @ cta 0 {
 again:
   atom.add.relaxed.gpu.global.u32 r0, [x], 1;
   setp.lt.u32 p, r0, 100;
   @p bra again;
 }
 P1 @ cta 1 {
   ld.relaxed.gpu.global.u32 r0, [x];
 }
exists (x == 101)
"""


@pytest.fixture
def ptxmm(tmp_path: Path, run_command: Run) -> Run:
    """Run a command line in an empty folder with a few tests, in this process."""
    for name, text in (("racy", RACY), ("calm", CALM), ("sb", SB), ("loop", LOOP)):
        (tmp_path / f"{name}.litmus").write_text(text)
    (tmp_path / "bad.litmus").write_text(RACY.replace("st.weak", "st.week"))
    return run_command


@pytest.mark.parametrize("command", ["races", "robust", "scopes"])
def test_help(ptxmm: Run, golden: Golden, command: str) -> None:
    ran = ptxmm(command, "--help")
    assert (ran.code, ran.err) == (0, "")
    golden(f"help-{command}.txt", ran.out)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("races", "calm.litmus"), Exit.OK),
        (("races", "racy.litmus"), Exit.FOUND),
        (("races", "calm.litmus", "racy.litmus", "--jobs", "1"), Exit.FOUND),
        (("races", "racy.litmus", "bad.litmus", "--jobs", "1"), Exit.BAD_INPUT),
        (("races", "calm.litmus", "--model", "sc"), Exit.BAD_INPUT),
        (("races", "loop.litmus"), Exit.INCONCLUSIVE),
        (("races", "loop.litmus", "racy.litmus", "--jobs", "1"), Exit.FOUND),
        (("races", "nowhere.litmus"), Exit.BAD_INPUT),
        (("robust", "calm.litmus"), Exit.OK),
        (("robust", "sb.litmus"), Exit.FOUND),
        (("robust", "loop.litmus"), Exit.INCONCLUSIVE),
        (("scopes", "sb.litmus"), Exit.FOUND),
        (("scopes", "calm.litmus", "--property", "robust"), Exit.OK),
    ],
)
def test_exit_codes(ptxmm: Run, arguments: tuple[str, ...], code: Exit) -> None:
    assert ptxmm(*arguments).code == code


@pytest.mark.parametrize("command", ["races", "robust", "scopes"])
def test_the_document(ptxmm: Run, command: str) -> None:
    ran = ptxmm(command, "sb.litmus", "bad.litmus", "loop.litmus", "--json", "--jobs", "1")
    assert ran.err == ""
    document = json.loads(ran.out)
    assert document["schema"] == "ptxmm/2"
    good, bad, loop = document["results"]
    for entry in (good, loop):
        assert {"analysis", "file", "test", "model", "status", "notes", "seconds"} <= set(entry)
        assert entry["analysis"] == command
    assert (good["test"], good["model"], good["status"]) == ("SB", "ptx-8.5", "complete")
    assert loop["status"] == "bounded"
    assert {note["kind"] for note in loop["notes"]} == {"bound"}
    assert bad["error"]["kind"] == "isa"


@pytest.mark.parametrize("command", ["races", "robust", "scopes"])
def test_json_golden(ptxmm: Run, golden: Golden, command: str) -> None:
    golden(f"{command}.json", steady(ptxmm(command, "racy.litmus", "--json").out))


@pytest.mark.parametrize("command", ["races", "robust", "scopes"])
def test_processes_agree(ptxmm: Run, command: str) -> None:
    files = ["racy.litmus", "bad.litmus", "sb.litmus", "loop.litmus"]
    one, two = (ptxmm(command, *files, "--jobs", n) for n in "12")
    assert (one.code, steady(one.out), one.err) == (two.code, steady(two.out), two.err)


def test_a_model_is_called_as_the_user_does(ptxmm: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.cat").write_text('"Everything races"\nflag ~empty (W*R) & loc as data-race\n')
    ran = ptxmm("races", "calm.litmus", "--model", "mine.cat", "--json")
    (entry,) = json.loads(ran.out)["results"]
    assert (ran.code, entry["model"]) == (1, "mine.cat")


def test_annotations(ptxmm: Run) -> None:
    assert ptxmm("check", "racy.litmus", "--format", "github") == Ran(0, "", "")
    ran = ptxmm("check", "bad.litmus", "loop.litmus", "--format", "github", "--jobs", "1")
    failed, unknown = ran.out.splitlines()
    assert (ran.code, ran.err) == (2, "")
    assert failed.startswith("::error file=bad.litmus,line=7,title=isa::")
    assert unknown == "::warning file=loop.litmus,title=loop under ptx-8.5::not known (bounded)"
    ran = ptxmm("races", "racy.litmus", "--format", "github")
    assert ran.code == 1 and ran.out.startswith(
        "::error file=racy.litmus,line=7,title=racy under ptx-8.5::data race of "
    )


@pytest.mark.parametrize(
    ("command", "form"),
    [
        ("races", "github"),
        ("races", "text"),
        ("check", "text"),
        ("compare", "text"),
        ("lint", "text"),
        ("lint", "sarif"),
    ],
)
def test_two_formats_at_once(ptxmm: Run, command: str, form: str) -> None:
    ran = ptxmm(command, "racy.litmus", "--json", "--format", form)
    assert (ran.code, ran.out) == (2, "") and "exclude each other" in ran.err


def test_one_format_said_twice(ptxmm: Run) -> None:
    ran = ptxmm("check", "racy.litmus", "--json", "--format", "json")
    assert ran.out.startswith("{")
    assert ptxmm("races", "racy.litmus", "--format", "sarif").code == 2  # which races do not have


# The frame by itself, with an analysis that does what it is told.


class Plain(Struct, frozen=True):
    """A result of a made-up analysis."""

    file: str
    test: str
    model: str
    finding: bool | None
    status: Status = "complete"
    notes: tuple[Note, ...] = ()
    seconds: float = 0.0


def _answer(test: Test, model: Model, limits: Limits) -> Plain:
    return Plain(test.file, test.name, model.name, None)


def _tired(test: Test, model: Model, limits: Limits) -> Plain:
    raise Timeout


def _endless(test: Test, model: Model, limits: Limits) -> Plain:
    while True:
        pass


def _broken(test: Test, model: Model, limits: Limits) -> Plain:
    raise KeyError("oops")


def _job() -> Job:
    (test,) = parse(RACY)
    return Job(test, "ptx-8.5", None, False)


def test_what_a_report_asks_for() -> None:
    codes = [exit_of(Plain("f", "t", "m", finding)) for finding in (True, False, None)]
    assert codes == [Exit.FOUND, Exit.OK, Exit.INCONCLUSIVE]
    assert exit_of(expired("f", "t", "m", 1.0)) == Exit.INCONCLUSIVE
    assert exit_of(failure(PtxmmError("", kind="internal"), "f")) == Exit.BUG
    assert exit_of(failure(PtxmmError("", kind="unsupported"), "f")) == Exit.BAD_INPUT


def test_an_analysis_runs_under_its_model() -> None:
    found = finished(tasks.run(analysis(_answer), _job(), Settings()))
    assert isinstance(found, Plain)
    assert (found.test, found.model) == ("racy", "ptx-8.5")


def test_a_timeout_is_a_result() -> None:
    found = finished(tasks.run(analysis(_tired), _job(), Settings(timeout=7.0)))
    assert found == expired("<text>", "racy", "ptx-8.5", 7.0)
    assert found.notes[0].text.startswith("the time limit of 7 s")


def test_an_analysis_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxmm.cli.workers.GRACE", 0.1)
    path = tmp_path / "racy.litmus"
    path.write_text(RACY)
    found = [e for e in tasks.run_all(analysis(_endless), [path], Settings(timeout=0.3), 1) if e]
    assert [e.report for e in found] == [expired(str(path), "racy", "ptx-8.5", 0.3)]


def test_a_bug_is_told() -> None:
    found = finished(tasks.run(analysis(_broken), _job(), Settings()))
    assert isinstance(found, Failure)
    assert (found.error.kind, found.test) == ("internal", "racy")
