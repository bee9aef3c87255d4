"""Shuffles from lanes that are not in the test: their results are undefined, and matter where something sees them."""

from __future__ import annotations

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import races
from ptxmm.program.unspecified.absent import without_absent
from ptxmm.ptx.ops import WarpExchange
from tests.support import model_named, parse_one

MODEL = "ptx-8.5"
ENGINES = ["z3", "enumerate", "both"]


def program(shuffle: str, rest: str, condition: str) -> str:
    """Two lanes of a warp, and a thread of another CTA that takes the flag and looks at the data."""
    return f"""PTX absent
{{ .global .u32 d = 5; .global .u32 f = 0; }}
 P0 @ warp 0, cta 0 | P1 @ warp 0, cta 0 | P2 @ cta 1 ;
 mov.u32 r0, 7 | mov.u32 r0, 8 | ld.acquire.gpu.global.u32 r0, [f] ;
 {shuffle} | {shuffle} | ld.global.u32 r1, [d] ;
 {rest} | mov.u32 r2, 0 | mov.u32 r2, 0 ;
 st.release.gpu.global.u32 [f], 1 | mov.u32 r3, 0 | mov.u32 r3, 0 ;
exists ({condition})
"""


FAR = "shfl.sync.down.b32 r1, r0, 2, 31, 0xffffffff"
STORED = "st.global.u32 [d], r1"


@pytest.mark.parametrize("engine", ENGINES)
def test_what_nothing_sees_does_not_matter(engine: str) -> None:
    test = parse_one(program(FAR, STORED, "f == 1"))
    result = check(test, model_named(MODEL), engine=engine)
    assert (result.holds, result.status) == (True, "complete")


def test_freedom_from_races_is_decided() -> None:
    found = races(parse_one(program(FAR, STORED, "f == 1")), model_named(MODEL))
    assert [sorted((str(race.first), str(race.second))) for race in found.races]
    assert found.status == "complete"
    free = program(FAR, STORED, "f == 1").replace("ld.global.u32 r1, [d]", "mov.u32 r1, 0")
    assert races(parse_one(free), model_named(MODEL)).race_free


@pytest.mark.parametrize("engine", ["z3", "enumerate"])
@pytest.mark.parametrize(
    "rest,condition",
    [
        ("mov.u32 r2, r1", "P0:r2 == 7"),
        (STORED, "d == 7"),
        ("setp.eq.u32 p, r1, 7; @p st.global.u32 [d], 1", "f == 1"),
    ],
)
def test_what_is_seen_leaves_the_program_without_meaning(engine: str, rest: str, condition: str) -> None:
    first, _, second = rest.partition("; ")
    text = program(FAR, first, condition)
    if second:
        text = text.replace(
            f" {first} | mov.u32 r2, 0", f" {first} | mov.u32 r4, 0 | mov.u32 r4, 0 ;\n {second} | mov.u32 r2, 0"
        )
    result = check(parse_one(text), model_named(MODEL), engine=engine)
    assert result.status == "undefined"


def test_what_is_asked_for_besides_the_condition_is_seen() -> None:
    test = parse_one(program(FAR, STORED, "f == 1"))
    assert check(test, model_named(MODEL), all_state=True).status == "undefined"


@pytest.mark.parametrize(
    "shuffle,absent",
    [
        (FAR, {0, 1}),
        ("shfl.sync.down.b32 r1, r0, 1, 31, 0xffffffff", {1}),
        ("shfl.sync.down.b32 r1, r0, 1, 1, 0xffffffff", set()),  # clamped: its own
        ("shfl.sync.up.b32 r1, r0, 1, 0, 0xffffffff", set()),
        ("shfl.sync.bfly.b32 r1, r0, 2, 31, 0xffffffff", {0, 1}),
        ("shfl.sync.bfly.b32 r1, r0, 1, 31, 0xffffffff", set()),
        ("shfl.sync.idx.b32 r1, r0, 5, 31, 0xffffffff", {0, 1}),
        ("shfl.sync.idx.b32 r1, r0, 5, 7199, 0xffffffff", set()),  # segments of 4: lane 1 of each
        ("shfl.sync.idx.b32 r1, r0, 0, 31, 0xffffffff", set()),
    ],
)
def test_which_lanes_are_absent(shuffle: str, absent: set[int]) -> None:
    test = without_absent(parse_one(program(shuffle, STORED, "f == 1")))
    found = {
        t for t, thread in enumerate(test.threads) for op in thread.body if isinstance(op, WarpExchange) and op.absent
    }
    assert found == absent
