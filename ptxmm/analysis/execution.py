"""An execution in plain values: what each instruction read and wrote, and the orders that were found."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product

from ptxmm.analysis.instruction import crowded, instruction, label
from ptxmm.analysis.observe import address
from ptxmm.analysis.result import Access, CoherentWrites, Execution, OrderedFences, Step, ThreadSteps
from ptxmm.engines.explicit.witness import Rebuilt
from ptxmm.program.floats import real_text
from ptxmm.program.identity import EventId, Instance
from ptxmm.program.shared.unseen import opened
from ptxmm.program.shared.windows import in_window
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import unknown_bytes
from ptxmm.words import number_of

INITIAL = "initial"
"""What stands for the instruction of an initial write."""
OPEN = "?"
"""What stands for a value that is made of results that are not worked out."""


def place(test: Test, rebuilt: Rebuilt, number: int) -> str:
    """The instruction of an event, as ``EventView.label`` has it; ``initial`` for an initial write."""
    if number >= rebuilt.layout.initial_first:
        return INITIAL
    thread, index, again = rebuilt.layout.events[number].id.instance
    return label(test, thread, index) + (f" (round {again + 1})" if again else "")


def location(test: Test, key: str, offset: int, size: int) -> str:
    """Bytes of an object: ``x``, ``a[1]``, or ``x+2 (2 bytes)`` where they are no element."""
    item = test.objects.get(key)
    if item is None:  # the virtual address of one location of a multimem address
        item = test.objects[key.rpartition(" at ")[0]]
    index, rest = divmod(offset, item.type.bytes)
    if rest == 0 and size == item.type.bytes:
        return f"{key}[{index}]" if item.is_array else key
    where = f"{key}+{offset}" if offset else key
    return f"{where} ({number_of(size, 'byte')})"


def execution(test: Test, rebuilt: Rebuilt) -> Execution:
    """The execution ``rebuilt`` in plain values."""
    layout, algebra = rebuilt.layout, rebuilt.layout.algebra
    threads = []
    written = _written(rebuilt)
    sources = algebra.rows(algebra.inverse(rebuilt.base("rf") or 0))  # once: of a thousand events it is a large number
    folded = 0
    for number, thread in enumerate(test.threads):
        steps: dict[Instance, list[Access]] = {}
        first, end = layout.spans[number]
        for i in range(first, end):
            event = layout.events[i]
            if not 0 <= event.id.instruction < len(thread.body):
                continue
            accesses = steps.setdefault(event.id.instance, [])
            if event.kind in ("R", "W") and event.cell is not None:
                accesses.append(_access(test, rebuilt, i, [*algebra.members(sources[i])]))
        telling = {layout.events[i].id.instance for i in range(first, end) if not _dull(test, rebuilt, i, written)}
        folded += len(steps.keys() - telling)
        steps = {instance: accesses for instance, accesses in steps.items() if instance in telling}
        if number in rebuilt.meeting.waiting:  # what it waits at, or misuses
            steps.setdefault(rebuilt.traces[number].steps[rebuilt.meeting.reached[number] - 1].id.instance, [])
        made = (_step(test, instance, accesses) for instance, accesses in steps.items())
        threads.append(ThreadSteps(thread.name, tuple(made)))
    return Execution(tuple(threads), tuple(_coherence(test, rebuilt, written)), tuple(_fences(test, rebuilt)), folded)


def _step(test: Test, instance: Instance, accesses: list[Access]) -> Step:
    thread, index, again = instance
    return Step(instruction(test, thread, index), again, tuple(accesses), crowded(test, thread, index))


def _written(rebuilt: Rebuilt) -> dict[str, list[tuple[int, int]]]:
    """The bytes of each object that a thread writes: where each write begins and ends."""
    found: dict[str, list[tuple[int, int]]] = {}
    for (key, start, size), writes in rebuilt.layout.writes.items():
        if any(write < rebuilt.layout.initial_first for write in writes):
            found.setdefault(key, []).append((start, start + size))
    return found


def _dull(test: Test, rebuilt: Rebuilt, number: int, written: Mapping[str, Sequence[tuple[int, int]]]) -> bool:
    """Whether an event of a kernel has nothing to do with other threads: it accesses ``.local`` memory, or reads what
    nothing writes (``written``: what is written)."""
    layout = rebuilt.layout
    event = layout.events[number]
    if test.claims is None or event.kind not in ("R", "W") or event.cell is None:
        return False
    item = test.objects.get(event.cell[0])
    if item is not None and item.space == "local":
        return True
    key, start, size = event.cell
    return event.kind == "R" and not any(at < start + size and start < end for at, end in written.get(key, ()))


def _access(test: Test, rebuilt: Rebuilt, number: int, sources: Sequence[int]) -> Access:
    event = rebuilt.layout.events[number]
    assert event.cell is not None
    where = location(test, *event.cell)
    value = shown_at(test, rebuilt, number, sources)
    if event.kind == "W":
        return Access("W", where, value)
    return Access("R", where, value, tuple(dict.fromkeys(place(test, rebuilt, write) for write in sources)))


def shown_at(test: Test, rebuilt: Rebuilt, number: int, sources: Sequence[int] | None = None) -> int | str:
    """What the event ``number`` reads or writes, as ``shown``; initial values are known. ``sources``: the writes that
    it reads from, if they are at hand."""
    layout = rebuilt.layout
    event = layout.events[number]
    assert event.cell is not None
    value = rebuilt.values[event.id] if event.kind == "R" else rebuilt.written[number]
    written = [number] if event.kind == "W" else _sources(rebuilt, number) if sources is None else sources
    known = all(w >= layout.initial_first for w in written)
    return shown(test, value, event.cell, None if known else event.id)


def _sources(rebuilt: Rebuilt, number: int) -> list[int]:
    """The writes that the read ``number`` reads from."""
    algebra = rebuilt.layout.algebra
    return list(algebra.members(algebra.successors(algebra.inverse(rebuilt.base("rf") or 0), number)))


def shown(test: Test, value: int, cell: tuple[str, int, int], access: EventId | None) -> int | str:
    """The value that ``access`` (None: any) reads or writes in the bytes ``cell`` (object, first byte, size).

    It is the address where it is one, ``?x`` for the unknown value of ``x``, ``?`` for one that may be made of results
    that are not worked out, a floating-point number where these are elements of the object, else an unsigned integer.
    """
    if access is not None and access.thread < len(test.threads) and access.instruction in opened(test)[access.thread]:
        return OPEN
    key, _, size = cell
    bytes_ = unknown_bytes(test)
    unknown = {origin[0] for b in value.to_bytes(size, "little") if (origin := bytes_.get(b)) is not None}
    if unknown:
        return "?" + "?".join(sorted(unknown))
    item = test.objects.get(key)
    if item is not None and item.type.kind == "f" and item.type.bytes == size:
        return real_text(value, item.type)
    found = test.locate(value) if size == 8 else None
    if found is None and size in (4, 8):
        found = in_window(test.objects, value)
    return value if found is None else address(found[0].key, found[1])


def _coherence(test: Test, rebuilt: Rebuilt, written: Mapping[str, Sequence[tuple[int, int]]]) -> list[CoherentWrites]:
    """Neighbours in coherence order among the writes of threads to each cell."""
    layout = rebuilt.layout
    pairs = set(layout.algebra.pairs(rebuilt.co))
    found: dict[CoherentWrites, None] = {}
    for cell, writes in layout.writes.items():
        own = [w for w in writes if w < layout.initial_first and not _dull(test, rebuilt, w, written)]
        for a, b in _neighbours(pairs, own):
            found[CoherentWrites(location(test, *cell), place(test, rebuilt, a), place(test, rebuilt, b))] = None
    return list(found)


def _fences(test: Test, rebuilt: Rebuilt) -> list[OrderedFences]:
    layout = rebuilt.layout
    fsc = set(layout.algebra.pairs(rebuilt.base("fsc") or 0))
    near = _neighbours(fsc, sorted({e for pair in fsc for e in pair}))
    return [OrderedFences(place(test, rebuilt, a), place(test, rebuilt, b)) for a, b in near]


def _neighbours(order: Collection[tuple[int, int]], members: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The pairs of ``members`` in an order that none of them is between."""
    for pair in product(members, members):
        if pair in order and not any((pair[0], c) in order and (c, pair[1]) in order for c in members):
            yield pair
