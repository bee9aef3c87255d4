"""The explicit engine: verdicts of semantics section 2, and what a search reports besides final states."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import ptxmm.models
from ptxmm.cat import Model, load, parse_model
from ptxmm.engines.explicit.enumerate import search
from ptxmm.engines.result import Limits, Observed, Search
from ptxmm.program.condition import evaluate
from tests.reference import everything
from tests.support import model_named, parse_one


def table(init: str, *threads: str, condition: str, cells: str = "") -> str:
    """A typed test: each thread is ``placement: instruction; instruction``."""
    heads, rows = [], []
    for i, thread in enumerate(threads):
        place, _, body = thread.partition(": ")
        heads.append(f"P{i} @ {place}")
        rows.append([c.strip() for c in body.split(";")])
    lines = [" | ".join(r[k] if k < len(r) else "" for r in rows) for k in range(max(map(len, rows)))]
    declarations = "\n".join(f"  {d};" for d in init.split("; "))
    body = "\n".join(f" {line} ;" for line in (" | ".join(heads), *lines))
    return f"PTX t\n{{\n{declarations}\n}}\n{body}\n{cells}\n{condition}\n"


def ask(text: str, model: str | Model = "ptx-8.5", unroll: int = 3) -> tuple[bool, Search]:
    """Whether the condition's proposition holds in some final state, and the search."""
    test = parse_one(text)
    result = search(
        test, model_named(model) if isinstance(model, str) else model, everything(test), Limits(unroll=unroll)
    )
    assert test.condition is not None
    return any(evaluate(test.condition.proposition, f.state) for f in result.found), result


X = ".global .u32 x = 0"
XY = ".global .u32 x = 0; .global .u32 y = 0"
DFG = ".global .u32 d = 0; .global .u32 f = 0"

VERDICTS = {
    "A7 weak: the last write may be any that is maximal": (
        table(X, "cta 0: st.global.u32 [x], 1", "cta 1: ld.global.u32 r0, [x]; st.global.u32 [x], 2",
              condition="exists (P1:r0 == 1 /\\ x == 1)"),
        True,
    ),
    "A7 strong": (
        table(X, "cta 0: st.relaxed.gpu.global.u32 [x], 1",
              "cta 1: ld.relaxed.gpu.global.u32 r0, [x]; st.relaxed.gpu.global.u32 [x], 2",
              condition="exists (P1:r0 == 1 /\\ x == 1)"),
        False,
    ),
    "A14 a failing cas writes nothing": (
        table(DFG, "cta 0: st.global.u32 [d], 1; st.release.gpu.global.u32 [f], 1",
              "cta 1: atom.relaxed.cta.global.cas.b32 r9, [f], 7, 8",
              "cta 2: ld.acquire.gpu.global.u32 r0, [f]; ld.global.u32 r1, [d]",
              condition="exists (P1:r9 == 1 /\\ P2:r0 == 1 /\\ P2:r1 == 0)"),
        False,
    ),
    "A14 a failing cas.release heads a release pattern": (
        table(DFG, "cta 0: st.global.u32 [d], 1; atom.release.gpu.global.cas.b32 r9, [f], 7, 8; "
              "st.relaxed.gpu.global.u32 [f], 2",
              "cta 1: ld.acquire.gpu.global.u32 r0, [f]; ld.global.u32 r1, [d]",
              condition="exists (P0:r9 == 0 /\\ P1:r0 == 2 /\\ P1:r1 == 0)"),
        False,
    ),
    "A15 red starts no acquire pattern": (
        table(DFG, "cta 0: st.global.u32 [d], 42; st.release.gpu.global.u32 [f], 1",
              "cta 1: red.relaxed.sys.global.add.u32 [f], 1; fence.acq_rel.gpu; ld.global.u32 r1, [d]",
              condition="exists (P1:r1 == 0 /\\ f == 2)"),
        True,
    ),
    "A21 a dependency that is none": (
        table(XY, "cta 0: ld.global.u32 r0, [x]; xor.b32 r1, r0, r0; add.u32 r1, r1, 1; st.global.u32 [y], r1",
              "cta 1: ld.global.u32 r1, [y]; st.global.u32 [x], r1",
              condition="exists (P0:r0 == 1 /\\ P1:r1 == 1)"),
        True,
    ),
    "A21 load buffering with dependencies": (
        table(XY, "cta 0: ld.global.u32 r0, [x]; st.global.u32 [y], r0",
              "cta 1: ld.global.u32 r1, [y]; st.global.u32 [x], r1",
              condition="exists (P0:r0 != 0 \\/ P1:r1 != 0)"),
        False,
    ),
    "A21 exch depends on its read": (
        table(XY, "cta 0: ld.relaxed.gpu.global.u32 r0, [x]; st.relaxed.gpu.global.u32 [y], r0",
              "cta 1: atom.relaxed.gpu.global.exch.b32 r1, [y], 1",
              "cta 2: ld.relaxed.gpu.global.u32 r2, [y]; st.relaxed.gpu.global.u32 [x], r2",
              condition="exists (P0:r0 == 1 /\\ P1:r1 == 1 /\\ P2:r2 == 1)"),
        False,
    ),
    "no control dependency after the join: two spin loops may release each other": (
        table(XY, "cta 0: L: ld.global.u32 r0, [y]; setp.eq.u32 p, r0, 0; @p bra L; st.global.u32 [x], 1",
              "cta 1: L: ld.global.u32 r0, [x]; setp.eq.u32 p, r0, 0; @p bra L; st.global.u32 [y], 1",
              condition="exists (P0:r0 == 1 /\\ P1:r0 == 1)"),
        True,
    ),
    "nor an address dependency of what comes after the access": (
        table(".global .u32 x = 0; .global .u32 y = 0; .global .u32 a[2] = {0, 0}",
              "cta 0: L: ld.global.u32 r0, [y]; setp.eq.u32 p, r0, 0; @p bra L; mul.wide.u32 rd0, r0, 4; "
              "mov.u64 rd1, a; add.u64 rd1, rd1, rd0; ld.global.u32 r1, [rd1]; st.global.u32 [x], 1",
              "cta 1: L: ld.global.u32 r0, [x]; setp.eq.u32 p, r0, 0; @p bra L; st.global.u32 [y], 1",
              condition="exists (P0:r0 == 1 /\\ P1:r0 == 1)"),
        True,
    ),
    "A27 a read in the phase of the write": (
        table(X, "cta 0: bar.sync 0; st.global.u32 [x], 1; bar.sync 0", "cta 0: bar.sync 0; ld.global.u32 r0, [x]; "
              "bar.sync 0", condition="exists (P1:r0 == 1)"),
        True,
    ),
    "A27 a read in the phase after": (
        table(X, "cta 0: bar.sync 0; st.global.u32 [x], 1; bar.sync 0",
              "cta 0: bar.sync 0; bar.sync 0; ld.global.u32 r0, [x]", condition="exists (P1:r0 == 0)"),
        False,
    ),
    "A28 arrive releases": (
        table(X, "cta 0: st.global.u32 [x], 1; bar.arrive 0, 64", "cta 0: bar.sync 0, 64; ld.global.u32 r0, [x]",
              condition="exists (P1:r0 == 0)"),
        False,
    ),
    "A28 arrive does not acquire": (
        table(X, "cta 0: bar.arrive 0, 64; st.global.u32 [x], 1", "cta 0: bar.sync 0, 64; ld.global.u32 r0, [x]",
              condition="exists (P1:r0 == 1)"),
        True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
@pytest.mark.parametrize("model", ["ptx-6.0", "ptx-7.5", "ptx-8.5"])
def test_verdicts(name: str, model: str) -> None:
    text, allowed = VERDICTS[name]
    holds, result = ask(text, model)
    assert holds is allowed and result.exhausted and not result.timeout and result.undefined is None


@pytest.mark.parametrize(("tear", "allowed"), [("on", True), ("off", False)])
def test_tearing(tear: str, allowed: bool) -> None:
    text = table(X, "cta 0: st.global.u32 [x], 0x00010001", "cta 1: ld.global.u32 r0, [x]",
                 condition="exists (P1:r0 == 1)")  # fmt: skip
    holds, result = ask(text, load("ptx-8.5", {"tear": tear}))
    assert holds is allowed
    assert len(result.found) == (4 if allowed else 2)
    strong = text.replace("st.global", "st.relaxed.gpu.global").replace("ld.global", "ld.relaxed.gpu.global")
    assert not ask(strong)[0]


def test_syntactic_dependencies() -> None:
    text, _ = VERDICTS["A21 a dependency that is none"]
    assert not ask(text, load("ptx-8.5", {"dep": "syn"}))[0]


def test_races_are_flagged() -> None:
    assert ask(VERDICTS["A28 arrive does not acquire"][0])[1].flags == {"data-race"}
    assert ask(VERDICTS["A28 arrive releases"][0])[1].flags == set()
    assert ask(VERDICTS["A28 arrive does not acquire"][0], "ptx-7.5")[1].flags == set()


def test_deadlock() -> None:
    _, result = ask(table(X, "cta 0: bar.sync 0", "cta 0: bar.sync 1", condition="exists (x == 0)"))
    assert result.deadlock and result.found == [] and result.exhausted
    # Which barrier P1 goes to depends on what it reads: one way meets P0, the other waits for ever.
    text = table(X, "cta 0: bar.sync 0, 64", "cta 0: ld.global.u32 r0, [x]; bar.sync r0, 64",
                 "cta 1: st.global.u32 [x], 1", condition="exists (P1:r0 == 1)")  # fmt: skip
    holds, result = ask(text)
    assert result.deadlock and not holds and len(result.found) == 1


def test_misused_barriers_are_undefined() -> None:
    _, result = ask(table(X, "cta 0: bar.sync 0, 64", "cta 0: bar.sync 0, 96", condition="exists (x == 0)"))
    assert result.undefined == "two different thread counts in one phase of barrier 0"
    assert result.found == [] and not result.deadlock


def test_access_outside_every_object() -> None:
    text = table(".global .u32 x = 0; .global .u64 z = 0", "cta 0: ld.global.u64 rd0, [z]; ld.u32 r0, [rd0]",
                 "cta 1: mov.u64 rd1, x; st.global.u64 [z], rd1", condition="exists (P0:r0 == 0)")  # fmt: skip
    _, result = ask(text, load("ptx-8.5", {"tear": "off"}))
    assert result.undefined == "P0 line 8: access outside every object (address 0x0)"
    assert len(result.found) == 1  # the executions in which P0 finds the address


def test_a_filter_restricts_what_counts() -> None:
    text = table(XY, "cta 0: st.global.u32 [x], 1; st.global.u32 [y], 1",
                 "cta 1: ld.global.u32 r0, [y]; ld.global.u32 r1, [x]",
                 condition="filter (P1:r0 == 1)\nexists (P1:r1 == 0)")  # fmt: skip
    holds, result = ask(text)
    assert holds and {f.state.registers[1, "r0"] for f in result.found} == {1}


def test_loops_are_bounded() -> None:
    text = table(X, "cta 0: L: atom.relaxed.gpu.global.add.u32 r0, [x], 1; setp.lt.u32 p, r0, 2; @p bra L",
                 condition="exists (x == 3)")  # fmt: skip
    for unroll, final in ((1, []), (2, [3]), (4, [3])):
        _, result = ask(text, unroll=unroll)
        assert [f.state.memory["x", 0] for f in result.found] == final
        assert result.bounded is (unroll < 2)


def test_a_spin_loop_is_exact() -> None:
    text = table(X, "cta 0: L: atom.relaxed.gpu.global.cas.b32 r0, [x], 0, 1; setp.ne.u32 p, r0, 0; @p bra L",
                 "cta 1: L: atom.relaxed.gpu.global.cas.b32 r0, [x], 0, 2; setp.ne.u32 p, r0, 0; @p bra L; "
                 "st.relaxed.gpu.global.u32 [x], 0", condition="exists (x == 1)")  # fmt: skip
    holds, result = ask(text)
    assert holds and not result.bounded and len(result.found) == 1


def test_a_question_may_be_answered_early() -> None:
    test = parse_one(VERDICTS["A7 weak: the last write may be any that is maximal"][0])
    assert test.condition is not None
    model = model_named("ptx-8.5")
    result = search(test, model, everything(test), Limits(), test.condition.proposition)
    assert len(result.found) < len(search(test, model, everything(test), Limits()).found) and not result.exhausted
    assert {evaluate(test.condition.proposition, f.state) for f in result.found} == {True, False}


def test_the_deadline_ends_a_search() -> None:
    test = parse_one(VERDICTS["A7 strong"][0])
    result = search(test, model_named("ptx-8.5"), everything(test), Limits(deadline=time.monotonic() - 1))
    assert result.timeout and not result.exhausted


def test_a_narrow_read_sees_its_bytes_of_a_wide_write() -> None:
    text = table(X, "cta 0: st.global.u32 [x], 0x20001; ld.global.u16 r0, [x+2]", condition="exists (P0:r0 == 2)")
    assert [f.state.registers[0, "r0"] for f in ask(text)[1].found] == [2]


def everything_found(text: str, model: str = "ptx-8.5") -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The final values of all registers and of all memory."""
    return {(tuple(f.state.registers.values()), tuple(f.state.memory.values())) for f in ask(text, model)[1].found}


def test_final_values_are_chosen_per_byte() -> None:
    wide, narrow = "st.global.u32 [x], 0x02020202", "st.global.u16 [x], 0x0101"
    text = table(X, f"cta 0: {wide}", f"cta 1: {narrow}", condition="exists (x == 0)")
    found = {memory[0] for _, memory in everything_found(text)}
    assert found == {0x02020202, 0x02020101, 0x02020201, 0x02020102}
    # So they are of one size, but where values are not torn.
    text = table(X, f"cta 0: {wide}", "cta 1: st.global.u32 [x], 0x01010101", condition="exists (x == 0)")
    assert len(everything_found(text)) == 16
    assert {memory[0] for _, memory in everything_found(text, "ptx-8.5[tear=off]")} == {0x02020202, 0x01010101}


def test_reads_are_made_of_the_bytes_of_all_writes_that_cover_them() -> None:
    text = table(
        X,
        "cta 0: st.global.u32 [x], 0x04030201; st.global.u8 [x+1], 9; ld.global.u32 r0, [x]; ld.global.u16 r1, [x+2]",
        condition="exists (P0:r0 == 0x04030901)",
    )
    assert {registers for registers, _ in everything_found(text)} == {(0x04030901, 0x0403)}


COPIES = """PTX t
{
  .shared .align 16 .u32 s[4] @ cta 0 = {1, 2, 0, 0};
  .global .align 16 .u32 g[4] = {7, 8, 0, 0};
}
P0 @ cta 0 {
  cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;
  cp.async.bulk.commit_group;
  st.shared.u32 [s], 3;
  ld.global.v2.u32 {r0, r1}, [g];
}
exists (P0:r0 == 1)
"""


def test_independent_reads_are_searched_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    combined = everything_found(COPIES)
    calls = []

    def ordinary(*arguments: object) -> None:
        calls.append(arguments)

    monkeypatch.setattr("ptxmm.engines.explicit.enumerate.independent_candidates", ordinary)
    assert everything_found(COPIES) == combined and calls
    # The copy reads the old or the new value of s[0]; the load comes before or after the copy of each element.
    assert {registers for registers, _ in combined} == {(a, b) for a in (7, 1, 3) for b in (8, 2)}


def test_facts_are_searched_for_after_the_condition_is_decided() -> None:
    text = table(
        XY,
        "cta 0: ld.global.u32 r0, [x]; setp.eq.u32 p, r0, 1; @p bar.sync 0, 64",
        "cta 0: st.global.u32 [x], 1; st.global.u32 [y], 1; ld.global.u32 r0, [y]",
        condition="exists (y == 1)",
    )
    test = parse_one(text)
    assert test.condition is not None
    result = search(test, model_named("ptx-8.5"), everything(test), Limits(), proposition=test.condition.proposition)
    assert result.deadlock and "data-race" in result.flags


def shipped(name: str) -> str:
    """The text of a shipped model."""
    return (Path(ptxmm.models.__file__).parent / f"{name}.cat").read_text()


ORDERS = [
    table(XY, "cta 0: st.relaxed.gpu.global.u32 [x], 1; fence.sc.gpu; ld.relaxed.gpu.global.u32 r0, [y]",
          "cta 1: st.relaxed.gpu.global.u32 [y], 1; fence.sc.gpu; ld.relaxed.gpu.global.u32 r0, [x]",
          condition="exists (P0:r0 == 0 /\\ P1:r0 == 0)"),
    table(X, "cta 0: st.global.u32 [x], 1; st.relaxed.gpu.global.u32 [x], 2",
          "cta 1: st.relaxed.gpu.global.u32 [x], 3; ld.global.u32 r2, [x]", condition="exists (P1:r2 == 1 /\\ x == 3)"),
    table(X, "cta 0: atom.relaxed.gpu.global.add.u32 r0, [x], 1", "cta 1: atom.relaxed.cta.global.add.u32 r0, [x], 1",
          "cta 1: atom.relaxed.gpu.global.add.u32 r0, [x], 1", condition="exists (x == 3)"),
]  # fmt: skip


@pytest.mark.parametrize("text", ORDERS)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Equal conditions in a form that is no lower bound: every partial order has to be tried.
        ("empty (([W]; cause; [W]) & ovl) \\ co as", "irreflexive ((([W]; cause; [W]) & ovl) \\ co); (_*_) as"),
        ("empty (([W]; ms; [W]) & ovl) \\ (co | co^-1) as",
         "irreflexive ((([W]; ms; [W]) & ovl) \\ (co | co^-1)); (_*_) as"),
        ("empty ([FSC]; ms; [FSC]) \\ (fsc | fsc^-1) as",
         "irreflexive (([FSC]; ms; [FSC]) \\ (fsc | fsc^-1)); (_*_) as"),
        ("fsc", "sync_fence"),
    ],
)  # fmt: skip
def test_least_orders_decide(text: str, old: str, new: str) -> None:
    source = shipped("ptx-8.5")
    assert old in source
    changed = parse_model(source.replace(old, new), "changed.cat", {"tear": "on"})

    def states(model: Model) -> set[tuple[object, ...]]:
        found = ask(text, model)[1].found
        return {(*f.state.registers.items(), *f.state.memory.items()) for f in found}

    assert states(changed) == states(model_named("ptx-8.5"))


def test_observed_may_be_empty() -> None:
    test = parse_one(ORDERS[0])
    result = search(test, model_named("sc"), Observed((), ()), Limits())
    assert len(result.found) == 1 and result.exhausted
