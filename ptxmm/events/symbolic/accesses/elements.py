"""Loads, stores and atomic operations, with one event for each scalar access, or for a vector in one piece (PTX ISA
8.2, 9.7.10, 9.7.14)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ptxmm.events.symbolic.event import Event, Place
from ptxmm.events.symbolic.executor import ADDRESS, Executor, Located, place_at
from ptxmm.events.symbolic.machine import State
from ptxmm.events.symbolic.values.domain import Domain, Reads, Value, apply, extend, merge, only, update
from ptxmm.events.symbolic.values.floats import compute_float, is_float
from ptxmm.program.identity import EventId
from ptxmm.program.shared.refusals import refused
from ptxmm.ptx.ops import (
    BULK_UNIT,
    Atomic,
    Element,
    Load,
    Op,
    Operand,
    Store,
    StoreBulk,
    Type,
    access_bytes,
    elements,
)
from ptxmm.relations.formula import FALSE, TRUE, Formula


class Access(Struct, frozen=True):
    """What the scalar accesses of one instruction share. ``where``: the places it may begin at."""

    op: Op
    here: EventId
    where: Located
    wrong: Formula
    inside: Formula
    address: Reads
    control: Reads


def access(
    run: Executor,
    op: Load | Store | Atomic,
    here: EventId,
    state: State,
    presence: Formula,
    condition: Formula,
    guard: Reads,
) -> None:
    """Execute a load, a store or an atomic operation under ``presence``; ``guard``: what its predicate depends on."""
    address = run.address(state, op.address, op.space)
    where, wrong = run.located(op, address, access_bytes(op), presence)
    # While the possible values are still being found there may be no place at all.
    inside = run.formulas.both(presence, -wrong) if where else FALSE
    common = Access(op, here, where, wrong, inside, address.reads, run.control(state, guard))
    parts = elements(op, run.machine.split128, run.machine.whole)
    divided = len(parts) > 1 and op.scope is None and parts[0].items == 1
    if isinstance(op, Store):
        for element in parts:
            store(run, common, element, _stored(run, state, op, element), divided)
        run.wrote(state, common.inside)
        return
    results: dict[int, list[tuple[Element, Value]]] = {}
    for element in parts:
        if isinstance(op, Atomic):
            value = _atomic(run, common, op, element, state)
        else:
            value = load(run, common, element, divided)
        for own, part in _by_item(run, op.type, element, value):
            results.setdefault(own.item, []).append((own, part))
    for item, dst in enumerate(op.dst):
        if dst is not None:
            run.assign(state, dst.name, _result(run, op.type, dst.name, results[item]), condition, op)


def _stored(run: Executor, state: State, op: Store, element: Element) -> Value:
    """What ``element`` of a vector, or several of them in one piece, is to hold."""
    if element.items == 1:
        return _operand(run, state, op.values[element.item], op.type, element)
    own = op.values[element.item : element.item + element.items]
    whole, *rest = (run.operand(state, value, Type("b", op.type.bits)) for value in own)
    for k, value in enumerate(rest, 1):
        whole = run.join(whole, value, k * op.type.bits)
    return whole


def _by_item(run: Executor, type_: Type, element: Element, value: Value) -> Iterator[tuple[Element, Value]]:
    """What an access that returned ``value`` gives each register of ``type_``."""
    if element.items == 1:
        yield element, value
        return
    for k in range(element.items):
        at = element.offset + k * type_.bytes
        yield Element(at, type_, element.item + k, 0), run.field(value, k * type_.bits, type_.bits)


def _operand(run: Executor, state: State, operand: Operand, type_: Type, element: Element, packed: int = 1) -> Value:
    """The part of an operand that belongs to ``element``."""
    whole = run.operand(state, operand, Type("b", packed * type_.bits))
    if element.type.bits == packed * type_.bits:
        return whole
    return run.field(whole, element.shift, element.type.bits)


def _result(run: Executor, type_: Type, name: str, parts: list[tuple[Element, Value]]) -> Value:
    """What a register gets from the accesses of its item."""
    result = parts[0][1]
    for element, value in parts[1:]:
        result = run.join(result, value, element.shift)
    bits = run.thread.registers[name].bits
    if bits > type_.bits and len(parts) == 1:
        if run.machine.expressions.values and type_.signed:
            return run.function(
                ("extend", type_, bits), lambda v: extend(v, type_, bits), [result], "extend", type_, type_, bits
            )
        return result.holding(apply(run.formulas, lambda v: extend(v, type_, bits), result.domain))
    return result


def pieces(run: Executor, where: Located, offset: int, size: int, divided: bool) -> list[list[list[Place]]]:
    """The accesses that one scalar access is made as: for each way to divide it, the places of each piece in turn.

    Only a part of a weak vector is divided, where the other accesses of the test divide it (A12); those of a
    strong one are scalars (8.2.4).
    """
    if not divided:
        return [[[place_at(when, item, start + offset, size) for when, item, start in where]]]
    ways: dict[tuple[tuple[int, int], ...], list[list[Place]]] = {}
    for when, item, start in where:
        chunks = run.machine.chunks(item.physical, start + offset, size)
        relative = tuple((o - start - offset, n) for o, n in chunks)
        columns = ways.setdefault(relative, [[] for _ in relative])
        for column, (o, n) in zip(columns, chunks, strict=True):
            column.append(place_at(when, item, o, n))
    return list(ways.values())


def store_bulk(run: Executor, op: StoreBulk, here: EventId, state: State, presence: Formula, control: Reads) -> None:
    """``st.bulk``: weak writes of zeros, divided as the other accesses of the test divide its bytes."""
    address, size = run.address(state, op.address, op.space), run.operand(state, op.size, ADDRESS)
    reads = run.machine.union(address.reads, size.reads)
    for length, when in size.domain.items():
        held = run.formulas.both(presence, when)
        if length % BULK_UNIT:
            run.misuse(op, held, f"st.bulk of {length} bytes, which is no multiple of {BULK_UNIT}")
            continue
        where, wrong = run.located(op, address, length, held, alignment=1)
        if any(start % BULK_UNIT for _, _, start in where):
            raise refused(op.misaligned, run.machine.test, op)
        for columns in pieces(run, where, 0, length, True):
            offset = 0
            for places in columns:
                there = run.formulas.both(held, run.formulas.any([p.when for p in places]))
                if there != FALSE:
                    event = run.event("W", op, here.at(offset), there, control)
                    event.places, event.value, event.address = places, only(0), reads
                offset += places[0].size
        run.wrote(state, run.formulas.both(held, -wrong))


def _when(run: Executor, places: list[Place], whole: bool) -> Formula:
    """When one of ``places`` is meant; ``whole``: they are all that there are."""
    return TRUE if whole else run.formulas.any([p.when for p in places])


def store(run: Executor, common: Access, element: Element, value: Value, divided: bool) -> None:
    """Write ``value`` to ``element``."""
    if common.inside == FALSE:
        return
    ways = pieces(run, common.where, element.offset, element.type.bytes, divided)
    for columns in ways:
        shift = 0
        for places in columns:
            presence = run.formulas.both(common.inside, _when(run, places, len(ways) == 1))
            if presence != FALSE:
                id_ = common.here.at(element.offset + shift // 8)
                event = run.event("W", common.op, id_, presence, common.control)
                size = places[0].size
                part = value if len(columns) == 1 else run.field(value, shift, 8 * size)
                event.places, event.value = places, part.domain
                event.address, event.data = common.address, part.reads
            shift += 8 * places[0].size


def read(
    run: Executor,
    op: Op,
    here: EventId,
    places: list[Place],
    presence: Formula,
    wrong: Formula,
    address: Reads,
    control: Reads,
) -> tuple[Event, Value]:
    """One read; ``wrong``: when it is made outside every object and returns 0."""
    event = run.event("R", op, here, presence, control)
    event.places, event.address = places, address
    event.value = _returned(run, event, places, wrong)
    leaf = run.machine.expressions.leaf(8 * places[0].size if places else 64, "read", event.number)
    return event, Value(event.value, leaf, {event.number: TRUE})


def load(run: Executor, common: Access, element: Element, divided: bool) -> Value:
    """What ``element`` holds."""
    ways = pieces(run, common.where, element.offset, element.type.bytes, divided)
    if not ways:
        ways = [[[]]]
    arms: list[tuple[Formula, Value]] = []
    for columns in ways:
        whole: Value | None = None
        shift = 0
        when = _when(run, columns[0], len(ways) == 1)
        for places in columns:
            presence = run.formulas.both(common.inside, when)
            id_ = common.here.at(element.offset + shift // 8)
            wrong = common.wrong if len(ways) == 1 else FALSE
            _, value = read(run, common.op, id_, places, presence, wrong, common.address, common.control)
            whole = value if whole is None else run.join(whole, value, shift)
            shift += 8 * places[0].size if places else 0
        assert whole is not None
        arms.append((when, whole))
    if len(arms) > 1 and common.wrong != FALSE:
        arms.append((common.wrong, run.constant(0)))
    return run.one_of(arms)


def _atomic(run: Executor, common: Access, op: Atomic, element: Element, state: State) -> Value:
    places = [place_at(when, item, start + element.offset, element.type.bytes) for when, item, start in common.where]
    id_ = common.here.at(element.offset)
    event, old = read(run, op, id_, places, common.inside, common.wrong, common.address, common.control)
    values = [_operand(run, state, o, op.type, element, op.packed) for o in op.operands[element.item]]
    presence, control = event.presence, common.control
    if op.op == "cas":
        compared, new = values
        if run.machine.cas_writes:
            written = run.function(("cas",), lambda o, c, n: n if o == c else o, [old, compared, new])
            _write_half(run, common, op, id_, places, presence, control, written)
            run.wrote(state, presence)
            return old
        success = apply(run.formulas, lambda a, b: int(a == b), old.domain, compared.domain).get(1, FALSE)
        success = run.machine.either_way(success, old.reads)
        presence = run.formulas.both(presence, success)
        control = run.machine.union(run.machine.union(control, old.reads), compared.reads)
        written = new
    else:
        written = updated(run, op.op, element.type, common.where, old, values[0])
        if common.here.instruction in run.idempotent:
            same = apply(run.formulas, lambda a, b: int(a == b), old.domain, written.domain).get(1, FALSE)
            same = run.machine.either_way(same, {**old.reads, **written.reads})
            run.wrote(state, run.formulas.both(presence, -same))
            _write_half(run, common, op, id_, places, presence, control, written)
            return old
    run.wrote(state, presence)
    _write_half(run, common, op, id_, places, presence, control, written)
    return old


def _write_half(
    run: Executor,
    common: Access,
    op: Atomic,
    id_: EventId,
    places: list[Place],
    presence: Formula,
    control: Reads,
    written: Value,
) -> None:
    if presence != FALSE:
        write = run.event("W", op, id_, presence, control)
        write.places, write.value = places, written.domain
        write.address, write.data = common.address, written.reads


def updated(run: Executor, op: str, type_: Type, where: Located, old: Value, operand: Value) -> Value:
    """What an atomic operation other than cas writes over ``old``."""
    if op == "exch":
        return operand
    if is_float(op, type_):
        return _updated_float(run, op, type_, where, old, operand)
    if op not in ("inc", "dec"):
        return run.operation(op, type_, [old, operand])
    operands = [old.expression, operand.expression]
    expression = run.machine.expressions.made((op, type_), operands, op, type_, lambda a, b: update(op, type_, a, b))
    domain = apply(run.formulas, lambda a, b: update(op, type_, a, b), old.domain, operand.domain)
    return run.value(domain, expression, [old, operand])


def _updated_float(run: Executor, op: str, type_: Type, where: Located, old: Value, operand: Value) -> Value:
    """Single precision addition flushes subnormal numbers in global memory, but not in shared memory."""
    flushes = type_.bits == 32 and op == "add"
    sides: dict[bool, list[Formula]] = {}
    for when, item, _ in where:
        sides.setdefault(flushes and item.space != "shared", []).append(when)
    arms = []
    for flush, where_so in sides.items():
        name = ("float", op, type_, flush)
        result = run.function(name, lambda a, b, flush=flush: compute_float(op, type_, a, b, flush), [old, operand])
        arms.append((run.formulas.any(where_so), result))
    return run.one_of(arms) if arms else operand


def _returned(run: Executor, event: Event, places: list[Place], outside: Formula) -> Domain:
    """The domain of what a read returns: variables over the values its cells may hold."""
    machine, formulas = run.machine, run.formulas
    cells: dict[tuple[str, int, int], Domain] = {}
    arms: list[tuple[Formula, Domain]] = []
    for place in places:
        whole: Domain | None = None
        for cell in machine.cells(place):
            if cell not in cells:
                support = machine.possible(cell, event.id)
                choice = machine.new_choice()
                one = len(support) == 1
                cells[cell] = Domain({v: TRUE if one else formulas.variable(choice) for v in support}, support)
            shift = 8 * (cell[1] - place.offset)
            if whole is None:
                whole = cells[cell]
            else:
                whole = apply(formulas, lambda low, high, shift=shift: low | high << shift, whole, cells[cell])
        assert whole is not None
        arms.append((place.when, whole))
    machine.read_cells[event.number] = cells
    if outside != FALSE:
        arms.append((outside, only(0)))
    if not arms:
        return only(0)
    return arms[0][1] if len(arms) == 1 else merge(formulas, arms)


__all__ = ["Access", "access", "load", "pieces", "read", "store", "updated"]
