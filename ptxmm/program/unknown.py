"""Memory without an initial value holds an unknown constant (PTX ISA 8.2.6; semantics A10).

Such an object gets distinct bytes that occur nowhere else in the test, so that an execution that only moves and stores
its value stands for every value, and the value is known again in a final state. Where the program or the condition
compares, some of the values that the constants of the test tell apart are tried as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from ptxmm.errors import PtxmmError
from ptxmm.program.condition import (
    Comparison,
    Conjunction,
    Disjunction,
    IntegerTerm,
    MemoryTerm,
    Negation,
    Proposition,
    terms,
)
from ptxmm.program.mbarriers import mbarriers
from ptxmm.program.symbols import addresses, constants
from ptxmm.program.test import MemoryObject, Test, Thread
from ptxmm.ptx.isa import definitions, uses
from ptxmm.ptx.ops import (
    Address,
    Alu,
    AsyncStore,
    Atomic,
    Branch,
    Compare,
    Convert,
    GenericAddress,
    Load,
    Multimem,
    Op,
    Reg,
    SetPredicate,
    Store,
    Sym,
    access_bytes,
)

MOST_BYTES = 128
"""At most so many bytes of a test may be unknown: each needs a value of its own that no constant contains."""

MOST_ASSIGNMENTS = 256
"""At most so many combinations of values are tried for the unknown elements."""

Bytes = Mapping[int, tuple[str, int]]
"""For each byte value that stands for an unknown one: the key of the object and the offset in it."""


def mark(
    objects: Mapping[str, MemoryObject], threads: Sequence[Thread], items: Sequence[Proposition | None]
) -> dict[str, MemoryObject]:
    """``objects`` with distinguishable bytes in those that have no initial value; mbarriers need none.

    Raises ``PtxmmError`` (kind ``unsupported``) if there are too many of them.
    """
    if not any(o.unknown for o in objects.values()):
        return dict(objects)
    barriers = mbarriers(threads, objects)
    objects = {key: replace(o, unknown=False) if key in barriers else o for key, o in objects.items()}
    unknown = [o for o in objects.values() if o.unknown and o.physical == o.key]
    taken = {0, 255}
    for value in _constants(objects.values(), threads, items):
        taken.update((value & (1 << 128) - 1).to_bytes(16, "little"))
    free = [b for b in (*range(0xA1, 255), *range(1, 0xA1)) if b not in taken]
    size = sum(o.size for o in unknown)
    if size > min(MOST_BYTES, len(free)):
        names = ", ".join(o.key for o in unknown)
        message = f"{size} bytes have no initial value ({names}); at most {min(MOST_BYTES, len(free))} are supported"
        raise PtxmmError(message, kind="unsupported", hint="give initial values, such as `= 0`")
    initial: dict[str, tuple[int, ...]] = {}
    for item in unknown:
        own, free = bytes(free[: item.size]), free[item.size :]
        step = item.type.bytes
        initial[item.key] = tuple(int.from_bytes(own[i : i + step], "little") for i in range(0, item.size, step))
    return {
        key: replace(item, initial=initial[item.physical]) if item.physical in initial else item
        for key, item in objects.items()
    }


def unknown_bytes(test: Test) -> Bytes:
    """Which byte values stand for unknown ones."""
    found: dict[int, tuple[str, int]] = {}
    for item in test.objects.values():
        if item.unknown and item.physical == item.key:
            content = b"".join(v.to_bytes(item.type.bytes, "little") for v in item.initial)
            found.update({byte: (item.key, offset) for offset, byte in enumerate(content)})
    return found


@dataclass(frozen=True, slots=True)
class Assignment:
    """A test in which the unknown elements have values: ``bytes`` are those put for the ones of ``unknown_bytes``."""

    test: Test
    bytes: Mapping[int, int]


def assignments(test: Test) -> Iterator[Assignment]:
    """``test`` with its unknown values kept apart from all others, then with the values that comparisons tell apart.

    Raises ``PtxmmError`` (kind ``unsupported``) where these are too many.
    """
    yield Assignment(test, {})
    read = _read(test)
    elements = [
        (item.key, index)
        for item in test.objects.values()
        if item.unknown and item.physical == item.key
        for index in range(item.count)
        if (item.key, index) in read
    ]
    values = _compared(test)
    if not elements or not values:
        return
    choices = []
    for key, index in elements:
        item = test.objects[key]
        mask = (1 << item.type.bits) - 1
        choices.append(list(dict.fromkeys((item.initial[index], *(v & mask for v in values)))))
    if prod(map(len, choices)) > MOST_ASSIGNMENTS:
        raise PtxmmError(
            f"{len(elements)} unknown initial values are compared with {len(values)} constants",
            kind="unsupported",
            hint="give initial values, such as `= 0`",
        )
    first = True
    for selection in product(*choices):
        if first:  # the unknown values themselves
            first = False
            continue
        yield _assigned(test, dict(zip(elements, selection, strict=True)))


def _read(test: Test) -> set[tuple[str, int]]:
    """The unknown elements whose initial value an instruction or the condition may come to see."""
    found: set[tuple[str, int]] = set()

    def add(item: MemoryObject, offset: int, size: int) -> None:
        for base in (test.objects[key] for key in _locations(item)):
            step = base.type.bytes
            last = min(base.count, -(-(offset + size) // step))
            found.update((base.key, i) for i in range(max(0, offset // step), last))

    for thread in test.threads:
        for op in thread.body:
            for address, size in _sources(op):
                if isinstance(address.base, Sym):
                    add(test.objects[address.base.name], address.base.offset + address.offset, size)
                else:
                    for item in test.objects.values():
                        add(item, 0, item.size)
    named = [None if test.condition is None else test.condition.proposition, test.filter]
    for term in (*test.locations, *(t for p in named if p is not None for t in terms(p))):
        if isinstance(term, MemoryTerm):
            add(test.objects[term.key], term.index * term.type.bytes, term.type.bytes)
    return found


def _locations(item: MemoryObject) -> tuple[str, ...]:
    """The keys of the physical objects that ``item`` stands for."""
    return item.replicas or (item.physical,)


def _sources(op: Op) -> Iterator[tuple[Address, int]]:
    """What ``op`` reads: addresses and numbers of bytes; 2**32 where it is not known."""
    match op:
        case Load() | Atomic() | Multimem(kind="ld_reduce" | "red"):
            yield op.address, access_bytes(op)
        case AsyncStore(reduction=str()):
            yield op.address, op.type.bytes * len(op.values)
        case Store() | AsyncStore() | Multimem():
            pass
        case _:
            yield from ((value, 1 << 32) for value in addresses(op))


def _assigned(test: Test, chosen: Mapping[tuple[str, int], int]) -> Assignment:
    objects = dict(test.objects)
    bytes_: dict[int, int] = {}
    for (key, index), value in chosen.items():
        item = test.objects[key]
        size = item.type.bytes
        old = item.initial[index].to_bytes(size, "little")
        bytes_ |= {a: b for a, b in zip(old, value.to_bytes(size, "little"), strict=True) if a != b}
    for key, item in test.objects.items():
        if item.unknown:
            initial = tuple(chosen.get((item.physical, i), old) for i, old in enumerate(item.initial))
            objects[key] = replace(item, initial=initial)
    return Assignment(replace(test, objects=objects), bytes_)


def computed_with(test: Test) -> list[str]:
    """Where the program may compute with unknown values, in words: then the values tried may not be all that matter."""
    tainted = {o.physical for o in test.objects.values() if o.unknown}
    if not tainted:
        return []
    registers: list[set[str]] = [set() for _ in test.threads]
    found: dict[str, None] = {}
    changed = True
    while changed:
        before = (len(tainted), sum(map(len, registers)), len(found))
        for thread, held in zip(test.threads, registers, strict=True):
            for op in thread.body:
                _flow(test, thread, op, held, tainted, found)
        changed = before != (len(tainted), sum(map(len, registers)), len(found))
    return list(found)


def _flow(test: Test, thread: Thread, op: Op, held: set[str], tainted: set[str], found: dict[str, None]) -> None:
    """What ``op`` passes on of unknown values, and whether it computes with them."""
    place = f"{thread.name} line {op.source.span.line}"

    def unknown(value: object) -> bool:
        return isinstance(value, Reg) and value.name in held

    if isinstance(op, Load | Store | Atomic | Multimem):
        base = op.address.base
        if unknown(base):
            found[f"{place}: an address"] = None
        objects = set(_locations(test.objects[base.name])) if isinstance(base, Sym) else set(tainted)
        stores = isinstance(op, Store) or (isinstance(op, Multimem) and op.kind == "st")
        reads = not stores and bool(objects & tainted)
        if reads:
            held |= {r.name for r in op.dst if r is not None}  # type: ignore[union-attr]
        if isinstance(op, Store | Multimem) and any(map(unknown, op.values)):
            tainted |= objects if isinstance(base, Sym) else {o.physical for o in test.objects.values()}
        if isinstance(op, Multimem) and not stores and (reads or any(map(unknown, op.values))):
            found[f"{place}: {op.kind}.{op.op}"] = None
            tainted |= objects if op.kind == "red" else set()
        if isinstance(op, Atomic):
            written = any(unknown(v) for values in op.operands for v in values)
            if op.op not in ("exch", "cas") and (reads or written):
                found[f"{place}: {op.op}"] = None
            if reads or written:
                tainted |= objects
        return
    if not any(name in held for name, _ in uses(op)):
        return
    compares = isinstance(op, SetPredicate | Branch)
    copies = isinstance(op, GenericAddress) or (isinstance(op, Alu) and op.op == "mov") or (
        isinstance(op, Convert) and op.to.bits >= op.frm.bits and not op.saturate
    )
    if not compares and not copies:
        found[f"{place}: {op.source.text.partition(' ')[0]}"] = None
    if not isinstance(op, SetPredicate):
        held |= {name for name, _ in definitions(op)}


def _compared(test: Test) -> list[int]:
    """The values that the comparisons of the program and of its condition tell apart, none if there are none."""
    ordered = False
    compares = False
    for thread in test.threads:
        for op in thread.body:
            match op:
                case SetPredicate(cmp=cmp) | Branch(condition=Compare(cmp=cmp)):
                    compares, ordered = True, ordered or cmp not in ("eq", "ne")
                case Atomic(op="cas"):
                    compares = True
                case Atomic(op="min" | "max" | "inc" | "dec") | Multimem(op="min" | "max") | Alu(op="min" | "max"):
                    compares = ordered = True
    found: dict[int, None] = {}
    condition = None if test.condition is None else test.condition.proposition
    for comparison in _comparisons((condition, test.filter)):
        compares = True
        ordered = ordered or comparison.op not in ("==", "!=")
    if not compares:
        return []
    for value in _constants(test.objects.values(), test.threads, (condition, test.filter)):
        found[value] = None
    if ordered:
        found |= dict.fromkeys(value + step for value in tuple(found) for step in (-1, 1))
    return list(found)


def _comparisons(items: Iterable[Proposition | None]) -> Iterator[Comparison]:
    for item in items:
        match item:
            case Comparison():
                yield item
            case Conjunction(parts) | Disjunction(parts):
                yield from _comparisons(parts)
            case Negation(inner):
                yield from _comparisons((inner,))


def _constants(
    objects: Iterable[MemoryObject], threads: Iterable[Thread], items: Iterable[Proposition | None]
) -> Iterator[int]:
    """Every integer constant of a test: of instructions, initial values and conditions."""
    for item in objects:
        if not item.unknown:
            yield from dict.fromkeys(item.initial)
    for thread in threads:
        yield from thread.initial.values()
        for op in thread.body:
            yield from constants(op)
    for comparison in _comparisons(items):
        for term in (comparison.left, comparison.right):
            if isinstance(term, IntegerTerm):
                yield term.value
