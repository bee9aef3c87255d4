"""``ptxmm extract``: the litmus file of a kernel reads back, and its condition has the verdict that the kernel has."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from ptxmm.analysis.claims import limits_of
from ptxmm.analysis.outcomes import check
from ptxmm.analysis.result import Result
from ptxmm.cli.app import run
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.formats import parse, read
from ptxmm.formats.modules.extract import file_name, skeleton
from ptxmm.formats.writer import same, write
from ptxmm.program.shared.refusals import OPAQUE
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Wgmma
from tests.support import ROOT, model_named, parse_one

CUDA = ROOT / "tests" / "cuda"
FILES = sorted(CUDA.glob("*.ptx"))
SHARE = (
    "call_once.ptx",
    "chained_scan.wrong_relaxed_ready.ptx",
    "cluster_histogram.ptx",
    "cp_async_mbarrier.wrong_plain_arrive.ptx",
    "host_flag.ptx",
    "last_block.wrong_no_fence.ptx",
    "mp_fence_relaxed.ptx",
    "mp_fence_relaxed.wrong_no_producer_fence.ptx",
    "named_barrier.ptx",
    "spin_lock_cas.wrong_no_lock_fence.ptx",
    "st_async.wrong_expects_nothing.ptx",
    "tma_tensor_load.ptx",
)
BRANCHES = ("cuda_pipeline_shared",)
"""Their lanes come to ``activemask`` in different branches; so do those of their wrong versions."""
SECONDS = 60
_SHORT = re.compile(r"(?:r|rd|rs|rq|p|f|fd)[0-9]+")

WIDE = """PTX wide
{
  .global .align 16 .u32 g[4] = {0, 0, 0, 0};
  .shared .align 16 .u32 s[4] @ cta 0 = {0};
  .shared .b64 b @ cta 0 = mbarrier(0, 16);
}
P0 @ cta 0 {
  mov.b32 r0, 0;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [b];
  st.global.u32 [g], r0;
}
P1 @ cta 0 {
  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], 0;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [b];
}
exists (g[0] == 1)
"""


def _verdict(test: Test, limits: Limits) -> Result:
    limits = Limits(unroll=limits.unroll, deadline=time.monotonic() + SECONDS)
    return check(test, model_named("ptx-8.5"), limits=limits, enumerate_all=False)


def _worked_out(test: Test, limits: Limits) -> Result | None:
    """The verdict; None where the final states have results of functions that are not worked out."""
    try:
        return _verdict(test, limits)
    except PtxmmError as error:
        assert error.kind == "unsupported" and error.message.startswith(OPAQUE), error
        return None


def _said(test: Test) -> str | None:
    """The litmus file; None where it is refused: a product reads matrices in pieces, or lanes come to ``activemask``
    in different branches."""
    if any(isinstance(op, Wgmma) and op.matrices for thread in test.threads for op in thread.body):
        refused = "which bytes the matrices of a product have"
    elif Path(test.file).name.partition(".")[0] in BRANCHES:
        refused = "which lanes execute this `activemask` together"
    else:
        return skeleton(test)
    with pytest.raises(PtxmmError, match=refused):
        skeleton(test)
    return None


def _same_verdict(path: Path) -> None:
    for test in read(path):
        text = _said(test)
        if text is None:
            continue
        back = parse_one(text)
        assert write(back) == text
        limits = limits_of(test, Limits())
        one = _worked_out(test, limits)
        if one is not None and one.status == "timeout":
            pytest.skip(f"not decided in {SECONDS} s")
        other = _worked_out(back, limits)
        if one is None or other is None:
            assert one is other, "one is refused"
            continue
        if other.status == "timeout":
            pytest.skip(f"not decided in {SECONDS} s")
        if "shared-after-exit" in one.flags:  # a litmus test shows a part of a program: its threads do not exit
            assert one.status == "undefined" and "shared-after-exit" not in other.flags
            continue
        flags = other.flags
        if test.same_value is not None:  # which a litmus test can't say: its races of equal values are races
            flags = tuple(flag for flag in flags if flag != "data-race" or flag in one.flags)
        assert (one.holds, one.observation, one.status, one.flags) == (
            other.holds, other.observation, other.status, flags,
        )  # fmt: skip


@pytest.mark.parametrize("name", SHARE)
def test_the_verdict_stays(name: str) -> None:
    _same_verdict(CUDA / name)


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in FILES if p.name not in SHARE], ids=lambda p: p.stem)
def test_the_verdict_stays_for_all(path: Path) -> None:
    _same_verdict(path)


@pytest.mark.share(3)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_it_reads_back_with_short_names(path: Path) -> None:
    """Without a verdict: every kernel of the folder can be said as a litmus file, as it is and rewritten, but for those
    that say in a descriptor which bytes a product reads."""
    for test in read(path):
        text = _said(test)
        if text is None:
            continue
        back = parse_one(text)
        assert write(back) == text
        assert [t.placement for t in back.threads] == [t.placement for t in test.threads]
        for thread in back.threads:
            wrong = [name for name in thread.registers if thread.body and not _SHORT.fullmatch(name)]
            assert thread.name.startswith("H") or wrong == []
        columns = [row for row in text.split("\n") if row.startswith(" ") and row.endswith(" ;")]
        assert max(map(len, columns), default=0) <= 160


@pytest.mark.parametrize("name", ["mp_fence_relaxed.ptx", "spin_lock_cas.wrong_no_lock_fence.ptx"])
def test_the_final_states_stay(name: str) -> None:
    (test,) = read(CUDA / name)
    back = parse_one(skeleton(test))
    found = [
        {tuple(sorted(o.memory.items())) for o in check(t, model_named("ptx-8.5"), all_state=True).outcomes}
        for t in (test, back)
    ]
    assert found[0] == found[1]


def test_wide_columns_are_blocks() -> None:
    wide = parse_one(WIDE)
    text = write(wide)
    assert "P0 @ cta 0, gpu 0 {\n" in text and " | " not in text
    assert same(wide, parse_one(text))
    narrow = WIDE.replace("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [b];", "")
    assert " | " in write(parse_one(narrow))


# -- the command ---------------------------------------------------------------------------------------------------

_MODULE = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_x) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [k_x];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  add.s32 %r3, %r1, %r2;
  st.global.u32 [%rd2], %r3;
  ret;
}
"""
_LAUNCHES = """
args = ["x"]
grid = 2
objects.x = "u32"
check.condition = "exists (x == 1)"
[[launch]]
name = "one CTA of two"
threads = "cta 0"
[[launch]]
name = "both"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.ptx").write_text(_MODULE)
    (tmp_path / "k.toml").write_text(_LAUNCHES)
    (tmp_path / "one.toml").write_text(_LAUNCHES.partition("[[launch]]")[0])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _extract(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        run(["extract", *arguments])
    captured = capsys.readouterr()
    return ended.value.code if isinstance(ended.value.code, int) else 0, captured.out, captured.err


def test_one_launch_is_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _extract("k.ptx", "--launch", "one.toml", capsys=capsys)
    assert (code, err) == (0, "")
    assert out == (
        'PTX k\n"Extracted from k.ptx."\nSource=k.ptx\n{\n  .global .u32 x = 0;\n}\n'
        " P0 @ warp 0, cta 0, gpu 0 | P1 @ warp 0, cta 1, gpu 0 ;\n"
        " st.global.u32 [x], 0      | st.global.u32 [x], 1      ;\nexists (x == 1)\n"
    )


def test_one_launch_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _extract("k.ptx", "--launch", "one.toml", "-o", "out.litmus", capsys=capsys) == (0, "", "")
    (test,) = parse((folder / "out.litmus").read_text(), "out.litmus")
    assert [thread.name for thread in test.threads] == ["P0", "P1"]


def test_several_launches_need_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _extract("k.ptx", capsys=capsys) == (
        2, "", "k.ptx: error: the file has 2 launches\n  hint: give a folder to write them to: -o FOLDER\n",
    )  # fmt: skip
    (folder / "out").mkdir()
    assert _extract("k.ptx", "-o", "out", capsys=capsys) == (0, "", "")
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "k-k-both.litmus",
        "k-k-one-CTA-of-two.litmus",
    ]


def test_threads_are_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _extract("k.ptx", "--launch", "one.toml", "--threads", "cta 1", capsys=capsys)
    assert code == 0
    assert '"1 of 2 threads run: P0 is thread 0 of CTA 1"\n' in out
    assert " st.global.u32 [x], 1      ;\n" in out
    assert _extract("k.ptx", "--launch", "one.toml", "--threads", "cta 2", capsys=capsys) == (
        2, "", "k.ptx: error: --threads: there is no cta 2: they go from 0 to 1\n",
    )  # fmt: skip


def test_a_litmus_test_is_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wide.litmus").write_text(WIDE)
    assert _extract("wide.litmus", capsys=capsys) == (
        2,
        "",
        "wide.litmus: error: this is a litmus test already\n  hint: ptxmm convert writes it in another format\n",
    )


def test_names_of_files(folder: Path) -> None:
    first, second = read("k.ptx")
    assert file_name(first, ()) == "k-k-one-CTA-of-two.litmus"
    assert file_name(second, ["k-k-both.litmus", "k-k-both-2.litmus"]) == "k-k-both-3.litmus"


# A tile, two mbarriers behind it and a counter behind these, all in one block of dynamic shared memory.
BLOCK = """// ptxmm: block = 2
// ptxmm: shared = 64
// ptxmm: args = ["a", "o"]
// ptxmm: objects.a = { type = "u32", count = 4, init = [7, 8, 9, 10] }
// ptxmm: objects.o = { type = "u32", count = 2 }
// ptxmm: check.condition = 'forall (o[0] == 7 /\\ o[1] == 8)'
// ptxmm: check.races = "none"
.version 8.5
.target sm_90
.address_size 64
.extern .shared .align 128 .b8 block[];
.visible .entry k(.param .u64 from, .param .u64 to)
{
  .reg .pred %p<3>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, block;
  add.s32 %r3, %r2, 16;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra ready;
  mbarrier.init.shared::cta.b64 [%r3], 1;
  mbarrier.init.shared::cta.b64 [%r3+8], 1;
  fence.mbarrier_init.release.cluster;
ready:
  bar.sync 0;
  @%p1 bra wait;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 16, [%r3];
  st.shared.u32 [block+{counter}], 1;
  mbarrier.arrive.shared::cta.b64 _, [block+24];
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
  @!%p2 bra wait;
  shl.b32 %r4, %r1, 2;
  add.s32 %r5, %r2, %r4;
  ld.shared.u32 %r6, [%r5];
  cvt.u64.u32 %rd3, %r4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r6;
  ret;
}
"""


def test_mbarriers_in_a_block_of_shared_memory() -> None:
    (test,) = parse(BLOCK.replace("{counter}", "32"), "k.ptx")
    assert _verdict(test, Limits()).observation == "always"
    text = skeleton(test)
    declared = [line.strip() for line in text.splitlines() if ".shared" in line and "@" in line and "|" not in line]
    assert [re.sub(r" = .*", ";", line) for line in declared] == [
        ".shared .align 128 .b32 block[16] @ cta 0, gpu 0;",
        ".shared .align 8 .b64 block_16 @ cta 0, gpu 0;",
        ".shared .align 8 .b64 block_24 @ cta 0, gpu 0;",
    ]
    assert "mbarrier.init.shared::cta.b64 [block_24], 1" in text
    assert "[block], [a], 16, [block_16]" in text
    (back,) = parse(text, "k.litmus")
    assert _verdict(back, Limits()).observation == "always"


def test_data_in_an_mbarrier() -> None:
    with pytest.raises(PtxmmError) as caught:
        parse(BLOCK.replace("{counter}", "28"), "k.ptx")
    assert caught.value.kind in ("unsupported", "type")
    assert "mbarrier" in caught.value.message


def test_mbarriers_of_another_cta_in_a_block() -> None:
    (test,) = parse(
        """// ptxmm: grid = 2
// ptxmm: cluster = 2
// ptxmm: shared = 64
.version 8.5
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 block[];
.visible .entry k()
{
  .reg .b32 %r<5>;
  .reg .pred %p;
  mov.u32 %r1, block;
  add.s32 %r2, %r1, 8;
  mbarrier.init.shared::cta.b64 [%r2], 1;
  st.shared.u32 [%r1], 1;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mov.u32 %r3, %cluster_ctarank;
  xor.b32 %r3, %r3, 1;
  mapa.shared::cluster.u32 %r4, %r2, %r3;
  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
wait:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [%r2], 0;
  @!%p bra wait;
  ret;
}
""",
        "k.ptx",
    )
    text = skeleton(test)
    assert re.search(r"mapa\.shared::cluster\.u32 \w+, block_8, 1", text)
    assert "mbarrier.init.shared::cta.b64 [block_8], 1" in text
    result = _verdict(test, Limits())
    assert (result.status, result.flags) == ("complete", ())
