"""Loads, stores and atomic operations, with one event for each scalar access, or for a vector in one piece (PTX ISA
8.2, 9.7.10, 9.7.14)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec import Struct

from ptxmm.events.symbolic.event import Event, Operation, Place
from ptxmm.events.symbolic.executor import ADDRESS, Effects, Executor, Located, place_at
from ptxmm.events.symbolic.values.arithmetic import extend, update
from ptxmm.events.symbolic.values.computation import Computation
from ptxmm.events.symbolic.values.domain import Domain, Reads, Value, assemble, equal, merge, only
from ptxmm.program.identity import EventId
from ptxmm.program.shared.refusals import refused
from ptxmm.ptx import ops
from ptxmm.ptx.ops import BULK_UNIT, Element, Operand, Type, Undetermined, access_bytes, elements
from ptxmm.relations.formula import FALSE, TRUE, Formula

F32 = Type("f", 32)


class Access(Struct, frozen=True):
    """What the scalar accesses of one instruction share: the places it may begin at, when it is ``inside`` one of them
    or in the ``wrong`` place, and the reads that its ``address`` depends on."""

    where: Located
    wrong: Formula
    inside: Formula
    address: Reads


def begins(run: Executor, address: Value, size: int, alignment: int | None = None) -> Access:
    """An access of ``size`` bytes at ``address``."""
    where, wrong = run.located(address, size, alignment=alignment)
    # While the possible values are still being found there may be no place at all.
    inside = run.formulas.both(run.presence, -wrong) if where else FALSE
    return Access(where, wrong, inside, address.reads)


def access(run: Executor, op: ops.Load | ops.Store | ops.Atomic) -> None:
    """Execute a load, a store or an atomic operation."""
    common = begins(run, run.address(op.address, op.space), access_bytes(op))
    run.look()
    parts = elements(op, run.machine.reading.split128, run.machine.reading.whole)
    divided = len(parts) > 1 and op.scope is None and parts[0].items == 1
    if isinstance(op, ops.Store):
        for element in parts:
            store(run, common, element, _stored(run, op, element), divided)
        if run.here.instruction not in run.idempotent:
            run.wrote(common.inside)
        return
    results: dict[int, list[tuple[Element, Value]]] = {}
    for element in parts:
        value = _atomic(run, common, op, element) if isinstance(op, ops.Atomic) else load(run, common, element, divided)
        for own, part in _by_item(run, op.type, element, value):
            results.setdefault(own.item, []).append((own, part))
    for item, dst in enumerate(op.dst):
        if dst is not None:
            run.assign(dst.name, _result(run, op.type, dst.name, results[item]))


def _stored(run: Executor, op: ops.Store, element: Element) -> Value:
    """What ``element`` of a vector, or several of them in one piece, is to hold."""
    if element.items == 1:
        return _operand(run, op.values[element.item], op.type, element)
    own = op.values[element.item : element.item + element.items]
    return run.join((k * op.type.bits, run.operand(v, Type("b", op.type.bits))) for k, v in enumerate(own))


def _by_item(run: Executor, type_: Type, element: Element, value: Value) -> Iterator[tuple[Element, Value]]:
    """What an access that returned ``value`` gives each register of ``type_``."""
    if element.items == 1:
        yield element, value
        return
    for k in range(element.items):
        at = element.offset + k * type_.bytes
        yield Element(at, type_, element.item + k, 0), run.field(value, k * type_.bits, type_.bits)


def _operand(run: Executor, operand: Operand, type_: Type, element: Element, packed: int = 1) -> Value:
    """The part of an operand that belongs to ``element``."""
    whole = run.operand(operand, Type("b", packed * type_.bits))
    if element.type.bits == packed * type_.bits:
        return whole
    return run.field(whole, element.shift, element.type.bits)


def _result(run: Executor, type_: Type, name: str, parts: list[tuple[Element, Value]]) -> Value:
    """What a register gets from the accesses of its item."""
    result = run.join((element.shift, value) for element, value in parts)
    bits = run.thread.registers[name].bits
    if bits > type_.bits and len(parts) == 1:
        if run.machine.expressions.values and type_.signed:
            return run.function(
                ("extend", type_, bits), lambda v: extend(v, type_, bits), [result], "extend", type_, type_, bits
            )
        how = Computation("extend", type_, (), lambda v: extend(v, type_, bits), (type_, bits))
        return result.holding(run.applied(how, [result]))
    return result


Pieces = list[tuple[int, list[Place]]]
"""The pieces that an access is made in: their offset in it, and where each may be."""


def pieces(run: Executor, where: Located, offset: int, size: int, divided: bool) -> list[Pieces]:
    """The accesses that one scalar access is made as, for each way to divide it.

    Only a part of a weak vector is divided, where the other accesses of the test divide it (A12); those of a
    strong one are scalars (8.2.4).
    """
    if not divided:
        return [[(0, [place_at(when, item, start + offset, size) for when, item, start in where])]]
    ways: dict[tuple[tuple[int, int], ...], Pieces] = {}
    for when, item, start in where:
        chunks = run.machine.setting.chunks(item.physical, start + offset, size)
        relative = tuple((o - start - offset, n) for o, n in chunks)
        columns = ways.setdefault(relative, [(o, []) for o, _ in relative])
        for (_, column), (o, n) in zip(columns, chunks, strict=True):
            column.append(place_at(when, item, o, n))
    return list(ways.values())


def store_bulk(run: Executor, op: ops.StoreBulk) -> None:
    """``st.bulk``: weak writes of zeros, divided as the other accesses of the test divide its bytes."""
    address, size = run.address(op.address, op.space), run.operand(op.size, ADDRESS)
    reads = run.machine.union(address.reads, size.reads)
    for length, when in size.domain.items():
        held = run.formulas.both(run.presence, when)
        if length % BULK_UNIT:
            run.misuse(held, f"st.bulk of {length} bytes, which is no multiple of {BULK_UNIT}")
            continue
        where, wrong = run.located(address, length, held, alignment=1)
        if any(start % BULK_UNIT for _, _, start in where):
            raise refused(op.misaligned, run.machine.test, op)
        for columns in pieces(run, where, 0, length, True):
            for offset, places in columns:
                there = run.formulas.both(held, _when(run, places))
                write(run, places, run.machine.zero, there, reads, run.here.at(offset))
        run.wrote(run.formulas.both(held, -wrong))


def discard(run: Executor, op: ops.Discard) -> None:
    """``discard``: a weak write of what the PTX ISA leaves open to ``.global`` memory, divided as the other accesses of
    the test divide it (9.7.10.16)."""
    address = run.address(op.address)
    where, _ = run.located(address, op.size)
    for columns in pieces(run, where, 0, op.size, True):
        for offset, places in columns:
            held = run.formulas.both(run.presence, _when(run, places))
            write(run, places, undetermined(run, op.content, places), held, address.reads, run.here.at(offset))
    run.wrote(run.formulas.both(run.presence, run.formulas.any([when for when, _, _ in where])))


def undetermined(run: Executor, content: Undetermined, places: list[Place], data: Reads | None = None) -> Value:
    """What ``content`` has for one of ``places``, each of which has its own; it is made of the reads ``data``."""
    arms = [(p.when, run.constant(content.value(p.physical, p.offset, p.size))) for p in places]
    return Value(run.one_of(arms).domain, run.machine.zero.expression, data or {})


def _when(run: Executor, places: list[Place], whole: bool = False) -> Formula:
    """When one of ``places`` is meant; ``whole``: they are all that there are."""
    return TRUE if whole else run.formulas.any([p.when for p in places])


def _at(run: Executor, offset: int) -> EventId:
    """The event of the instruction at this offset of its operand."""
    return run.here.at(offset, run.here.operand)


def store(run: Executor, common: Access, element: Element, value: Value, divided: bool) -> None:
    """Write ``value`` to ``element``."""
    if common.inside == FALSE:
        return
    ways = pieces(run, common.where, element.offset, element.type.bytes, divided)
    for columns in ways:
        for offset, places in columns:
            presence = run.formulas.both(common.inside, _when(run, places, len(ways) == 1))
            if presence != FALSE:
                part = value if len(columns) == 1 else run.field(value, 8 * offset, 8 * places[0].size)
                write(run, places, part, presence, common.address, _at(run, element.offset + offset))


def read(
    run: Executor,
    places: list[Place],
    presence: Formula,
    address: Reads,
    id_: EventId | None = None,
    wrong: Formula = FALSE,
    operation: Operation | None = None,
) -> tuple[Event, Value]:
    """One read; ``wrong``: when it is made outside every object and returns 0; ``operation``: what performs it."""
    event = run.event("R", presence, id_, operation)
    event.places, event.address = places, address
    event.value = _returned(run, event, places, wrong)
    leaf = run.machine.expressions.leaf(8 * places[0].size if places else 64, "read", event.number)
    return event, Value(event.value, leaf, {event.number: TRUE})


def write(
    run: Executor,
    places: list[Place],
    value: Value,
    presence: Formula,
    address: Reads,
    id_: EventId | None = None,
    control: Reads | None = None,
    operation: Operation | None = None,
) -> None:
    """One write of ``value``, unless it is never made; ``control``: what decides it, if not all of the instruction."""
    if presence != FALSE:
        event = run.event("W", presence, id_, operation)
        hidden = run.machine.setting.unseen.objects
        event.places = places
        event.value = only(0) if hidden and all(place.physical in hidden for place in places) else value.domain
        event.address, event.data = address, value.reads
        event.control = event.control if control is None else control


def load(run: Executor, common: Access, element: Element, divided: bool) -> Value:
    """What ``element`` holds."""
    ways = pieces(run, common.where, element.offset, element.type.bytes, divided) or [[(0, [])]]
    wrong = common.wrong if len(ways) == 1 else FALSE
    arms: list[tuple[Formula, Value]] = []
    for columns in ways:
        when = _when(run, columns[0][1], len(ways) == 1)
        presence = run.formulas.both(common.inside, when)
        at = [(offset, places, _at(run, element.offset + offset)) for offset, places in columns]
        read_so = ((8 * o, read(run, places, presence, common.address, id_, wrong)[1]) for o, places, id_ in at)
        arms.append((when, run.join(read_so)))
    if len(arms) > 1 and common.wrong != FALSE:
        arms.append((common.wrong, run.constant(0)))
    return run.one_of(arms)


def _atomic(run: Executor, common: Access, op: ops.Atomic, element: Element) -> Value:
    places = [place_at(when, item, start + element.offset, element.type.bytes) for when, item, start in common.where]
    id_ = run.here.at(element.offset)
    _, old = read(run, places, common.inside, common.address, id_, common.wrong)
    values = [_operand(run, o, op.type, element, op.packed) for o in op.operands[element.item]]
    presence = wrote = common.inside
    control = run.control
    if op.op != "cas":
        written = updated(run, op.op, element.type, common.where, old, values[0])
        if run.here.instruction in run.idempotent:
            same = equal(run.formulas, old.domain, written.domain)
            same = run.machine.either_way(same, {**old.reads, **written.reads})
            wrote = run.formulas.both(presence, -same)
    elif run.machine.reading.cas_writes:
        written = run.function(("cas",), lambda o, c, n: n if o == c else o, [old, *values])
    else:
        compared, written = values
        success = equal(run.formulas, old.domain, compared.domain)
        presence = wrote = run.formulas.both(presence, run.machine.either_way(success, old.reads))
        control = run.machine.all_reads([control, old.reads, compared.reads])
    run.wrote(wrote)
    write(run, places, written, presence, common.address, id_, control)
    return old


def updated(run: Executor, op: str, type_: Type, where: Located, old: Value, operand: Value) -> Value:
    """What an atomic operation other than cas writes over ``old``."""
    if op == "exch":
        return operand
    values = [old, operand]
    if op in ("inc", "dec"):
        function = partial(update, op, type_)
        expression = run.machine.expressions.made((op, type_), [v.expression for v in values], op, type_, function)
        return run.value(run.applied(Computation(op, type_, (), function), values), expression, values)
    if op != "add" or type_ != F32:
        return run.operation(op, type_, values)
    # Single precision addition flushes subnormal numbers in global memory, but not in shared memory.
    sides: dict[str, list[Formula]] = {}
    for when, item, _ in where:
        sides.setdefault("add" if item.space == "shared" else "add.ftz", []).append(when)
    arms = [(run.formulas.any(when), run.operation(how, type_, values)) for how, when in sides.items()]
    return run.one_of(arms) if arms else operand


def _returned(run: Executor, event: Event, places: list[Place], outside: Formula) -> Domain:
    """The domain of what a read returns: variables over the values its cells may hold."""
    machine = run.machine
    cells: dict[tuple[str, int, int], Domain] = {}
    arms: list[tuple[Formula, Domain]] = []

    def held(cell: tuple[str, int, int]) -> Domain:
        if cell not in cells:
            values = machine.possible(cell, event.id)
            cells[cell] = machine.any_of(8 * cell[2]) if values is None else machine.one_of(values)
        return cells[cell]

    for place in places:
        parts = [(8 * (cell[1] - place.offset), held(cell)) for cell in machine.cells(place)]
        arms.append((place.when, only(0) if run.blind else assemble(run.formulas, parts, machine.setting.wide)))
    machine.read_cells[event.number] = cells
    if outside != FALSE or not arms:
        arms.append((outside, only(0)))
    return merge(run.formulas, arms)


EFFECTS: Effects = {
    ops.Load: access,
    ops.Store: access,
    ops.Atomic: access,
    ops.StoreBulk: store_bulk,
    ops.Discard: discard,
}
