"""32-bit addresses of .shared memory, as CUDA's inline assembly has them (PTX ISA 5.1.7, 6.4.1, 9.7.10.19, .22)."""

from __future__ import annotations

import re

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.cat import load
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse
from ptxmm.formats.writer import write
from ptxmm.program.shared.windows import MOST_VARIABLES
from tests.decided import observation

S = ".shared .align 16 .u32 s[4] @ cta 0, cluster 0 = {1, 2, 3, 4};"
G = ".global .align 16 .u32 g[4] = {5, 6, 7, 8};"
CVTA = "mov.u64 a, s; cvta.to.shared.u64 b, a; cvt.u32.u64 r, b;"


def file(declarations: str, condition: str, *threads: str) -> str:
    bodies = "\n".join(
        f"P{i} @ cta {i}, cluster 0 {{ {'' if i else '.reg .u32 z; '}{body} }}" for i, body in enumerate(threads)
    )
    return f"PTX case\n{{ {declarations} P0:z = 0; }}\n{bodies}\n{condition}\n"


@pytest.mark.parametrize(
    ("body", "condition"),
    [
        (f"{CVTA} ld.shared.u32 r0, [r+4];", "P0:r0 == 2"),
        ("mov.u32 r, s; ld.shared.u32 r0, [r+8];", "P0:r0 == 3"),
        ("mov.b32 r, s+8; ld.shared::cta.u32 r0, [r];", "P0:r0 == 3"),
        ("mov.u32 r, s; add.u32 r, r, 12; ld.shared::cluster.u32 r0, [r-4];", "P0:r0 == 3"),
        ("mov.u32 r, s; ld.shared.v2.u32 {r0, r1}, [r+8];", "P0:r0 == 3 /\\ P0:r1 == 4"),
        ("mov.u32 r, s; st.shared.u32 [r], r; ld.shared.u32 r0, [s];", "P0:r0 == &s"),
        ("mov.u32 r, s; atom.shared.add.u32 r0, [r], 6;", "P0:r0 == 1 /\\ s[0] == 7"),
        ("mov.u32 r, s; red.shared.add.u32 [r+4], 6;", "s[1] == 8"),
        ("mov.u32 r, s; cp.async.ca.shared.global [r], [g], 4; cp.async.wait_all; ld.shared.u32 r0, [r];",
         "P0:r0 == 5"),
        ("mov.u32 r, s; fence.proxy.async; cp.async.bulk.global.shared::cta.bulk_group [g], [r], 16;"
         " cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ld.global.u32 r0, [g+4];", "P0:r0 == 2"),
        # a shared address of 32 bits in 64, and back to a generic one
        ("mov.u32 r, s; cvt.u64.u32 b, r; ld.shared.u32 r0, [b+4];", "P0:r0 == 2"),
        ("mov.u32 r, s; cvt.u64.u32 b, r; cvta.shared.u64 a, b; ld.u32 r0, [a+4];", "P0:r0 == 2 /\\ P0:a == &s"),
        ("mov.u64 a, s; cvta.shared.u64 b, a; ld.u32 r0, [b+4];", "P0:r0 == 2"),
        # functions of addresses
        ("mov.u32 r, s; mapa.shared::cluster.u32 r1, r, 0; ld.shared::cluster.u32 r0, [r1];",
         "P0:r0 == 1 /\\ P0:r1 == &s"),
        ("mapa.shared::cluster.u32 r1, s, 0;", "P0:r1 == &s"),
        ("mov.u32 r, s; getctarank.shared::cluster.u32 r0, r;", "P0:r0 == 0"),
        # differences, and a null pointer
        ("mov.u32 r, s; mov.u32 r1, s+8; sub.u32 r0, r1, r;", "P0:r0 == 8"),
        ("cvta.shared.u64 a, s; setp.eq.u64 p, a, 0;", "P0:p == 0"),
    ],
)  # fmt: skip
def test_one_thread(body: str, condition: str) -> None:
    assert observation(file(S + G, f"exists ({condition})", body)) == "always"


@pytest.mark.parametrize(
    "body",
    [
        "mov.u32 r, s; cvt.u64.u32 b, r; ld.u32 r0, [b];",  # an address in the window is no generic address
        "mov.u32 r, s; cvt.u64.u32 b, r; ld.global.u32 r0, [b];",
        "mov.u32 r, s; add.u32 r, r, 16; ld.shared.u32 r0, [r];",
        "mov.u32 r, s; ld.shared.u32 r0, [r+2];",
        "mov.u32 r, 0; ld.shared.u32 r0, [r];",
        "mov.u32 r, s; cvt.u64.u32 b, r; mapa.u64 a, b, 0; ld.u32 r0, [a];",
    ],
)
def test_undefined(body: str) -> None:
    assert observation(file(S + G, "exists (P0:r0 == 0)", body)) == "undefined"


def test_mbarriers() -> None:
    """A bulk copy with its destination and its mbarrier in registers of 32 bits, initialised and waited for there."""
    body = (
        "mov.u32 r, s; mov.u32 m, b; mbarrier.init.shared::cta.b64 [m], 1; fence.mbarrier_init.release.cluster; "
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [m], 16; fence.proxy.async; "
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r], [g], 16, [m]; "
        "mbarrier.try_wait.parity.shared::cta.b64 p, [m], 0; ld.shared.u32 r0, [r+4];"
    )
    text = file(f"{S} {G} .shared .b64 b @ cta 0, cluster 0 = 0;", "filter (P0:p == 1) exists (P0:r0 == 6)", body)
    assert observation(text) == "always"


def test_which_variable_is_an_mbarrier() -> None:
    """Data of 64-bit elements that is reached by registers only is no mbarrier, although one is found so, too."""
    declared = (
        ".shared .align 16 .u64 s[2] @ cta 0, cluster 0 = {0, 0}; .global .align 16 .u64 g[2] = {5, 6}; "
        ".shared .b64 b @ cta 0, cluster 0 = mbarrier(0, 16);"
    )
    body = (
        "mov.u32 r, s; mov.u32 m, b; "
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r], [g], 16, [m];"
    )
    assert observation(file(declared, "exists (s[0] == 5 /\\ b == 1)", body)) == "always"


def test_remote_stores() -> None:
    declared = ".shared .u32 d @ cta 1, cluster 0 = 0; .shared .b64 b @ cta 1, cluster 0 = mbarrier(0, 4);"
    sender = "mov.u32 r, d; mov.u32 m, b; st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [r], 7, [m];"
    wait = "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [m], 0;"
    receiver = f"mov.u32 m, b; {wait} ld.shared.u32 r0, [d];"
    assert observation(file(declared, "filter (P1:p == 1) exists (P1:r0 == 7)", sender, receiver)) == "always"


def test_a_pointer_that_is_passed_on() -> None:
    """The address of a variable goes to another thread through memory of 32 bits."""
    declared = S + ".global .u32 q = 0; .shared .u32 t @ cta 1, cluster 0 = s+4;"
    giver = "mapa.shared::cluster.u32 r, s, 0; add.u32 r, r, 8; st.release.cluster.global.u32 [q], r;"
    taker = (
        "ld.acquire.cluster.global.u32 r1, [q]; setp.eq.u32 p, r1, 0; @p bra over; "
        "ld.shared::cluster.u32 r0, [r1]; over: ld.shared.u32 r2, [t];"
    )
    text = file(declared, "exists (P1:r0 == 3 /\\ P1:r1 == &s+8 /\\ P1:r2 == &s+4)", giver, taker)
    assert observation(text) == "sometimes"
    (test,) = parse(text, "case.litmus")
    shown = check(test, load("ptx-8.5"), limits=Limits())
    values = {state.registers["P1:r1"] for state in shown.outcomes}
    assert values == {0, "&s+8"}


def test_integers_stay_integers() -> None:
    """Without 32-bit addresses no integer is shown as one."""
    (test,) = parse(file(S, "exists (P0:r0 == 0)", "mov.u32 r0, 0x1000000;"), "case.litmus")
    shown = check(test, load("ptx-8.5"), limits=Limits())
    assert [state.registers["P0:r0"] for state in shown.outcomes] == [0x1000000]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mov.u32 r, g;", "the address of g has 64 bits: only those in .shared memory fit in 32"),
        ("mov.u32 r, s; ld.u32 r0, [r];",
         "`r` is 32 bits wide since line 3, but only an address in .shared memory has 32 bits"),
        ("mov.u32 r, s; cp.async.ca.shared.global [r], [r], 4;",
         "`r` is 32 bits wide since line 3, but only an address in .shared memory has 32 bits"),
        ("mov.u32 r, s; st.shared.u64 [r], r;", "`r` is 32 bits wide since line 3, but this reads it as 64 bits"),
        ("mov.u16 h, s; ld.shared.u32 r0, [h];", "the address of `s` has 64 bits"),
    ],
)  # fmt: skip
def test_refused(body: str, message: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        parse(file(S + G, "exists (s[0] == 0)", body), "case.litmus")
    assert caught.value.message == message


def test_too_many_variables() -> None:
    many = " ".join(f".shared .u32 x{i} @ cta 0 = 0;" for i in range(MOST_VARIABLES + 1))
    with pytest.raises(PtxmmError) as caught:
        parse(file(S + many, "exists (s[0] == 0)", "mov.u32 r, s;"), "case.litmus")
    assert caught.value.kind == "unsupported"


def test_alignment_is_kept() -> None:
    declarations = ".shared .align 16 .u32 s[4] @ cta 0 = {0}; .global .align 64 .b8 t[64]; .global .v4 .u32 v;"
    (test,) = parse(f"PTX a\n{{ {declarations} }}\nP0 @ cta 0 {{ ld.shared.u32 r0, [s]; }}\n", "a.litmus")
    (again,) = parse(write(test), "b.litmus")
    assert {key: item.alignment for key, item in again.objects.items()} == {"s": 16, "t": 64, "v": 16}


@pytest.mark.parametrize(
    ("access", "beside"),
    [
        ("add.u64 d2, d1, 8; st.u32 [d2], 1;", ", right behind x)"),
        ("add.u64 d2, d1, 12; st.u32 [d2], 1;", ", 4 bytes behind x)"),
        ("add.u64 d2, d1, -4; st.u32 [d2], 1;", ", 4 bytes before x)"),
        ("add.u64 d2, d1, 0; st.v4.u32 [d2], {r0, r0, r0, r0};", ", beyond the end of x)"),
        ("add.u64 d2, d1, 4000000; st.u32 [d2], 1;", ")"),
    ],
)
@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_the_object_beside_an_access_is_named(access: str, beside: str, engine: str) -> None:
    head = "PTX t\n{ .global .align 16 .u32 x[2] = {0, 0}; .reg .u32 P0:r0 = 0; }\n"
    thread = "P0 @ cta 0 { mov.u64 d1, x; " + access + " }\n"
    (test,) = parse(head + thread + "exists (x[0] == 1)\n", "t.litmus")
    result = check(test, load("ptx-8.5"), engine=engine)
    assert result.status == "undefined"
    assert re.search(r"\(address 0x[0-9a-f]+" + re.escape(beside) + "$", result.notes[0].text)
