"""Multimem addresses: virtual addresses that stand for several locations each (PTX ISA 8.2.3, 9.7.10.13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from ptxmm.program.naming import did_you_mean, error
from ptxmm.program.source import MultimemAddress
from ptxmm.program.test import MemoryObject, Thread
from ptxmm.ptx.ops import Multimem
from ptxmm.ptx.spelling import refuse

_REAL = ("f", "bf")


def multimem_object(
    declared: MultimemAddress, objects: Mapping[str, MemoryObject], names: Iterable[str]
) -> MemoryObject:
    """The object of a multimem address: that of its first location, with a virtual address of its own.

    ``names``: of all variables. Raises ``PtxmmError`` for what can't be its locations.
    """
    found: list[MemoryObject] = []
    for target, span in declared.targets:
        item = objects.get(target)
        if item is None or item.space != "global":
            if item is None and all(o.name != target for o in objects.values()):
                if target in names:
                    raise error(f"`{target}` is declared after `{declared.name}`", span, hint="declare it before")
                raise error(f"no variable is called `{target}`", span, hint=did_you_mean(target, list(names)))
            raise error(f"`{target}` is not in .global memory", span, kind="type")
        if item.replicas:
            hint = f"name its locations: {', '.join(item.replicas)}"
            raise error(f"`{target}` is itself a multimem address", span, hint=hint)
        if item.proxy != "generic":
            message = f"`{target}` is a {item.proxy} alias"
            raise error(message, span, hint=f"name the variable: {item.alias_of}")
        first = found[0] if found else item
        if (item.type, item.count, item.is_array) != (first.type, first.count, first.is_array):
            message = f"`{target}` and `{first.name}` differ in type or size"
            raise error(message, span, kind="type", hint="the locations of a multimem address are alike")
        if any(item.physical == other.physical for other in found):
            raise error(f"`{target}` is the same location as another one", span, kind="type")
        found.append(item)
    return replace(
        found[0],
        key=declared.name,
        name=declared.name,
        virtual=declared.name,
        alias_of=None,
        replicas=tuple(item.physical for item in found),
    )


def check_multimem(threads: Iterable[Thread], objects: Mapping[str, MemoryObject]) -> None:
    """Refuse reductions whose result depends on an order that the ISA leaves open (kind ``unsupported``)."""
    if all(len(item.replicas) < 3 for item in objects.values()):
        return
    for thread in threads:
        for op in thread.body:
            if isinstance(op, Multimem) and op.kind == "ld_reduce" and op.op == "add" and op.type.kind in _REAL:
                message = "the order in which more than two floating-point numbers are added is not specified"
                hint = "a multimem address of two locations"
                raise refuse(op, message, hint)
