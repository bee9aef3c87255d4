"""Whole launches that look at flags without waiting for them: each outcome is another kind of executions."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import races
from ptxmm.engines.result import Limits
from ptxmm.formats.modules.read import kernels, parse_ptx
from ptxmm.whole.analysis import whole
from tests import random_glances
from tests.random_looks import HEAD, by_atomics
from tests.support import model_named
from tests.test_whole import answer, compare
from tests.test_whole_flags import FENCE, GIVE, READ, WRITE, look, wait

_BRANCHES = """\
    setp.eq.u32 %p1, %r2, 0;
    setp.eq.u32 %p4, %r2, 1;
    @%p1 bra A;
    @%p4 bra B;
"""
PICK = "mul.wide.u32 %d5, %r3, 4; sub.u64 %d6, %d1, %d5;\n"
OTHER = WRITE.replace("1;", "2;")


def glance(
    then: str, other: str = "", how: str = "acquire.gpu", at: int = 0, test: str = "eq", label: str = "S"
) -> str:
    """Looks at a flag, and does the one if it is not 0, else the other."""
    decides = f"setp.{test}.u32 %p2, %r3, 0; @%p2 bra {label};\n"
    return look(how, at=at) + decides + f"{then}bra {label}E;\n{label}: {other}\n{label}E:\n"


def given(at: int, value: int = 1, how: str = "release.gpu") -> str:
    return f"st.{how}.global.u32 [%d2+{at}], {value};\n"


def dekker(fence: str) -> tuple[str, str]:
    one, other = (
        given(at, how="relaxed.gpu") + fence + glance("", WRITE, "relaxed.gpu", 4 - at, "ne") for at in (0, 4)
    )
    return one, other


TWICE = (  # a flag is set, then it is not
    look("relaxed.gpu") + "setp.ne.u32 %p2, %r3, 1; @%p2 bra X;\nst.global.u32 [%d1], 1;\nX:\n"
    + look("relaxed.gpu") + "setp.ne.u32 %p2, %r3, 0; @%p2 bra Y;\nst.global.u32 [%d1+4], 1;\nY:\n"
)  # fmt: skip
ONE = WRITE + GIVE
TWO = WRITE.replace("%d1", "%d1+4") + given(0, 2)
PART = "setp.ne.u32 %p3, %r3, 2; @%p3 bra P; ld.global.u32 %r9, [%d1+4]; P: ld.global.u32 %r9, [%d1];\n"
CASES = {
    "looks once": ((WRITE + GIVE, glance(READ)), "race-free"),
    "looks once, then a fence": ((WRITE + GIVE, glance(FENCE + READ, how="relaxed.gpu")), "race-free"),
    "looks once, relaxed": ((WRITE + GIVE, glance(READ, how="relaxed.gpu")), "race"),
    "looks once, too narrow": ((WRITE + GIVE, glance(READ, how="acquire.cta")), "race"),
    "given too early": ((GIVE + WRITE, glance(READ)), "race"),
    "given without release": ((WRITE + given(0, how="relaxed.gpu"), glance(READ)), "race"),
    "the wrong way round": ((WRITE + GIVE, glance("", READ)), "race"),
    "both ways": ((WRITE + GIVE, glance(READ, READ)), "race"),
    "behind both ways": ((WRITE + GIVE, glance("") + READ), "race"),
    "an address": ((WRITE + GIVE, look() + PICK + "ld.global.u32 %r9, [%d6+8];"), "race-free"),
    "an address that is written": ((WRITE + GIVE, look("relaxed.gpu") + PICK + "ld.global.u32 %r9, [%d6+4];"), "race"),
    "a look in a look": (
        (
            WRITE + GIVE + WRITE.replace("%d1", "%d1+4") + given(4),
            glance(READ + glance(READ.replace("%d1", "%d1+4"), at=4, label="T")),
        ),
        "race-free",
    ),
    "the second one is enough": ((WRITE + GIVE + given(4), glance(READ, at=4)), "race-free"),
    "handed on": ((WRITE + GIVE, glance(given(4)), glance(READ, at=4)), "race-free"),
    "handed on whatever is found": ((WRITE + GIVE, glance(READ) + given(4), glance(READ, at=4)), "race"),
    "handed on, relaxed": ((WRITE + GIVE, glance(given(4), how="relaxed.gpu"), glance(READ, at=4)), "race"),
    "another one waits": (
        (
            WRITE + GIVE,
            glance(given(4), given(4, 2)),
            wait(at=4) + "setp.ne.u32 %p2, %r3, 1; @%p2 bra Z;\n" + READ + "Z:",
        ),
        "race-free",
    ),
    "another one waits for ever": ((WRITE + GIVE, glance(given(4)), wait(at=4) + READ), "deadlock"),
    "two look and write": ((WRITE + GIVE, glance(OTHER), glance(OTHER)), "race"),
    "two look and write one after the other": (
        (WRITE + GIVE, glance(OTHER + given(4)), glance(OTHER, at=4)),
        "race-free",
    ),
    "neither without the other": (
        (glance(WRITE + given(4), how="relaxed.gpu"), glance(WRITE + GIVE, how="relaxed.gpu", at=4)),
        "race-free",
    ),
    "who sees nobody": (dekker(""), None),
    "who sees nobody, with a weak fence": (dekker(FENCE), None),
    "until it has looked twice": (
        (WRITE + GIVE, glance("bra D;", glance("bra D;", "bra DE;", label="T")) + "D: " + READ + "DE:"),
        "race-free",
    ),
    "waits for one of two values": ((ONE + TWO, wait() + PART), "race-free"),
    "waits for one of two values, relaxed": ((ONE + TWO, wait("relaxed.gpu") + PART), "race"),
    "waits for one of two values, then a fence": ((ONE + TWO, wait("relaxed.gpu") + FENCE + PART), "race-free"),
    "the first value is given without release": ((ONE.replace("release", "relaxed") + TWO, wait() + PART), "race"),
    "the second value is given without release": ((ONE + TWO.replace("release", "relaxed"), wait() + PART), "race"),
    "the second value is for both": ((ONE + TWO, wait() + PART.replace("u32 %p3, %r3, 2", "u32 %p3, %r3, 1")), "race"),
    "the second value too early": ((ONE + given(0, 2) + OTHER, wait() + PART), "race"),
    "found and lost": ((given(0, how="relaxed.gpu"), TWICE), "race-free"),
}
"""What each CTA does, and the answer; None: any but that it is race-free."""


def _text(parts: tuple[str, ...], condition: str = "") -> str:
    head = HEAD.format(grid=len(parts), d=4, f=8)
    if condition:
        head = head.replace("// ptxmm: races", f"// ptxmm: condition = '{condition}'\n// ptxmm: races")
    *before, last = parts
    labels = ("", "A: ", "B: ")[: len(parts)]
    body = "".join(f"{label}{{\n{part}\nret;\n}}\n" for label, part in zip(labels, (last, *before), strict=True))
    branches = _BRANCHES if len(parts) == 3 else _BRANCHES.replace("    @%p4 bra B;\n", "")
    return head + branches + body.replace("; ", ";\n") + "}\n"


@pytest.mark.parametrize("name", CASES)
def test_glances(name: str, tmp_path: Path) -> None:
    parts, expected = CASES[name]
    text, path = _text(parts), tmp_path / "k.ptx"
    path.write_text(text)
    (kernel,) = kernels(path)
    found = whole(kernel, str(path), Limits(deadline=time.monotonic() + 20))
    assert found.answer != "race-free" if expected is None else found.answer == expected, found.reason
    # What the engine that lists all executions says of it is the same.
    (test,) = parse_ptx(text, str(path))
    every = races(test, model_named("ptx-8.5"), limits=Limits(deadline=time.monotonic() + 20))
    if found.answer in ("race-free", "race"):
        assert every.race_free is (found.answer == "race-free")


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("exists (d[0] == 1)", True),
        ("exists (d[1] == 1)", True),
        ("exists (d[0] == 1 /\\ d[1] == 1)", None),
        ("~exists (d[0] == 2)", True),
        ("forall (d[0] == 1 \\/ d[1] == 1)", False),
    ],
)
def test_values_of_outcomes_that_perhaps_nobody_finds_refute_nothing(
    condition: str, holds: bool | None, tmp_path: Path
) -> None:
    text, path = _text(CASES["found and lost"][0], condition), tmp_path / "k.ptx"
    path.write_text(text)
    (kernel,) = kernels(path)
    found = whole(kernel, str(path), Limits(deadline=time.monotonic() + 20))
    assert found.claims[0].holds is holds
    (test,) = parse_ptx(text, str(path))
    every = check(test, model_named("ptx-8.5"), limits=Limits(deadline=time.monotonic() + 20))
    assert holds is None or every.holds is holds


def test_outcomes_are_bounded(tmp_path: Path) -> None:
    """Of seven looks together there are 128 outcomes."""
    every = "".join(look(at=4 * n, into=f"%r{n + 10}") for n in range(7))
    tests = "".join(
        f"setp.eq.u32 %p2, %r{n + 10}, 0; @%p2 bra T{n}; st.relaxed.gpu.global.u32 [%d2+28], {n}; T{n}:\n"
        for n in range(7)
    )
    text, path = _text(("".join(given(4 * n) for n in range(7)), every + tests)), tmp_path / "k.ptx"
    path.write_text(text)
    (kernel,) = kernels(path)
    found = whole(kernel, str(path), Limits(deadline=time.monotonic() + 60))
    assert found.answer == "undecided"
    assert "in more than 64 ways together" in str(found.reason)


def atomic_glances(seed: int) -> str:
    return by_atomics(random_glances.glances(seed), seed)


_RANDOM = [(random_glances.glances, 40, 36), (random_glances.look_backs, 15, 13), (atomic_glances, 20, 14)]


@pytest.mark.parametrize(("make", "count", "least"), _RANDOM)
def test_random_glances(make: Callable[[int], str], count: int, least: int, tmp_path: Path) -> None:
    assert sum(compare(tmp_path / "k.ptx", make(seed), 5) for seed in range(count)) >= least


def test_look_backs_are_decided(tmp_path: Path) -> None:
    """What is right is race-free, and of what is not little is left open."""
    found = [answer(tmp_path / "k.ptx", random_glances.look_backs(seed)).answer for seed in range(15)]
    assert found.count("race-free") == 7
    assert found.count("undecided") <= 1


@pytest.mark.slow
@pytest.mark.parametrize("make", [make for make, _, _ in _RANDOM])
def test_many_random_glances(make: Callable[[int], str], tmp_path: Path, shift: int) -> None:
    assert sum(compare(tmp_path / "k.ptx", make(seed), 20) for seed in range(10_000 + shift, 10_500 + shift)) >= 440
