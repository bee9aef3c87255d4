"""Addresses in the windows of ``.shared``, ``.local``, ``.const`` and kernel parameters (PTX ISA 6.4.1.1).

The name of a variable stands for its address in the window of its state space, as ``mov`` gives it; ``cvta`` gives the
generic one. Only an operand in that state space takes the former, and only a generic one the latter; at any other each
lies outside every object. Addresses in windows fit in 32 bits and are zero-extended (6.4.1).

A variable has one address in the window, in whatever CTA or thread: there it means the variable of that CTA, or of that
thread. What ``mapa`` gives, and the name of a variable of another CTA stands for, is an address in ``.shared::cluster``
that means the same everywhere (5.1.7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.program.shared.legality import own_cta
from ptxmm.program.symbols import symbols
from ptxmm.program.test import TRAP, MemoryObject, Placement, Thread
from ptxmm.ptx import ops

BITS = 32
SPACES = ("shared", "local", "const", "param")
"""The state spaces that are windows of the generic address space; what lies in no window is global memory."""

NOWHERE = 1 << 63
"""Set in an address that lies in no window that it was taken for one of."""

_FAR = 1 << 20
"""An address that far from an object has nothing to do with it."""

# Addresses in windows have 31 bits: which variable, or for shared::cluster which object, in steps of 1 MiB. With the
# mark none is the low half of a generic address.
_WINDOWS, _MAPPED, _STEP, _MARK = 1 << 29, 1 << 30, 1 << 20, 1 << 19
MOST_VARIABLES, MOST_MAPPED = _WINDOWS // _STEP - 1, _MAPPED // _STEP - 1


def window_operands(op: ops.Op) -> Iterator[ops.Address]:
    """The address operands of ``op`` that are in ``.shared`` memory by the text of the instruction."""
    forms = ((touch.address, touch.rule.form) for touch in ops.touched(op))
    return (address for address, form in forms if form is not None and form.startswith("shared"))


def with_windows(objects: Mapping[str, MemoryObject]) -> dict[str, MemoryObject]:
    """``objects`` with the addresses that they have in the windows of their state spaces."""
    found: dict[str, MemoryObject] = {}
    variables: dict[tuple[str, str], int] = {}
    mapped = 0
    for key, item in objects.items():
        if item.space not in SPACES:
            found[key] = item
        elif item.virtual != key:
            target = found[item.virtual]
            found[key] = replace(item, window=target.window, mapped=target.mapped)
        else:
            number = variables.setdefault((item.space, item.name), len(variables) + 1)
            mapped += item.space == "shared"
            fits = number <= MOST_VARIABLES and mapped <= MOST_MAPPED and item.size <= _MARK
            window = _WINDOWS | number * _STEP | _MARK if fits else 0
            own = _MAPPED | mapped * _STEP | _MARK if fits and item.space == "shared" else 0
            found[key] = replace(item, window=window, mapped=own)
    return found


def named(item: MemoryObject, place: Placement, thread: int) -> int:
    """The address that the name of ``item`` stands for in a thread: in the window of its state space, if that has one;
    that of a variable of another CTA is the one that ``mapa`` gives."""
    if not item.window:
        return item.address
    return item.window if _own(item, place, thread) else item.mapped


def entered(objects: Mapping[str, MemoryObject], place: Placement, thread: int, space: str | None, address: int) -> int:
    """The generic address of the byte at ``address`` in the window of ``space`` as a thread sees it (None: it is
    generic); what is in no such window gets an address that is ``NOWHERE``, but for the null pointer."""
    base = _base(space)
    if base not in SPACES or not address:
        return address
    for item in objects.values():
        if item.space == base and item.virtual == item.key and item.window:
            if item.mapped and item.mapped <= address <= item.mapped + item.size:
                return item.address + address - item.mapped
            if item.window <= address <= item.window + item.size and _own(item, place, thread):
                return item.address + address - item.window
    return address | NOWHERE


def converted(
    objects: Mapping[str, MemoryObject], place: Placement, thread: int, op: ops.ConvertAddress, address: int
) -> int:
    """What ``cvta`` or, to a window, ``cvta.to`` makes of ``address`` (9.7.10.19).

    An address that does not lie in the window, and for ``cvta.shared::cta`` one of another CTA, becomes one that is
    ``NOWHERE``. ``cvta.to.shared`` gives the ``.shared::cluster`` address of what lies in another CTA.
    """
    if not op.to:
        found = entered(objects, place, thread, op.space, address)
        away = op.space in ("shared", "shared::cta") and _remote(objects, place, thread, found)
        return address | NOWHERE if away else found
    base = _base(op.space)
    for item in objects.values():
        if item.space == base and item.virtual == item.key and item.address <= address <= item.address + item.size:
            start = item.window if _own(item, place, thread) else item.mapped
            return start + address - item.address if start else address | NOWHERE
    return address | NOWHERE if address else 0


def described(objects: Mapping[str, MemoryObject], place: Placement, thread: int, address: int) -> int:
    """The generic address of what a descriptor, in a litmus test an address in either form, points to."""
    found = entered(objects, place, thread, "shared", address)
    return address if found & NOWHERE else found


def in_window(objects: Mapping[str, MemoryObject], address: int) -> tuple[MemoryObject, int] | None:
    """The object, one of several where it depends on the thread, of an address in a window, and the offset there."""
    for item in objects.values():
        if item.virtual == item.key and item.window:
            for start in (item.window, item.mapped):
                if start and start <= address <= start + item.size:
                    return item, address - start
    return None


def _base(space: str | None) -> str | None:
    return None if space is None else space.partition("::")[0]


def _own(item: MemoryObject, place: Placement, thread: int) -> bool:
    """Whether the memory of a window that ``thread`` sees is that of ``item``."""
    if item.space == "shared":
        return own_cta(place, thread, item)
    return item.space != "local" or item.thread in (None, thread)


def _remote(objects: Mapping[str, MemoryObject], place: Placement, thread: int, address: int) -> bool:
    for item in objects.values():
        if item.space == "shared" and item.address <= address <= item.address + item.size:
            return not _own(item, place, thread)
    return False


def outside(objects: Mapping[str, MemoryObject], address: int) -> str:
    """In words: an access at ``address``, where no object is; that of ``TRAP`` stands for a trap."""
    if address == TRAP:
        return "traps"
    lost = address & NOWHERE
    address &= NOWHERE - 1
    found = in_window(objects, address)
    where = ""
    if found is not None and lost:
        item = found[0]
        where = f"{address:#x} is an address of {item.name} in a window .{item.space}, none in the one that is accessed"
    elif found is not None:
        space = found[0].space
        where = f"{address:#x} is an address in the window .{space}, which cvta.{space} makes a generic one"
    elif lost and (known := _generic(objects, address)) is not None:
        where = f"{address:#x} is a generic address, that of {known}; this takes one in the window of a state space"
    if where:
        return f"access outside every object (address {where}; PTX ISA 6.4.1.1)"
    return f"access outside every object (address {address:#x}{_beside(objects, address)})"


def _generic(objects: Mapping[str, MemoryObject], address: int) -> str | None:
    """The object that lies at a generic address."""
    for item in objects.values():
        if item.virtual == item.key and item.address <= address < item.address + item.size:
            return item.key
    return None


def _beside(objects: Mapping[str, MemoryObject], address: int) -> str:
    """Which object an address is beside, or begins in; nothing where all are far away."""
    found = []
    for key, item in objects.items():
        for start in (item.address, item.window, item.mapped):
            end = start + item.size
            if start and start <= address < end:
                return f", beyond the end of {key}"
            distance = start - address if address < start else address - end
            if start:
                found.append((distance, f"before {key}" if address < start else f"behind {key}"))
    distance, where = min(found, default=(_FAR, ""))
    if distance >= _FAR:
        return ""
    return f", {distance} bytes {where}" if distance else f", right {where}"


def takes_narrow_address(op: ops.Op) -> bool:
    """Whether ``op`` makes a 32-bit address of a variable that it names."""
    match op:
        case ops.Alu("mov", type_, _, sources):
            return type_.bits == BITS and any(isinstance(source, ops.Sym) for source in sources)
        case ops.Mapa(value=ops.Sym(), type=type_) | ops.CtaRank(value=ops.Sym(), type=type_):
            return type_.bits == BITS
        case _:
            return False


def uses_windows(threads: Sequence[Thread]) -> bool:
    """Whether a thread may make or use an address in a window."""
    for thread in threads:
        for op in thread.body:
            if isinstance(op, ops.ConvertAddress | ops.Mapa | ops.CtaRank) or (isinstance(op, ops.Alu) and symbols(op)):
                return True
            if any(isinstance(place.base, ops.Reg) for place in window_operands(op)):
                return True
    return False


def check_windows(threads: Sequence[Thread], objects: Mapping[str, MemoryObject]) -> None:
    """Refuse addresses in windows in a test that has too many variables there, or too big ones.

    Raises ``PtxmmError`` (kind ``unsupported``).
    """
    if any(item.space in SPACES and not item.window for item in objects.values()) and uses_windows(threads):
        big = next((item for item in objects.values() if item.space in SPACES and item.size > _MARK), None)
        if big is not None:
            message = f"addresses in .{big.space} of a variable of {big.size} bytes; at most {_MARK} are supported"
        else:
            message = f"addresses in the windows of more than {MOST_VARIABLES} variables, or {MOST_MAPPED} of CTAs"
        raise PtxmmError(message, kind="unsupported")
