"""An undefined litmus test names the instruction and the section, and shows an execution: `check` and `explain`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxmm.analysis.outcomes import check
from ptxmm.analysis.undefined import with_reasons
from ptxmm.engines.result import Limits
from tests.support import model_named, parse_one

Golden = Callable[[str, str], None]

MBARRIER = """PTX poll-first
{ .shared .b64 b @ cta 0; }
P0 @ cta 0 { mbarrier.init.shared::cta.b64 [b], 1; }
P1 @ cta 0 { mbarrier.test_wait.parity.shared::cta.b64 p, [b], 0; }
"""
WARP = """PTX half-a-warp
{ .global .u32 f = 0; }
P0 @ cta 0, warp 0 { ld.relaxed.gpu.global.u32 r0, [f]; setp.eq.u32 p, r0, 1; @p exit; bar.sync 0; }
P1 @ cta 0, warp 0 { bar.sync 0; }
P2 @ cta 1 { st.relaxed.gpu.global.u32 [f], 1; }
"""
AGAIN = """PTX initialised-again
{ .shared .align 8 .b64 b @ cta 0; }
P0 @ cta 0 {
  mbarrier.init.shared.b64 [b], 2;
  barrier.cta.sync 0;
  mbarrier.inval.shared.b64 [b];
  mbarrier.init.shared.b64 [b], 2;
}
P1 @ cta 0 {
  barrier.cta.sync 0;
  mbarrier.arrive.shared.b64 _, [b];
}
"""
GROUP = """PTX one-group
{ .global .align 16 .u32 g[4] = {1, 2, 3, 4}; .shared .align 16 .u32 s[4] = {0, 0, 0, 0}; }
P0 @ cta 0 {
  cp.async.ca.shared.global [s], [g], 4;
  cp.async.ca.shared.global [s], [g+4], 4;
  cp.async.commit_group;
}
"""
RACE = """PTX halves
{ .global .u32 x = 0; }
P0 @ cta 0 { st.global.u32 [x], 1; }
P1 @ cta 1 { st.global.u16 [x], 2; }
"""


@pytest.mark.parametrize(
    ("text", "told", "shown"),
    [
        (MBARRIER, "mbarrier-before-init: P1:4: mbarrier.test_wait", "9.7.14.15.9"),
        (AGAIN, "mbarrier-before-init: P1:11: mbarrier.arrive", "9.7.14.15.9"),
        (WARP, "P1 line 4: a barrier that all threads of a warp", "9.7.14.1"),
        (GROUP, "P0 line 6:", "9.7.10.24.4"),
        (RACE, "mixed-size-race: P0:3: st.global.u32 [x], 1 and P1:4: st.global.u16 [x], 2", "8.7.2"),
    ],
)
@pytest.mark.parametrize("engine", ["z3", "enumerate"])
def test_instruction_section_and_execution(text: str, told: str, shown: str, engine: str) -> None:
    test = parse_one(text + "exists (true)\n")
    model = model_named("ptx-8.5")
    result = with_reasons(test, model, check(test, model, engine=engine), Limits())
    assert result.status == "undefined"
    (note,) = [note.text for note in result.notes if note.kind == "undefined"]
    assert note.startswith(told) and shown in note
    assert result.execution is not None
    steps = {str(step.instruction) for thread in result.execution.threads for step in thread.steps}
    place = told.split()[0] if "line" in told else told.split()[1].partition(":")[0]
    assert any(step.startswith(place) for step in steps)


def test_a_step_before_the_misuse_has_its_values(golden: Golden, tmp_path: Path) -> None:
    (tmp_path / "half.litmus").write_text(WARP + "exists (f == 1)\n")
    for command in ("check", "explain"):
        ran = subprocess.run(
            [sys.executable, "-m", "ptxmm", command, "half.litmus"], cwd=tmp_path, capture_output=True, text=True
        )
        lines = [line for line in ran.stdout.splitlines() if not line.startswith(("Time", "1 checked"))]
        golden(f"{command}-undefined.txt", "\n".join(lines) + "\n")
