"""What is told of a kernel that breaks a claim: first what is missing, each thing once, and nothing dull."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from ptxmm.cli.app import run
from tests.support import ROOT

LOCAL = """// ptxmm: grid = 2
// ptxmm: args = ["data", "flag", "given", "out"]
// ptxmm: [objects]
// ptxmm: data = "u32"
// ptxmm: flag = "u32"
// ptxmm: given = "u32"
// ptxmm: out = "u32"
// ptxmm: [check]
// ptxmm: condition = "forall (out == 0)"
// ptxmm: races = "none"
.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flag, .param .u64 given, .param .u64 out)
{
  .local .align 4 .b8 depot[8];
  .reg .u64 %d, %f, %g, %o;
  .reg .u32 %t, %v, %w;
  .reg .pred %p;
  ld.param.u64 %d, [data];
  ld.param.u64 %f, [flag];
  ld.param.u64 %g, [given];
  ld.param.u64 %o, [out];
  mov.u32 %t, %ctaid.x;
  setp.ne.u32 %p, %t, 0;
  @%p bra READER;
  st.local.u32 [depot], 1;
  ld.local.u32 %v, [depot];
  st.global.u32 [%d], %v;
  st.relaxed.gpu.global.u32 [%f], 1;
  ret;
READER:
  ld.acquire.gpu.global.u32 %v, [%f];
  st.local.u32 [depot+4], %v;
  ld.global.u32 %w, [%g];
  ld.global.u32 %w, [%d];
  ld.local.u32 %v, [depot+4];
  setp.gt.u32 %p, %v, %w;
  selp.u32 %w, 1, 0, %p;
  st.global.u32 [%o], %w;
  ret;
}
"""


class Ran(NamedTuple):
    code: int
    out: list[str]


@pytest.fixture
def checked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Ran]:
    """``ptxmm check FILE``."""

    def command(file: str) -> Ran:
        monkeypatch.setattr("sys.argv", ["ptxmm", "check", file, "--jobs", "1"])
        with pytest.raises(SystemExit) as left:
            run()
        return Ran(int(left.value.code or 0), capsys.readouterr().out.splitlines())

    return command


@pytest.fixture
def local(tmp_path_factory: pytest.TempPathFactory, checked: Callable[[str], Ran]) -> list[str]:
    """What is told of ``LOCAL``."""
    path = tmp_path_factory.mktemp("kernel") / "local.ptx"
    path.write_text(LOCAL, encoding="utf-8")
    code, lines = checked(str(path))
    assert code == 1
    return lines


def test_it_begins_with_what_is_missing(local: list[str]) -> None:
    assert local[1].strip().startswith("missing between P0:30 and P1:33: synchronization (8.9.4 (4)); release pattern")


def test_local_copies_and_what_nothing_writes_are_folded(local: list[str]) -> None:
    whole = "\n".join(local)
    assert ".local." not in whole and "depot" not in whole and "given" not in whole
    assert "(4 instructions that only access .local memory or read what nothing writes: left out)" in whole
    assert "P0:29: st.global.u32 [%d], %v" in whole and "reads data = 0 from its initial value" in whole


def test_notes_are_told_once(checked: Callable[[str], Ran]) -> None:
    code, lines = checked(str(ROOT / "tests" / "cuda" / "block_histogram.wrong_fence.ptx"))
    assert code == 1 and sum(line.startswith("FAIL") for line in lines) == 2
    assert sum("2 of 64 threads run" in line for line in lines) == 1
    assert lines[1].strip().startswith("missing between") and "causality order (8.9.5)" in lines[1]
