"""Checks of accesses that name their variable: bounds, alignment, state space, proxy, CTA (PTX ISA 5.1, 9.7.10)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ptxmm.program.naming import check_window, error
from ptxmm.program.shared.legality import refusal
from ptxmm.program.shared.mbarriers import MBARRIER_BYTES, mbarriers
from ptxmm.program.shared.windows import takes_narrow_address
from ptxmm.program.symbols import symbols
from ptxmm.program.test import MemoryObject, Placement, Thread
from ptxmm.ptx import ops
from ptxmm.ptx.spelling import refuse

_TENSORMAP_SPACES = ("global", "const", "param")
_DECLARED = "name a variable: `.tmem .b32 t[4] @ cta 0;` and [t], [t+1]; of a kernel, ask `ptxmm check --whole`"
_READ_ONLY = ("const", "param")
_DEVICE_ONLY = tuple(kind for family in ops.FAMILIES.values() for kind in family)
_ALIAS_HINTS = {
    "surface": "a surface is read by suld and written by sust",
    "texture": "a texture is read by tld",
    "constant": "a constant is read by cold",
}


Range = tuple[str, int, int]
"""Bytes of an object: its key, the offset of the first, how many."""


def overlap(one: Range, other: Range) -> bool:
    """Whether two ranges have a byte in common."""
    return one[0] == other[0] and one[1] < other[1] + other[2] and other[1] < one[1] + one[2]


def touches(op: ops.Op, objects: Mapping[str, MemoryObject]) -> Iterator[ops.Touch]:
    """The address operands of ``op``; ``objects`` gives the box of a tensor map that is named."""
    found = ops.touched(op)
    if not isinstance(op, ops.BulkCopy) or op.tensormap is None:
        yield from found
        return
    base = op.tensormap.base
    tensor = objects[base.name].tensormap if isinstance(base, ops.Sym) else None
    size = tensor.size if tensor is not None and tensor.fixed else None
    yield from (replace(touch, size=size) if touch.is_data else touch for touch in found)


def check_host(op: ops.Op, placement: Placement) -> None:
    """Refuse what only threads of a grid can do in a thread of the host (8.5: the scope ``.sys`` contains these).
    Raises ``PtxmmError``."""
    if placement.host and isinstance(op, _DEVICE_ONLY):
        message = f"`{op.source.text.partition(' ')[0]}` in a host thread"
        hint = "a host thread takes part in memory accesses and fences only"
        raise error(message, op.source.span, kind="type", hint=hint)


def check_access(op: ops.Op, placement: Placement, objects: Mapping[str, MemoryObject]) -> None:
    """Refuse what can't be meant of the operands of ``op``, of a thread at ``placement``, that name a variable.

    Raises ``PtxmmError`` (kind ``type``).
    """
    if not isinstance(op, ops.Load | ops.Store | ops.Atomic):
        for name in symbols(op):
            _check_reach(op, objects[name], placement)
    _check_whole(op)
    _check_tensor_memory(op, placement, objects)
    if takes_narrow_address(op):
        for name in symbols(op):
            check_window(objects[name], op.source.span)
    owners: set[object] = set()
    for touch in touches(op, objects):
        base = touch.address.base
        if not isinstance(base, ops.Sym):
            continue
        item = objects[base.name]
        _check_proxy(op, item)
        _check_place(op, touch, item, base.offset + touch.address.offset)
        _check_space(op, touch, item)
        if item.owner is not None:
            _check_owner(op, touch, item, placement)
        if touch.role == "mbarrier" and item.space == "shared" and item.type.bytes != MBARRIER_BYTES:
            message = f"an mbarrier has the type .b64, but {item.name} is .{item.type.name}"
            raise error(message, op.source.span, kind="type", hint=f"declare it `.shared .b64 {item.name}`")
        if touch.rule.away and item.owner == placement.path:
            message = f"{item.name} is in the CTA of this thread"
            hint = "the destination is in another CTA of the cluster here, and the mbarrier of st.async with it"
            raise error(message, op.source.span, kind="type", hint=hint)
        refused = refusal(touch.rule, placement, None, item)
        if refused is not None:
            raise error(refused, op.source.span, kind="type")
        if isinstance(op, ops.AsyncStore):
            owners.add(item.owner)
    if len(owners) > 1:
        message = "the destination and the mbarrier are in different CTAs"
        raise error(message, op.source.span, kind="type", hint="they must be in one CTA of the cluster (9.7.10.12)")


def _check_whole(op: ops.Op) -> None:
    """Refuse what is followed in whole launches only: tensor memory that is allocated, its addresses in registers."""
    name = ".".join(op.source.text.split()[0].rstrip(";").split(".")[:2])
    hint: str | None = _DECLARED
    if isinstance(op, ops.WholeOnly):
        message = f"`{name}` is not supported yet"
    elif isinstance(op, ops.TensorCommit) and op.mask is not None:
        message, hint = f"`{name}` with `.multicast::cluster` is not supported yet", None
    elif isinstance(op, ops.TensorProduct) and (op.disabled or op.scale is not None):
        message, hint = "`tcgen05.mma` with more operands is not supported yet", None
    elif any(t.space == "tmem" and not isinstance(t.address.base, ops.Sym) for t in ops.touched(op)):
        message = "an address of tensor memory in a register is not supported yet"
    else:
        return
    raise error(message, op.source.span, kind="unsupported", hint=hint)


def _check_tensor_memory(op: ops.Op, placement: Placement, objects: Mapping[str, MemoryObject]) -> None:
    """Tensor memory is accessed by tcgen05 instructions of its CTA, by name, and by no others."""
    bases = [touch.address.base for touch in touches(op, objects) if touch.space == "tmem"]
    inside = [base.name for base in bases if isinstance(base, ops.Sym)]
    for name in symbols(op):
        item = objects[name]
        if item.space != "tmem":
            continue
        if name not in inside:
            message = f"{item.name} is tensor memory, which only tcgen05 instructions access"
            raise error(message, op.source.span, kind="type")
        inside.remove(name)
        if item.type.bytes != ops.COLUMN_BYTES:
            message = f"the columns of tensor memory have 32 bits, but {item.name} is .{item.type.name}"
            raise error(message, op.source.span, kind="type", hint=f"declare it `.tmem .b32 {item.name}[4]`")
        if item.owner != placement.path:
            message = f"{item.name} is tensor memory of another CTA"
            raise error(message, op.source.span, kind="type", hint="a thread accesses that of its own CTA")


def check_mbarriers(threads: Sequence[Thread], objects: Mapping[str, MemoryObject]) -> None:
    """Refuse other accesses that name an mbarrier: its content is opaque, and its memory is of no other use before
    ``mbarrier.inval`` (9.7.14.15.3), after which it is not supported. Raises ``PtxmmError`` (kind ``unsupported``)."""
    found = mbarriers(threads, objects)
    if not found:
        return
    for thread in threads:
        for op in thread.body:
            for touch in touches(op, objects):
                base = touch.address.base
                if touch.role != "mbarrier" and isinstance(base, ops.Sym) and base.name in found:
                    item = objects[base.name]
                    message = f"{item.name} is an mbarrier, so this instruction can't access it"
                    hint = "its memory can't be used for anything else, not even after mbarrier.inval"
                    raise refuse(op, message, hint)


def _check_proxy(op: ops.Op, item: MemoryObject) -> None:
    """A proxy alias is accessed by the instructions of its proxy, and by no others."""
    proxy = getattr(op, "proxy", "generic")
    if proxy == item.proxy:
        return
    if item.proxy != "generic":
        message = f"{item.name} is a {item.proxy} alias, so this instruction can't access it"
        raise error(message, op.source.span, kind="type", hint=_ALIAS_HINTS[item.proxy])
    message = f"{item.name} is no {proxy} alias, so this instruction can't access it"
    raise error(message, op.source.span, kind="type", hint=f"declare one: `s @ {proxy} aliases {item.name};`")


def _check_place(op: ops.Op, touch: ops.Touch, item: MemoryObject, offset: int) -> None:
    """The bytes lie in the variable and at a multiple of the alignment."""
    span = op.source.span
    size = "?" if touch.size is None else touch.size
    if not 0 <= offset <= item.size - (touch.size or 1):
        message = f"the {touch.what} at {item.name}{offset:+d} of {size} bytes is outside {item.name}"
        raise error(message, span, kind="type", hint=_size_hint(op, item))
    if offset % touch.alignment:
        if touch.alignment == touch.size:
            message = f"the {touch.what} at {item.name}{offset:+d} is not aligned to its {touch.size} bytes"
            hint = "PTX accesses are aligned to their size"
        else:
            message = f"the {touch.what} at {item.name}{offset:+d} is not aligned to {touch.alignment} bytes"
            hint = None
        raise error(message, span, kind="type", hint=hint)
    if item.space in _READ_ONLY and touch.writes:
        raise error(f"{item.name} is in .{item.space}, which is read-only", span, kind="type")


def _check_space(op: ops.Op, touch: ops.Touch, item: MemoryObject) -> None:
    """The variable is in the state space of the operand."""
    span = op.source.span
    if touch.role == "tensor map" and item.space not in _TENSORMAP_SPACES:
        message = f"a tensor map is in .global, .const or .param memory, but {item.name} is in .{item.space}"
        raise error(message, span, kind="type")
    space = None if touch.space is None else touch.space.partition("::")[0]
    if space is None or space == item.space:
        return
    if touch.what == "access":
        message = f"{item.name} is in .{item.space}, but the access is to .{touch.space}"
        raise error(message, span, kind="type", hint=f"write .{item.space}")
    raise error(f"the {touch.what} is .{touch.space} memory, but {item.name} is in .{item.space}", span, kind="type")


def _size_hint(op: ops.Op, item: MemoryObject) -> str:
    hint = f"{item.name} has {item.size} bytes"
    if (
        item.size < 8
        and not re.search(r"\.[bsuf][0-9]", op.source.text)
        and isinstance(op, ops.Load | ops.Store | ops.Atomic)
    ):
        return f"{hint}; the access has no type, which stands for 64 bits: write `.{item.type.name}`"
    return hint


def _check_reach(op: ops.Op, item: MemoryObject, placement: Placement) -> bool:
    """Refuse the name of a .shared variable in another cluster; whether it is in the CTA of the thread."""
    path = placement.path
    if item.owner is None or (path == item.owner and not placement.host):
        return True
    if placement.cluster is None or placement.host or path[:3] != item.owner[:3]:
        message = f"{item.name} is .shared memory of another CTA"
        hint = "only CTAs of one cluster share it: `cluster 0, cta 0`"
        raise error(message, op.source.span, kind="type", hint=hint)
    return False


def _check_owner(op: ops.Op, touch: ops.Touch, item: MemoryObject, placement: Placement) -> None:
    """A .shared variable of another CTA is within reach as .shared::cluster in the same cluster only."""
    if not _check_reach(op, item, placement) and touch.space != "shared::cluster":
        span = op.source.span
        message = f"{item.name} is .shared memory of another CTA of the cluster"
        free = isinstance(op, ops.Load | ops.Store | ops.Atomic | ops.MbarrierArrive | ops.MbarrierTx)
        hint = "write .shared::cluster" if free else f"the {touch.what} here is in the CTA of the thread"
        raise error(message, span, kind="type", hint=hint)
