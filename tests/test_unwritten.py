"""Registers and private memory that a kernel reads before it writes them hold anything (PTX ISA 5.1.1, 8.2.6)."""

from __future__ import annotations

import pytest

from ptxmm.errors import PtxmmError
from ptxmm.program.test import Test
from tests.decided import decided_tests
from tests.kernels import launched

READ = "ld.global.u32 %r1, [%rd0]; setp.eq.u32 %p1, %r1, 0;"
STORE = "st.global.u32 [%rd1], %r2;"


def kernel(body: str, condition: str = "out == 0", before: str = "") -> list[Test]:
    claim, launch = f'condition = "forall ({condition})"', "block = 2" if "shfl" in body else ""
    return launched(body, dict.fromkeys(("x", "out"), '"u32"'), claim, launch=launch, before=before)


def conclusions(body: str, condition: str = "out == 0", before: str = "") -> set[str]:
    return {found.conclusion for found in decided_tests(kernel(body, condition, before), 60, "both")}


def given(lane: str, then: str = "") -> str:
    """Of two lanes the second writes what both give; the first one stores what it gets of a lane that is computed."""
    writes = "mov.u32 %r3, %tid.x; setp.eq.u32 %p1, %r3, 0; @%p1 bra S; ld.global.u32 %r2, [%rd0];"
    takes = (
        f"add.u32 %r4, %r3, {lane}; and.b32 %r4, %r4, 1; @!%p1 mov.u32 %r4, 1; shfl.sync.idx.b32 %r4, %r2, %r4, 31, 3;"
    )
    return f"{writes}\nS: {takes}{then} add.u32 %r4, %r4, %r4; @%p1 st.global.u32 [%rd1], %r4;"


REFUTED = {
    "a word": STORE,
    "a part of a word": "st.global.u16 [%rd1], %rs1;",
    "a number": "st.global.f32 [%rd1], %f1;",
    "a predicate": "@%p1 st.global.u32 [%rd1], 1;",
    "a negated predicate": "@!%p1 st.global.u32 [%rd1], 1;",
    "a comparison": "setp.gt.u32 %p1, %r2, 50; @%p1 st.global.u32 [%rd1], 1;",
    "the carry flag": "addc.u32 %r2, 0, 0;" + STORE,
    "written on one path": f"{READ} @%p1 bra S; mov.u32 %r2, 0;\nS: {STORE}",
    "written in a loop that may not be entered": f"{READ} @%p1 bra S;\nL: mov.u32 %r2, 0; ld.global.u32 %r1, [%rd0];"
    f" setp.ne.u32 %p1, %r1, 0; @%p1 bra L;\nS: {STORE}",
    "written under a guard that has changed": f"{READ} @!%p1 mov.u32 %r2, 0; setp.eq.u32 %p1, %r1, 1; @!%p1 {STORE}",
    "written under the other guard": f"{READ} @!%p1 mov.u32 %r2, 0; @%p1 {STORE}",
    "a private variable": f".local .align 4 .b8 L[8]; ld.local.u32 %r2, [L]; {STORE}",
    "its second half": f".local .align 4 .b8 L[8]; st.local.u16 [L], 0; ld.local.u32 %r2, [L]; {STORE}",
    "at its generic address": ".local .align 4 .b8 L[8]; mov.u64 %rd4, L; cvta.local.u64 %rd4, %rd4;"
    f" ld.u32 %r2, [%rd4+4]; {STORE}",
    "given by the lane that did not write it": given("0"),
    "given by the lane that did, and used by the other": given("1", " xor.b32 %r4, %r4, %r2;"),
    "shared memory": f".shared .align 4 .b8 L[8]; ld.shared.u32 %r2, [L+4]; {STORE}",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUTED)
def test_a_value_that_nobody_wrote_may_be_any(name: str) -> None:
    assert conclusions(REFUTED[name]) == {"contradicted"}


HOLDING = {
    "another half of it": f".local .align 4 .b8 L[8]; st.local.u32 [L+4], 0; ld.local.u32 %r2, [L+4]; {STORE}",
    "both paths": f"{READ} @%p1 bra S; mov.u32 %r2, 0; bra T;\nS: mov.u32 %r2, 0;\nT: {STORE}",
    "both guards": f"{READ} @%p1 mov.u32 %r2, 0; @!%p1 mov.u32 %r2, 0; {STORE}",
    "the same guard": f"{READ} @%p1 mov.u32 %r2, 0; @%p1 {STORE}",
    "a branch on the guard": f"{READ} @%p1 mov.u32 %r2, 0; @!%p1 bra E; {STORE}\nE:",
    "a branch on the guard away": f"{READ} @!%p1 mov.u32 %r2, 0; @!%p1 bra S; ret;\nS: {STORE}",
    "what is not chosen": f"{READ} selp.u32 %r2, 0, %r3, %p1; {STORE}",
    "given by the lane that wrote it": given("1"),
    "what nobody stores": f"add.u32 %r2, %r3, 1; mov.u32 %r2, 0; {STORE}",
}  # fmt: skip


@pytest.mark.parametrize("name", HOLDING)
def test_what_is_written_before_it_is_read_is_known(name: str) -> None:
    assert conclusions(HOLDING[name]) == {"expected"}


def test_a_large_private_array_that_is_written_first() -> None:
    """No byte of it needs a value of its own."""
    stores = " ".join(f"st.local.u32 [L+{4 * i}], {i};" for i in range(100))
    loads = " ".join(f"ld.local.u32 %r2, [L+{4 * i}];" for i in reversed(range(100)))
    array = ".local .align 4 .b8 L[400]; "
    assert conclusions(f"{array}{stores}{loads}{STORE}") == {"expected"}
    assert conclusions(f"{array}{loads.split(';')[-2]}; {STORE}") == {"contradicted"}
    for first in (f"{READ} @%p1 st.local.u32 [L], 0;", f"{READ} @!%p1 bra S; st.local.u32 [L], 0;\nS:"):
        body = f"{array}{first} ld.local.u32 %r2, [L];{STORE} st.global.u32 [%rd0], 1;"
        (test,) = kernel(body)
        assert test.objects["L"].unknown
    with pytest.raises(PtxmmError, match="400 bytes have no initial value") as caught:
        conclusions(f"{array}{loads}{STORE}")
    assert caught.value.hint == "give an initial value: [objects] L = { init = 0 }"


def test_what_is_computed_with_it_holds_for_no_value_for_sure() -> None:
    body = "add.u32 %r2, %r3, 5; mul.lo.u32 %r2, %r2, 4; and.b32 %r2, %r2, 3;" + STORE
    assert conclusions(body) == {"inconclusive"}


def test_the_condition_reads_registers_too() -> None:
    assert conclusions("st.global.u32 [%rd1], %r1;", "P0:%r3 == 0") == {"contradicted"}
    assert conclusions("mov.u32 %r3, 0;", "P0:%r3 == 0") == {"expected"}


def test_of_a_function() -> None:
    before = ".func (.reg .b32 r) f\n{ .reg .b32 %t; mov.u32 r, %t; ret; }"
    assert conclusions("call (%r2), f;" + STORE, before=before) == {"contradicted"}
    tests = kernel("call (%r2), f;" + STORE, before=before)
    assert tests[0].claims is not None
    assert tests[0].claims.remarks == ("%t may be read before it is written: its value is unknown then",)


def test_registers_of_128_bits() -> None:
    body = ".reg .b128 %q; mov.b128 {%rd4, %rd5}, %q; st.global.u64 [%rd1], %rd4;"
    with pytest.raises(PtxmmError, match="%q may be read before it is written, which is not supported for 128 bits"):
        kernel(body)


@pytest.mark.parametrize("use", ["", "mov.u32 %r1, s;"])
def test_what_the_launch_says_of_shared_memory_that_no_thread_accesses(use: str) -> None:
    body = f".shared .align 4 .b8 s[16]; {use} st.global.u32 [%rd0], 1;"
    (test,) = launched(body, {"g": '{ type = "u32", count = 1 }'}, "races = 'none'", others="s = { init = 0 }")
    assert set(test.objects) == {"g"}
