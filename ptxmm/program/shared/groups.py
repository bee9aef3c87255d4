"""What the asynchronous copies of one group may not do."""

from __future__ import annotations

from ptxmm.ptx.ops import Op


def same_group(other: Op) -> str:
    """Why a copy of a group is undefined whose destination ``other`` writes too."""
    line = other.source.span.line
    return f"cp.async to the location of another one of its group, in line {line} (PTX ISA 9.7.10.24.4)"
