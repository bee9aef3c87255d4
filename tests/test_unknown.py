"""Memory without an initial value: an unknown constant for each byte (PTX ISA 8.2.6)."""

from __future__ import annotations

import json

import pytest

from ptxmm import formats
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.result import Result, Unknown
from ptxmm.cat import load
from ptxmm.errors import PtxmmError
from ptxmm.render.document import document


def result(declarations: str, threads: str, condition: str, all_state: bool = False) -> Result:
    text = f"PTX t\n{{ {declarations} }}\n{threads}\n{condition}\n"
    (test,) = formats.parse(text, "t.litmus")
    return check(test, load("ptx-8.5"), engine="both", all_state=all_state)


def shown(found: Result) -> set[tuple[str, ...]]:
    return {tuple(str(v) for part in (o.registers, o.memory) for v in part.values()) for o in found.outcomes}


def test_all_readers_get_the_same_value() -> None:
    threads = "P0 @ cta 0 | P1 @ cta 0 ;\nld.shared.u32 r0, [s] | ld.shared.u32 r0, [s] ;"
    found = result(".shared .u32 s;", threads, "exists (P0:r0 == P1:r0)")
    assert shown(found) == {("?s", "?s")}
    assert (found.observation, found.status) == ("always", "complete")


def test_two_unknown_values_may_be_equal() -> None:
    """Only the values that the test tells apart are tried; that two are the same is one of them if it is asked."""
    threads = "P0 @ cta 0 ;\nld.shared.u32 r0, [s] ;\nld.shared.u32 r1, [t] ;"
    found = result(".shared .u32 s; .shared .u32 t;", threads, "exists (P0:r0 == 1 /\\ P0:r1 == 1)")
    assert found.observation == "sometimes"
    assert shown(found) == {("?s", "?t")}
    assert [note.text for note in found.notes] == ["the condition depends on the unknown initial value of s, t"]


def test_a_value_may_equal_what_is_asked() -> None:
    threads = "P0 @ cta 0 ;\nld.shared.u32 r0, [s] ;"
    found = result(".shared .u32 s;", threads, "exists (P0:r0 == 5)")
    assert (found.observation, found.holds, found.status) == ("sometimes", True, "complete")
    assert shown(found) == {("?s",)}


def test_never_zero_without_being_told() -> None:
    """The branch may go either way."""
    threads = "P0 @ cta 0 {\n ld.shared.u32 r0, [s];\n setp.eq.u32 p, r0, 0;\n @p mov.u32 r1, 1;\n}"
    found = result(".shared .u32 s;", threads, "exists (P0:r1 == 1)")
    assert found.observation == "sometimes"


def test_what_is_written_before_is_known() -> None:
    threads = "P0 @ cta 0 ;\nst.shared.u32 [s], 3 ;\nld.shared.u32 r0, [s] ;\nadd.u32 r1, r0, 1 ;"
    found = result(".shared .u32 s;", threads, "exists (P0:r1 == 4)")
    assert (found.observation, found.holds, found.status) == ("always", True, "complete")


def test_computing_with_it_is_told() -> None:
    threads = "P0 @ cta 0 ;\nld.shared.u32 r0, [s] ;\nadd.u32 r1, r0, 1 ;"
    found = result(".shared .u32 s;", threads, "exists (P0:r1 == 4)")
    assert found.status == "bounded"
    assert any("is computed with (P0 line 5: add.u32)" in note.text for note in found.notes)


def test_torn_values_and_json() -> None:
    threads = "P0 @ cta 0 | P1 @ cta 0 ;\nst.shared.u16 [s], 1 | ld.shared.u16 r0, [s] ;"
    found = result(".shared .u16 s;", threads, "exists (P1:r0 == 1)")
    assert shown(found) == {("1",), ("?s",), ("0x??01",), ("0x00??",)}
    values = [o["registers"]["P1:r0"] for o in json.loads(document([found]))["results"][0]["outcomes"]]
    assert {"unknown": "s"} in values and {"unknown": "0x??01"} in values and 1 in values


def test_part_of_a_value() -> None:
    threads = "P0 @ cta 0 ;\nld.shared.u16 r0, [s+2] ;"
    found = result(".shared .u32 s;", threads, "exists (P0:r0 == 1)")
    (outcome,) = found.outcomes
    assert outcome.registers["P0:r0"] == Unknown("s+2")


def test_too_many() -> None:
    with pytest.raises(PtxmmError) as caught:
        threads = "P0 @ cta 0 ;\nmov.u64 a, s ;\nld.global.u32 r1, [i] ;\nmul.wide.u32 b, r1, 4 ;\nadd.u64 a, a, b ;\n"
        declared = ".shared .u32 s[100]; .global .u32 i = 0;"
        result(declared, f"{threads}ld.shared.u32 r0, [a] ;", "exists (P0:r0 == 1)")
    assert caught.value.kind == "unsupported"
    assert "400 bytes have no initial value (s)" in caught.value.message


def test_bytes_that_nothing_looks_at_need_no_value_of_their_own() -> None:
    found = result(".shared .u32 s[1000];", "P0 @ cta 0 ;\nld.shared.u32 r0, [s+8] ;", "exists (P0:r0 == 1)")
    assert shown(found) == {("?s+8",)} and found.observation == "sometimes"
    found = result(".shared .u32 s[40];", "P0 @ cta 0 ;\nld.shared.u32 r0, [s] ;", "exists (P0:r0 == 1)", True)
    (row,) = shown(found)
    assert row == ("?s", "?s", *["0x????????"] * 39)


PIECES = {
    "the upper half": (".shared .u64 s;", "ld.shared.u32 r0, [s+4]; setp.eq.u32 p, r0, 5;"),
    "a half taken apart": (".shared .u64 s;", "ld.shared.u64 d, [s]; mov.b64 {_, r0}, d; setp.eq.u32 p, r0, 5;"),
    "an element of a vector": (".shared .u64 s;", "ld.shared.v2.u32 {r1, r0}, [s]; setp.eq.u32 p, r0, 5;"),
    "one byte": (".shared .u32 s;", ".reg .u32 r0; ld.shared.u8 r0, [s+2]; setp.eq.u32 p, r0, 7;"),
    "one byte with its sign": (".shared .u32 s;", ".reg .u32 r0; ld.shared.s8 r0, [s+1]; setp.eq.s32 p, r0, -7;"),
    "two bytes, also seen alone": (
        ".shared .u8 s[2];",
        ".reg .u32 r0; ld.shared.u8 r1, [s]; ld.shared.u16 r0, [s]; setp.eq.u32 p, r0, 258;",
    ),
    "two words put together": (
        ".shared .u32 s[2];",
        "ld.shared.v2.u32 {r0, r1}, [s]; mov.b64 d, {r0, r1}; setp.eq.u64 p, d, 0x0000000200000001;",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_may_equal_what_it_is_compared_with(name: str) -> None:
    """Each byte is unknown by itself, so every piece of a value may be any number."""
    declared, body = PIECES[name]
    found = result(declared, f"P0 @ cta 0 {{ {body} @p mov.u32 r2, 1; }}", "exists (P0:r2 == 1)")
    assert (found.observation, found.status) == ("sometimes", "complete")


COMPUTED = {
    "a register": "ld.u32 r1, [x]; add.u32 r1, r1, 3; mul.lo.u32 r1, r1, 21; setp.eq.u32 p, r0, r1; @p st.u32 [y], 1;",
    "memory": "red.add.u32 [x], 5; ld.u32 r1, [x]; add.u32 r1, r1, r1; st.u32 [z], r1; ld.u32 r2, [z];"
    " setp.eq.u32 p, r2, r0; @p st.u32 [y], 1;",
    "a sum that an atomic makes": "red.add.u32 [x], 5; red.add.u32 [x], 6; atom.cas.b32 r2, [x], r0, 1;"
    " setp.eq.u32 p, r2, r0; @p st.u32 [y], 1;",
    "what atom.cas asks for": "ld.u32 r1, [x]; add.u32 r1, r1, 3; mul.lo.u32 r1, r1, 21;"
    " atom.shared.cas.b32 r2, [s], r1, 1; setp.eq.u32 p, r2, r1; @p st.u32 [y], 1;",
    "a copy of it": "cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16; cp.async.bulk.commit_group;"
    " cp.async.bulk.wait_group 0; ld.u32 r1, [g]; and.b32 r1, r1, 1; setp.eq.u32 p, r1, 0; @!p st.u32 [y], 1;",
    "words of another size": "st.v2.u16 [x], {1, 2}; ld.u32 r1, [x]; setp.eq.u32 p, r0, r1; @p st.u32 [y], 1;",
}  # fmt: skip


@pytest.mark.parametrize("name", COMPUTED)
def test_comparing_with_what_is_computed_is_told(name: str) -> None:
    """The constants of the test are not all the values that matter then: 63 is none of 3, 21 and 0."""
    declared = ".shared .align 16 .u32 s[4]; .global .u32 x = 0; .global .u32 y = 0; .global .u32 z = 0;"
    threads = f"P0 @ cta 0 {{ ld.shared.u32 r0, [s]; {COMPUTED[name]} }}"
    found = result(declared + ".global .align 16 .u32 g[4] = {0};", threads, "forall (y == 0)")
    assert found.holds is not True


def test_a_condition_that_compares_with_what_is_computed() -> None:
    threads = "P0 @ cta 0 { ld.shared.u32 r0, [s]; st.u32 [x], r0; st.u32 [y], 3; red.add.u32 [y], 4; }"
    found = result(".shared .u32 s; .global .u32 x = 0; .global .u32 y = 0;", threads, "~exists (x == y)")
    assert found.holds is None and found.status == "bounded"


def test_what_is_moved_is_not_computed() -> None:
    threads = "P0 @ cta 0 { ld.shared.u32 r0, [s]; ld.u32 r1, [x]; setp.eq.u32 p, r0, r1; @p st.u32 [y], 1; }"
    found = result(".shared .u32 s; .global .u32 x = 9; .global .u32 y = 0;", threads, "exists (y == 1)")
    assert (found.observation, found.status) == ("sometimes", "complete")


def test_one_state_from_several_initial_values_is_listed_once() -> None:
    """f ends as 3 if s is 0 and P1 reads 0, or if s is 1 and it reads 1."""
    threads = (
        "P0 @ cta 0 { st.global.u32 [f], 1; }\n"
        "P1 @ cta 1 { ld.global.u32 r0, [f]; ld.shared.u32 r1, [s]; setp.eq.u32 p, r0, r1; @p st.global.u32 [f], 3; }"
    )
    found = result(".global .u32 f = 0; .shared .u32 s @ cta 1;", threads, "exists (f == 3)")
    assert sorted(shown(found)) == [("1",), ("3",)]
    assert len(found.outcomes) == 2
