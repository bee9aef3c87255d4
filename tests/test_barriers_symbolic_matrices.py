"""Matrix instructions on the symbolic side."""

from __future__ import annotations

import pytest

from ptxmm import cat
from ptxmm.engines.result import Limits, Search
from ptxmm.engines.symbolic.solve import search
from ptxmm.errors import PtxmmError
from ptxmm.formats.litmus import parse
from tests.reference import everything

PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d0, d1, d2, d3}, {a0, a1, a2, a3}, %s, 0, 1, 1, 0"
BOTH = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {d0, d1, d2, d3}, %s, %s, 0, 1, 1, 0, 0"
REGISTERS = ".reg .f32 P0:d0; .reg .f32 P0:d1; .reg .f32 P0:d2; .reg .f32 P0:d3; .reg .b32 P0:a0; .reg .b32 P0:a1; \
.reg .b32 P0:a2; .reg .b32 P0:a3;"
DONE = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"


def solved(body: str, *others: str, at: str = "@ cta 0", unroll: int = 3) -> Search:
    """All final states; ``s`` and ``u`` are shared memory."""
    if "wgmma" in body:
        body = f"mov.u64 ds, s; mov.u64 du, u; {body}"
    more = "".join(f" P{i} {at} {{ {text} }}\n" for i, text in enumerate((body, *others)))
    text = f"""PTX t
{{ .shared .align 16 .u32 s[4] @ cta 0 = {{0, 0, 0, 0}}; .shared .align 16 .u32 u[8] @ cta 0 = {{0,0,0,0,0,0,0,0}};
  .global .u32 x = 0; {REGISTERS if "wgmma" in body else ""} }}
{more}"""
    test = parse(text, "test.litmus")[0]
    return search(test, cat.load("ptx-8.5"), everything(test), Limits(unroll=unroll))


def values(result: Search, *names: str) -> set[tuple[int, ...]]:
    keys = [(int(n[1 : n.index(":")]), n.partition(":")[2]) for n in names]
    assert result.exhausted and result.undefined is None
    return {tuple(f.state.registers[key] for key in keys) for f in result.found}


# ---- products --------------------------------------------------------------------------------------------------------


def product(before: str, after: str = DONE, what: str = PRODUCT % "ds") -> Search:
    return solved(f"st.shared.u32 [s], 7; {before} {what}; {after}")


def test_the_accumulator_shows_what_was_read() -> None:
    result = product("fence.proxy.async; wgmma.fence.sync.aligned;")
    assert values(result, "P0:d0", "P0:d3") == {(7, 7)} and not result.flags


def test_a_product_needs_the_proxy_fence() -> None:
    result = product("wgmma.fence.sync.aligned;")
    assert values(result, "P0:d0") == {(0,), (7,)} and result.flags == {"data-race"}


@pytest.mark.parametrize("space", ["", ".shared::cta"])
def test_a_proxy_fence_alone_issues_too(space: str) -> None:
    store = f"st.shared.u32 [s], 7; fence.proxy.async{space};"
    assert values(solved(f"wgmma.fence.sync.aligned; {store} {PRODUCT % 'ds'}; {DONE}"), "P0:d0") == {(7,)}


def test_a_proxy_fence_for_other_memory_does_not_help() -> None:
    assert values(product("fence.proxy.async.global; wgmma.fence.sync.aligned;"), "P0:d0") == {(0,), (7,)}


def test_what_comes_after_the_last_fence_does_not_order_a_product() -> None:
    fenced = f"wgmma.fence.sync.aligned; st.shared.u32 [s], 7; {PRODUCT % 'ds'}; {DONE}"
    result = solved(fenced)
    assert values(result, "P0:d0") == {(0,), (7,)}
    none = solved(f"wgmma.fence.sync.aligned; {PRODUCT % 'ds'}; {DONE}", "st.shared.u32 [s], 7;")
    assert values(none, "P0:d0") == {(0,), (7,)}


def test_both_matrices_in_shared_memory() -> None:
    before = "st.shared.u32 [u], 5; fence.proxy.async; wgmma.fence.sync.aligned;"
    result = product(before, what=BOTH % ("du", "ds"))
    assert values(result, "P0:d0") == {(7,)} and not result.flags  # the first bytes of B


@pytest.mark.parametrize(("wait", "raced"), [("0", False), ("1", True), (None, True)])
def test_a_matrix_is_read_until_its_group_is_waited_for(wait: str | None, raced: bool) -> None:
    waited = "" if wait is None else f"wgmma.wait_group.sync.aligned {wait};"
    after = f"wgmma.commit_group.sync.aligned; {waited} st.shared.u32 [s], 8;"
    result = product("fence.proxy.async; wgmma.fence.sync.aligned;", after)
    assert values(result, "P0:d0") == ({(7,), (8,)} if raced else {(7,)})
    assert result.flags == ({"data-race"} if raced else set())


def test_a_later_group_may_be_pending() -> None:
    fence = "fence.proxy.async; wgmma.fence.sync.aligned;"
    commit = "wgmma.commit_group.sync.aligned;"
    body = f"{fence} {PRODUCT % 'ds'}; {commit} {PRODUCT % 'du'}; {commit} wgmma.wait_group.sync.aligned 1; "
    assert solved(body + "st.shared.u32 [s], 8;").flags == set()
    assert solved(body + "st.shared.u32 [u], 8;").flags == {"data-race"}


def test_a_product_under_a_predicate() -> None:
    body = "ld.global.u32 r, [x]; setp.ne.u32 p, r, 0; fence.proxy.async; wgmma.fence.sync.aligned;"
    result = solved(f"mov.f32 d0, 0f3f800000; {body} @p {PRODUCT % 'ds'}; {DONE}", "st.global.u32 [x], 1;")
    assert values(result, "P0:r", "P0:d0") == {(0, 0x3F800000), (1, 0)}


def test_a_descriptor_in_a_register() -> None:
    body = "mov.u64 e, u; add.u64 e, e, {n}; st.shared.u32 [u+16], 3; fence.proxy.async; wgmma.fence.sync.aligned;"
    found = solved(f"{body.format(n=16)} {PRODUCT % 'e'}; {DONE}")
    assert values(found, "P0:d1") == {(3,)}
    assert "misaligned" in str(solved(f"{body.format(n=8)} {PRODUCT % 'e'}; {DONE}").undefined)
    assert "outside" in str(solved(f"{body.format(n=64)} {PRODUCT % 'e'}; {DONE}").undefined)


# ---- rows of matrices ------------------------------------------------------------------------------------------------

LOAD = "ldmatrix.sync.aligned.m8n8.x2{trans}.shared.b16 {{r0, r1}}, [s];"
STORE = "stmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 [s], {{v}};"


def test_a_row_is_read() -> None:
    stores = "st.shared.u32 [s], 0x20001; st.shared.u32 [s+4], 0x40003;"
    assert values(solved(stores + LOAD.format(trans="")), "P0:r0", "P0:r1") == {(0x20001, 0x20001)}
    assert values(solved(stores + LOAD.format(trans=".trans")), "P0:r0") == {(0x10001,)}


def test_a_row_is_written() -> None:
    plain = solved("mov.b32 v, 0x20001; " + STORE.format(trans=""))
    assert [f.state.memory["s", 3] for f in plain.found] == [0x20001]
    transposed = solved("mov.b32 v, 0x20001; " + STORE.format(trans=".trans"))
    assert [f.state.memory["s", 3] for f in transposed.found] == [0x10001]


def test_rows_are_weak_generic_accesses() -> None:
    barrier = "bar.sync 0;"
    store = "mov.b32 v, 9; " + STORE.format(trans="")
    assert values(solved(store + barrier, barrier + "ld.shared.u32 r, [s+8];"), "P1:r") == {(9,)}
    raced = solved(store, "ld.shared.u32 r, [s+8];")
    assert values(raced, "P1:r") == {(0,), (9,)} and raced.flags == {"data-race"}


@pytest.mark.parametrize(
    ("body", "at"),
    [
        (LOAD.format(trans=""), "@ warp 0, cta 0"),
        ("mov.b32 v, 9; " + STORE.format(trans=""), "@ warp 0, cta 0"),
        ("mov.b32 v, 9; stmatrix.sync.aligned.m8n8.x2.shared.b16 [s], {v, v};", "@ cta 0"),
    ],
)
def test_what_other_lanes_would_have_to_do_is_refused(body: str, at: str) -> None:
    with pytest.raises(PtxmmError) as caught:
        solved(body, at=at)
    assert caught.value.kind == "unsupported"
