"""Accesses of different sizes under the models that give them no order of their own (8.7.2; 8.6.2 of PTX ISA 6.0)."""

from __future__ import annotations

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.cat import load, parse_model
from ptxmm.errors import PtxmmError
from tests.support import parse_one

OLDER = ("ptx-6.0", "ptx-7.5")
NAMED = ".global .u64 x = 0; .global .u64 y = 0; .global .u32 f = 0;"


def program(*threads: str, end: str = "exists (x == 0)") -> str:
    lines = ["PTX case", f"{{ {NAMED} }}", *(f"P{n} @ {thread}" for n, thread in enumerate(threads)), end]
    return "\n".join(lines) + "\n"


STORE = "cta 0 { st.release.gpu.global.u64 [x], 1; }"
RACY = {
    "a load of half": (STORE, "cta 1 { ld.acquire.gpu.global.u32 r0, [x]; }"),
    "stores": ("cta 0 { st.global.u32 [x+4], 1; }", "cta 1 { st.global.u8 [x+7], 1; }"),
    "atomics": (
        "cta 0 { red.relaxed.gpu.global.add.u64 [x], 1; }", "cta 1 { red.relaxed.gpu.global.add.u32 [x], 1; }"
    ),
    "elements of a vector": ("cta 0 { st.global.v2.u32 [x], {1, 2}; }", "cta 0 { ld.global.u64 r0, [x]; }"),
    "a flag that may not be seen": (
        "cta 0 { st.global.u64 [x], 1; st.release.gpu.global.u32 [f], 1; }",
        "cta 1 { ld.acquire.gpu.global.u32 r0, [f]; ld.global.u32 r1, [x]; }",
    ),
    "a race beside accesses that do not": (
        "cta 0 { st.global.u64 [x], 1; ld.global.u32 r0, [x]; st.global.u64 [y], 1; }",
        "cta 1 { ld.global.u8 r0, [y]; }"
    ),
    "through an address in a register": (
        "cta 0 { st.global.u64 [x], 1; }",
        "cta 1 { ld.global.u32 r0, [f]; setp.eq.u32 p, r0, 0; mov.u64 rd0, y; @p mov.u64 rd0, x;"
        " ld.global.u32 r1, [rd0]; }",
    ),
}  # fmt: skip
ORDERED = {
    "one thread": ("cta 0 { st.global.u64 [x], 1; ld.global.u32 r0, [x+4]; }",),
    "one thread, later": ("cta 0 { ld.global.u64 rd0, [x]; fence.sc.gpu; st.global.u8 [x], 1; }",),
    "a barrier": ("cta 0 { st.global.u64 [x], 1; bar.sync 0; }", "cta 0 { bar.sync 0; ld.global.u16 r0, [x]; }"),
    "lanes of a warp": (
        "warp 0, cta 0 { st.global.u64 [x], 1; bar.warp.sync 3; }",
        "warp 0, cta 0 { bar.warp.sync 3; ld.global.u16 r0, [x]; }"
    ),
    "observation": (
        "cta 0 { st.relaxed.gpu.global.u32 [f], 1; }",
        "cta 1 { ld.relaxed.gpu.global.u32 r0, [f]; setp.ne.u32 p, r0, 1; @p bra END; st.global.u8 [f], 2; END: }",
    ),
}  # fmt: skip
APART = {
    "halves": ("cta 0 { st.global.u32 [x], 1; }", "cta 1 { ld.global.u32 r0, [x+4]; st.global.u64 [y], 1; }"),
    "only reads": ("cta 0 { ld.global.u64 rd0, [x]; }", "cta 1 { ld.global.u32 r0, [x+4]; }"),
    "another path": (
        "cta 0 { st.global.u64 [x], 1; }",
        "cta 1 { ld.global.u32 r0, [f]; setp.eq.u32 p, r0, 0; @p bra END; ld.global.u32 r1, [x]; END: }",
    ),
}


@pytest.mark.parametrize("model", OLDER)
@pytest.mark.parametrize("name", RACY)
def test_a_race_leaves_the_program_undefined(name: str, model: str) -> None:
    result = check(parse_one(program(*RACY[name])), load(model), engine="both")
    assert (result.status, result.flags, result.holds) == ("undefined", ("mixed-size-race",), None)


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
@pytest.mark.parametrize("model", OLDER)
@pytest.mark.parametrize("name", ORDERED)
def test_what_does_not_race_is_not_covered(name: str, model: str, engine: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        check(parse_one(program(*ORDERED[name])), load(model), engine=engine)
    error = caught.value
    assert (error.kind, error.hint) == ("unsupported", "use --model ptx-8.5 or --model sc")
    assert error.message == f"{model} does not cover accesses of different sizes to the same bytes"
    assert error.line == 2 + len(ORDERED[name])  # the second access, in the last thread
    assert check(parse_one(program(*ORDERED[name])), load("ptx-8.5"), engine=engine).status == "complete"


@pytest.mark.parametrize("model", OLDER)
@pytest.mark.parametrize("name", APART)
def test_what_does_not_overlap_is_covered(name: str, model: str) -> None:
    result = check(parse_one(program(*APART[name])), load(model), engine="both")
    assert (result.status, result.flags) == ("complete", ())


def test_a_model_that_includes_one() -> None:
    own = parse_model('include "ptx-7.5.cat"', "own.cat")
    with pytest.raises(PtxmmError, match="own does not cover"):
        check(parse_one(program(*ORDERED["one thread"])), own)
