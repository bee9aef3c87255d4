"""Claims of whole launches: their verdicts are those of the engines, and each says what refutes it."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Generator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.result import Outcome
from ptxmm.cli import tasks
from ptxmm.cli.checking import Checking
from ptxmm.cli.inputs import Job
from ptxmm.cli.options import Engine
from ptxmm.cli.settings import Settings
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.formats.modules.read import kernels, parse_ptx
from ptxmm.whole.analysis import whole
from ptxmm.whole.result import WholeResult
from tests import random_whole
from tests.commands import Run
from tests.support import ROOT, model_named


def judged(path: Path, text: str, seconds: float = 20) -> WholeResult:
    path.write_text(text)
    (kernel,) = kernels(path)
    return whole(kernel, str(path), Limits(deadline=time.monotonic() + seconds))


def asked(text: str, seed: int) -> str:
    """A random kernel whose stores write several values, with a condition on all that it may leave."""
    rng = random.Random(f"whole claims/{seed}")
    numbers = count(3)
    text = re.sub(r"(st\.(?:global|shared)\S* \[[^]]*\]), 1;", lambda m: f"{m[1]}, {next(numbers)};", text)
    text = text.replace("mov.u32 %r3, 1;", "mad.lo.u32 %r3, %r2, 4, %r1;\n    add.u32 %r3, %r3, 1;")
    terms = [f"g[{n}]" for n in range(4)] + ["f[0]", "f[1]"] * (" f = {" in text)
    registers = rng.sample([r for r in ("%r3", "%r4", "%r5", "%r6", "%r7", "%r8") if f"{r}," in text], 2)
    terms += [f"P{thread}:{register}" for thread, register in zip((0, 1), registers, strict=True)]
    condition = " \\\\/ ".join(f"{term} == 99" for term in terms)
    return text.replace('races = "none"', f'condition = "{("exists", "forall")[seed % 2]} ({condition})"')


def values(outcome: Outcome) -> dict[str, object]:
    return {**outcome.registers, **outcome.memory}


def compare(path: Path, text: str, seconds: float) -> bool:
    """The final values of a launch and those of all its executions; whether there was anything to compare."""
    (claim,) = judged(path, text).claims
    if not claim.outcomes:
        return False
    (test,) = parse_ptx(text, str(path))
    try:
        every = check(test, model_named("ptx-8.5"), limits=Limits(deadline=time.monotonic() + seconds))
    except Timeout:
        return False
    if every.status != "complete" or not every.listed:
        return False
    told = [values(outcome) for outcome in claim.outcomes]
    found = [values(outcome) for outcome in every.outcomes]
    assert all(any(some.items() <= state.items() for state in found) for some in told), (text, told)
    if claim.observation is not None:
        assert all(any(some.items() <= state.items() for some in told) for state in found), (text, told)
    return len(told[0]) > 2


MAKERS = [random_whole.kernel, random_whole.warps, random_whole.flags, random_whole.counters, random_whole.clusters]


@pytest.mark.parametrize(
    ("make", "amount", "least"), list(zip(MAKERS, (30, 15, 45, 13, 25), (10, 5, 10, 2, 10), strict=True))
)
def test_random_final_values(make: random_whole.Maker, amount: int, least: int, tmp_path: Path) -> None:
    assert sum(compare(tmp_path / "k.ptx", asked(make(seed), seed), 5) for seed in range(amount)) >= least


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKERS)
def test_many_random_final_values(make: random_whole.Maker, tmp_path: Path) -> None:
    assert sum(compare(tmp_path / "k.ptx", asked(make(seed), seed), 10) for seed in range(20_000, 20_600)) >= 100


LAUNCH = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = {grid}
// ptxmm: block = 32
// ptxmm: threads = "{threads}"
// ptxmm: args = ["x", "y"]
// ptxmm: [objects]
// ptxmm: x = {{ type = "u32", count = 4 }}
// ptxmm: y = {{ type = "u64", count = 2 }}
// ptxmm: [check]
// ptxmm: {claim}
.visible .entry k(.param .u64 a, .param .u64 b)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<20>;
    .reg .b64 %d<9>;
    .shared .align 8 .b8 s[256];
    ld.param.u64 %d1, [a];
    ld.param.u64 %d2, [b];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    setp.eq.u32 %p1, %r1, 0;
    mov.u32 %r3, s;
    mad.lo.u32 %r4, %r1, 4, %r3;
{body}
    ret;
}}
"""


def launch(claim: str, body: str, grid: int = 2, threads: str = "lane 0") -> str:
    lines = "\n".join(f"    {line.strip()}" for line in body.split(";") if line.strip())
    lines = "\n".join(line if line.endswith(":") else f"{line};" for line in lines.replace(": ", ":\n    ").split("\n"))
    return LAUNCH.format(grid=grid, threads=threads, claim=claim, body=lines)


POLLED = (
    "@!%p1 bra E; setp.ne.u32 %p2, %r2, 0; @%p2 bra C; st.release.gpu.global.u32 [%d1], 1; bra E; "
    "C: ld.acquire.gpu.global.u32 %r9, [%d1]; setp.eq.u32 %p3, %r9, 0; @%p3 bra C; E:"
)
ARRIVED = "@%p1 mbarrier.init.shared.b64 [%r3], 32; bar.sync 0; mbarrier.arrive.shared.b64 %d5, [%r3];"
SUM = "add.u32 %r5, %r1, 1; red.global.add.u32 [%d1], %r5;"


def condition(text: str) -> str:
    return f"condition = '{text}'"


@pytest.mark.parametrize(
    ("claim", "body", "holds", "says"),
    [
        # All threads, and the same in every execution.
        (condition("forall (x[0] == 1056)"), SUM, True, None),
        (condition("forall (x[0] == 1024)"), SUM, False, "every execution ends with x[0]=1056"),
        (condition("exists (x[0] == 1)"), SUM, False, "every execution ends with x[0]=1056"),
        (condition("~exists (x[0] == 1056)"), SUM, False, "every execution ends with x[0]=1056"),
        # Nothing orders strong stores of two CTAs.
        (condition("forall (x[0] == 2)"), "add.u32 %r5, %r2, 1; st.relaxed.gpu.global.u32 [%d1], %r5;", None, "x[0]"),
        (condition("exists (x[0] == 2)"), "add.u32 %r5, %r2, 1; st.relaxed.gpu.global.u32 [%d1], %r5;", True, None),
        (condition("exists (x[0] == 1)"), "add.u32 %r5, %r2, 1; st.relaxed.gpu.global.u32 [%d1], %r5;", None, "x[0]"),
        (condition("~exists (x[0] == 0)"), "add.u32 %r5, %r2, 1; st.relaxed.gpu.global.u32 [%d1], %r5;", None, "x[0]"),
        (condition("forall (x[0] == 1)"), "st.relaxed.gpu.global.u32 [%d1], 1;", True, None),
        # A store and additions that nothing orders, and exchanges.
        (
            condition("forall (x[0] == 69)"),
            "@!%p1 bra A; setp.eq.u32 %p2, %r2, 0; @%p2 st.relaxed.gpu.global.u32 [%d1], 5; "
            "A: red.relaxed.gpu.global.add.u32 [%d1], 1;",
            None,
            "x[0]",
        ),
        (condition("forall (x[0] == 1)"), "atom.global.exch.b32 %r5, [%d1], %r1;", False, "an execution ends with"),
        (condition("forall (x[0] == 31)"), "atom.global.exch.b32 %r5, [%d1], %r1;", None, "x[0]"),
        # What an atomic operation returns.
        (condition("forall (x[1] == 0)"), "@%p1 atom.global.add.u32 %r5, [%d1], 1;", True, None),
        (condition("forall (P0:%r5 == 0)"), "@%p1 atom.global.add.u32 %r5, [%d1], 1;", None, "P0:r5"),
        # A register that only the condition needs behind a loop that waits; P1 is lane 0 of CTA 1.
        (condition("forall (P1:%r9 == 1)"), POLLED, True, None),
        (condition("forall (P1:%r9 == 0)"), POLLED, False, "every execution ends with P1:r9=1"),
        (condition("forall (P1:%r9 == 1)"), POLLED.replace("bra E; C", "st.relaxed.gpu.global.u32 [%d1], 2; bra E; C"),
         False, "an execution ends with"),
        (condition("exists (P1:%r9 == 5)"), POLLED.replace("bra E; C", "st.relaxed.gpu.global.u32 [%d1], 2; bra E; C"),
         None, "P1:r9"),
        # The state of an mbarrier is no number.
        (condition("forall (P0:%d5 == 1)"), ARRIVED, None, "P0:d5"),
        (condition("exists (P0:%d5 == 0)"), ARRIVED, None, "P0:d5"),
        # Where the variables lie is left open.
        (condition("forall (x[0] == 1)"), "setp.lt.u64 %p2, %d1, %d2; selp.u32 %r5, 1, 0, %p2; @%p1 mov.u32 %r6, %r5; "
         "setp.eq.u32 %p3, %r2, 0; and.pred %p3, %p3, %p1; @%p3 st.global.u32 [%d1], %r5;", None, "x[0]"),
        (condition("forall (y[0] == &x+4)"), "setp.eq.u32 %p3, %r2, 0; and.pred %p3, %p3, %p1; add.u64 %d5, %d1, 4; "
         "@%p3 st.global.u64 [%d2], %d5;", True, None),
        (condition("forall (y[0] == &x)"), "setp.eq.u32 %p3, %r2, 0; and.pred %p3, %p3, %p1; add.u64 %d5, %d1, 4; "
         "@%p3 st.global.u64 [%d2], %d5;", False, "y[0]"),
        (condition("forall (x[0] == 1)"), "setp.eq.u32 %p3, %r2, 0; and.pred %p3, %p3, %p1; shr.u64 %d5, %d1, 8; "
         "cvt.u32.u64 %r5, %d5; and.b32 %r5, %r5, 1; @%p3 st.global.u32 [%d1], %r5;", None, "x[0]"),
        # Shared memory, of each CTA, with elements as they are accessed; what nobody writes is not known.
        (condition("forall (cta 1:s[3] == 4)"), "add.u32 %r5, %r1, 1; st.shared.u32 [%r4], %r5;", True, None),
        (condition("forall (cta 1:s[3] == 5)"), "add.u32 %r5, %r1, 1; st.shared.u32 [%r4], %r5;", False, "s[3]=4"),
        (condition("forall (cta 1:s[40] == 0)"), "add.u32 %r5, %r1, 1; st.shared.u32 [%r4], %r5;", None, "s[40]"),
        # Another execution than the one may have another value.
        (condition("forall (x[0] == 7)"), "st.global.u32 [%d1], 7;", None, "data race of x"),
        (condition("forall (x[0] == 8)"), "st.global.u32 [%d1], 7;", False, "an execution ends with x[0]=7"),
        ("races = 'none'", "st.global.u32 [%d1], 7;", False, "data race of x, byte 0: line 26"),
        ("races = 'none'", SUM, True, None),
        ("robust = true", "st.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r5, [%r3];", True, None),
        ("robust = true", SUM, None, "strong accesses"),
        ("bounds = 'none outside'", SUM, True, None),
        ("bounds = 'none outside'", "@%p1 st.shared.u32 [%r4+256], 1;", False, "an access outside of all variables"),
        ("bounds = 'none outside'", "st.global.u32 [%d1], 7;", None, "data race"),
        ("barriers = 'convergent'", "bar.sync 0;", True, None),
        ("barriers = 'convergent'", "@%p1 bar.sync 0;", False, "an aligned barrier that not all"),
        ("barriers = 'convergent'", "@%p1 barrier.sync 1, 64;", False, "2 threads wait here for ever"),
        ("barriers = 'convergent'", "@%p1 st.shared.u32 [%r4+256], 1;", None, "outside"),
        (condition("forall (x[0] == 0)"), "barrier.sync 1, 64;", False, "64 threads wait here for ever"),
        (condition("forall (x[0] == 0)"), "st.global.u32 [%d1+1], 7;", None, "no multiple of 4"),
        ("traps = 'none'", SUM, True, None),
        ("traps = 'none'", "@%p1 trap;", False, "a trap is executed"),
        (condition("forall (x[0] == 0)"), "@%p1 trap;", None, "a trap is executed"),
    ],
)  # fmt: skip
def test_claims(claim: str, body: str, holds: bool | None, says: str | None, tmp_path: Path) -> None:
    found = judged(tmp_path / "k.ptx", launch(claim, body))
    (result,) = found.claims
    notes = " ".join(note.text for note in result.notes if "layouts were tried" not in note.text)
    assert (result.holds, result.engine, result.expected) == (holds, "whole", "holds"), found
    assert (says or "") in notes and bool(notes) == (holds is not True), notes
    assert {True: "expected", False: "contradicted", None: "inconclusive"}[holds] == result.conclusion
    assert found.finding is (True if False in (holds, found.holds) else None if None in (holds, found.holds) else False)


def test_a_launch_in_which_one_of_several_comes_last(tmp_path: Path) -> None:
    """Who comes last writes its number: there are as many final states as threads that may."""
    body = (
        "@!%p1 bra E; atom.acq_rel.gpu.global.add.u32 %r5, [%d1], 1; setp.ne.u32 %p2, %r5, 1; @%p2 bra E; "
        "st.global.u32 [%d1+4], %r2; E:"
    )
    for text, holds, states in (
        ("forall (x[1] == 0 \\/ x[1] == 1)", True, {0, 1}),
        ("exists (x[1] == 1)", True, {1}),
        ("forall (x[1] == 1)", False, {0}),
        ("~exists (x[1] > 1)", True, {0, 1}),
    ):
        (result,) = judged(tmp_path / "k.ptx", launch(condition(text), body)).claims
        assert (result.holds, {outcome.memory["x[1]"] for outcome in result.outcomes}) == (holds, states), text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("forall (z == 1)", "no variable is called `z`"),
        ("forall (x == 1)", "x is an array"),
        ("forall (x[9] == 1)", "x[9] is outside the array"),
        ("forall (P2:%r1 == 1)", "there is no thread `P2`"),
        ("forall (P1:%r77 == 1)", "P1 has no register `r77`"),
        ("forall (s[0] == 1)", "`s` exists 2 times: `cta 0:s`, `cta 1:s`"),
    ],
)
def test_what_a_condition_may_not_name(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(PtxmmError) as caught:
        judged(tmp_path / "k.ptx", launch(condition(text), "st.shared.u32 [%r4], %r1;"))
    assert message in caught.value.message and caught.value.line == 12, caught.value


def test_threads_by_their_numbers(tmp_path: Path) -> None:
    for threads, name in (("lane 0", "P1"), ("all", "P32"), ("cta 1 thread 3,5", "P0"), ("cta 1", "P31")):
        wanted = {"P1": 0, "P32": 0, "P0": 3, "P31": 31}[name]
        text = launch(condition(f"forall ({name}:%r5 == {wanted})"), "mad.lo.u32 %r5, %r2, 32, %r1; "
                      "sub.u32 %r5, %r5, 32;", threads=threads)  # fmt: skip
        (result,) = judged(tmp_path / "k.ptx", text).claims
        assert result.holds is True, (threads, result.notes)


def test_the_command(tmp_path: Path, run_command: Run) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(launch(condition("forall (x[0] == 5)") + "\n// ptxmm: races = 'none'", SUM))
    ran = run_command("check", "--whole", str(path))
    assert ran.code == 1
    assert "forall: no  expected holds\n      every execution ends with x[0]=1056" in ran.out
    assert "holds      no data races: yes\n" in ran.out
    ran = run_command("check", "--whole", "--json", str(path))
    (entry,) = json.loads(ran.out)["results"]
    assert [(claim["analysis"], claim["holds"]) for claim in entry["claims"]] == [("check", False), ("check", True)]
    assert entry["claims"][0]["outcomes"] == [{"registers": {}, "memory": {"x[0]": 1056}, "satisfies": False}]
    ran = run_command("check", "--whole", "--format", "sarif", str(path))
    (found,) = json.loads(ran.out)["runs"][0]["results"]
    assert (ran.code, found["ruleId"], found["level"]) == (1, "contradicted", "error")
    assert "every execution ends with x[0]=1056" in found["message"]["text"]
    ran = run_command("check", "--whole", "--format", "github", str(path))
    assert ran.code == 1 and "every execution ends with x[0]=1056" in ran.out
    path.write_text(launch("races = 'none'", "st.global.u32 [%d1], 7;"))
    ran = run_command("check", "--whole", "--format", "sarif", str(path))
    (found,) = json.loads(ran.out)["runs"][0]["results"]
    assert found["locations"][0]["physicalLocation"]["region"] == {"startLine": 26}


def test_what_depends_on_the_schedule_in_every_format(run_command: Run) -> None:
    path = str(Path(__file__).parent / "cuda" / "spin_lock_cas.ptx")
    for format in ("text", "json", "sarif", "github"):
        ran = run_command("check", "--whole", "--format", format, path)
        assert ran.code == 3 and "a lock: which thread has it next depends on the schedule" in ran.out, ran
        if format == "json":
            (entry,) = json.loads(ran.out)["results"]
            assert (entry["choice"]["kind"], entry["choice"]["operation"]["line"]) == ("lock", 37)
        if format == "sarif":
            assert json.loads(ran.out)["runs"][0]["results"][0]["properties"] == {"choice": "lock"}


def test_check_of_more_threads_than_can_be_listed(tmp_path: Path, run_command: Run) -> None:
    """``check`` alone asks the one execution of all of them, and says so."""
    path = tmp_path / "k.ptx"
    claims = condition("forall (x[0] == 33792)") + "\n// ptxmm: races = 'none'"
    text = launch(claims, SUM, grid=64, threads="all")
    path.write_text(text)
    ran = run_command("check", str(path))
    assert ran.code == 0 and ran.out.count("\nok") + ran.out.startswith("ok") == 2, ran
    assert "2048 threads: one execution of all of them was asked, which tells of the others (--whole)" in ran.out
    path.write_text(text.replace("33792", "33793"))
    ran = run_command("check", "--json", str(path))
    first, second = json.loads(ran.out)["results"]
    assert (ran.code, first["engine"], first["holds"], second["holds"]) == (1, "whole", False, True)
    for arguments in (["--engine", "z3"], ["--model", "ptx-7.5"], ["--all-readings"]):
        ran = run_command("check", *arguments, str(path))
        assert ran.code == 2 and "2048 threads run; at most 1024 are supported" in ran.err, ran
    path.write_text(text.replace("// ptxmm: condition", "// ptxmm: conditio"))
    ran = run_command("check", str(path))
    assert ran.code == 2 and "conditio" in ran.err, ran
    path.write_text(text.replace("x[0] ==", "z[0] =="))
    ran = run_command("check", str(path))
    assert ran.code == 2 and "no variable is called `z`" in ran.err, ran
    path.write_text(text.replace('"all"', '"cta 0 lane 0"'))
    ran = run_command("check", str(path))
    assert ran.code == 1 and "(--whole)" not in ran.out, ran


LOOK = "ld.relaxed.gpu.u32 %r5, [%d1]; setp.eq.u32 %p1, %r5, 1; @%p1 st.global.u32 [%d1], 0; "


@pytest.mark.parametrize(
    ("grid", "threads", "body", "whole"),
    [
        (4, "all", SUM, True),
        (1, "all", SUM, True),
        (0, "all", SUM, False),  # few threads
        (4, "lane 0", SUM, False),  # some of them
        (4, "all", LOOK + SUM, False),
    ],
)
def test_check_of_many_threads(
    grid: int, threads: str, body: str, whole: bool, tmp_path: Path, run_command: Run
) -> None:
    """One execution is asked first, and all of them where that does not decide."""
    path = tmp_path / "k.ptx"
    text = launch("races = 'none'", body, grid=grid or 1, threads=threads)
    path.write_text(text if grid else text.replace("block = 32", "block = 16"))
    ran = run_command("check", "--timeout", "3", str(path))
    assert ("threads: one execution" in ran.out) is whole, ran
    assert ran.code == 0 or not whole


@pytest.mark.parametrize(
    ("body", "holds", "reason"),
    [
        ("st.global.u32 [%d1], 3; " + SUM, [None, False], "data race of x"),
        (LOOK + SUM, [None, None], "depends on"),
    ],
)
def test_what_one_execution_says_is_told_where_a_search_ends(
    body: str, holds: list[bool | None], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refuted is not searched for again, and what is open keeps the line that one execution has named."""
    searched: list[str] = []

    def late(work: Checking, job: Job, settings: Settings) -> Generator[Any, None, Any]:
        searched.append(job.test.name)
        return work.expired(job, settings.timeout)
        yield

    monkeypatch.setattr(tasks, "run", late)
    path = tmp_path / "k.ptx"
    path.write_text(launch(condition("~exists (x[0] == 7)") + "\n// ptxmm: races = 'none'", body, threads="all"))
    told: list[Any] = list(tasks._file(Checking(Engine.auto, False, "none"), Settings(), path, 0))
    _, *reports = told
    assert [report.holds for report in reports] == holds, reports
    assert all(report.engine == "whole" and reason in report.notes[-1].text for report in reports), reports
    assert len(searched) == (0 if False in holds else 2)


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("cuda_counting_semaphore.wrong_block_scope", [None, False]),
        ("cuda_counting_semaphore", [None, True]),
        ("block_vote", [None, None]),  # of which some threads run
    ],
)
def test_what_took_too_long(name: str, holds: list[bool | None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the search ends with its time, one execution of all threads is asked."""

    def late(work: Checking, job: Job, settings: Settings) -> Generator[Any, None, Any]:
        return work.expired(job, settings.timeout)
        yield

    monkeypatch.setattr(tasks, "run", late)
    work = Checking(Engine.auto, False, "none")
    told: list[Any] = list(tasks._file(work, Settings(), ROOT / "tests" / "cuda" / f"{name}.ptx", 0))
    plan, *reports = told
    assert [report.holds for report in reports] == holds, reports
    assert all((report.engine == "whole") == (report.holds is not None) for report in reports)
    assert {item.expired.status for item in plan} == {"timeout"}
