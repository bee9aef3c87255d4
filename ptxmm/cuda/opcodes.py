"""Facts about PTX opcodes that the syntax alone needs: which there are, and which write their first operand."""

from __future__ import annotations

from functools import cache

from ptxmm.ptx.table import FORMS, OTHER_INSTRUCTIONS, first_words
from ptxmm.ptx.tables.form import words

OPCODES = first_words(False) | OTHER_INSTRUCTIONS | {"cp", "wgmma", "mma", "ldmatrix", "stmatrix", "movmatrix"}
"""The first words of all instructions of PTX (PTX ISA 9.7)."""

WORDS = frozenset({"ret", "exit", "trap", "brkpt", "bra"})
"""Opcodes that are PTX also where no qualifier follows."""

_NO_DESTINATION = frozenset(
    words("""
    applypriority bar barrier bra brkpt brx call cp discard exit fence griddepcontrol membar nanosleep pmevent
    prefetch prefetchu red ret setmaxnreg st stackrestore stmatrix sured sust tensormap trap""")
)
_SOME_DESTINATION = {
    "barrier": frozenset({"red"}),
    "bar": frozenset({"red"}),
    "mbarrier": frozenset({"arrive", "arrive_drop", "test_wait", "try_wait", "pending_count"}),
    "multimem": frozenset({"ld_reduce"}),
    "tcgen05": frozenset({"ld"}),
    "wgmma": frozenset({"mma_async"}),
    "wmma": frozenset({"load", "mma"}),
    "clusterlaunchcontrol": frozenset({"query_cancel"}),
}


_MORE_QUALIFIERS = words("f16 f16x2 bf16 bf16x2 f32 f64 f32x2 tf32 e4m3x2 e5m2x2 pred sync approx ftz rn rz rm rp")


@cache
def qualifier_words() -> frozenset[str]:
    """The qualifiers of instructions that have a row, and the common ones of those that have none. Not the letters of
    matrices, which other assembly languages have too."""
    rows = (word for form in FORMS.values() for group in (*form.groups.values(), form.later) for word in group)
    names = (word for opcode in FORMS for word in opcode.split(".")[1:])
    return frozenset(word for word in (*rows, *names, *_MORE_QUALIFIERS) if len(word) > 1)


def writes_first(opcode: str, qualifiers: frozenset[str]) -> bool | None:
    """Whether an instruction writes its first operand, unless that is an address; None if the opcode is unknown."""
    if opcode not in OPCODES:
        return None
    some = _SOME_DESTINATION.get(opcode)
    if some is not None:
        return not some.isdisjoint(qualifiers)
    return opcode not in _NO_DESTINATION


def address_spaces(opcode: str, qualifiers: tuple[str, ...], count: int) -> tuple[str | None, ...]:
    """The state space of each of ``count`` address operands, ``generic`` without one; None where it is not known
    here. An address of 32 bits is possible in ``shared`` only (PTX ISA 6.4.1, 9.7.10.8)."""
    named = [_SPACES[word] for word in qualifiers if word in _SPACES]
    one, unknown = ((named or ["generic"])[0],) * count, (None,) * count
    if opcode == "mbarrier" or (opcode in _ONE_SPACE and not {"async", "bulk"} & set(qualifiers)):
        return one
    if opcode != "cp" or len(named) < 2 or "prefetch" in qualifiers:
        return unknown
    if "bulk" not in qualifiers:
        copies = qualifiers[0] == "async" and "mbarrier" not in qualifiers and len(named) == 2
        return ("shared", "global")[:count] if copies else unknown
    tensor = "tensor" in qualifiers
    if named[0] == "global":
        return ("generic" if tensor else "global", "shared")[:count]
    return (named[0], "generic" if tensor else named[1], "shared")[:count]


_ONE_SPACE = ("ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix", "prefetch")
_SPACES = {
    "global": "global",
    "shared": "shared",
    "shared::cta": "shared",
    "shared::cluster": "shared",
    "local": "local",
    "const": "const",
    "param": "param",
    "param::entry": "param",
    "param::func": "param",
}
