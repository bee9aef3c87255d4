"""Whole launches that change tensor maps: who may use them, and what is known of them (PTX ISA 9.7.10.25)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_whole_pipelines import compare, judged

HEAD = """\
.version 8.5
.target sm_90a
.address_size 64
// ptxmm: grid = {grid}
// ptxmm: block = {block}
// ptxmm: args = ["map", "other", "old", "new", "flag", "out"]
// ptxmm: [objects]
// ptxmm: old = {{ type = "u32", count = 8, init = 7, align = 16 }}
// ptxmm: new = {{ type = "u32", count = 8, init = 9, align = 16 }}
// ptxmm: map = {{ tensormap = {{ target = "old", type = "u32", box = [4], dims = [8] }} }}
// ptxmm: other = {{ tensormap = {{ target = "old", type = "u32", box = [4], dims = [8] }} }}
// ptxmm: flag = {{ type = "u32", count = 2 }}
// ptxmm: out = {{ type = "u32", count = 2 }}
// ptxmm: [check]
// ptxmm: {claim}
// ptxmm: races = "none"
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 e, .param .u64 f)
{{
    .reg .pred %p<9>;
    .reg .b32 %r<40>;
    .reg .b64 %d<40>;
    .shared .align 128 .b32 s[8];
    .shared .align 128 .b8 m[128];
    .shared .align 8 .b64 full;
    ld.param.u64 %d1, [a];
    ld.param.u64 %d2, [b];
    ld.param.u64 %d3, [c];
    ld.param.u64 %d4, [d];
    ld.param.u64 %d5, [e];
    ld.param.u64 %d6, [f];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, s;
    mov.u32 %r4, full;
    mov.u32 %r5, m;
    {body}
    ret;
}}
"""
COPY = (
    "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [{map}, {{{x}}}], [%r4]; "
)
LOAD = (
    "mbarrier.init.shared::cta.b64 [%r4], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 16; "
    + COPY.format(map="%d1", x=0)
    + "W0: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0; @!%p2 bra W0; "
)
REPLACE = "tensormap.replace.tile.global_address.global.b1024.b64 [%d1], {to}; "
RELEASE, ACQUIRE = (
    "fence.proxy.tensormap::generic.release.gpu; ",
    "fence.proxy.tensormap::generic.acquire.gpu [{}], 128; ",
)
HANDED = {
    "bar": ("barrier.sync 0; ", "barrier.sync 0; "),
    "flag": (
        "st.release.gpu.global.u32 [%d5], 1; ",
        "F0: ld.acquire.gpu.global.u32 %r9, [%d5]; setp.eq.u32 %p1, %r9, 0; @%p1 bra F0; ",
    ),
    "relaxed": (
        "st.relaxed.gpu.global.u32 [%d5], 1; ",
        "F0: ld.relaxed.gpu.global.u32 %r9, [%d5]; setp.eq.u32 %p1, %r9, 0; @%p1 bra F0; ",
    ),
}


def text(body: str, grid: int = 1, block: int = 1, claim: str = "") -> str:
    return HEAD.format(grid=grid, block=block, claim=claim, body=body.replace("; ", ";\n    ").strip())


def changed(handed: str, release: str, acquire: str, again: str, ctas: int) -> str:
    """A thread changes the map that another one copies by; ``again``: whether it changes it once more, when the other
    one says that it is done or at the same time."""
    give, take = HANDED[handed]
    first = REPLACE.format(to="%d4") + release + give
    second = take + acquire + LOAD
    if again == "after":
        second += "st.release.gpu.global.u32 [%d5+4], 1; "
        first += "F1: ld.acquire.gpu.global.u32 %r10, [%d5+4]; setp.eq.u32 %p3, %r10, 0; @%p3 bra F1; "
    if again:
        first += REPLACE.format(to="%d3")
    who = "%r2" if ctas > 1 else "%r1"
    body = f"setp.ne.u32 %p8, {who}, 0; @%p8 bra OTHER; {first}bra END; OTHER: {second}END: "
    return text(body, grid=ctas, block=3 - ctas)


@pytest.mark.parametrize("acquire", ["", ACQUIRE.format("%d1"), ACQUIRE.format("%d2")])
@pytest.mark.parametrize("release", ["", RELEASE])
@pytest.mark.parametrize(("handed", "ctas"), [("bar", 1), ("flag", 1), ("flag", 2)])
def test_as_all_executions_say(handed: str, ctas: int, release: str, acquire: str, tmp_path: Path) -> None:
    for again in ("", "after", "too early"):
        kernel = changed(handed, release, acquire, again, ctas)
        right = bool(release) and "%d1" in acquire and again != "too early"
        assert judged(tmp_path / "k.ptx", kernel).answer == ("race-free" if right else "race")
        assert compare(tmp_path / "k.ptx", kernel, 20)


def test_fences_of_the_proxy_that_synchronize_by_themselves(tmp_path: Path) -> None:
    """Behind a release fence a relaxed flag is enough for the tensor map (9.7.14.4), which is not followed."""
    kernel = changed("relaxed", RELEASE, ACQUIRE.format("%d1"), "", 2)
    assert judged(tmp_path / "k.ptx", kernel).answer == "undecided"
    assert judged(tmp_path / "k.ptx", changed("relaxed", "", ACQUIRE.format("%d1"), "", 2)).answer == "race"
    assert judged(tmp_path / "k.ptx", changed("relaxed", RELEASE, "", "", 2)).answer == "race"


PIECES = "".join(
    f"ld.global.v2.u64 {{%d{10 + 2 * i}, %d{11 + 2 * i}}}, [%d1+{16 * i}]; "
    f"st.shared.v2.u64 [%r5+{16 * i}], {{%d{10 + 2 * i}, %d{11 + 2 * i}}}; "
    for i in range(8)
)
FIRST = "setp.ne.u32 %p7, %r1, 0; "
LANES = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d2], [%r5], 128; "
CHANGED = "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r5], %d4; "
MEET = "bar.warp.sync -1; "
USED = LOAD.replace("[%d1, ", "[%d2, ") + "ld.shared.u32 %r11, [%r3]; st.global.u32 [%d6], %r11; "
SEEN = ACQUIRE.format("%d2")
GROUPED = FIRST + "@%p7 bra A; " + PIECES + CHANGED + "A: " + MEET + LANES + MEET + "@%p7 bra B; " + SEEN


def grouped(body: str, assume: str = "") -> str:
    found = text(body + USED + "B: ", block=32, claim="condition = 'forall (out[0] == 9)'")
    return found.replace("// ptxmm: [objects]", f"// ptxmm: assume = [{assume}]\n// ptxmm: [objects]", 1)


def test_a_map_that_a_warp_copies(tmp_path: Path) -> None:
    found = judged(tmp_path / "k.ptx", grouped(GROUPED))  # by the letter each lane writes the map (8.7.1)
    assert (found.answer, found.races[0].first.line) == ("race", found.races[0].second.line)
    for assumed in ('"same-value-races"', '"warp-copy"'):
        found = judged(tmp_path / "k.ptx", grouped(GROUPED, assumed))
        assert found.answer == "race-free", found.reason
        assert [claim.holds for claim in found.claims] == [True, True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A: " + MEET, "A: "),  # other lanes copy what is not changed yet
        (LANES + MEET, LANES),  # other lanes still copy
        (SEEN, ""),
        (SEEN, ACQUIRE.format("%d1")),
    ],
)
def test_a_map_that_a_warp_copies_wrongly(old: str, new: str, tmp_path: Path) -> None:
    assert GROUPED.count(old) == 1
    found = judged(tmp_path / "k.ptx", grouped(GROUPED.replace(old, new), '"same-value-races"'))
    assert found.answer == "race"


@pytest.mark.parametrize("assumed", ["", '"warp-copy"', '"same-value-races"'])
def test_two_warps_write_a_map(assumed: str, tmp_path: Path) -> None:
    body = "@%p7 bra A; " + PIECES + "A: barrier.sync 0; " + LANES
    found = text(FIRST + body, block=64).replace(
        "// ptxmm: [objects]", f"// ptxmm: assume = [{assumed}]\n// ptxmm: [objects]", 1
    )
    race = judged(tmp_path / "k.ptx", found).races[0]
    assert race.first.line == race.second.line
    assert not assumed or race.first.thread // 32 != race.second.thread // 32


def test_one_copy_of_a_warp(tmp_path: Path) -> None:
    """Deployed kernels do not meet behind the copy of a map; that has a name."""
    bare = GROUPED.replace(LANES + MEET, LANES)
    notes = [note.text for note in judged(tmp_path / "k.ptx", grouped(bare)).notes]
    assert any(note.startswith("rests on warp-copy: ") for note in notes)
    assert judged(tmp_path / "k.ptx", grouped(bare, '"warp-copy"')).answer == "race-free"
    wrong = bare.replace(SEEN, "")
    assert judged(tmp_path / "k.ptx", grouped(wrong, '"warp-copy"')).answer == "race"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("ld.shared.u32 %r20, [%r5+16]; setp.eq.u32 %p6, %r20, 3; @%p6 trap; ", "not worked out"),
        ("st.shared.u32 [%r5+16], %r1; ", "whose content is not known"),
        ("ld.shared.u32 %r20, [%r5+16]; add.u32 %r20, %r20, 1; st.shared.u32 [%r5+16], %r20; ", "content is not known"),
    ],
)
def test_what_is_in_a_map_is_nobodys_business(change: str, reason: str, tmp_path: Path) -> None:
    found = judged(tmp_path / "k.ptx", grouped(GROUPED.replace(CHANGED, change + CHANGED)))
    assert found.answer in ("undecided", "unsupported")
    assert reason in str(found.reason)


def test_a_field_that_means_nothing(tmp_path: Path) -> None:
    box = CHANGED.replace("global_address", "box_dim").replace("b1024.b64 [%r5], %d4", "b1024.b32 [%r5], 0, 300")
    found = judged(tmp_path / "k.ptx", grouped(GROUPED.replace(CHANGED, CHANGED + box)))
    assert (found.answer, "a box has 1 to 256 elements" in str(found.reason)) == ("undefined", True)
