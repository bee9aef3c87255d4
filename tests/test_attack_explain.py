"""Attacks on ``explain`` and ``races``: inputs on which they say something that is not so."""

from __future__ import annotations

import time

import pytest

from ptxmm.analysis.explain import ExplainResult, explain
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.races import RacesResult, races
from ptxmm.cat import parse_model
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse, read
from ptxmm.render.explain import text
from ptxmm.render.style import Style
from tests.support import CORPORA, ROOT, model_named, parse_one

ONE_LOCATION = """PTX w3
{{ .global .u32 x = 0; }}
P0 @ cta 0 {{ {first} }}
P1 @ cta 1 {{ st.mmio.relaxed.sys.global.u32 [x], 2; }}
P2 @ cta 2 {{
  ld.mmio.relaxed.sys.global.u32 r0, [x];
  ld.mmio.relaxed.sys.global.u32 r1, [x];
}}
exists (P2:r0 == 2 /\\ P2:r1 == 1 /\\ x == 2)
"""


def explained(source: str, model: str = "ptx-8.5", *, isa: tuple[int, int] | None = None) -> ExplainResult:
    """The explanation of the condition of a test given as text."""
    test = parse_one(source) if isa is None else parse(source, "isa.litmus", isa=isa)[0]
    return explain(test, model_named(model), limits=Limits(deadline=time.monotonic() + 30))


def racing(source: str, model: str = "ptx-8.5") -> RacesResult:
    """The races of a test given as text."""
    return races(parse_one(source), model_named(model), limits=Limits(deadline=time.monotonic() + 30))


def lines_of(result: ExplainResult) -> str:
    return "\n".join(text(result, Style(False)))


@pytest.mark.parametrize(
    "thread",
    [
        "st.global.u32 [d], 2; L: ld.relaxed.gpu.global.u32 r0, [f]; setp.eq.u32 p, r0, 0; @p bra L;",
        "st.global.u32 [d], 2; L: bra L;",
    ],
)
def test_a_thread_that_spins_for_ever_is_not_race_free(thread: str) -> None:
    source = "PTX spin\n{ .global .u32 d = 0; .global .u32 f = 0; }\nP0 @ cta 0 { st.global.u32 [d], 1; }\n"
    assert racing(f"{source}P1 @ cta 1 {{ {thread} }}\n").race_free is not True


def test_races_of_executions_that_wait_for_ever_are_listed() -> None:
    result = racing(
        """PTX dead
{ .global .u32 d = 0; .global .u32 e = 0; }
P0 @ cta 0 {
  st.global.u32 [d], 1;
  st.global.u32 [e], 1;
}
P1 @ cta 0 {
  ld.global.u32 r0, [d];
  setp.eq.u32 p, r0, 0;
  @p bra E;
  st.global.u32 [e], 2;
  bar.sync 1, 64;
E:
}
"""
    )
    assert {(race.first.line, race.second.line) for race in result.races} == {(4, 8), (5, 11)}
    assert result.listed


def test_a_miss_at_a_write_that_only_totality_orders() -> None:
    """Without the totality of coherence order on morally strong writes (8.9.6) nothing forbids the state."""
    weak = parse_one(ONE_LOCATION.format(first="st.weak.global.u32 [x], 1;"))
    for engine in ("z3", "enumerate"):
        assert check(weak, model_named("ptx-8.5"), engine=engine).holds is True
    result = explained(ONE_LOCATION.format(first="st.relaxed.sys.global.u32 [x], 1;"))
    assert result.verdict == "forbidden"
    assert "st.global.u32 [x], 1" in {change.new for miss in result.misses for change in miss.changes}


TORN = """PTX torn
{{ .global .u32 x = 0; }}
P0 @ cta 0 {{
  st.{order}.global.u32 [x], 0x010101;
  bar.sync 0;
  st.global.u8 [x+3], 7;
}}
P1 @ cta 0 {{
  st.{order}.global.u32 [x], 0x020202;
  bar.sync 0;
}}
exists (x == 0x07010201)
"""


def test_forbidden_only_by_the_totality_of_coherence() -> None:
    assert explained(TORN.format(order="weak")).verdict == "allowed"
    result = explained(TORN.format(order="relaxed.gpu"))
    assert result.verdict == "forbidden"
    assert "whatever the axioms say" not in lines_of(result)


UNKNOWN = """PTX unknown
{ .shared .u32 s @ cta 0; .global .u32 f = 0; }
P0 @ cta 0 { st.global.u32 [f], 1; }
P1 @ cta 0 {
  ld.global.u32 r0, [f];
  ld.shared.u32 r1, [s];
  setp.eq.u32 p, r0, r1;
  @p st.global.u32 [f], 3;
}
exists (f == 3)
"""


def test_a_constant_is_no_unknown_value() -> None:
    result = explained(UNKNOWN)
    assert result.execution is not None
    written = {
        access.value
        for thread in result.execution.threads
        for step in thread.steps
        for access in step.accesses
        if access.kind == "W"
    }
    assert written == {1, 3}


def test_unknown_memory_does_not_double_reasons() -> None:
    result = explained(
        """PTX twice
{ .shared .u32 s @ cta 0; .global .u32 f = 0; }
P0 @ cta 0 { st.shared.u32 [s], 1; st.release.cta.global.u32 [f], 1; }
P1 @ cta 0 { ld.acquire.cta.global.u32 r0, [f]; ld.shared.u32 r1, [s]; }
exists (P1:r0 == 1 /\\ P1:r1 != 1)
"""
    )
    assert sum(len(group.reasons) for group in result.groups) == 1


@pytest.mark.parametrize(
    "axiom",
    [
        "empty ([R]; (po & loc); [R]) \\ ((fr; rf) | (rf^-1; rf)) as CoRR",
        "empty (M \\ domain(rf)) & R as Q",
        "empty _ as Nothing",
    ],
)
def test_models_with_other_differences(axiom: str) -> None:
    test = parse_one(
        """PTX reads
{ .global .u32 x = 0; }
P0 @ cta 0 { ld.global.u32 r0, [x]; ld.global.u32 r1, [x]; }
P1 @ cta 1 { st.global.u32 [x], 1; }
exists (P0:r0 == 1 /\\ P0:r1 == 0)
"""
    )
    try:
        result = explain(test, parse_model(f'"own"\n{axiom}\n'), limits=Limits(deadline=time.monotonic() + 30))
    except PtxmmError as error:
        assert error.kind == "unsupported"
    else:
        assert result.verdict == "forbidden"


STRONG = """PTX strong
{ .global .u32 x = 0; }
P0 @ cta 0 { st.relaxed.sys.global.u32 [x], 1; fence.acq_rel.gpu; }
P1 @ cta 1 { ld.relaxed.sys.global.u32 r0, [x]; }
"""


@pytest.mark.parametrize(
    "flag",
    [
        "((W*M | M*W) & loc & (IW*_)) \\ id",  # only an initial write: Race-free
        "(_*_) & po",  # a fence is in it
    ],
)
def test_races_of_a_users_model(flag: str) -> None:
    model = parse_model(f'"own"\nacyclic po | rf | fr | co as SC\nflag ~empty {flag} as data-race\n')
    try:
        races(parse_one(STRONG), model, limits=Limits(deadline=time.monotonic() + 30))
    except PtxmmError as error:
        assert error.kind == "unsupported"


def test_a_relaxed_arrival_is_a_miss() -> None:
    source = (ROOT / "litmus/mbarrier/MP+arrive+wait.litmus").read_text()
    result = explained(source.replace("Expect=", "ISA=8.6\nExpect=", 1))
    assert [change.new for miss in result.misses for change in miss.changes] == [
        "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [b]",
        "mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [b], 0",
    ]
    assert not explained(source).misses


def test_a_relaxed_arrival_is_a_miss_in_a_version_of_the_command_line() -> None:
    result = explained((ROOT / "litmus/mbarrier/MP+arrive+wait.litmus").read_text(), isa=(8, 6))
    assert result.misses


def test_two_instructions_on_one_line_synchronize_each() -> None:
    result = explained(
        """PTX line
{ .global .u32 x = 0; .global .u32 y = 0; }
P0 @ cta 0 { st.release.gpu.global.u32 [x], 1; st.release.gpu.global.u32 [y], 1; }
P1 @ cta 1 { ld.acquire.gpu.global.u32 r0, [x]; ld.acquire.gpu.global.u32 r1, [y]; }
exists (P1:r0 == 1 /\\ P1:r1 == 1)
"""
    )
    assert any("[y]" in item.first.name and "[y]" in item.second.name for item in result.synchronization)


def test_values_are_shown_as_in_the_condition() -> None:
    result = explained(
        """PTX signed
{ .global .s32 x = -1; .global .u32 a[2] = {1, 2}; .global .u64 p = &a; }
P0 @ cta 0 { st.global.s32 [x], -5; ld.global.u64 q, [p]; }
exists (x == -7 /\\ P0:q == &x)
"""
    )
    lines = lines_of(result)
    assert "x may be -5" in lines
    assert "P0:q may be &a" in lines


def test_a_filter_that_lets_nothing_through() -> None:
    source = """PTX filtered
{ .global .u32 d = 0; .global .u32 f = 0; }
P0 @ cta 0 { st.global.u32 [d], 1; st.relaxed.gpu.global.u32 [f], 1; }
P1 @ cta 1 { ld.relaxed.gpu.global.u32 r0, [f]; st.global.u32 [d], 2; }
filter (P1:r0 == 3)
exists (d == 1)
"""
    result = racing(source)
    assert result.race_free is not True or result.notes


NVLITMUS = CORPORA / "nvlitmus" / "MP_cta.test"


@pytest.mark.skipif(not NVLITMUS.exists(), reason="no corpora")
def test_a_miss_in_the_format_of_the_file() -> None:
    test = next(t for t in read(NVLITMUS) if t.name.endswith(".r1.18"))
    result = explain(test, model_named("ptx-7.5"), limits=Limits(deadline=time.monotonic() + 30))
    assert [c.new for m in result.misses for c in m.changes if "st." in (c.new or "")] == ["st.relaxed.cta [flag], 1"]
