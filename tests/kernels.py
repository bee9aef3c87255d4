"""Kernels in PTX with their launch, from what matters in a test; what whole launches of those in files are answered."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ptxmm.engines.result import Limits
from ptxmm.formats import parse
from ptxmm.formats.modules.grids import Grid
from ptxmm.formats.modules.read import kernels
from ptxmm.program.test import Test
from ptxmm.whole.analysis import whole
from ptxmm.whole.result import WholeResult


def launched(
    body: str,
    objects: Mapping[str, str],
    check: str,
    *,
    launch: str = "",
    others: str = "",
    before: str = "",
    version: str = "8.5",
    target: str = "sm_90",
) -> list[Test]:
    """The tests of a kernel with ``body``, in which %rd0, %rd1, ... are the global addresses of its ``objects`` (each
    with its type, in TOML) and %p, %rs, %r, %rd, %f and %fd are registers. ``launch`` and ``check`` are rows of the
    specification, and so is ``others``, objects that are no arguments; ``before`` stands before the kernel."""
    declared = [f"{name} = {kind}" for name, kind in objects.items()]
    rows = [launch, f"args = {list(objects)}", "[objects]", *declared, others, "[check]", check]
    numbers = range(len(objects))
    loads = [f"ld.param.u64 %rd{i}, [p{i}]; cvta.to.global.u64 %rd{i}, %rd{i};" for i in numbers]
    text = [
        *(f"// ptxmm: {row}" for row in rows if row),
        f".version {version}\n.target {target}\n.address_size 64",
        *([before] if before else []),
        f".visible .entry k({', '.join(f'.param .u64 p{i}' for i in numbers)})",
        "{",
        ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<24>; .reg .b64 %rd<20>; .reg .f32 %f<4>; .reg .f64 %fd<4>;",
        *loads,
        body,
        "ret;\n}\n",
    ]
    return parse("\n".join(text), "k.ptx")


@cache
def answered(path: Path) -> list[tuple[list[Grid], WholeResult]]:
    """For each launch of a file its grids, and what is answered of all its threads: several tests look at that."""
    limits = Limits(deadline=time.monotonic() + 60)
    return [([kernel.grid for kernel in launch], whole(launch, str(path), limits)) for launch in kernels(path)]
