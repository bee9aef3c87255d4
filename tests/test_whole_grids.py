"""Whole launches of several grids, and of threads of the host: the same answers as the engines that list all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import random_grids
from tests.test_whole import answer, compare


@pytest.mark.parametrize("host", [False, True])
def test_random_launches(host: bool, tmp_path: Path) -> None:
    assert sum(compare(tmp_path / "k.ptx", random_grids.launch(seed, host), 5) for seed in range(20)) >= 17


@pytest.mark.slow
@pytest.mark.parametrize("host", [False, True])
def test_many_random_launches(host: bool, tmp_path: Path, shift: int) -> None:
    seeds = range(10_000 + shift, 10_400 + shift)
    assert sum(compare(tmp_path / "k.ptx", random_grids.launch(seed, host), 20) for seed in seeds) >= 350


ENTRY = """\
.visible .entry k{number}(.param .u64 p)
{{
    .reg .pred %p<3>;
    .reg .b32 %r<5>;
    .reg .b64 %d<5>;
    .shared .align 16 .b8 s{number}[512];
    ld.param.u64 %d1, [p];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d2, %r1, 4;
    mov.u64 %d3, s{number};
    add.u64 %d4, %d1, %d2;
    add.u64 %d3, %d3, %d2;
{lines}
    ret;
}}
"""


def module(*grids: tuple[str, str]) -> str:
    """A module with a kernel for each grid: what the launch says of it, and what its threads do."""
    text = '.version 8.5\n.target sm_90\n.address_size 64\n// ptxmm: args = ["g"]\n'
    for number, (said, _) in enumerate(grids):
        text += f'// ptxmm: [[grids]]\n// ptxmm: kernel = "k{number}"\n'
        text += "".join(f"// ptxmm: {line}\n" for line in said.split("; "))
    text += '// ptxmm: [objects]\n// ptxmm: g = { type = "u32", count = 128 }\n'
    text += '// ptxmm: [check]\n// ptxmm: races = "none"\n'
    return text + "".join(
        ENTRY.format(number=number, lines="\n".join(f"    {line.strip()};" for line in lines.split("; ")))
        for number, (_, lines) in enumerate(grids)
    )


WRITES, READS = "st.global.u32 [%d4], 1", "ld.global.u32 %r2, [%d4]"
NONCOHERENT = "ld.global.nc.u32 %r2, [%d4]"
EARLY = 'after = "programmatic"'
WAITS = "griddepcontrol.wait"
TRIGGERS = "griddepcontrol.launch_dependents"
SPINS = "W: ld.acquire.gpu.global.u32 %r2, [%d1+4]; setp.eq.u32 %p1, %r2, 0; @%p1 bra W"
RINGS = "st.release.gpu.global.u32 [%d1+4], 1"
SHARED = "st.shared.u32 [%d3], 1; bar.sync 0; ld.shared.u32 %r2, [%d3+4]"
COUNTED = "barrier.sync 1, 64; " + WRITES
COPIES = (
    "setp.ne.u32 %p1, %r1, 0; st.shared.u32 [%d3], 1; fence.proxy.async; "
    "@!%p1 cp.async.bulk.global.shared::cta.bulk_group [%d1], [%d3], 16; cp.async.bulk.commit_group; "
    "cp.async.bulk.wait_group.read 0"
)
COPY = (  # of what shared memory has in the beginning, so without a proxy fence
    "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%d3], 16; cp.async.bulk.commit_group; "
    "cp.async.bulk.wait_group.read 0"
)
CASES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "CTAs of other sizes": ("race-free", [("block = 64", SHARED), ("block = 96", SHARED), ("block = 40", SHARED)]),
    "a count of threads": ("race-free", [("block = 64", COUNTED), ("block = 96; grid = 1", WRITES)]),
    "not enough threads": ("deadlock", [("block = 96; grid = 1", WRITES), ("block = 32", COUNTED)]),
    "not whole warps": ("unsupported", [("block = 64", COUNTED), ("block = 40", COUNTED)]),
    "two streams at once": ("race", [("gpu = 0", WRITES), ("gpu = 1", READS)]),
    "a copy in flight": ("race-free", [("block = 1", COPIES), ("block = 1", "red.global.add.u32 [%d1+4], 1")]),
    "through the proxies": ("race-free", [("block = 1", WRITES), ("block = 1", COPY)]),
    "not in one grid": ("race", [("block = 1", f"{WRITES}; {COPY}")]),
    "a copy beside": ("race", [("block = 1", COPIES), (EARLY, READS)]),
    "a copy waited for": ("race-free", [("block = 1", COPIES), (EARLY, f"{WAITS}; {READS}")]),
    "a chain of waits": (
        "race-free", [("block = 1", WRITES), (EARLY, WAITS), (EARLY, f"{WAITS}; {WRITES}")],
    ),
    "a grid between that does not wait": (
        "race", [("block = 1", WRITES), (EARLY, TRIGGERS), (EARLY, f"{WAITS}; {WRITES}")],
    ),
    "a grid between that ends before": (
        "race-free", [("block = 1", WRITES), (EARLY, TRIGGERS), ("block = 1", WRITES)],
    ),
    "a later grid of the stream": ("deadlock", [("block = 1", SPINS), ("block = 1", RINGS)]),
    "a later grid that is let begin": ("race-free", [("block = 1", f"{TRIGGERS}; {SPINS}"), (EARLY, RINGS)]),
    "a later grid that is not let begin": ("deadlock", [("block = 1", SPINS), (EARLY, RINGS)]),
    "a later grid that some let begin": (
        "undecided",
        [("block = 2", f"setp.eq.u32 %p2, %r1, 0; @%p2 {TRIGGERS}; {SPINS}"), (EARLY, RINGS)],
    ),
    "it waits for the end of one that waits": (
        "deadlock", [("block = 1", f"{TRIGGERS}; {SPINS}"), (EARLY, f"{WAITS}; {RINGS}")],
    ),
    "a non-coherent load of a grid before": ("race-free", [("block = 4", WRITES), ("block = 4", NONCOHERENT)]),
    "and of its own grid": ("undefined", [("block = 4", f"{WRITES}; {NONCOHERENT}")]),
    "and of a grid beside": ("undecided", [("block = 4", WRITES), (f"{EARLY}; block = 4", f"{WAITS}; {NONCOHERENT}")]),
    "no shared memory of another kernel": (
        "outside", [("block = 1", "ld.shared.u32 %r2, [%d3+2048]"), ("block = 1", SHARED.replace("+4", ""))],
    ),
}  # fmt: skip
"""What is answered of launches."""


@pytest.mark.parametrize("name", CASES)
def test_launches(name: str, tmp_path: Path) -> None:
    expected, grids = CASES[name]
    assert answer(tmp_path / "k.ptx", module(*grids)).answer == expected
