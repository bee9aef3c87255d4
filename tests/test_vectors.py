"""Vectors as accesses of their elements, or in one piece (PTX ISA 8.2.4; reading ``vector``): both engines and the
reference on cases derived by hand."""

from __future__ import annotations

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.cat import load
from ptxmm.cli.checking import Checking
from ptxmm.cli.inputs import Job
from ptxmm.cli.options import Engine
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.program.condition import evaluate
from ptxmm.program.shared.chunks import Chunks
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Load, Store, elements
from tests import reference
from tests.support import ask, parse_one


def program(threads: str, declared: str, condition: str, isa: str = "8.5") -> Test:
    bodies = [part.rsplit("@", 1) for part in threads.split("||")]
    lines = [f"P{i} @ {place.strip()} {{ {body.strip()}; }}" for i, (body, place) in enumerate(bodies)]
    return parse_one("\n".join(["PTX case", f"ISA={isa}", f"{{ {declared} }}", *lines, f"exists ({condition})"]) + "\n")


WORDS = ".global .align 16 .u32 x[4] = {0, 0, 0, 0}; .global .u32 y = 0; .global .u32 f = 0;"
DOUBLE = ".global .align 16 .u64 x[2] = {0, 0};"

# name, threads, declarations, condition, verdicts by element, in one piece
CASES = [
    ("ends of four words", "st.relaxed.gpu.global.v4.u32 [x], {1, 1, 1, 1} @ cta 0 ||"
     "ld.relaxed.gpu.global.v4.u32 {r0, r1, r2, r3}, [x] @ cta 1",
     WORDS, "P1:r0 == 1 /\\ P1:r3 == 0", "sometimes", "never"),
    ("a sink", "st.relaxed.gpu.global.v4.u32 [x], {1, 1, 1, 1} @ cta 0 ||"
     "ld.relaxed.gpu.global.v4.u32 {_, r1, _, r3}, [x] @ cta 1",
     WORDS, "P1:r1 == 0 /\\ P1:r3 == 1", "sometimes", "never"),
    ("signed halves in words", "st.volatile.global.v4.s16 [x], {1, -2, 3, -4} @ cta 0 ||"
     "ld.volatile.global.v4.s16 {r0, r1, r2, r3}, [x] @ cta 1",
     WORDS + " .reg .b32 P1:r3; .reg .b16 P1:r1;", "P1:r1 == 0xfffe /\\ P1:r3 != 0xfffffffc", "sometimes", "never"),
    ("two halves of a vector", "st.relaxed.gpu.global.v2.u32 [x], {1, 1};"
     " st.relaxed.gpu.global.v2.u32 [x+8], {1, 1} @ cta 0 ||"
     "ld.relaxed.gpu.global.v2.u32 {r0, r1}, [x+8]; ld.relaxed.gpu.global.v2.u32 {r2, r3}, [x] @ cta 1",
     WORDS, "P1:r0 == 1 /\\ P1:r3 == 0", "sometimes", "sometimes"),
    ("two writers", "st.relaxed.gpu.global.v2.u64 [x], {1, 1} @ cta 0 ||"
     "st.relaxed.gpu.global.v2.u64 [x], {2, 2} @ cta 1",
     DOUBLE, "x[0] == 1 /\\ x[1] == 2", "sometimes", "never"),
    ("released as one", "st.global.u32 [y], 1; st.release.gpu.global.v2.u32 [x], {1, 1} @ cta 0 ||"
     "ld.acquire.gpu.global.v2.u32 {r0, r1}, [x]; ld.global.u32 r2, [y] @ cta 1",
     WORDS, "P1:r1 == 1 /\\ P1:r2 == 0", "never", "never"),
    # What is weak and races may be torn all the same (8.9.7); what is ordered is not.
    ("weak and racy", "st.global.v2.u32 [x], {1, 1} @ cta 0 || ld.global.v2.u32 {r0, r1}, [x] @ cta 1",
     WORDS, "P1:r0 == 1 /\\ P1:r1 == 0", "sometimes", "sometimes"),
    # No two accesses that overlap partially are morally strong (8.7): they race unless they are ordered.
    ("a scalar races with it", "st.relaxed.gpu.global.v4.u32 [x], {1, 1, 1, 1} @ cta 0 ||"
     "ld.relaxed.gpu.global.u32 r0, [x+4] @ cta 1", WORDS, "P1:r0 == 1", "sometimes", "undefined"),
    ("a shorter vector races with it", "st.relaxed.gpu.global.v4.u32 [x], {1, 1, 1, 1} @ cta 0 ||"
     "ld.relaxed.gpu.global.v2.u32 {r0, r1}, [x+8] @ cta 1", WORDS, "P1:r0 == 1", "sometimes", "undefined"),
    ("weak, and a scalar", "st.global.v4.u32 [x], {1, 1, 1, 1} @ cta 0 || ld.global.u32 r0, [x+4] @ cta 1",
     WORDS, "P1:r0 == 1", "sometimes", "undefined"),
    ("a scalar after it", "st.global.v4.u32 [x], {1, 1, 1, 1}; st.release.gpu.global.u32 [f], 1 @ cta 0 ||"
     "ld.acquire.gpu.global.u32 r0, [f]; setp.eq.u32 p, r0, 1; @p ld.global.u32 r1, [x+4] @ cta 1",
     WORDS, "P1:r0 == 1 /\\ P1:r1 == 0", "never", "never"),
    ("a scalar of its width", "st.relaxed.gpu.global.v2.u32 [x], {1, 2} @ cta 0 ||"
     "ld.relaxed.gpu.global.u64 d0, [x] @ cta 1", WORDS, "P1:d0 == 0x200000001", "undefined", "sometimes"),
    ("half of a scalar of its width", "st.relaxed.gpu.global.u64 [x], 0x200000001 @ cta 0 ||"
     "ld.relaxed.gpu.global.v2.u32 {r0, r1}, [x] @ cta 1", WORDS, "P1:r0 == 1 /\\ P1:r1 == 0", "undefined", "never"),
    # Each element of an atomic vector is an atomic operation of its own, also where loads are in one piece.
    ("an atomic vector", "red.relaxed.gpu.global.add.v2.f32 [x], {a, a} @ cta 0 ||"
     "ld.relaxed.gpu.global.v2.u32 {r0, r1}, [x] @ cta 1",
     WORDS + " .reg .f32 P0:a = 1.0;", "P1:r0 != 0 /\\ P1:r1 == 0", "sometimes", "undefined"),
    # One write has the values, and the dependencies, of all elements.
    ("a dependency through another element", "ld.relaxed.gpu.global.v2.u32 {r0, r1}, [x];"
     " st.relaxed.gpu.global.u32 [y], r0 @ cta 0"
     "|| ld.relaxed.gpu.global.u32 r2, [y]; st.relaxed.gpu.global.v2.u32 [x], {1, r2} @ cta 1",
     WORDS, "P0:r0 == 1 /\\ P1:r2 == 1", "sometimes", "never"),
    ("no dependency on another element", "ld.relaxed.gpu.global.v2.u32 {r0, r1}, [x];"
     " st.relaxed.gpu.global.u32 [y], 1 @ cta 0"
     "|| ld.relaxed.gpu.global.u32 r2, [y]; st.relaxed.gpu.global.v2.u32 [x], {1, r2} @ cta 1",
     WORDS, "P0:r0 == 1 /\\ P1:r2 == 1", "sometimes", "sometimes"),
    ("read back",
     "st.global.v4.u32 [x], {1, 2, 3, 4}; ld.global.v2.u32 {r0, r1}, [x+8]; ld.global.u8 r2, [x+4] @ cta 0",
     WORDS, "P0:r0 == 3 /\\ P0:r1 == 4 /\\ P0:r2 == 2", "always", "always"),
]  # fmt: skip


@pytest.mark.parametrize("reading", ["elements", "whole"])
@pytest.mark.parametrize(
    ("threads", "declared", "condition", "verdicts"),
    [(*case[1:4], case[4:]) for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_derived_verdicts(threads: str, declared: str, condition: str, verdicts: tuple[str, str], reading: str) -> None:
    test = program(threads, declared, condition)
    expected = verdicts[reading == "whole"]
    model = load("ptx-8.5", {"vector": reading})
    found = {engine: ask(engine, test, model) for engine in ("solve", "enumerate")}
    states, flags = reference.flagged(test, f"ptx-8.5[vector={reading}]")
    assert found["solve"].states == found["enumerate"].states == states
    assert found["solve"].flags == found["enumerate"].flags == flags
    assert test.condition is not None
    executions = reference.executions(test, f"ptx-8.5[vector={reading}]")
    holds = {evaluate(test.condition.proposition, state) for state, _ in executions}
    word = "sometimes" if len(holds) == 2 else "always" if True in holds else "never"
    assert ("undefined" if "mixed-size-race" in flags else word) == expected


def op(text: str) -> tuple[Test, Load | Store]:
    test = program(f"{text} @ cta 0", ".global .align 32 .u64 x[8] = {0, 0, 0, 0, 0, 0, 0, 0};", "x[0] == 0", "8.8")
    found = test.threads[0].body[0]
    assert isinstance(found, Load | Store)
    return test, found


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("ld.global.u32 r0, [x]", [(0, 32, 0, 1)]),
        ("ld.global.b128 q0, [x]", [(0, 128, 0, 1)]),
        ("ld.global.v2.u8 {s0, s1}, [x]", [(0, 16, 0, 2)]),
        ("ld.global.v4.u16 {s0, s1, _, s3}, [x]", [(0, 64, 0, 4)]),
        ("st.global.v4.u32 [x], {1, 2, 3, 4}", [(0, 128, 0, 4)]),
        ("st.relaxed.sys.global.v2.u64 [x], {1, 2}", [(0, 128, 0, 2)]),
        ("st.global.v4.u64 [x], {1, 2, 3, 4}", [(0, 128, 0, 2), (16, 128, 2, 2)]),
        ("ld.global.v8.u32 {a, b, c, d, e, _, _, _}, [x]", [(0, 128, 0, 4), (16, 128, 4, 4)]),
    ],
)
def test_pieces(text: str, pieces: list[tuple[int, int, int, int]]) -> None:
    """At most 16 bytes each; they divide copies as scalars do, and are not divided themselves."""
    test, found = op(text)
    parts = elements(found, whole=True)
    assert [(e.offset, e.type.bits, e.item, e.items) for e in parts] == pieces
    assert all(e.shift == 0 for e in parts)
    ends = {at + size // 8 for at, size, _, _ in pieces}
    assert {at + size for at, size in Chunks(test, whole=True).of("x", 0, 64)} == {*ends, 64}


def test_pieces_and_halves() -> None:
    """The two readings go together: a vector of 16 bytes is one access, and a .b128 scalar two."""
    assert len(elements(op("ld.global.v2.u64 {a, b}, [x]")[1], split=True, whole=True)) == 1
    assert len(elements(op("ld.global.b128 q, [x]")[1], split=True, whole=True)) == 2
    assert len(elements(op("ld.global.v2.u64 {a, b}, [x]")[1], split=True)) == 2


def test_32_bytes_are_two_pieces() -> None:
    declared = ".global .align 32 .u64 x[4] = {0, 0, 0, 0};"
    threads = (
        "st.relaxed.gpu.global.v4.u64 [x], {1, 1, 1, 1} @ cta 0 ||"
        "ld.relaxed.gpu.global.v4.u64 {a, b, c, d}, [x] @ cta 1"
    )
    test = program(threads, declared, "x[0] == 1", "8.8")
    model = load("ptx-8.5", {"vector": "whole"})
    wanted = {(i, i, j, j, 1, 1, 1, 1) for i in (0, 1) for j in (0, 1)}
    states, _ = reference.flagged(test, "ptx-8.5[vector=whole]")
    assert states == wanted == ask("solve", test, model).states == ask("enumerate", test, model).states


def test_models_without_mixed_sizes_do_not_cover_a_scalar_of_a_vector() -> None:
    _, threads, declared, condition, *_ = next(case for case in CASES if case[0] == "a scalar after it")
    ordered, racy = (program(text, declared, condition) for text in (threads, threads.replace("acquire", "relaxed")))
    plain, whole = load("ptx-7.5"), load("ptx-7.5", {"vector": "whole"})
    assert [check(test, plain).observation for test in (ordered, racy)] == ["never", "sometimes"]
    assert check(racy, whole).flags == ("mixed-size-race",)
    with pytest.raises(PtxmmError, match="does not cover accesses of different sizes") as found:
        check(ordered, whole)
    assert found.value.line == 5


@pytest.mark.parametrize(
    ("name", "rests"),
    [("ends of four words", True), ("a scalar races with it", True), ("weak and racy", False), ("read back", False)],
)
def test_all_readings_name_it(name: str, rests: bool) -> None:
    _, threads, declared, condition, by_element, whole = next(case for case in CASES if case[0] == name)
    job = Job(program(threads, declared, condition), "ptx-8.5", None, False)
    result = Checking(Engine.auto, False, "none", all_readings=True).run(job, load("ptx-8.5"), Limits())
    assert result.observation == by_element
    found = [note.text for note in result.notes if note.text.startswith("rests on vector: vector=whole gives ")]
    assert [text.split(" (")[0].split()[-1] for text in found] == ([whole] if rests else [])
