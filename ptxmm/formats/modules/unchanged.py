"""Memory that no thread of a launch changes: what it holds at first is what every read of it returns.

Pointers, sizes and flags that a kernel finds in structures decide what it accesses and where control goes. Where a read
only returns what memory holds at first, and an address or a branch depends on it, specialising uses the value.

Which bytes these are depends on what the threads write, and where they write on what they have read. So all bytes are
taken to be unchanged at first, the threads are specialised so, and what they then write is taken out until nothing is
written that was taken to be unchanged (``Unchanged.without``). No execution of the launch writes such a byte: take the
first write that does, in the order that No-Thin-Air gives (8.10.4). What its place, its guard and whether it is
reached depend on was read before it in that order, from unchanged bytes the initial values: so one of the threads as
they were specialised has this write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.formats.modules.evaluate import Known
from ptxmm.formats.modules.objects import Object
from ptxmm.formats.modules.propagate import Fetch
from ptxmm.program.graph import makers, reach
from ptxmm.program.shared.windows import SPACES
from ptxmm.program.source import AddressOf as Pointer
from ptxmm.program.source import Constant
from ptxmm.program.symbols import symbols
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_read

_READ_ONLY = ("const", "param")
_PIECES = (ops.Load, ops.Store, ops.Atomic)
_SCALED = 1 << 16
_COPYING = ("mov", "selp")


class Unchanged(Struct, frozen=True):
    """For each of ``variables`` the bytes that nobody changes, as bits."""

    variables: Mapping[str, Object]
    bytes: Mapping[str, int]

    def fetch(self, body: Sequence[ops.Op]) -> Fetch:
        """What the loads of ``body`` return on which an address or a branch depends, where that is known."""
        wanted = deciding(body)
        return lambda pc, place, size: self.value(place.name, place.offset, size) if pc in wanted else None

    def value(self, name: str, offset: int, size: int) -> Known | None:
        """What ``size`` bytes of a variable hold; None where somebody changes them, or it is not known."""
        wanted = _mask(offset, size)
        if offset < 0 or offset % size or wanted & ~self.bytes.get(name, 0):
            return None
        item = self.variables[name]
        step = item.type.bytes
        first, inside = divmod(offset, step)
        values = item.initial or ()
        pieces = values[first : (offset + size - 1) // step + 1]
        if any(isinstance(value, Pointer) for value in pieces):
            (target,) = pieces if len(pieces) == 1 else (None,)
            whole = isinstance(target, Pointer) and step == size == 8 and not inside
            return _pointed(target, self.variables) if whole and isinstance(target, Pointer) else None
        if not all(isinstance(value, Constant) for value in pieces) or item.type.kind == "f":
            return None
        number = sum(
            (v.value & ((1 << 8 * step) - 1)) << 8 * step * i for i, v in enumerate(pieces) if isinstance(v, Constant)
        )
        return number >> 8 * inside & ((1 << 8 * size) - 1)

    def without(self, bodies: Iterable[Sequence[ops.Op]]) -> Unchanged:
        """What is left without the bytes that the threads ``bodies`` may write."""
        left = dict(self.bytes)
        for body in bodies:
            for names, start, size in _writes(body, self.variables):
                for name in names:
                    mask = _mask(start, size) if size else -1
                    left[name] = left.get(name, 0) & ~mask
        return replace(self, bytes=left)


def _pointed(value: Pointer, variables: Mapping[str, Object]) -> Known | None:
    name = value.target.name
    plain = name in variables and variables[name].space not in SPACES and value.target.index is None
    return ops.Sym(name, value.offset) if plain else None


def at_first(variables: Mapping[str, Object]) -> Unchanged:
    """All bytes that have an initial value."""
    known = {name: (1 << item.size) - 1 for name, item in variables.items() if item.initial is not None}
    return Unchanged(variables, known)


def asked(bodies: Sequence[Sequence[ops.Op]], variables: Mapping[str, Object]) -> bool:
    """Whether some thread has a read on which an address or a branch depends, of bytes that no store or atomic
    names."""
    memory = at_first(variables)
    left = dict(memory.bytes)
    for write in (op for body in bodies for op in body if isinstance(op, ops.Store | ops.Atomic)):
        if isinstance(base := write.address.base, ops.Sym):
            start = base.offset + write.address.offset
            left[base.name] = left.get(base.name, 0) & ~_mask(start, ops.access_bytes(write))
    memory = replace(memory, bytes=left)
    for body in bodies:
        for pc in deciding(body):
            op = body[pc]
            if isinstance(op, ops.Load) and isinstance(base := op.address.base, ops.Sym):
                start = base.offset + op.address.offset
                if memory.value(base.name, start, op.type.bytes) is not None:
                    return True
    return False


def _mask(start: int, size: int) -> int:
    return ((1 << size) - 1) << max(start, 0)


def deciding(body: Sequence[ops.Op]) -> frozenset[int]:
    """The loads of which an address, a branch, or the operand of what is no plain access depends on."""
    made_by = makers(body)
    given = [[maker for name in names_read(op) for maker in made_by.get(name, ())] for op in body]
    waiting: set[int] = set()
    for op in body:
        names = names_read(op)
        if isinstance(op, _PIECES):
            names = [base.name] if isinstance(base := op.address.base, ops.Reg) else []
            names += [op.guard.register] if op.guard else []
        elif isinstance(op, ops.COMPUTING):
            names = []
        waiting.update(maker for name in names for maker in made_by.get(name, ()))
    return frozenset(pc for pc in reach(given, waiting) if _plain(body[pc]))


def _plain(op: ops.Op) -> bool:
    return isinstance(op, ops.Load) and op.proxy == "generic" and not op.mmio


def _writes(body: Sequence[ops.Op], variables: Mapping[str, Object]) -> Iterator[tuple[Sequence[str], int, int]]:
    """The variables that each instruction may write, the offset and the size in bytes, 0 for all of them."""
    held = _addresses(body)
    for op in body:
        if isinstance(op, (ops.Load, *ops.COMPUTING)):
            continue
        if isinstance(op, ops.Store | ops.Atomic) and isinstance(base := op.address.base, ops.Sym):
            yield (base.name,), base.offset + op.address.offset, ops.access_bytes(op)
            continue
        yield tuple(symbols(op)), 0, 0
        if isinstance(op, ops.Multimem) or getattr(op, "tensormap", None) is not None:
            yield tuple(name for name, item in variables.items() if item.space == "global"), 0, 0  # named by others
        for touch in ops.touched(op):
            if isinstance(touch.address.base, ops.Reg) and (touch.writes or touch.role != "source"):
                names = held.get(touch.address.base.name)
                space = touch.space.partition("::")[0] if touch.space else None
                every = (n for n, v in variables.items() if space in (None, v.space) and v.space not in _READ_ONLY)
                yield tuple(every if names is None else names), 0, 0


def _addresses(body: Sequence[ops.Op]) -> dict[str, frozenset[str]]:
    """The registers that only ever hold addresses in some variables, however far into them, with these variables.

    The sum of an address and of a number lies in the same variable, if in any. A number that comes from memory could be
    the difference of two addresses, and its sum with the one the other: so it has to be scaled, as an index is.
    """
    made_by = makers(body)
    numbers = _numbers(body, made_by)
    found: dict[str, frozenset[str] | None] = dict.fromkeys(made_by, frozenset())
    changed = True
    while changed:
        changed = False
        for name, pcs in made_by.items():
            sides = [_base(body[pc], found, numbers) for pc in pcs]
            new = None if None in sides else frozenset[str]().union(*filter(None, sides))
            if new != found[name]:
                found[name], changed = new, True
    return {name: names for name, names in found.items() if names}


def _base(op: ops.Op, found: Mapping[str, frozenset[str] | None], numbers: frozenset[str]) -> frozenset[str] | None:
    """The variables into which the register that ``op`` writes points, by what is ``found`` so far; None if it may be
    anything."""

    def side(item: ops.Operand) -> frozenset[str] | None:
        match item:
            case ops.Sym(name):
                return frozenset((name,))
            case ops.Reg(name):
                return found.get(name)
        return frozenset() if item.value == 0 else None

    match op:
        case ops.ConvertAddress():
            return side(op.value)
        case ops.Convert() if op.to.bits == op.frm.bits == 64 and {op.to.kind, op.frm.kind} <= set("bus"):
            return side(op.value)
        case ops.Alu("mov", _, _, (source,)):
            return side(source)
        case ops.Select():
            one, other = side(op.a), side(op.b)
            return None if one is None or other is None else one | other
        case ops.Alu("add", _, _, (one, other)) if _is_number(one, numbers) != _is_number(other, numbers):
            return side(other if _is_number(one, numbers) else one)
        case ops.Alu("sub", _, _, (start, ops.Imm())):
            return side(start)
        case ops.Alu("mad.lo" | "mad.wide", _, _, (one, other, start)):
            scaled = any(isinstance(item, ops.Imm) and 1 < item.value < _SCALED for item in (one, other))
            return side(start) if scaled else None
    return None


def _numbers(body: Sequence[ops.Op], made_by: Mapping[str, Sequence[int]]) -> frozenset[str]:
    """The registers that hold no address and no difference of addresses."""
    tainted: set[str] = set()
    changed = True
    while changed:
        changed = False
        for name, pcs in made_by.items():
            if name not in tainted and any(_may_differ(body[pc], tainted) for pc in pcs):
                tainted.add(name)
                changed = True
    return frozenset(made_by.keys() - tainted)


def _may_differ(op: ops.Op, tainted: set[str]) -> bool:
    """Whether what ``op`` gives may be an address or a difference of two; ``tainted``: the registers that may be."""
    if not isinstance(op, ops.COMPUTING) or isinstance(op, ops.ConvertAddress | ops.Nothing):
        return True
    match op:
        case ops.SetPredicate():
            return False
        case ops.Alu("and", _, _, sources) if any(_small(item) for item in sources):
            return False
        case ops.Alu("shl" | "mul.lo" | "mul.wide", _, _, (_, ops.Imm(number))) if 0 < number < _SCALED:
            return op.op != "shl" and number == 1 and any(_in(item, tainted) for item in op.sources)
    return bool(symbols(op)) or any(name in tainted for name in names_read(op))


def _small(item: ops.Operand) -> bool:
    return isinstance(item, ops.Imm) and 0 <= item.value < _SCALED


def _in(item: ops.Operand, names: set[str]) -> bool:
    return isinstance(item, ops.Sym) or (isinstance(item, ops.Reg) and item.name in names)


def _is_number(item: ops.Operand, numbers: frozenset[str]) -> bool:
    return isinstance(item, ops.Imm) or (isinstance(item, ops.Reg) and item.name in numbers)
