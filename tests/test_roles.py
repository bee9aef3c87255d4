"""Launches of more threads than run: some of each role are chosen, and what these can't refute is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptxmm.cli.app import run
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from ptxmm.program.test import Test

HEAD = ".version 8.5\n.target sm_90\n.address_size 64\n"
SIZE = 'grid = 100\nblock = 64\nargs = ["x"]\n'
OBJECT = '[objects]\nx = { type = "u32", count = 6400 }\n[check]\n'
START = """
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 64, %r1; shl.b32 %r4, %r1, 2;
mov.u32 %r5, s; add.u32 %r6, %r5, %r4; ld.param.u64 %rd1, [p0]; cvta.to.global.u64 %rd1, %rd1;
mul.wide.u32 %rd2, %r3, 4; add.u64 %rd2, %rd1, %rd2;
"""


def module(body: str) -> str:
    declared = ".reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .shared .align 8 .b8 s[256];"
    return f"{HEAD}.visible .entry k(.param .u64 p0)\n{{\n{declared}\n{START}\n{body}\nret;\n}}\n"


def source(body: str, check: str = 'races = "none"', size: str = SIZE) -> str:
    return "".join(f"// ptxmm: {row}\n" for row in (size + OBJECT + check).splitlines()) + module(body)


def launched(body: str, check: str = 'races = "none"', size: str = SIZE) -> Test:
    (test,) = parse(source(body, check, size), "k.ptx")
    return test


def answers(folder: Path, capsys: pytest.CaptureFixture[str], body: str, check: str) -> list[tuple[object, ...]]:
    """The exit code with, for each claim, what holds, its status, and the notes that say of roles."""
    file = folder / "k.ptx"
    file.write_text(source(body, check))
    with pytest.raises(SystemExit) as ended:
        run(["check", str(file), "--engine", "z3", "--json"])
    found = json.loads(capsys.readouterr().out)["results"]
    told = [sum("were looked at, and some of" in note["text"] for note in item.get("notes", ())) for item in found]
    return [(ended.value.code, item["holds"], item["status"], notes) for item, notes in zip(found, told, strict=True)]


EXCHANGE = "st.shared.u32 [%r6], %r1; {} xor.b32 %r7, %r4, 128; add.u32 %r7, %r5, %r7; ld.shared.u32 %r8, [%r7];"
FAR = "st.global.u32 [%rd2+{}], %r1;"


@pytest.mark.parametrize(
    ("body", "check", "holds", "code"),
    [
        # Two warps exchange words: with the barrier no pair races, but of the others nothing is known.
        (EXCHANGE.format("bar.sync 0;"), 'races = "none"', None, 3),
        (EXCHANGE.format(""), 'races = "none"', False, 1),
        # Two CTAs write one word (thread 63 of one and thread 0 of the next).
        (FAR.format(0), 'races = "none"', None, 3),
        ("setp.eq.u32 %p1, %r1, 63; @%p1 st.global.u32 [%rd1], 1;", 'races = "none"', False, 1),
        # The last lane of a warp meets the first one of the next CTA, the first of a CTA its last.
        ("mad.lo.u32 %r3, %r2, 31, %r1; mul.wide.u32 %rd2, %r3, 4; add.u64 %rd2, %rd1, %rd2; "
         "setp.lt.u32 %p1, %r1, 32; @%p1 st.global.u32 [%rd2], %r1;", 'races = "none"', False, 1),
        ("st.shared.u32 [%r6], %r1; sub.u32 %r7, 252, %r4; add.u32 %r7, %r5, %r7; ld.shared.u32 %r8, [%r7];",
         'races = "none"', False, 1),
        # The last thread of the last CTA goes beyond the end.
        (FAR.format(0), 'bounds = "none outside"', None, 3),
        (FAR.format(4), 'bounds = "none outside"', False, 1),
    ],
)  # fmt: skip
def test_what_they_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, check: str, holds: bool | None, code: int
) -> None:
    ((found, held, status, notes),) = answers(tmp_path, capsys, body, check)
    assert (found, held) == (code, holds)
    # What refutes a claim needs no excuse.
    assert holds is False or (status, notes) == ("bounded", 1)


def roles(test: Test) -> set[tuple[int, int]]:
    """The (cta, thread) numbers that run."""
    assert test.claims is not None
    words = next(remark for remark in test.claims.remarks if "threads run" in remark).split(": ", 1)[1].split(", ")
    return {(int(word.split("CTA ")[1]), int(word.split("thread ")[1].split()[0])) for word in words if "CTA" in word}


def test_every_role_is_there() -> None:
    """Warps, an elected lane, the last lane, one CTA; each with another warp, lane and CTA if there is one, and the
    last of each of these."""
    assert roles(launched("st.global.u32 [%rd2], %r1;")) == {
        (0, 0), (0, 1), (0, 31), (0, 32), (0, 63), (1, 0), (99, 63),
    }  # fmt: skip
    elected = "and.b32 %r7, %r1, 31; setp.ne.u32 %p1, %r7, 0; @%p1 ret; st.global.u32 [%rd2], 1;"
    assert {(0, 0), (0, 1), (0, 32), (1, 0)} <= roles(launched(elected))
    one = "setp.ne.u32 %p1, %r2, 99; @%p1 ret; setp.ne.u32 %p1, %r1, 63; @%p1 ret; st.global.u32 [%rd2], 1;"
    assert (99, 63) in roles(launched(one))


def test_a_small_launch_runs_whole() -> None:
    test = launched("st.global.u32 [%rd2], %r1;", size=SIZE.replace("100", "16"))
    assert len(test.threads) == 1024 and test.claims is not None and test.claims.partial == ()


DEPENDS = [
    # What another thread wrote decides what is done, where, and whether anything is.
    "ld.global.u32 %r7, [%rd1]; setp.eq.u32 %p1, %r7, 0; @%p1 st.global.u32 [%rd2], 1;",
    "ld.shared.u32 %r7, [%r6]; and.b32 %r7, %r7, 4; cvt.u64.u32 %rd3, %r7; add.u64 %rd3, %rd3, %rd1; "
    "st.global.u32 [%rd3], 1;",
    "L: ld.relaxed.gpu.global.u32 %r7, [%rd1]; setp.eq.u32 %p1, %r7, 0; @%p1 bra L; st.global.u32 [%rd2], 1;",
    # So many are waited for, and so many come.
    "bar.sync 1, 64; st.global.u32 [%rd2], 1;",
    "bar.arrive 1, 64; st.global.u32 [%rd2], 1;",
    "setp.eq.u32 %p1, %r1, 0; barrier.red.or.pred %p2, 0, %p1; @%p2 st.global.u32 [%rd2], 1;",
    "setp.ne.u32 %p1, %r1, 0; @!%p1 mbarrier.init.shared.b64 [s], 64; bar.sync 0; "
    "mbarrier.arrive.shared.b64 %rd3, [s]; st.global.u32 [%rd2], 1;",
    "shfl.sync.bfly.b32 %r7, %r1, 1, 31, -1; st.global.u32 [%rd2], %r7;",
    "shfl.sync.bfly.b32 %r7, %r1, 1, 31, -1; setp.eq.u32 %p1, %r1, 45; @%p1 st.global.u32 [%rd2], %r7;",
    "cp.async.ca.shared.global [%r6], [%rd2], 4; cp.async.wait_all; st.global.u32 [%rd2], 1;",
    # A clock may decide anything.
    "mov.u32 %r7, %clock; setp.eq.u32 %p1, %r7, 5; @%p1 st.global.u32 [%rd2], 1;",
]


@pytest.mark.parametrize("body", DEPENDS)
def test_who_depends_on_others_is_chosen_by_hand(body: str) -> None:
    """The message has threads of each role, which a launch may name."""
    with pytest.raises(PtxmmError) as caught:
        launched(body)
    error = caught.value
    assert error.message == "6400 threads run; at most 1024 are supported, and what one does depends on others"
    assert error.kind == "format" and error.line == 2
    assert error.hint is not None
    assert error.hint.startswith("`ptxmm check --whole` executes all; or choose some")
    threads = error.hint.partition("threads = ")[2]
    assert len(launched(body, size=f"{SIZE}threads = {threads}\n").threads) >= 3


@pytest.mark.parametrize(
    "check",
    [
        "", "robust = true", 'traps = "none"', 'barriers = "convergent"', 'condition = "exists (x[0] == 1)"',
        'races = "none"\ncondition = "exists (x[0] == 1)"',
    ],
)  # fmt: skip
def test_what_only_all_can_tell(check: str) -> None:
    """Final values, and all but races and bounds, are those of all threads."""
    with pytest.raises(PtxmmError) as caught:
        launched("st.global.u32 [%rd2], 1;", check)
    assert caught.value.message == "6400 threads run; at most 1024 are supported"
    assert caught.value.line == 2


@pytest.mark.parametrize(
    "more",
    [
        'assume = ["same-value-races"]\n', '[[grids]]\n[[grids]]\nthreads = "cta 0 thread 0"\n',
        'host = { H0 = "ld.relaxed.sys.u32 r0, [x];" }\n',
    ],
)  # fmt: skip
def test_others_that_depend_on_all(more: str) -> None:
    """Whether writes race with the same value, what comes after a grid, and the host may depend on any thread."""
    with pytest.raises(PtxmmError, match="what one does depends on others"):
        launched("st.global.u32 [%rd2], 1;", size=SIZE + more)


@pytest.mark.parametrize(
    ("condition", "role"),
    [
        # A thread of a CTA, a CTA, a warp, a thread of the launch.
        ("setp.ne.u32 %p1, %r1, 45; @%p1 ret;", (0, 45)),
        ("setp.ne.u32 %p1, %r2, 77; @%p1 ret;", (77, 0)),
        ("add.u32 %r7, %r2, 7; shr.u32 %r8, %r1, 5; setp.ne.u32 %p1, %r8, 1; @%p1 ret;", (0, 32)),
        ("setp.ne.u32 %p1, %r3, 4000; @%p1 ret;", (62, 32)),
        ("setp.lt.u32 %p1, %r3, 5001; @%p1 ret; setp.gt.u32 %p1, %r3, 5001; @%p1 ret;", (78, 9)),
        ("sub.u32 %r7, %r3, 4500; setp.ne.u32 %p1, %r7, 0; @%p1 ret;", (70, 20)),
    ],
)  # fmt: skip
def test_a_role_that_a_constant_singles_out(condition: str, role: tuple[int, int]) -> None:
    assert role in roles(launched(f"{condition} st.global.u32 [%rd1], 1;"))


def test_what_takes_too_long_points_to_one_execution(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.ptx"
    file.write_text(source("L: add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 60000; @%p1 bra L; st.global.u32 [%rd2], 1;",
                           size=SIZE.replace("100", "16")))  # fmt: skip
    with pytest.raises(SystemExit) as ended:
        run(["races", str(file), "--timeout", "0.2"])
    told = "".join(capsys.readouterr())
    assert ended.value.code == 3 and "`ptxmm check --whole` asks one execution of all threads of a kernel" in told
