"""What a program does with unknown values (see ``unknown``): whether the values that are tried for them are all that
can matter, and in which pieces it looks at them.

Tried are the constants of the test. They are all that matter where unknown values are moved, and compared with what
only constants are moved to. Values are followed through registers and memory without regard to control flow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized

from msgspec import Struct, field

from ptxmm.program.accesses import touches
from ptxmm.program.condition import Comparison, IntegerTerm, MemoryTerm, RegisterTerm, Term
from ptxmm.program.shared.pointers import known_addresses, locate
from ptxmm.program.shared.undetermined import WRITERS, locations, writers
from ptxmm.program.symbols import addresses, symbols
from ptxmm.program.test import Test, Thread
from ptxmm.ptx.isa import definitions, names_read, names_written, uses
from ptxmm.ptx.ops import (
    Address,
    Alu,
    AsyncStore,
    Atomic,
    Branch,
    BulkCopy,
    Compare,
    Convert,
    ConvertAddress,
    CopyAsync,
    Load,
    LoadMatrix,
    Multimem,
    Op,
    Pack,
    Reg,
    Select,
    SetPredicate,
    Store,
    StoreMatrix,
    Sym,
    TensorCopy,
    TensorLoad,
    TensorProduct,
    TensorStore,
    Type,
    Unpack,
    Wgmma,
    WmmaLoad,
)

_MATRIX_ELEMENT = 2
_UNSEEN = (*WRITERS, WmmaLoad, Wgmma, TensorCopy, TensorProduct)
"""Of what these read and write no value is known, whatever memory holds."""


class UnknownUses(Struct):
    """``found``: where unknown values are computed with, or compared with what is computed, in words. ``widths``: the
    bytes of the pieces in which they are moved and compared. ``hidden``: the objects whose contents nothing sees."""

    test: Test
    compared: Sequence[Comparison[Term]]
    hidden: frozenset[str] = frozenset()
    found: dict[str, None] = field(default_factory=dict)
    widths: set[int] = field(default_factory=set)
    _unknown: set[str] = field(default_factory=set)
    _computed: set[str] = field(default_factory=set)
    _objects: dict[str, set[int]] = field(default_factory=dict)
    _held: list[set[str]] = field(default_factory=list)
    _made: list[set[str]] = field(default_factory=list)
    _known: dict[str, Sym] = field(default_factory=dict)
    _reachable: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        objects = self.test.objects
        self._unknown = {o.physical for o in objects.values() if o.unknown} - self.hidden
        self._unknown |= {key for writer in writers(self.test.threads, objects) for key in writer.ranges}
        self._held = [set() for _ in self.test.threads]
        self._made = [set() for _ in self.test.threads]
        if not self._unknown:
            return
        self._reachable = _reachable(self.test)
        known = [known_addresses(thread, objects) for thread in self.test.threads]
        before: tuple[int, ...] = ()
        while before != (before := self._size()):
            for number, thread in enumerate(self.test.threads):
                self._known = known[number]
                for op in thread.body:
                    self._step(number, thread, op)
        for comparison in self.compared:
            self._condition(comparison)

    def _size(self) -> tuple[int, ...]:
        grown: list[Sized] = [self.found, self.widths, self._unknown, self._computed]
        return tuple(map(len, [*grown, *self._held, *self._made, *self._objects.values()]))

    def _step(self, number: int, thread: Thread, op: Op) -> None:
        held, made = self._held[number], self._made[number]
        bases = [place.base.name for place in addresses(op) if isinstance(place.base, Reg)]
        if any(name in held for name in bases):
            self._report(thread, op, "an address")
        match op:
            case Load(dst, address, type_):
                self._read(number, self._at(address, type_.bytes), dst, type_.bytes)
            case Store(address, values, type_):
                self._write(number, self._at(address, type_.bytes), values, type_.bytes)
            case Atomic():
                self._atomic(number, thread, op)
            case SetPredicate(a=a, b=b, type=type_) | Branch(condition=Compare(a=a, b=b, type=type_)):
                self._compare(thread, op, (a, b), type_, held, made)
            case _:
                if not isinstance(op, _UNSEEN):
                    self._access(number, thread, op)
                self._compute(number, thread, op)

    # -- memory ------------------------------------------------------------------------------------------------------

    def _at(self, address: Address, width: int = 0) -> set[str]:
        """The physical objects that an access at ``address`` of elements of ``width`` bytes may be of."""
        objects, base = self.test.objects, address.base
        if isinstance(base, Reg):
            base = self._known.get(base.name, base)
        places = set(locations(objects[base.name])) if isinstance(base, Sym) else set(self._reachable)
        if width:
            for key in places:
                self._objects.setdefault(key, {objects[key].type.bytes}).add(width)
            if places & self._unknown:
                self.widths.add(width)
        return places

    def _mixed(self, places: Iterable[str]) -> bool:
        """Whether what is read there may be something else than what was written in one piece."""
        return any(key in self._computed or len(self._objects.get(key, ())) > 1 for key in places)

    def _read(self, number: int, places: set[str], dst: Iterable[Reg | None], width: int) -> None:
        names = {register.name for register in dst if register is not None}
        if places & self._unknown:
            self._held[number] |= names
            self.widths.add(width)
        if self._mixed(places):
            self._made[number] |= names

    def _write(self, number: int, places: set[str], values: Iterable[object], width: int) -> None:
        names = {value.name for value in values if isinstance(value, Reg)}
        if names & self._held[number]:
            self._unknown |= places
            self.widths.add(width)
        if names & self._made[number]:
            self._computed |= places

    def _atomic(self, number: int, thread: Thread, op: Atomic) -> None:
        held, made, width = self._held[number], self._made[number], op.type.bytes
        places = self._at(op.address, width)
        reads = bool(places & self._unknown)
        given = {value.name for values in op.operands for value in values if isinstance(value, Reg)}
        if op.op not in ("exch", "cas"):
            if reads or given & held:
                self._report(thread, op, op.op)
                self._unknown |= places
            self._computed |= places
        elif op.op == "cas":
            asked = {values[0].name for values in op.operands if isinstance(values[0], Reg)}
            if (reads and asked & made) or (asked & held and self._mixed(places)):
                self._report(thread, op, "compared with what is computed")
        self._write(number, places, [value for values in op.operands for value in values], width)
        self._read(number, places, op.dst, width)

    def _access(self, number: int, thread: Thread, op: Op) -> None:
        """Any other instruction that accesses memory: a copy leaves what it copies as it is."""
        held, made = self._held[number], self._made[number]
        sources, targets, changed = self._reached(op)
        if isinstance(op, LoadMatrix | StoreMatrix) and (sources | targets) & self._unknown:
            self.widths.add(_MATRIX_ELEMENT)
        if not sources and not targets:
            return
        copies, values = _copies(op), _values(op)
        seen = sources if copies else sources | changed
        written = set(names_written(op))
        if seen & self._unknown or values & held:
            if not copies:
                self._report(thread, op, op.source.text.partition(" ")[0])
            self._unknown |= targets
            held |= written
        if copies:
            for key in targets:
                own = self._objects.setdefault(key, {self.test.objects[key].type.bytes})
                own.update(*(self._objects.get(source, ()) for source in sources))
        partial = isinstance(op, CopyAsync) or (isinstance(op, BulkCopy) and op.partial)
        if partial or not copies or values & made or self._mixed(sources):
            self._computed |= targets
            made |= written

    def _reached(self, op: Op) -> tuple[set[str], set[str], set[str]]:
        """What ``op`` may read, what it may write, and what it may write by what was there."""
        sources, targets, changed = set[str](), set[str](), set[str]()
        for touch in touches(op, self.test.objects):
            if touch.is_data:
                places = self._at(touch.address, touch.unit)
                (targets if touch.writes else sources).update(places)
                changed |= places if touch.writes and touch.reads else set()
        if isinstance(op, BulkCopy) and op.tensormap is not None:
            anywhere = {item.physical for item in self.test.objects.values() if item.space == "global"}
            for places in (sources,) if op.dst is not None else (targets, changed):
                places |= anywhere
        return sources, targets, changed

    # -- registers ---------------------------------------------------------------------------------------------------

    def _compute(self, number: int, thread: Thread, op: Op) -> None:
        held, made = self._held[number], self._made[number]
        written = set(names_written(op))
        read = _values(op) - ({op.predicate.name} if isinstance(op, Select) else set())
        moves = (isinstance(op, Alu) and op.op == "mov") or isinstance(op, ConvertAddress | Select)
        if read & held:
            whole = all(type_.bits % 8 == 0 for _, type_ in (*definitions(op), *uses(op)))
            keeps = isinstance(op, Convert) and op.to.bits >= op.frm.bits and not op.saturate
            if isinstance(op, Pack | Unpack) and whole:
                self.widths |= {type_.bytes for _, type_ in (*definitions(op), *uses(op))}
            elif not moves and not keeps and not isinstance(op, AsyncStore | StoreMatrix | Multimem):
                self._report(thread, op, op.source.text.partition(" ")[0])
            held |= written
        if not moves or read & made:
            made |= written

    def _compare(
        self, thread: Thread, op: Op, operands: tuple[object, object], type_: Type, held: set[str], made: set[str]
    ) -> None:
        a, b = (value.name if isinstance(value, Reg) else "" for value in operands)
        if a in held or b in held:
            self.widths.add(max(1, type_.bytes))
        if (a in held and b in made) or (b in held and a in made):
            self._report(thread, op, "compared with what is computed")

    def _condition(self, comparison: Comparison[Term]) -> None:
        left, right = comparison.left, comparison.right
        for term in (left, right):
            if self._is(term, self._held, self._unknown) and isinstance(term, RegisterTerm | MemoryTerm):
                self.widths.add(term.type.bytes)
        for one, other in ((left, right), (right, left)):
            if self._is(one, self._held, self._unknown) and self._is(other, self._made, self._computed, mixed=True):
                self.found["the condition compares it with what is computed"] = None

    def _is(self, term: Term, registers: list[set[str]], places: set[str], mixed: bool = False) -> bool:
        match term:
            case RegisterTerm(thread, register):
                return register in registers[thread]
            case MemoryTerm(key=key):
                keys = set(locations(self.test.objects[key]))
                return bool(keys & places) or (mixed and self._mixed(keys))
            case IntegerTerm():
                return False
        return False

    def _report(self, thread: Thread, op: Op, what: str) -> None:
        self.found[f"{thread.name} line {op.source.span.line}: {what}"] = None


def _copies(op: Op) -> bool:
    """Whether what ``op`` writes are values that it reads or takes, as they are."""
    if isinstance(op, AsyncStore | BulkCopy):
        return op.reduction is None
    if isinstance(op, Multimem):
        return op.op is None
    return isinstance(op, CopyAsync | LoadMatrix | StoreMatrix | TensorLoad | TensorStore)


def _values(op: Op) -> set[str]:
    """The registers whose values ``op`` takes: not those of its addresses and its guard."""
    bases = {place.base.name for place in addresses(op) if isinstance(place.base, Reg)}
    guard = {op.guard.register} if op.guard is not None else set()
    return set(names_read(op)) - bases - guard


def _reachable(test: Test) -> set[str]:
    """The physical objects that an address in a register may be of: all but private ones that are only accessed by
    their names."""
    taken: set[str] = set()
    for thread in test.threads:
        places = [locate(value, test.objects) for value in thread.initial.values()]
        taken.update(place.name for place in places if place is not None)
        for op in thread.body:
            named = symbols(op)
            for place in addresses(op):
                if isinstance(place.base, Sym):
                    named.remove(place.base.name)
            taken.update(named)
    return {o.physical for o in test.objects.values() if o.space != "local" or o.key in taken}


__all__ = ["UnknownUses"]
