"""The final values that a condition names: of one execution, and of all where they are the same (docs/whole.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.formats.modules.kernel import named, terms
from ptxmm.formats.modules.objects import Object, with_elements
from ptxmm.program import propositions
from ptxmm.program.condition import (
    AddressTerm,
    Comparison,
    Conjunction,
    Disjunction,
    IntegerTerm,
    MemoryTerm,
    Negation,
    Proposition,
    RegisterTerm,
    Term,
    comparison_type,
    holds,
)
from ptxmm.program.condition import terms as terms_of
from ptxmm.program.source import NameTerm
from ptxmm.program.test import MemoryObject, Placement, Thread
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Type
from ptxmm.whole.execution.machine import Machine
from ptxmm.whole.memory import Instance
from ptxmm.whole.order.options import Options, Unclear
from ptxmm.whole.order.origins import Key

Final: TypeAlias = Mapping[Term, int | None]
"""The unsigned values of registers and memory elements; None: not known."""
_WIDEST = 64
"""So many bits has what is known as a number."""


class Finals(Struct, frozen=True):
    """What the condition of a kernel is about: the ``proposition``, the names that its ``terms`` are shown by, the
    instance of each object, by its key, and the thread of each register, by the number in its term."""

    proposition: Proposition
    names: Mapping[Term, str]
    instances: Mapping[str, Instance]
    threads: tuple[int, ...]

    def decides(self, final: Final) -> bool:
        """Whether some values tell if the condition holds."""
        return evaluate(self.proposition, final) is not None

    def at(self, machine: Machine) -> Finals:
        """The same of an execution in which the variables lie elsewhere."""
        found = {(item.variable.name, item.owner): item for item in machine.memory.instances}
        moved = {key: found[item.variable.name, item.owner] for key, item in self.instances.items()}
        return replace(self, instances=moved)

    def reads(self, machine: Machine, final: Final) -> Iterator[Key]:
        """The reads of an execution on which what is not known of ``final`` depends, as far as they are known."""
        for term in (term for term, value in final.items() if value is None):
            if isinstance(term, RegisterTerm):
                origin = machine.origins.get(term.register, {}).get(self.threads[term.thread])
            else:
                assert isinstance(term, MemoryTerm)
                size = term.type.bytes
                origin = machine.kept.origin((self.instances[term.key].start + term.index * size, size))
            yield from () if origin is None else origin.reads()

    def of(self, machine: Machine, every: bool) -> Final:
        """The values at the end of an execution; ``every``: those that all executions with the plan of ``machine``
        have."""
        options = Options(machine.strong) if every else None
        return {term: self._value(term, machine, options) for term in self.names}

    def _value(self, term: Term, machine: Machine, options: Options | None) -> int | None:
        assert isinstance(term, RegisterTerm | MemoryTerm)
        if term.type.bits > _WIDEST:
            return None
        if isinstance(term, RegisterTerm):
            value = machine.register(term.register, np.array([self.threads[term.thread]]))
            return int(value.words[0]) & (1 << term.type.bits) - 1 if value.known[0] else None
        size = term.type.bytes
        place = self.instances[term.key].start + term.index * size
        if any(at < place + size and place < at + ops.MBARRIER_BYTES for at in machine.mbarriers.places()):
            return None
        logs = machine.strong.overlapping(place, size)
        if options is None or not logs:
            words, known = machine.memory.load(np.array([place]), size)
            if not known[0] and logs == {(place, size)}:
                return machine.locations.held((place, size))
            return int(words[0]) if known[0] else None
        if logs != {(place, size)}:
            return None
        try:
            values = options.last((place, size))
        except Unclear:
            return None
        return next(iter(values)) if len(values) == 1 else None

    def meanings(self, machine: Machine) -> Mapping[Term, object]:
        """The values at the end of an execution, the address of a byte of a variable as that, wherever it lies."""
        final = self.of(machine, every=False)
        found: dict[Term, object] = dict(final)
        for term, value in final.items():
            assert isinstance(term, RegisterTerm | MemoryTerm)
            if value is not None and term.type.bits == _WIDEST:
                item = machine.memory.pointed(value)
                if item is not None:
                    found[term] = item.variable.name, item.owner, value - item.base
        return found


def finals(machine: Machine) -> Finals | None:
    """What the condition of the kernel of ``machine`` is about, as it is accessed there; None if it has none.

    Raises ``PtxmmError`` with its place in the launch where it names what there is not."""
    kernel, condition = machine.kernel, machine.kernel.launch.condition
    if condition is None:
        return None
    instances = dict(_instances(machine, set(named(condition)), _locals(machine)))
    seen = _elements(machine, instances)
    objects = {key: _object(machine, key, item, seen[item.variable.name]) for key, item in instances.items()}
    numbers = dict(_threads(machine))
    threads = [Thread(name, Placement(), machine.body, _registers(machine, t)) for name, t in numbers.items()]
    names = propositions.names_of(threads, objects)
    try:
        found = propositions.proposition(condition.proposition, names)
    except PtxmmError as error:
        raise error.place(kernel.launch.file, kernel.launch.text) from None
    shown: dict[Term, str] = {}
    for term in terms_of(found):
        if isinstance(term, RegisterTerm):
            shown[term] = f"{threads[term.thread].name}:{term.register}"
        else:
            assert isinstance(term, MemoryTerm)
            shown[term] = f"{term.key}[{term.index}]" if objects[term.key].is_array else term.key
    return Finals(found, shown, instances, tuple(numbers.values()))


def evaluate(item: Proposition, values: Final) -> bool | None:
    """Whether ``item`` holds of some values; None where that depends on what is not known."""
    match item:
        case Comparison(_, left, right):
            a, b = (_number(term, values) for term in (left, right))
            return None if a is None or b is None else holds(item, a, b, comparison_type(item))
        case Conjunction(items):
            found = [evaluate(part, values) for part in items]
            return False if False in found else None if None in found else True
        case Disjunction(items):
            found = [evaluate(part, values) for part in items]
            return True if True in found else None if None in found else False
        case Negation(inner):
            inside = evaluate(inner, values)
            return None if inside is None else not inside


def _number(term: Term, values: Final) -> int | None:
    match term:
        case IntegerTerm(value):
            return value
        case AddressTerm(address=address):
            return address
        case _:
            return values[term]


def _threads(machine: Machine) -> Iterator[tuple[str, int]]:
    """The threads that the condition names, and their numbers in the launch."""
    for term in terms(machine.kernel.launch.condition):
        if isinstance(term, NameTerm) and (found := machine.launch.number_of(term)) is not None:
            number, cta, thread = found
            assert term.thread is not None
            yield term.thread, (machine.launch.parts[number].first + cta) * machine.size + thread


def _registers(machine: Machine, thread: int) -> dict[str, Type]:
    """The registers of a thread, with their types there."""
    part = machine.launch.parts[int(machine.part[machine.cta[thread]])]
    return dict(part.kernel.code.registers)


def _locals(machine: Machine) -> dict[int, str]:
    return {number: name for name, number in _threads(machine)}


def _instances(machine: Machine, wanted: set[str], threads: Mapping[int, str]) -> Iterator[tuple[str, Instance]]:
    """What the condition may name, by its key: shared memory of each CTA, local memory of the threads that it names."""
    for item in machine.memory.instances:
        name, space = item.variable.name, item.variable.space
        if space == "local":
            if item.owner in threads:
                yield f"{threads[item.owner]}:{name}", item
        elif name in wanted:
            if space == "shared" and machine.count > machine.size:
                number, cluster, rank = _owner(machine, item)
                grid = f"grid {number}, " if len(machine.launch.parts) > 1 else ""
                yield (
                    f"{grid}cta {rank}:{name}" if cluster is None else f"{grid}cluster {cluster}, cta {rank}:{name}",
                    item,
                )
            else:
                yield name, item


def _owner(machine: Machine, item: Instance) -> tuple[int, int | None, int]:
    """The grid that has shared memory, the cluster in it if it has some, and the CTA there."""
    number = int(machine.part[item.owner])
    part = machine.launch.parts[number]
    if part.kernel.grid.cluster is None:
        return number, None, item.owner - part.first
    cluster, rank = machine.memory.located(item.owner)
    return number, cluster - machine.memory.located(part.first)[0], rank


def _elements(machine: Machine, instances: Mapping[str, Instance]) -> Mapping[str, Object]:
    """The variables with elements as loads, stores and atomic operations access them."""
    variables = {item.variable.name: item.variable for item in instances.values()}
    columns, memory = machine.trace.columns(), machine.memory
    plain = [at for at, op in enumerate(machine.body) if isinstance(op, ops.Load | ops.Store | ops.Atomic)]
    rows = np.flatnonzero(np.isin(columns["instruction"], plain))
    number = memory.instance_of(columns["place"][rows])
    accessed: dict[str, set[tuple[int, int]]] = {}
    for at, item in enumerate(memory.instances):
        if item.variable.name in variables:
            here = rows[number == at]
            offsets = (columns["place"][here] - item.start).tolist()
            pairs = zip(offsets, columns["size"][here].tolist(), strict=True)
            accessed.setdefault(item.variable.name, set()).update(pairs)
    used = {name: places for name, places in accessed.items() if places}
    return with_elements(variables, used)


def _object(machine: Machine, key: str, item: Instance, seen: Object) -> MemoryObject:
    owner = None
    if seen.space == "shared":
        number, cluster, rank = _owner(machine, item)
        owner = (max(machine.launch.parts[number].device, 0), number, cluster, rank)
    count = 1 if seen.count is None else seen.count
    window = machine.memory.symbols[seen.name] if seen.space == "shared" else 0
    return MemoryObject(
        key, seen.name, seen.space, seen.type, count, seen.count is not None, (), item.base, key, key, owner,
        window=window, mapped=window,
    )  # fmt: skip
