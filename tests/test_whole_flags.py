"""Whole launches of a few CTAs that synchronize by flags and counters: what is race-free, and what only looks so."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ptxmm.analysis.races import races
from ptxmm.engines.result import Limits
from ptxmm.formats.modules.read import kernels, parse_ptx
from ptxmm.whole.analysis import whole
from tests.random_looks import HEAD
from tests.support import model_named

_BRANCHES = """\
    setp.eq.u32 %p1, %r2, 0;
    setp.eq.u32 %p4, %r2, 1;
    @!%p1 bra B;
"""
WRITE, READ = "st.global.u32 [%d1], 1;\n", "ld.global.u32 %r9, [%d1];\n"
BOTH = READ + "ld.global.u32 %r9, [%d1+4];\n"
GIVE = "st.release.gpu.global.u32 [%d2], 1;\n"
FENCE = "fence.acq_rel.gpu;\n"
HAND = FENCE + "st.relaxed.gpu.global.u32 [%d2], 1;\n"
OTHER = "@%p4 bra C; st.global.u32 [%d1+4], 1; red.{0}.gpu.global.add.u32 [%d2], 1; ret;\nC: "
"""What a third CTA does."""


def look(how: str = "acquire.gpu", into: str = "%r3", at: int = 0) -> str:
    return f"ld.{how}.global.u32 {into}, [%d2+{at}];\n"


def wait(how: str = "acquire.gpu", test: str = "eq", number: int = 0, at: int = 0, label: str = "L") -> str:
    again = f"setp.{test}.u32 %p2, %r3, {number}; @%p2 bra {label};\n"
    return f"{label}: " + look(how, at=at) + again


def by(op: str, operands: str, how: str = "acquire") -> str:
    """Waits for a flag by an atomic operation."""
    return wait().replace(
        "ld.acquire.gpu.global.u32 %r3, [%d2+0]",
        f"atom.{how if '.' in how else how + '.gpu'}.global.{op} %r3, [%d2], {operands}",
    )


def staged(first: str, then: str, on_first: str = "", on_then: str = "") -> str:
    """A poll, and if it finds nothing others, with what comes after each."""
    one = look(first) + f"setp.eq.u32 %p2, %r3, 0; @%p2 bra S;\n{on_first}bra D;\n"
    return one + wait(then, label="S") + on_then + "D: "


def told(first: str) -> str:
    """CTA 1 looks at the flag and passes on what it has read; CTA 2 sets the flag too, if that was not there yet."""
    passes = first + READ + "add.u32 %r9, %r9, 1; st.relaxed.gpu.global.u32 [%d2+4], %r9;\nret;\n"
    late = "setp.eq.u32 %p3, %r3, 1; @!%p3 bra E; st.relaxed.gpu.global.u32 [%d2], 1;\nE: "
    return "@!%p4 bra C; " + passes + "C: " + wait("relaxed.gpu", at=4, label="M") + late


EXCHANGE = "atom.exch.{0}.gpu.global.b32 %r8, [%d2], 0;\n"
ROUNDS = "mov.u32 %r4, 0;\nL: " + look() + "add.u32 %r4, %r4, 1; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;\n"

CASES = {
    "message": (WRITE + GIVE, wait() + READ, "race-free"),
    "message by fences": (WRITE + HAND, wait("relaxed.gpu") + FENCE + READ, "race-free"),
    "volatile": (
        WRITE + "fence.acq_rel.sys; st.volatile.global.u32 [%d2], 1;",
        wait("volatile") + "fence.acq_rel.sys;" + READ, "race-free",
    ),
    "written again": (WRITE + GIVE + "st.relaxed.gpu.global.u32 [%d2], 2;", wait() + READ, "race-free"),
    "written before": ("st.relaxed.gpu.global.u32 [%d2], 1;" + WRITE + GIVE, wait() + READ, None),
    "no release": (WRITE + "st.relaxed.gpu.global.u32 [%d2], 1;", wait() + READ, "race"),
    "no acquire": (WRITE + GIVE, wait("relaxed.gpu") + READ, "race"),
    "release too narrow": (WRITE + "st.release.cta.global.u32 [%d2], 1;", wait() + READ, "race"),
    "fence too narrow": (WRITE + HAND.replace("gpu;", "cta;"), wait("relaxed.gpu") + FENCE + READ, "race"),
    "fence too early": (FENCE + WRITE + "st.relaxed.gpu.global.u32 [%d2], 1;", wait() + READ, "race"),
    "weak flag": (WRITE + "st.global.u32 [%d2], 1;", wait() + READ, "race"),
    "narrow flag": (WRITE + GIVE, wait().replace("u32 %r3", "u8 %r3") + READ, "race"),
    "data behind": (GIVE + WRITE, wait() + READ, "race"),
    # Atomic operations that leave what they find look as loads do, and write.
    "looks by adding 0": (WRITE + GIVE, by("add.u32", "0") + READ, "race-free"),
    "looks by comparing": (WRITE + GIVE, by("cas.b32", "1, 1", "relaxed") + FENCE + READ, "race-free"),
    "looks by adding 0, relaxed": (WRITE + GIVE, by("add.u32", "0", "relaxed") + READ, "race"),
    # It fails, and a read beside it is no race.
    "compares with what is never there": ("ld.global.u32 %r3, [%d2];", by("cas.b32", "3, 3").split("setp")[0], None),
    "compares, and a weak store": ("st.global.u32 [%d2], 1;", by("cas.b32", "3, 3").split("setp")[0], "race"),
    "looks by adding 1": (WRITE + GIVE, by("add.u32", "1") + READ, None),
    "looks by adding 0, too narrow": (WRITE + GIVE, by("add.u32", "0", "acquire.cta") + READ, None),
    "read weakly before": (look("weak") + WRITE + GIVE, by("add.u32", "0") + READ, "race"),
    "read weakly before, and by a load": (look("weak") + WRITE + GIVE, wait() + READ, "race-free"),
    "found by the own CTA": (
        "@!%p4 bra D; ret; D: " + WRITE + "st.release.cta.global.u32 [%d2], 1;" + by("add.u32", "0") + READ, "", None,
    ),
    "red does not acquire": (WRITE + GIVE, "red.relaxed.gpu.global.add.u32 [%d2+4], 1;" + FENCE + READ, "race"),
    "two flags at once": (
        WRITE + GIVE + "st.relaxed.gpu.global.u32 [%d2+4], 1;",
        "L: " + look() + look("relaxed.gpu", "%r4", 4)
        + "or.b32 %r3, %r3, %r4; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;" + READ, None,
    ),
    **{
        f"two flags in one round: {name}": (
            WRITE + GIVE + "st.global.u32 [%d1+4], 1;" + GIVE.replace("%d2", "%d2+4"),
            "L: " + look(one) + look(other, "%r4", 4) + combine + " %r3, %r3, %r4; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;"
            + then + BOTH, expected,
        )
        for name, one, other, combine, then, expected in (
            ("both", "acquire.gpu", "acquire.gpu", "and.b32", "", "race-free"),
            ("one of them", "acquire.gpu", "acquire.gpu", "or.b32", "", None),
            ("behind a fence", "relaxed.gpu", "relaxed.gpu", "min.u32", FENCE, "race-free"),
            ("the last one relaxed", "acquire.gpu", "relaxed.gpu", "and.b32", "", None),
            ("a narrow one", "acquire.gpu", "acquire.cta", "and.b32", "", "race"),
        )
    },
    "the first flag again": (
        WRITE + GIVE + GIVE.replace("%d2", "%d2+4"),
        wait("relaxed.gpu") + look("acquire.gpu", "%r4", 4) + "setp.eq.u32 %p2, %r4, 0; @%p2 bra L;" + READ,
        "race-free",
    ),
    "another value than that before": (
        WRITE + GIVE, look("relaxed.gpu", "%r4") + "setp.ne.u32 %p2, %r4, 0; @%p2 bra D;\n"
        + "L: " + look("relaxed.gpu") + "setp.eq.u32 %p2, %r3, %r4; @%p2 bra L; D: " + FENCE + READ, "race-free",
    ),
    "until another value is the right one": (
        WRITE + GIVE, "bra N; L: " + look("relaxed.gpu") + "setp.eq.u32 %p2, %r3, %r4; @%p2 bra L;\n"
        + "N: " + look("acquire.gpu", "%r4") + "setp.eq.u32 %p2, %r4, 0; @%p2 bra L;" + READ, "race-free",
    ),
    "a vector of flags": (
        WRITE + FENCE + "st.relaxed.gpu.global.v2.u32 [%d2], {1, 1};",
        "L: ld.relaxed.gpu.global.v2.u32 {%r3, %r4}, [%d2]; and.b32 %r3, %r3, %r4;\n"
        + "setp.eq.u32 %p2, %r3, 0; @%p2 bra L;" + FENCE + READ, "race-free",
    ),
    "data in a vector with its flag": (
        "st.relaxed.gpu.global.v2.u32 [%d2], {1, 4};",
        "L: ld.relaxed.gpu.global.v2.u32 {%r3, %r4}, [%d2]; setp.eq.u32 %p2, %r3, 0; @%p2 bra L;\n"
        + "cvt.u64.u32 %d5, %r4; add.u64 %d6, %d1, %d5; st.global.u32 [%d6], 1;", None,
    ),
    # The elements of a vector are in no order: each releases what is before them, and itself.
    "two flags in a vector": (
        WRITE + FENCE + "st.relaxed.gpu.global.v2.u32 [%d2], {1, 1};", wait() + READ, "race-free",
    ),
    "what stands beside a flag": (
        "st.release.gpu.global.v2.u32 [%d2], {1, 1};", wait(at=4) + "ld.global.u32 %r9, [%d2];", None,
    ),
    # A relaxed wait, and then what acquires.
    "relaxed, then acquired": (WRITE + GIVE, wait("relaxed.gpu") + look(into="%r5") + READ, "race-free"),
    "relaxed, then acquired in a narrow scope": (
        WRITE + GIVE, wait("relaxed.gpu") + look("acquire.cta", "%r5") + READ, "race",
    ),
    "relaxed, then another one acquired": (WRITE + GIVE, wait("relaxed.gpu") + look(at=4, into="%r5") + READ, "race"),
    "relaxed, then acquired, of two": (
        WRITE + GIVE, "@%p4 bra C; st.relaxed.gpu.global.u32 [%d2], 1; ret;\nC: "
        + wait("relaxed.gpu") + look(into="%r5") + READ, None,
    ),
    "acquired, then relaxed": (WRITE + GIVE, look(into="%r5") + wait("relaxed.gpu") + READ, None),
    "relaxed, then exchanged": (WRITE + GIVE, wait("relaxed.gpu") + EXCHANGE.format("acquire") + READ, "race-free"),
    "relaxed, then exchanged without an acquire": (
        WRITE + GIVE, wait("relaxed.gpu") + EXCHANGE.format("release") + READ, "race",
    ),
    # What is behind a look that is in no loop does not depend on it: what it finds may only follow from that.
    "told by a loop": (WRITE + GIVE, told(wait()), "race-free"),
    "told by a loop and a look": (WRITE + GIVE, told(wait("relaxed.gpu") + look(into="%r5")), "race-free"),
    "told by a loop that a look comes before": (WRITE + GIVE, told(staged("acquire.gpu", "acquire.gpu")), None),
    # Loops that end in several places.
    "staged": (WRITE + GIVE, staged("acquire.gpu", "acquire.gpu") + READ, "race-free"),
    "staged, relaxed later": (WRITE + GIVE, staged("acquire.gpu", "relaxed.gpu") + READ, None),
    "staged, narrow later": (WRITE + GIVE, staged("acquire.gpu", "acquire.cta") + READ, None),
    "staged, relaxed first": (WRITE + GIVE, staged("relaxed.gpu", "acquire.gpu") + READ, None),
    "staged, both fences": (
        WRITE + HAND, staged("relaxed.gpu", "relaxed.gpu", FENCE, FENCE) + READ, None,
    ),
    "staged, first fence": (WRITE + HAND, staged("relaxed.gpu", "relaxed.gpu", FENCE) + READ, None),
    "staged, later fence": (WRITE + HAND, staged("relaxed.gpu", "relaxed.gpu", "", FENCE) + READ, None),
    "fence by value": (
        WRITE + HAND + "st.relaxed.gpu.global.u32 [%d2], 2;",
        wait("relaxed.gpu") + "setp.eq.u32 %p3, %r3, 2; @%p3 fence.acq_rel.gpu;" + READ, None,
    ),
    "fence by rounds": (
        WRITE + HAND,
        ROUNDS.replace("acquire", "relaxed") + "setp.eq.u32 %p3, %r4, 1; @%p3 fence.acq_rel.gpu;" + READ, None,
    ),
    "so many rounds": (
        WRITE + GIVE,
        "mov.u32 %r4, 0;\nL: " + look() + "setp.ne.u32 %p2, %r3, 0; @%p2 bra D; add.u32 %r4, %r4, 1;\n"
        + "setp.lt.u32 %p3, %r4, 1000; @%p3 bra L;\nD: " + READ, None,
    ),
    "branch by rounds": (WRITE + GIVE, ROUNDS + "setp.gt.u32 %p3, %r4, 3; @%p3 st.global.u32 [%d1+4], 1;" + READ, None),
    # Those that go round here keep nobody waiting for ever.
    "rounds with a barrier": (
        "L: " + look() + "setp.eq.u32 %p2, %r3, 0; bar.red.or.pred %p5, 0, %p2; @%p5 bra L;\n" + READ,
        WRITE + GIVE,
        "race-free",
    ),
    # Values that are passed on.
    "an offset": (
        "mov.u32 %r5, 4; st.relaxed.gpu.global.u32 [%d2], %r5;",
        wait("relaxed.gpu") + "cvt.u64.u32 %d5, %r3; add.u64 %d6, %d1, %d5; st.global.u32 [%d6], 1;", "race-free",
    ),
    "one of two offsets": (
        "st.relaxed.gpu.global.u32 [%d2], 4; st.relaxed.gpu.global.u32 [%d2], 8;",
        wait("relaxed.gpu") + "cvt.u64.u32 %d5, %r3; add.u64 %d6, %d1, %d5; st.global.u32 [%d6], 1;", "race-free",
    ),
    "one of two offsets, the second one is written": (
        "st.global.u32 [%d1+8], 2; st.relaxed.gpu.global.u32 [%d2], 4; st.relaxed.gpu.global.u32 [%d2], 8;",
        wait("relaxed.gpu") + "cvt.u64.u32 %d5, %r3; add.u64 %d6, %d1, %d5; st.global.u32 [%d6], 1;", "race",
    ),
    "an address by a load": (
        WRITE + "st.relaxed.gpu.global.u32 [%d2], 1;",
        look("relaxed.gpu") + "setp.eq.u32 %p2, %r3, 1; selp.u32 %r5, 0, 4, %p2; cvt.u64.u32 %d5, %r5;\n"
        + "add.u64 %d6, %d1, %d5; st.global.u32 [%d6], 1;", None,
    ),
    "store buffering": (
        "st.relaxed.gpu.global.u32 [%d2], 1; fence.sc.gpu;" + look("relaxed.gpu", at=4)
        + "setp.eq.u32 %p2, %r3, 0; @%p2 st.global.u32 [%d1], 1;",
        "st.relaxed.gpu.global.u32 [%d2+4], 1; fence.sc.gpu;" + look("relaxed.gpu")
        + "setp.eq.u32 %p2, %r3, 0; @%p2 st.global.u32 [%d1], 2;", None,
    ),
    "load buffering": (
        look("relaxed.gpu") + "st.relaxed.gpu.global.u32 [%d2+4], 1; setp.eq.u32 %p2, %r3, 1;\n@%p2 " + WRITE,
        look("relaxed.gpu", at=4) + "st.relaxed.gpu.global.u32 [%d2], 1; setp.eq.u32 %p2, %r3, 1;\n@%p2 " + WRITE, None,
    ),
    # Back and forth.
    "there and back": (
        WRITE + GIVE + wait(at=4) + WRITE, wait(label="M") + READ + GIVE.replace("%d2", "%d2+4"), "race-free",
    ),
    "back, relaxed": (
        WRITE + GIVE + wait("relaxed.gpu", at=4) + WRITE, wait(label="M") + READ + GIVE.replace("%d2", "%d2+4"), "race",
    ),
    "one flag, both ways": (
        WRITE + GIVE + wait(test="ne") + WRITE + GIVE,
        wait(label="M") + READ + GIVE.replace(", 1", ", 0") + wait(label="N") + READ, "race-free",
    ),
    "one flag, given back early": (
        WRITE + GIVE + wait(test="ne") + WRITE + GIVE,
        wait(label="M") + GIVE.replace(", 1", ", 0") + READ + wait(label="N") + READ, "race",
    ),
    "missed": (WRITE + GIVE + GIVE.replace(", 1", ", 0"), wait() + READ, None),
    # Counters.
    "counter": (
        WRITE + "red.release.gpu.global.add.u32 [%d2], 1;", OTHER.format("release") + wait(test="lt", number=2) + BOTH,
        "race-free",
    ),
    "counter, one arrival": (
        WRITE + "red.release.gpu.global.add.u32 [%d2], 1;", OTHER.format("release") + wait(test="lt", number=1) + BOTH,
        None,
    ),
    "counter, one relaxed": (
        WRITE + "red.release.gpu.global.add.u32 [%d2], 1;", OTHER.format("relaxed") + wait(test="lt", number=2) + BOTH,
        "race",
    ),
    "up and down": (
        "red.relaxed.gpu.global.add.u32 [%d2], 1;" + WRITE
        + "red.release.gpu.global.add.u32 [%d2], -1; red.release.gpu.global.add.u32 [%d2], 1;",
        wait(test="ne", number=1) + READ, None,
    ),
    "a register of another round": (
        GIVE, "@%p4 bra C; " + WRITE + "ret;\nC: mov.u32 %r4, 0;\nL: " + look() + "setp.eq.u32 %p2, %r3, 0; "
        "@%p2 mov.u32 %r4, 1; @%p2 bra L; setp.eq.u32 %p3, %r4, 0; @%p3 bra D;\n" + WRITE + "D: ", None,
    ),
    "first in a narrow scope": (staged("relaxed.cta", "acquire.gpu"), GIVE, None),
    "perhaps in a narrow scope": (GIVE, staged("acquire.gpu", "relaxed.cta"), None),
    "any maximum": (
        WRITE + "red.release.gpu.global.max.u32 [%d2], 2;",
        "@%p4 bra C; red.relaxed.gpu.global.max.u32 [%d2], 3; ret;\nC: " + wait(test="lt", number=2) + READ, None,
    ),
    "exchanged": (
        WRITE + GIVE, "@%p4 bra C; atom.exch.relaxed.gpu.global.b32 %r8, [%d2], 2; ret;\nC: "
        + wait(test="lt", number=2) + READ, None,
    ),
    "lock, relaxed": (
        "L: atom.cas.relaxed.gpu.global.b32 %r3, [%d2], 0, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra L;\n" + WRITE
        + "st.release.gpu.global.u32 [%d2], 0;",
        "M: atom.cas.relaxed.gpu.global.b32 %r3, [%d2], 0, 1; setp.ne.u32 %p2, %r3, 0; @%p2 bra M;\n" + WRITE
        + "st.release.gpu.global.u32 [%d2], 0;", None,
    ),
}  # fmt: skip
"""What CTA 0 does, what the others do, and the answer; None: any but that it is race-free."""


@pytest.mark.parametrize("name", CASES)
def test_flags(name: str, tmp_path: Path) -> None:
    first, other, expected = CASES[name]
    head = HEAD.format(grid=3 if "C: " in other else 2, d=8, f=8)
    text = head + _BRANCHES + first + "\nret;\nB:\n" + other + "\nret;\n}\n"
    path = tmp_path / "k.ptx"
    path.write_text(text)
    (kernel,) = kernels(path)
    found = whole(kernel, str(path), Limits(deadline=time.monotonic() + 20))
    if expected is not None:
        assert found.answer == expected
    assert found.answer in ("race-free", "race", "deadlock", "undecided", "unsupported")
    # What the engine that lists all executions says of it is the same.
    (test,) = parse_ptx(text, str(path))
    every = races(test, model_named("ptx-8.5"), limits=Limits(deadline=time.monotonic() + 20))
    if found.answer in ("race-free", "race") and every.status == "complete":
        assert every.race_free is (found.answer == "race-free")
    if expected is None:
        assert found.answer != "race-free"


@pytest.mark.parametrize(
    "loop",
    [
        "st.relaxed.gpu.global.u32 [%d2+8], %r4;" + look(),
        look() + look(into="%r5", at=4) + "and.b32 %r3, %r3, %r5;",
    ],
)  # fmt: skip
def test_nobody_waits_for_ever_for_others_of_the_cta_that_go_round(loop: str, tmp_path: Path) -> None:
    """Thread 0 goes round before thread 1, which stands behind it in the text, sets what it waits for."""
    head = HEAD.format(grid=1, d=2, f=4).replace("// ptxmm: threads", "// ptxmm: block = 2\n// ptxmm: threads")
    loop = f"L: add.u32 %r4, %r4, 1; {loop} setp.eq.u32 %p2, %r3, 0; @%p2 bra L;"
    text = head.replace("%ctaid", "%tid") + _BRANCHES + loop + "\nret;\nB:\n" + GIVE + GIVE.replace("%d2", "%d2+4")
    path = tmp_path / "k.ptx"
    path.write_text(text + "\nret;\n}\n")
    (kernel,) = kernels(path)
    found = whole(kernel, str(path), Limits(deadline=time.monotonic() + 20))
    assert found.answer in ("race-free", "undecided"), found.reason
