"""Where a program computes with what an address is in numbers, which the language leaves open.

Variables lie anywhere: only their alignment is known, that different ones do not overlap, and how the bytes of one
follow each other. The engines look at one layout (``layout.address_of``), so a result that another one could change is
not known. Addresses are followed through registers and memory without regard to control flow (Andersen 1994).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from ptxmm.program.condition import AddressTerm, IntegerTerm, MemoryTerm, RegisterTerm, Term, comparisons
from ptxmm.program.shared.pointers import locate
from ptxmm.program.shared.undetermined import locations
from ptxmm.program.shared.windows import SPACES
from ptxmm.program.symbols import addresses, symbols
from ptxmm.program.test import MemoryObject, Test
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_read

Place = tuple[str, int | None]
"""An address: the key of an object and how many bytes behind its first one, None if that is not known."""
Places = frozenset[Place]

_NONE: Places = frozenset()
_MOST = 16
"""More addresses in one object than these count as any."""
_EQUALITY = ("eq", "ne", "==", "!=")
_WIDTHS = (32, 64)
_PAGE = 4096
"""No variable lies at the null pointer, or so near to it. An address in a window of 32 bits may be any."""


def position_uses(test: Test) -> list[str]:
    """The instructions, and the condition, whose result may be another one if the variables lay elsewhere, in words."""
    search = _Search(test)
    while search.round():
        pass
    search.collect = True
    search.round()
    search.conditions()
    return list(search.found)


class _Search(Struct):
    test: Test
    registers: list[dict[str, Places]] = field(default_factory=list)
    content: dict[str, dict[tuple[int | None, int], Places]] = field(default_factory=dict)
    """By the physical object, the offset of the word (None: any) and its bytes: the addresses it may hold."""
    shuffled: Places = _NONE
    collect: bool = False
    changed: bool = False
    found: dict[str, None] = field(default_factory=dict)
    thread: int = 0

    def __post_init__(self) -> None:
        self.registers = [{} for _ in self.test.threads]
        objects = self.test.objects
        for item in objects.values():
            if item.type.bits not in _WIDTHS or item.unknown or item.tensormap is not None:
                continue
            for index, value in enumerate(item.initial):
                place = locate(value, objects)
                if place is not None:
                    here = item.physical, index * item.type.bytes, item.type.bytes
                    self.hold(*here, frozenset(((place.name, place.offset),)))
        for number, thread in enumerate(self.test.threads):
            for name, value in thread.initial.items():
                place = locate(value, objects)
                if place is not None and thread.registers[name].bits in _WIDTHS:
                    self.registers[number][name] = frozenset(((place.name, place.offset),))

    def round(self) -> bool:
        """One pass over all instructions; whether it found anything new."""
        self.changed = False
        for number, thread in enumerate(self.test.threads):
            self.thread = number
            for op in thread.body:
                (self.access if ops.touched(op) else self.compute)(op)
        return self.changed

    # -- what is held ------------------------------------------------------------------------------------------------

    def value(self, operand: ops.Operand | ops.Reg | None) -> Places:
        match operand:
            case ops.Reg(name):
                return self.registers[self.thread].get(name, _NONE)
            case ops.Sym(name, offset):
                return frozenset(((name, offset),))
        return _NONE

    def put(self, register: ops.Reg | None, places: Places) -> None:
        if register is None or not places:
            return
        held = self.registers[self.thread]
        new = _few(held.get(register.name, _NONE) | places)
        if new != held.get(register.name, _NONE):
            held[register.name], self.changed = new, True

    def hold(self, key: str, offset: int | None, size: int, places: Places) -> None:
        if not places:
            return
        words = self.content.setdefault(key, {})
        if offset is not None and len(words) > 8 * _MOST:
            offset = None
        new = _few(words.get((offset, size), _NONE) | places)
        if new != words.get((offset, size), _NONE):
            words[offset, size], self.changed = new, True

    def memory(self, address: ops.Address) -> list[tuple[str, int | None]]:
        """The physical objects that an access at ``address`` may be of, with the offset in each."""
        if isinstance(address.base, ops.Imm):
            return []  # a number, where nothing is
        places = {(key, None if at is None else at + address.offset) for key, at in self.value(address.base)}
        if not places:
            places = {(key, None) for key in self.test.objects}
        return [(one, at) for key, at in places for one in locations(self.test.objects[key])]

    def read(self, op: ops.Op, address: ops.Address, skip: int, size: int) -> Places:
        """What the word of ``size`` bytes, ``skip`` bytes behind ``address``, may hold."""
        found: set[Place] = set()
        for key, base in self.memory(address):
            at = None if base is None else base + skip
            for (offset, width), places in self.content.get(key, {}).items():
                if at is not None and offset is not None and not (offset < at + size and at < offset + width):
                    continue
                if width != size or (at is not None and offset is not None and at != offset):
                    self.report(op)  # a part of an address, or more than one
                else:
                    found |= places
        return frozenset(found)

    def report(self, op: ops.Op) -> None:
        if self.collect:
            name = self.test.threads[self.thread].name
            words = op.source.text.split()
            what = next((word for word in words if not word.startswith("@")), "")
            self.found[f"{name} line {op.source.span.line}: {what} of addresses"] = None

    # -- what instructions do ----------------------------------------------------------------------------------------

    def compute(self, op: ops.Op) -> None:
        match op:
            case ops.Alu():
                self.alu(op)
            case ops.Select(_, dst, a, b):
                self.put(dst, self.value(a) | self.value(b))
            case ops.Convert():
                self.convert(op)
            case ops.ConvertAddress(dst=dst, value=source):
                self.put(dst, self.value(source))
            case ops.Mapa(dst=dst, value=source):
                self.put(dst, frozenset((key, at) for one, at in self.value(source) for key in self.copies(one)))
            case ops.IsSpace() | ops.CtaRank() | ops.Wgmma():
                pass  # a matrix descriptor is the address of the matrix
            case ops.SetPredicate(cmp, _, _, _, a, b):
                self.compare(op, cmp, a, b, op.type.bits)
            case ops.Branch(condition=ops.Compare(cmp, type_, a, b)):
                self.compare(op, cmp, a, b, type_.bits)
            case ops.WarpExchange():
                self.exchange(op)
            case _:
                self.other(op)

    def access(self, op: ops.Op) -> None:
        match op:
            case ops.Load(dst, address, type_):
                for index, register in enumerate(dst):
                    if register is not None:
                        self.put(register, self.read(op, address, index * type_.bytes, type_.bytes))
            case ops.Store(address, values, type_) | ops.AsyncStore(address, values, type_):
                self.store(op, address, values, type_.bytes)
            case ops.Multimem():
                if any(map(self.value, op.values)) or (op.dst and self.read(op, op.address, 0, op.type.bytes)):
                    self.report(op)
            case ops.Atomic():
                self.atomic(op)
            case ops.CopyAsync(dst=dst, src=src, size=size):
                self.copy(dst, src, size)
            case ops.BulkCopy():
                self.bulk(op)
            case ops.TensormapReplace() | ops.TensorCopy() | ops.TensorProduct():
                pass  # a matrix descriptor is the address of the matrix
            case _:
                self.other(op)

    def convert(self, op: ops.Convert) -> None:
        places = self.value(op.value)
        whole = op.to.bits in _WIDTHS and op.frm.bits in _WIDTHS and "f" not in (op.to.kind, op.frm.kind)
        if places and not (whole and not op.saturate and (op.to.bits >= op.frm.bits or self.windows(places))):
            self.report(op)
        else:
            self.put(op.dst, places)

    def other(self, op: ops.Op) -> None:
        """Any other instruction: an address is good for accesses only."""
        bases = {place.base.name for place in addresses(op) if isinstance(place.base, ops.Reg)}
        guard = {op.guard.register} if op.guard is not None else set()
        named = sum(isinstance(place.base, ops.Sym) for place in addresses(op))
        if len(symbols(op)) > named or any(
            self.value(ops.Reg(name)) for name in names_read(op) if name not in bases | guard
        ):
            self.report(op)

    def alu(self, op: ops.Alu) -> None:
        values = [self.value(source) for source in op.sources]
        if not any(values):
            return
        if op.op == "mov" and (op.type.bits == 64 or self.windows(values[0])):
            self.put(op.dst, values[0])
            return
        if op.type.bits in _WIDTHS and op.type.kind != "f":
            made = self.arithmetic(op, values)
            if made is not None:
                self.put(op.dst, made)
                return
        self.report(op)

    def arithmetic(self, op: ops.Alu, values: Sequence[Places]) -> Places | None:
        """What ``op`` gives where that is an address again or no matter of the layout; None where it is one."""
        constants = [source.value if isinstance(source, ops.Imm) else None for source in op.sources]
        match op.op:
            case "add" if not all(values):
                places, number = (values[0], constants[1]) if values[0] else (values[1], constants[0])
                return _moved(places, number, op.type.bits)
            case "sub" if not values[1]:
                number = None if constants[1] is None else -constants[1]
                return _moved(values[0], number, op.type.bits)
            case "sub" | "min" | "max" if _one(values[0] | values[1]) and all(values):
                return _NONE if op.op == "sub" else values[0] | values[1]
            case "mad.lo" | "mad.wide" if not values[0] and not values[1]:
                return _moved(values[2], None, 64)
            case "and" | "or" | "xor" if not all(values):
                places, number = (values[0], constants[1]) if values[0] else (values[1], constants[0])
                return None if number is None else self.masked(op, places, number & (1 << op.type.bits) - 1)
        return None

    def masked(self, op: ops.Alu, places: Places, mask: int) -> Places | None:
        aligned = min(alignment(self.test.objects[key]) for key, _ in places)
        if op.op == "and" and mask < aligned:
            return _NONE
        if op.op == "and":
            mask ^= (1 << op.type.bits) - 1
        return frozenset((key, None) for key, _ in places) if mask < aligned else None

    def compare(self, op: ops.Op, cmp: str, a: ops.Operand, b: ops.Operand, bits: int) -> None:
        if not self.decided(cmp, self.value(a), self.value(b), (a, b), bits):
            self.report(op)

    def decided(self, cmp: str, one: Places, other: Places, operands: tuple[object, object], bits: int) -> bool:
        """Whether no layout changes the result of a comparison."""
        if not one and not other:
            return True
        if one and other and _one(one | other):
            ends = [(key, at) for key, at in one | other if at is not None]
            return cmp in _EQUALITY or all(0 <= at <= self.test.objects[key].size for key, at in ends)
        if cmp not in _EQUALITY:
            return False
        if not one or not other:
            number = operands[0] if not one else operands[1]
            return bits == 64 and isinstance(number, ops.Imm | IntegerTerm) and 0 <= number.value < _PAGE
        return all(
            first == second or (self.inside(first, at) and self.inside(second, place))
            for first, at in one
            for second, place in other
        )

    def inside(self, key: str, offset: int | None) -> bool:
        return offset is not None and 0 <= offset < self.test.objects[key].size

    def windows(self, places: Places) -> bool:
        """Whether 32 bits hold any of these addresses."""
        return all(self.test.objects[key].space in SPACES for key, _ in places)

    def copies(self, key: str) -> list[str]:
        """The shared variables of all CTAs that ``key`` is one of."""
        item = self.test.objects[key]
        found = (o for o in self.test.objects.values() if (o.name, o.space) == (item.name, item.space))
        return [other.key for other in found]

    def store(self, op: ops.Op, address: ops.Address, values: Iterable[ops.Operand], size: int) -> None:
        for index, value in enumerate(values):
            places = self.value(value)
            if places and (size * 8 not in _WIDTHS or (isinstance(op, ops.AsyncStore) and op.reduction is not None)):
                self.report(op)
            elif places:
                for key, at in self.memory(address):
                    self.hold(key, None if at is None else at + index * size, size, places)

    def atomic(self, op: ops.Atomic) -> None:
        size = op.type.bytes
        for index, (operands, dst) in enumerate(zip(op.operands, op.dst or (None,) * len(op.operands), strict=True)):
            before = self.read(op, op.address, index * size, size)
            given = [self.value(operand) for operand in operands]
            self.put(dst, before)
            if op.op == "cas" and not self.decided("eq", before, given[0], (None, operands[0]), op.type.bits):
                self.report(op)
            if op.op in ("exch", "cas"):
                self.store(op, ops.Address(op.address.base, op.address.offset + index * size), (operands[-1],), size)
            elif op.op == "add" and before and not any(given):
                for key, at in self.memory(op.address):
                    self.hold(key, None if at is None else at + index * size, size, _moved(before, None, 64))
            elif before or any(given):
                self.report(op)

    def copy(self, dst: ops.Address, src: ops.Address, size: int | None) -> None:
        """Bytes that are copied, with the addresses among them."""
        for key, at in self.memory(src):
            for (offset, width), places in tuple(self.content.get(key, {}).items()):
                for target, begin in self.memory(dst):
                    known = at is not None and offset is not None and begin is not None
                    if known and size is not None and not at <= offset < at + size:  # type: ignore[operator]
                        continue
                    self.hold(target, begin + offset - at if known else None, width, places)  # type: ignore[operator]

    def bulk(self, op: ops.BulkCopy) -> None:
        anywhere = ops.Address(ops.Reg(""), 0)
        source = op.src or anywhere
        if op.reduction is not None and any(self.content.get(key) for key, _ in self.memory(source)):
            self.report(op)
        elif op.tensormap is None and op.dst is not None and op.mask is None:
            self.copy(op.dst, source, op.size.value if isinstance(op.size, ops.Imm) else None)
        elif any(self.content.get(key) for key, _ in self.memory(source)):
            self.copy(anywhere, source, None)

    def exchange(self, op: ops.WarpExchange) -> None:
        given = _NONE.union(*map(self.value, op.operands))
        kind = op.op.partition(".")[0]
        if kind not in ("shfl", "match"):
            if given:
                self.report(op)
            return
        places = self.value(op.operands[0])
        if not places <= self.shuffled:
            self.shuffled, self.changed = _few(self.shuffled | places), True
        if given and any(map(self.value, op.operands[1:])):
            self.report(op)
        elif kind == "shfl":
            self.put(op.dst, self.shuffled)
        elif places and not self.decided("eq", self.shuffled, self.shuffled, (None, None), 64):
            self.report(op)

    # -- what is asked -----------------------------------------------------------------------------------------------

    def conditions(self) -> None:
        for one in comparisons(*self.test.propositions):
            values = self.term(one.left), self.term(one.right)
            bits = min(_bits(one.left), _bits(one.right))
            if not self.decided(one.op, *values, (one.left, one.right), bits):
                self.found["the condition compares addresses"] = None

    def term(self, term: Term) -> Places:
        match term:
            case AddressTerm():
                return frozenset(((term.key, term.offset),))
            case RegisterTerm(thread=thread, register=register):
                return self.registers[thread].get(register, _NONE)
            case MemoryTerm(key=key, index=index):
                size, found = term.type.bytes, set[Place]()
                for one in locations(self.test.objects[key]):
                    for (offset, _), places in self.content.get(one, {}).items():
                        if offset is None or offset // size == index:
                            found |= places
                return frozenset(found)
        return _NONE


def _bits(term: Term) -> int:
    return term.type.bits if isinstance(term, RegisterTerm | MemoryTerm) else 64


def alignment(item: MemoryObject) -> int:
    """What is known of where ``item`` begins: a multiple of this (PTX ISA 5.4.5)."""
    return item.alignment or item.type.bytes


def _few(places: Places) -> Places:
    """``places`` with no more than ``_MOST`` in an object, any being all."""
    counts = Counter(key for key, _ in places)
    anywhere = {key for key, count in counts.items() if count > _MOST or (key, None) in places}
    return frozenset((key, None if key in anywhere else at) for key, at in places) if anywhere else places


def _one(places: Places) -> bool:
    """Whether all of ``places`` are in one object."""
    return len({key for key, _ in places}) == 1


def _moved(places: Places, number: int | None, bits: int) -> Places:
    if number is None:
        return frozenset((key, None) for key, _ in places)
    number &= (1 << bits) - 1
    number -= (number >> bits - 1) << bits
    return frozenset((key, None if at is None else at + number) for key, at in places)
