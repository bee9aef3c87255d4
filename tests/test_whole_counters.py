"""Whole launches of a few CTAs that meet at counters and at barriers of their cluster: what is race-free, and what only
looks so."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxmm.formats.modules.read import parse_ptx
from tests.test_whole_pipelines import agrees, judged

_HEAD = """\
.version 8.5
.target sm_90
.address_size 64
// ptxmm: grid = {grid}
{cluster}// ptxmm: threads = "all"
// ptxmm: args = ["d", "f"]
// ptxmm: [objects]
// ptxmm: d = {{ type = "u32", count = 8 }}
// ptxmm: f = {{ type = "u32", count = 8 }}
// ptxmm: [check]
// ptxmm: races = "none"
.visible .entry k(.param .u64 pd, .param .u64 pf)
{{
    .reg .pred %p<12>;
    .reg .b32 %r<30>;
    .reg .b64 %d<12>;
{shared}    ld.param.u64 %d1, [pd];
    ld.param.u64 %d2, [pf];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r0, %nctaid.x;
    mul.wide.u32 %d3, %r2, 4;
    add.u64 %d4, %d1, %d3;
    setp.eq.u32 %p1, %r2, 0;
    setp.eq.u32 %p2, %r2, 1;
"""
OWN = "st.global.u32 [%d4], 1; "
FENCE = "fence.acq_rel.gpu; "
TWO = "ld.global.u32 %r6, [%d1]; ld.global.u32 %r6, [%d1+4]; "
THREE = TWO + "ld.global.u32 %r6, [%d1+8]; "
RESET = "st.global.u32 [%d2], 0; "
ARRIVE = "red.release.gpu.global.add.u32 [%d2], 1; "
COUNT = "red.relaxed.gpu.global.add.u32 [%d2], 1; "
MEET = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire; "
REMOTE = "mov.u32 %r7, s; mapa.shared::cluster.u32 %r8, %r7, 0; " + MEET
LOOK = "@%p2 ld.shared::cluster.u32 %r9, [%r8]; "
CHANGE = "@%p1 st.shared.u32 [s], 1; "


def add(number: int | str = 1, sem: str = "relaxed", scope: str = "gpu", op: str = "add.u32") -> str:
    return f"atom.{sem}.{scope}.global.{op} %r5, [%d2], {number}; "


def if_(test: str, number: int, then: str) -> str:
    return f"setp.{test}.u32 %p5, %r5, {number}; @!%p5 bra E; {then}E: "


def last(test: str, number: int, read: str = THREE, fence: str = FENCE) -> str:
    return if_(test, number, fence + read)


def resets(arrival: str, of: int = 2, test: str = "eq", read: str = THREE, reset: str = RESET) -> str:
    """Whoever comes last tells its CTA, and stores to the counter what it held at first."""
    tells = f"setp.{test}.u32 %p5, %r5, {of}; selp.u32 %r7, 1, 0, %p5; st.shared.u32 [s], %r7; bar.sync 0; "
    tells += "ld.shared.u32 %r9, [s]; setp.eq.u32 %p5, %r9, 1; @!%p5 bra E; "
    return OWN + arrival + tells + read + reset + "E: "


def wait(test: str, number: str, label: str = "P", at: int = 0) -> str:
    look = f"ld.acquire.gpu.global.u32 %r8, [%d2+{at}]; "
    return f"{label}: {look}setp.{test}.u32 %p6, %r8, {number}; @%p6 bra {label}; "


def told(arrival: str) -> str:
    """Whoever comes last tells the others by a flag."""
    rest = "st.release.gpu.global.u32 [%d2+4], 1; bra E; " + wait("eq", "0", at=4) + "E: "
    return arrival + "setp.ne.u32 %p5, %r5, 2; @%p5 bra P; " + rest + THREE


def counted_late() -> str:
    """Of two CTAs the last one tells the other; one of them passes on what it has read, and the third counts too if
    that was not there yet: so it is what makes the other one the last."""
    rest = "st.release.gpu.global.u32 [%d2+4], 1; bra E; " + wait("eq", "0", at=4) + "E: "
    arrive = OWN + add(sem="acq_rel") + "setp.ne.u32 %p5, %r5, 1; @%p5 bra P; " + rest
    passes = "@%p2 bra X; ld.global.u32 %r6, [%d1+4]; add.u32 %r6, %r6, 1; st.relaxed.gpu.global.u32 [%d2+8], %r6; X: "
    late = "setp.eq.u32 %p8, %r8, 1; @!%p8 bra F; st.relaxed.gpu.global.u32 [%d2], 1; F: "
    third = "setp.eq.u32 %p7, %r2, 2; @%p7 bra C; "
    return third + arrive + passes + "ret; C: " + wait("eq", "0", label="G", at=8) + late


def twice(test: str) -> str:
    """Two barriers by one counter, with what each CTA writes before and after."""
    first = "add.u32 %r10, %r0, %r0; " + OWN + ARRIVE + wait(test, "%r0") + TWO
    return first + ARRIVE + wait("lt", "%r10", "Q") + OWN


def sense(first: str) -> str:
    """A barrier that is complete when the highest bit changes, which CTA 0 makes up for."""
    turned = "P: ld.acquire.gpu.global.u32 %r8, [%d2]; xor.b32 %r8, %r8, %r5; setp.ge.s32 %p6, %r8, 0; @%p6 bra P; "
    return f"selp.u32 %r7, {first}, 1, %p1; " + OWN + FENCE + add("%r7") + turned + TWO


def handed(release: str) -> str:
    """A flag between the CTAs of a cluster, for shared memory."""
    flag = "ld.acquire.cluster.global.u32 %r9, [%d2]; setp.eq.u32 %p6, %r9, 0; @%p6 bra B; "
    return (
        f"{REMOTE}@%p2 bra B; st.shared.u32 [s], 1; st.release.{release}.global.u32 [%d2], 1; bra X; "
        f"B: {flag}ld.shared::cluster.u32 %r9, [%r8]; X: {MEET}"
    )


def observed(number: int, before: str = "", adds: str = COUNT, behind: str = "", test: str = "ne") -> str:
    """CTA 1 waits for what the others add, however weakly, and sets the counter back."""
    relaxed = wait(test, str(number)).replace("acquire", "relaxed")
    return f"@%p2 bra P; {before}{adds}{behind}ret; {relaxed}" + RESET


def observed_by_another(sem: str, release: str) -> str:
    """CTA 1 waits for what CTA 0 adds, and tells CTA 2, which sets the counter back."""
    here = wait("ne", "1").replace("acquire", "relaxed") + f"st.{release}.gpu.global.u32 [%d2+4], 1; ret; "
    there = wait("ne", "1", "Q", 4).replace("acquire", sem) + RESET
    return f"setp.eq.u32 %p7, %r2, 2; @%p7 bra Q; @%p2 bra P; {COUNT}ret; {here}{there}"


def locked(release: str, acquire: str) -> str:
    """A ticket lock: who has it next depends on the schedule, and what it protects is seen in any."""
    turn = wait("ne", "%r5", at=4).replace("acquire", acquire)
    return (
        add() + turn + f"ld.global.u32 %r6, [%d1]; {OWN}add.u32 %r5, %r5, 1; st.{release}.gpu.global.u32 [%d2+4], %r5; "
    )


BITS = "mov.u32 %r7, 1; shl.b32 %r7, %r7, %r2; " + OWN + FENCE + add("%r7", op="or.b32") + "or.b32 %r5, %r5, %r7; "
ONE_TO_THREE = "add.u32 %r7, %r2, 1; " + OWN + FENCE + add("%r7") + "add.u32 %r5, %r5, %r7; "
OTHERS = "@%p1 bra A; {0}ret; A: " + OWN + FENCE + "red.relaxed.gpu.global.add.u32 [%d2], 1; "

CASES = {
    "last": (3, OWN + FENCE + add() + last("eq", 2), "race-free"),
    "last, by order": (3, OWN + add(sem="acq_rel") + last("eq", 2, fence=""), "race-free"),
    "last, nothing released": (3, OWN + add() + last("eq", 2), "race"),
    "last, nothing acquired": (3, OWN + FENCE + add() + last("eq", 2, fence=""), "race"),
    "last, nothing acquired but by fence.sc": (
        3, OWN + FENCE.replace("acq_rel", "sc") + add() + last("eq", 2, fence=""), "race",
    ),
    "last, all counted before, nothing acquired": (
        3, add().replace("d2", "d1") + FENCE.replace("acq_rel", "sc") + add() + last("eq", 2, fence=""), "race",
    ),
    "last, counted in the CTA": (3, OWN + FENCE + add(scope="cta") + last("eq", 2), "race"),
    "last, released in the CTA": (3, OWN + FENCE.replace("gpu", "cta") + add() + last("eq", 2), "race"),
    "last, acquired in the CTA": (3, OWN + FENCE + add() + last("eq", 2, fence=FENCE.replace("gpu", "cta")), "race"),
    "the second of three": (3, OWN + FENCE + add() + last("eq", 1), "race"),
    "the first": (3, OWN + FENCE + add() + last("eq", 0), "race"),
    "two of three": (3, OWN + FENCE + add() + last("ge", 1, "st.global.u32 [%d1+16], 1; "), "race"),
    "the second of two": (2, OWN + FENCE + add() + last("ne", 0, TWO), "race-free"),
    "last, around": (3, OWN + FENCE + add(2, op="inc.u32") + last("eq", 2), "race-free"),
    "reset": (2, resets(FENCE + add() + FENCE, 1, read=TWO), "race-free"),
    "reset, around": (2, resets(FENCE + add(2, op="inc.u32") + FENCE, 1, read=TWO), "race-free"),
    "reset, nothing to acquire": (2, resets(add(), 1, read=""), "race-free"),
    "reset, nothing acquired": (3, resets(FENCE + add()), "race"),
    "reset, counted in the CTA": (3, resets(FENCE + add(scope="cta") + FENCE, read=""), "undecided"),
    "reset by the second": (3, resets(FENCE + add() + FENCE, 1), "race"),
    "reset by the last two": (3, resets(FENCE + add() + FENCE, 1, "ge", read=""), "race"),
    "reset and looked at": (2, resets(add(), 1, read="") + "ld.global.u32 %r6, [%d2]; ", "race"),
    "reset, and observed": (2, observed(1), "undecided"),
    "reset, and both observed": (3, observed(2), "undecided"),
    "observed, and read before": (
        2, f"@%p2 bra P; {COUNT}ret; P: ld.global.u32 %r6, [%d2]; L: ld.relaxed.gpu.global.u32 %r4, [%d2]; "
        "setp.ne.u32 %p3, %r4, 1; @%p3 bra L; ret; ", "race",
    ),
    "reset, and one of them observed": (3, observed(1, test="lt"), "race"),
    "reset, and observed in the CTA": (2, observed(1, adds=COUNT.replace("gpu", "cta")), "undecided"),
    "reset, and observed behind a load": (2, observed(1, "ld.global.u32 %r6, [%d2]; "), "race"),
    "reset, and observed before a load": (2, observed(1, behind="ld.relaxed.gpu.global.u32 %r6, [%d2]; "), "race"),
    "reset, and a store observed": (2, observed(1, adds="st.relaxed.gpu.global.u32 [%d2], 1; "), "undecided"),
    "reset, and observed by another": (3, observed_by_another("acquire", "release"), "undecided"),
    "reset, and observed by another, not released": (3, observed_by_another("acquire", "relaxed"), "race"),
    "reset, and observed by another, not acquired": (3, observed_by_another("relaxed", "release"), "race"),
    "a lock": (2, locked("release", "acquire"), "undecided"),
    "a lock, not released": (2, locked("relaxed", "acquire"), "race"),
    "a lock, not acquired": (2, locked("release", "relaxed"), "race"),
    "around too early": (3, OWN + FENCE + add(1, op="inc.u32") + last("eq", 1), "race"),
    "last to exchange": (2, OWN + FENCE + add(op="exch.b32") + last("eq", 1, TWO), "race-free"),
    "not the first to exchange": (3, OWN + FENCE + add(op="exch.b32") + last("eq", 1), "race"),
    "first to exchange": (3, add(op="exch.b32") + if_("eq", 0, "st.global.u32 [%d1], 1; "), "race-free"),
    "first, and read by all": (
        3, add() + if_("eq", 0, "st.global.u32 [%d1], 1; ") + "ld.global.u32 %r6, [%d1];", "race",
    ),
    "all bits": (3, BITS + last("eq", 7), "race-free"),
    "two of the bits": (3, BITS + "and.b32 %r5, %r5, 3; " + last("eq", 3, TWO), "race-free"),
    "one, two and three": (3, ONE_TO_THREE + last("eq", 6), "race-free"),
    "at least three": (3, ONE_TO_THREE + last("ge", 3, TWO), "race"),
    "one arrives before it writes": (3, FENCE + add() + OWN + FENCE + add() + last("ge", 4), "race"),
    "an index by ticket": (
        3, add() + "mul.wide.u32 %d5, %r5, 4; add.u64 %d6, %d1, %d5; st.global.u32 [%d6], 1;", "race-free",
    ),
    "found by the other": (2, OTHERS.format(add() + last("eq", 1, "ld.global.u32 %r6, [%d1]; ")), "race-free"),
    "not found by the other": (2, OTHERS.format(add() + last("eq", 0, "ld.global.u32 %r6, [%d1]; ")), "race"),
    "last, told to all": (3, told(OWN + add(sem="acq_rel")), "race-free"),
    "last, told without acquiring": (3, told(OWN + FENCE + add()), "race"),
    "last, told to the other, by whom it depends": (3, counted_late(), "undecided"),
    "all wait": (3, OWN + ARRIVE + wait("lt", "%r0") + THREE, "race-free"),
    "all but one wait for": (3, "sub.u32 %r9, %r0, 1; " + OWN + ARRIVE + wait("lt", "%r9") + THREE, "race"),
    "all wait twice": (2, twice("lt"), "race-free"),
    "all wait for one number": (2, twice("ne"), "undecided"),
    "sense": (2, sense("0x7fffffff"), "race-free"),
    "sense, one too many": (2, sense("0x80000000"), "deadlock"),
}  # fmt: skip
"""The CTAs, what each of them does, and the answer."""

CLUSTERS = {
    "cluster": (2, REMOTE + CHANGE + MEET + LOOK + MEET, "race-free"),
    "relaxed": (2, REMOTE + CHANGE + MEET.replace("arrive.release", "arrive.relaxed") + LOOK + MEET, "race"),
    "relaxed, behind a fence": (
        2, REMOTE + CHANGE + "fence.acq_rel.cluster; " + MEET.replace("arrive.release", "arrive.relaxed") + LOOK + MEET,
        "race-free",
    ),
    "relaxed, behind one of the CTA": (
        2, REMOTE + CHANGE + "fence.acq_rel.cta; " + MEET.replace("arrive.release", "arrive.relaxed") + LOOK + MEET,
        "race",
    ),
    "between arrival and wait": (2, REMOTE + MEET.replace("; b", "; " + CHANGE + "b") + LOOK + MEET, "race"),
    "the other may have ended": (2, REMOTE + CHANGE + MEET + LOOK, "undefined"),
    "a flag": (2, handed("cluster"), "race-free"),
    "a flag of the CTA": (2, handed("cta"), "race"),
    "a flag of another cluster": (
        4,
        MEET + "setp.eq.u32 %p7, %r2, 2; @%p7 bra B; @!%p2 bra X; st.global.u32 [%d1], 1; "
        "st.release.cluster.global.u32 [%d2], 1; bra X; B: ld.acquire.cluster.global.u32 %r9, [%d2]; "
        "setp.eq.u32 %p6, %r9, 0; @%p6 bra B; ld.global.u32 %r9, [%d1]; X: " + MEET, "race",
    ),
}  # fmt: skip
"""The same of CTAs two of which are in a cluster."""


@pytest.mark.parametrize("name", [*CASES, *CLUSTERS])
def test_counters(name: str, tmp_path: Path) -> None:
    grid, body, expected = (CASES | CLUSTERS)[name]
    cluster = "// ptxmm: cluster = 2\n" if name in CLUSTERS else ""
    shared = "    .shared .u32 s;\n" if "s;" in body or "[s]" in body else ""
    text = _HEAD.format(grid=grid, cluster=cluster, shared=shared)
    text += body.replace("; ", ";\n").replace(": ", ":\n") + "\n    ret;\n}\n"
    path = tmp_path / "k.ptx"
    found = judged(path, text)
    assert found.answer == expected, found.reason
    # What the engines that list all executions say is the same.
    (test,) = parse_ptx(text, str(path))
    assert agrees(found, test, text, 20)
