"""The special registers of a launched thread (PTX ISA 10): what each holds, from the launch and the thread's numbers.

Those whose value the launch does not decide (counters, which SM) have none here.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from types import MappingProxyType

from ptxmm.errors import Span
from ptxmm.formats.modules.evaluate import Half
from ptxmm.formats.modules.grids import Dimensions, Grid
from ptxmm.formats.modules.objects import Object
from ptxmm.program.placement import WARP_SIZE
from ptxmm.ptx import syntax
from ptxmm.ptx.ops import Sym, Type

_U32, _U64, _PRED = Type("u", 32), Type("u", 64), Type("pred", 1)
_VECTORS = (
    "tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid",
)  # fmt: skip
_WORDS = (
    "laneid", "warpid", "nwarpid", "smid", "nsmid", "cluster_ctarank", "cluster_nctarank", "lanemask_eq",
    "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt", "clock", "clock_hi", "globaltimer_lo",
    "globaltimer_hi", "reserved_smem_offset_begin", "reserved_smem_offset_end", "reserved_smem_offset_cap",
    "reserved_smem_offset_0", "reserved_smem_offset_1", "total_smem_size", "aggr_smem_size", "dynamic_smem_size",
    "envreg1", "envreg2",
)  # fmt: skip
CLOCKS = ("clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi")
"""What tells the time, of which no model speaks: each is 0."""
_LONGS = ("gridid", "clock64", "globaltimer", "current_graph_exec")

SPECIAL: Mapping[str, Type] = MappingProxyType(
    {f"{name}.{axis}": _U32 for name in _VECTORS for axis in "xyz"}
    | dict.fromkeys(_WORDS, _U32)
    | dict.fromkeys(_LONGS, _U64)
    | {"is_explicit_cluster": _PRED, "WARP_SZ": _U32}
)
"""The special registers by name, with their types."""

WORKSPACE = "grid_workspace"
_WORKSPACE_HALVES = {"sreg envreg2": False, "sreg envreg1": True}


def special_name(name: syntax.Name) -> str | None:
    """The register of the flat list that stands for the special register ``name``; None if it is not one."""
    return f"sreg {name.name.replace('.', ' ')}" if name.name in SPECIAL else None


def _axes(number: int, size: Dimensions) -> Dimensions:
    """The place of the ``number``-th item of a box of ``size``, x fastest."""
    return number % size[0], number // size[0] % size[1], number // (size[0] * size[1])


def cluster_of(grid: Grid, cta: int) -> tuple[int, int]:
    """The number of the cluster that a CTA is in, and its rank there (PTX ISA 10.11 to 10.16)."""
    shape = grid.cluster or (1, 1, 1)
    place = _axes(cta, grid.grid)
    counts = tuple(g // c for g, c in zip(grid.grid, shape, strict=True))
    at = tuple(p // c for p, c in zip(place, shape, strict=True))
    inside = tuple(p % c for p, c in zip(place, shape, strict=True))
    cluster = at[0] + counts[0] * (at[1] + counts[1] * at[2])
    return cluster, inside[0] + shape[0] * (inside[1] + shape[1] * inside[2])


def workspace_halves(variables: dict[str, Object], used: Container[str]) -> dict[str, Half]:
    """``%envreg2`` and ``%envreg1`` of a cooperative launch, where a kernel uses them: the low and the high half of the
    address of what the threads of its grid synchronize with in ``grid.sync()``, a variable that ``variables`` gets.

    The driver decides what is in them (10.27); this is how the headers of CUDA read them.
    """
    if not any(name in used for name in _WORKSPACE_HALVES):
        return {}
    if WORKSPACE not in variables:
        variables[WORKSPACE] = Object(WORKSPACE, "global", _U32, 2, (), 8, Span(1, 1, 2))
    return {name: Half(Sym(WORKSPACE), high, False) for name, high in _WORKSPACE_HALVES.items()}


def special_values(grid: Grid, cta: int, thread: int) -> dict[str, int]:
    """What the special registers hold, by their names in the flat list.

    Those that the launch does not decide are left out: ``%warpid`` may change while a thread runs (PTX ISA 10.4),
    ``%nwarpid`` is a limit of the machine (10.5), and ``%total_smem_size`` is rounded up to its units (10.30).
    """
    shape = grid.cluster or (1, 1, 1)
    place = _axes(cta, grid.grid)
    lane = thread % WARP_SIZE
    rank = cluster_of(grid, cta)[1]
    vectors = {
        "tid": _axes(thread, grid.block),
        "ntid": grid.block,
        "ctaid": place,
        "nctaid": grid.grid,
        "clusterid": tuple(p // c for p, c in zip(place, shape, strict=True)),
        "nclusterid": tuple(g // c for g, c in zip(grid.grid, shape, strict=True)),
        "cluster_ctaid": tuple(p % c for p, c in zip(place, shape, strict=True)),
        "cluster_nctaid": shape,
    }
    found = {f"sreg {name} {axis}": vectors[name][i] for name in vectors for i, axis in enumerate("xyz")}
    words = {
        "laneid": lane,
        "cluster_ctarank": rank,
        "cluster_nctarank": shape[0] * shape[1] * shape[2],
        "lanemask_eq": 1 << lane,
        "lanemask_le": (2 << lane) - 1,
        "lanemask_lt": (1 << lane) - 1,
        "lanemask_ge": (1 << WARP_SIZE) - (1 << lane),
        "lanemask_gt": (1 << WARP_SIZE) - (2 << lane),
        "dynamic_smem_size": grid.shared,
        "is_explicit_cluster": int(grid.cluster is not None),
        "WARP_SZ": WARP_SIZE,
        **dict.fromkeys(CLOCKS, 0),
    }
    return found | {f"sreg {name}": value for name, value in words.items()}
