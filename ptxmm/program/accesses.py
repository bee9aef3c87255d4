"""Checks of accesses that name their variable: bounds, alignment, state space, proxy, CTA (PTX ISA 5.1, 9.7.8)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ptxmm.errors import PtxmmError
from ptxmm.program.layout import error
from ptxmm.program.test import MemoryObject, Placement, Test
from ptxmm.ptx.ops import Atomic, Load, Op, Store, Sym

_ALIAS_HINTS = {
    "surface": "a surface is read by suld and written by sust",
    "texture": "a texture is read by tld",
    "constant": "a constant is read by cold",
}


def check_access(op: Op, placement: Placement, objects: Mapping[str, MemoryObject]) -> None:
    """Refuse what can't be meant of a static access of a thread at ``placement``. Raises ``PtxmmError``."""
    if not isinstance(op, Load | Store | Atomic) or not isinstance(op.address.base, Sym):
        return
    item = objects[op.address.base.name]
    span = op.source.span
    offset = op.address.base.offset + op.address.offset
    if op.proxy != item.proxy:
        if item.proxy != "generic":
            message = f"{item.name} is a {item.proxy} alias, so this instruction can't access it"
            raise error(message, span, kind="type", hint=_ALIAS_HINTS[item.proxy])
        message = f"{item.name} is no {op.proxy} alias, so this instruction can't access it"
        raise error(message, span, kind="type", hint=f"declare one: `s @ {op.proxy} aliases {item.name};`")
    if not 0 <= offset <= item.size - op.type.bytes:
        message = f"the access at {item.name}{offset:+d} of {op.type.bytes} bytes is outside {item.name}"
        raise error(message, span, kind="type", hint=_size_hint(op, item))
    if offset % op.type.bytes:
        message = f"the access at {item.name}{offset:+d} is not aligned to its {op.type.bytes} bytes"
        raise error(message, span, kind="type", hint="PTX accesses are aligned to their size")
    if item.space == "const" and not isinstance(op, Load):
        raise error(f"{item.name} is in .const, which is read-only", span, kind="type")
    space = None if op.space is None else op.space.partition("::")[0]
    if space is not None and space != item.space:
        message = f"{item.name} is in .{item.space}, but the access is to .{op.space}"
        raise error(message, span, kind="type", hint=f"write .{item.space}")
    if item.owner is not None:
        _check_owner(op, item, placement)


def _size_hint(op: Op, item: MemoryObject) -> str:
    hint = f"{item.name} has {item.size} bytes"
    if item.size < 8 and not re.search(r"\.[bsuf][0-9]", op.source.text):
        return f"{hint}; the access has no type, which stands for 64 bits: write `.{item.type.name}`"
    return hint


def _check_owner(op: Load | Store | Atomic, item: MemoryObject, placement: Placement) -> None:
    """A .shared variable of another CTA is within reach as .shared::cluster in the same cluster only."""
    path = (placement.gpu, placement.grid, placement.cluster, placement.cta)
    if path == item.owner and not placement.host:
        return
    span = op.source.span
    same_cluster = placement.cluster is not None and not placement.host and path[:3] == (item.owner or ())[:3]
    if not same_cluster:
        message = f"{item.name} is .shared memory of another CTA"
        raise error(message, span, kind="type", hint="only CTAs of one cluster share it: `cluster 0, cta 0`")
    if op.space != "shared::cluster":
        message = f"{item.name} is .shared memory of another CTA of the cluster"
        raise error(message, span, kind="type", hint="write .shared::cluster")


def partial_overlap(test: Test, key: str, one: Op, other: Op) -> PtxmmError:
    """The refusal of two accesses that have bytes of the object ``key`` in common without being of the same ones."""
    first, second = sorted((one.source.span, other.source.span), key=lambda span: (span.line, span.column))
    lines = f"line {first.line}" if first.line == second.line else f"lines {first.line} and {second.line}"
    return PtxmmError(
        f"accesses of {key} in {lines} overlap partially",
        kind="unsupported",
        line=second.line,
        column=second.column,
        width=max(1, second.end_column - second.column),
        hint="mixed-size accesses: give both the same width",
    ).place(test.file, test.text)
