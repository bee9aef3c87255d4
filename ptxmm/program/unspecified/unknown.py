"""Memory without an initial value holds an unknown constant (PTX ISA 8.2.6; decision A10).

Such an object gets distinct bytes that occur nowhere else in the test, so that an execution that only moves and stores
its value stands for every value, and the value is known again in a final state. Where the program or the condition
compares, some of the values that the constants of the test tell apart are tried as well. What instructions write whose
value is undetermined is treated in the same way (see ``undetermined``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.program.condition import IntegerTerm, RegisterTerm, Term, comparisons
from ptxmm.program.latest import Latest
from ptxmm.program.shared.chunks import Chunks
from ptxmm.program.shared.mbarriers import mbarriers
from ptxmm.program.shared.undetermined import WRITERS, Writer, elements, readable, refuse_loops, writers
from ptxmm.program.shared.unseen import unseen
from ptxmm.program.symbols import constants
from ptxmm.program.test import MemoryObject, Test, Thread
from ptxmm.program.unspecified.absent import without_absent
from ptxmm.program.unspecified.active import with_masks
from ptxmm.program.unspecified.elected import with_leaders
from ptxmm.program.unspecified.undecided import either_way
from ptxmm.program.unspecified.unknown_uses import UnknownUses
from ptxmm.ptx import ops

MOST_BYTES = 128
"""At most so many bytes of a test may be unknown: each needs a value of its own that no constant contains."""

_LONGEST = 16
"""No access is of more bytes."""

MOST_ASSIGNMENTS = 256
"""At most so many combinations of values are tried for the unknown elements."""

Bytes = Mapping[int, tuple[str, int]]
"""For each byte value that stands for an unknown one: the key of the object and the offset in it; for one that an
instruction writes the name of the ``Writer`` and the offset from where it begins; -1 for one that nothing looks at."""


def mark(test: Test) -> Test:
    """``test`` with distinguishable bytes in the objects that have no initial value (mbarriers need none), and for what
    instructions write whose value is undetermined.

    Raises ``PtxmmError`` (kind ``unsupported``) if there are too many of them, or such an instruction is in a loop.
    """
    made = writers(test.threads, test.objects)
    if not made and not any(o.unknown for o in test.objects.values()):
        return test
    refuse_loops(test, made)
    barriers = mbarriers(test.threads, test.objects)
    objects = {key: replace(o, unknown=False) if key in barriers else o for key, o in test.objects.items()}
    unknown = [o for o in objects.values() if o.unknown and o.physical == o.key]
    taken = {0, 255}
    for value in _constants(objects.values(), test):
        taken.update((value & (1 << 128) - 1).to_bytes(16, "little"))
    free = [b for b in (*range(0xA1, 255), *range(1, 0xA1)) if b not in taken]
    initial, free = _mark_objects(test, unknown, free)
    objects = {
        key: replace(item, initial=initial[item.physical]) if item.physical in initial else item
        for key, item in objects.items()
    }
    return replace(test, objects=objects, threads=_mark_writers(test, made, free))


def _mark_objects(
    test: Test, unknown: Sequence[MemoryObject], free: list[int]
) -> tuple[dict[str, tuple[int, ...]], list[int]]:
    """The initial values of the objects ``unknown``, of bytes of ``free``, and what is left of these.

    Where there are too many bytes, elements that nothing looks at have the same byte everywhere, and so have objects
    whose contents nothing sees. If that is not enough, each object has one byte everywhere: who asks for values of
    these is told so (see ``assignments``).
    """
    most = min(MOST_BYTES, len(free))
    seen = None
    if sum(o.size for o in unknown) > most:
        covered = hidden(test, ())
        seen = {place for place in readable(test) if place[0] not in covered}
    told: dict[str, list[bool]] = {}
    for item in unknown:
        step = item.type.bytes
        bytes_ = [{(item.key, i + j) for j in range(step)} for i in range(0, item.size, step)]
        told[item.key] = [seen is None or not seen.isdisjoint(element) for element in bytes_]
    size = sum(item.type.bytes * sum(told[item.key]) for item in unknown)
    if size > most - (seen is not None):
        if len(unknown) > most:
            raise _too_many(test, size, unknown)
        alike = {
            o.key: int.from_bytes(bytes((b,) * o.type.bytes), "little") for o, b in zip(unknown, free, strict=False)
        }
        return {o.key: (alike[o.key],) * o.count for o in unknown}, free[len(unknown) :]
    rest = 0
    if seen is not None:
        rest, free = free[0], free[1:]
    initial: dict[str, tuple[int, ...]] = {}
    for item in unknown:
        values = []
        for apart in told[item.key]:
            step = item.type.bytes
            own = bytes(free[:step]) if apart else bytes((rest,) * step)
            free = free[step:] if apart else free
            values.append(int.from_bytes(own, "little"))
        initial[item.key] = tuple(values)
    return initial, free


def _too_many(test: Test, size: int, unknown: Sequence[MemoryObject]) -> PtxmmError:
    message = (
        f"{size} bytes have no initial value ({', '.join(o.key for o in unknown)}); at most {MOST_BYTES} are supported"
    )
    hint = "give initial values, such as `= 0`"
    if test.claims is not None:
        names = dict.fromkeys(o.name if o.name.isidentifier() else f'"{o.name}"' for o in unknown)
        hint = "give an initial value: [objects] " + ", ".join(f"{name} = {{ init = 0 }}" for name in names)
    return PtxmmError(message, kind="unsupported", hint=hint)


def _mark_writers(test: Test, made: Sequence[Writer], free: list[int]) -> tuple[Thread, ...]:
    """The threads of ``test`` with bytes of ``free`` for what ``made`` write."""
    if not made:
        return test.threads
    seen, chunks = readable(test), Chunks(test)
    parts = [[place for part in elements(test, w, seen, chunks) for place in part] for w in made]
    needed = sum(map(len, parts)) + len(made)
    if needed > len(free):
        names = ", ".join(w.name for w in made)
        message = f"{needed} bytes are undetermined ({names}); at most {len(free)} are supported"
        hint = "the bytes that instructions and the condition name are told apart, all if a register may name them"
        raise PtxmmError(message, kind="unsupported", hint=hint)
    bodies = [list(thread.body) for thread in test.threads]
    for writer, places in zip(made, parts, strict=True):
        rest, own, free = free[0], free[1 : 1 + len(places)], free[1 + len(places) :]
        content = ops.Undetermined(tuple((*place, byte) for place, byte in zip(places, own, strict=True)), rest)
        bodies[writer.thread][writer.pc] = _with_content(bodies[writer.thread][writer.pc], content)
    return tuple(replace(thread, body=tuple(body)) for thread, body in zip(test.threads, bodies, strict=True))


def _with_content(op: ops.Op, content: ops.Undetermined) -> ops.Op:
    assert isinstance(op, WRITERS)
    return replace(op, content=content)


def unknown_bytes(test: Test) -> Bytes:
    """Which byte values stand for unknown ones."""
    known = _bytes.get(test, None)
    return _bytes.keep(test, None, _unknown_bytes(test)) if known is None else known


_bytes: Latest[Bytes] = Latest(2)


def _unknown_bytes(test: Test) -> Bytes:
    found: dict[int, tuple[str, int]] = {}
    for item in test.objects.values():
        if item.unknown and item.physical == item.key:
            content = b"".join(v.to_bytes(item.type.bytes, "little") for v in item.initial)
            times = Counter(content)
            for offset, byte in enumerate(content):
                found[byte] = (item.key, -1 if byte in found or times[byte] > 1 else offset)
    for writer in writers(test.threads, test.objects):
        made = _content(test, writer)
        found[made.rest] = (writer.name, -1)
        found.update({byte: (writer.name, offset - writer.begin) for _, offset, byte in made.places})
    return found


def has_unknown(test: Test) -> bool:
    """Whether some values of ``test`` are unknown."""
    return any(item.unknown for item in test.objects.values()) or bool(writers(test.threads, test.objects))


def described(test: Test) -> str:
    """The unknown values of ``test`` in words: ``the unknown initial value of s``."""
    names = [item.key for item in test.objects.values() if item.unknown]
    initial = [f"the unknown initial value of {', '.join(names)}"] if names else []
    written = [w.name for w in writers(test.threads, test.objects)]
    return " and ".join(initial + ([f"the undetermined value of {', '.join(written)}"] if written else []))


def _content(test: Test, writer: Writer) -> ops.Undetermined:
    op = test.threads[writer.thread].body[writer.pc]
    assert isinstance(op, WRITERS)
    return op.content


class Assignment(Struct, frozen=True):
    """A test in which the unknown elements have values: ``bytes`` are those put for the ones of ``unknown_bytes``."""

    test: Test
    bytes: Mapping[int, int]


def choices(test: Test, asked: Collection[Term] = (), every: bool = False) -> Iterator[Test]:
    """``test`` without shuffles from absent lanes (see ``absent``), for each choice of the lanes that are active
    together (see ``active``) and of those that are elected (see ``elected``, also for ``asked`` and ``every``)."""
    threads = {term.thread for term in asked if isinstance(term, RegisterTerm)}
    for chosen in with_masks(without_absent(test, asked)):
        yield from with_leaders(chosen, threads, every)


def assignments(test: Test, asked: Collection[Term] = (), every: bool = False) -> Iterator[Assignment]:
    """``test``, for each of its ``choices``, with its unknown values kept
    apart from all others, then with the values that comparisons tell apart:
    all combinations, or where these are more than ``MOST_ASSIGNMENTS`` one value at a time (see ``computed_with``).

    Raises ``PtxmmError`` (kind ``unsupported``) if there are too many bytes to tell them apart."""
    for chosen in choices(test, asked, every):
        yield from _assignments(chosen, asked)


def _assignments(test: Test, asked: Collection[Term]) -> Iterator[Assignment]:
    if not has_unknown(test):
        yield Assignment(test, {})
        return
    parts, choices = _choices(test, asked)
    whole = b"".join(parts)
    if len(set(whole)) < len(whole):
        unknown = [o for o in test.objects.values() if o.unknown and o.physical == o.key]
        raise _too_many(test, sum(o.size for o in unknown), unknown)
    yield Assignment(test, {})
    for number, selection in enumerate(_selections(choices)):
        if number:  # the first are the unknown values themselves
            yield _assigned(test, dict(zip(whole, b"".join(selection), strict=True)))


def _choices(test: Test, asked: Collection[Term]) -> tuple[list[bytes], list[list[bytes]]]:
    """The unknown pieces, and for each its own bytes and those of the values that comparisons tell apart."""
    widths = _uses(test, asked).widths
    parts, values = _unknown_pieces(test, min(widths, default=_LONGEST), hidden(test, asked)), _compared(test)
    longest = max(widths, default=1)
    choices: list[list[bytes]] = []
    for part in parts:
        bits = 8 * len(part)
        pieces = (v >> at & (1 << bits) - 1 for v in values for at in range(0, max(bits, 8 * longest), bits))
        choices.append(list(dict.fromkeys((part, *(piece.to_bytes(len(part), "little") for piece in pieces)))))
    return parts, choices


def _selections(choices: Sequence[Sequence[bytes]]) -> Iterator[tuple[bytes, ...]]:
    """The combinations that are tried, the first of each first."""
    if prod(map(len, choices)) <= MOST_ASSIGNMENTS:
        yield from product(*choices)
        return
    first = tuple(choice[0] for choice in choices)
    yield first
    for index, choice in enumerate(choices):
        for value in choice[1:]:
            yield (*first[:index], value, *first[index + 1 :])


def hidden(test: Test, asked: Collection[Term]) -> frozenset[str]:
    """The physical objects whose contents nothing sees, also if the final values ``asked`` are asked for."""
    if not any(item.unknown for item in test.objects.values()):
        return frozenset()
    key = frozenset(asked)
    known = _latest.get(test, key)
    if known is None:
        known = _latest.keep(test, key, unseen(either_way(test, key).test, (*test.named, *key)).objects)
    return known


_latest: Latest[frozenset[str]] = Latest(8)


def _unknown_pieces(test: Test, narrowest: int, hidden: frozenset[str]) -> list[bytes]:
    """The bytes that stand for each unknown element that an instruction or the condition may come to see, in pieces of
    at most ``narrowest`` bytes; ``hidden``: the objects whose contents nothing sees."""
    seen = {place for place in readable(test) if place[0] not in hidden}
    found: list[bytes] = []
    for item in test.objects.values():
        if item.unknown and item.physical == item.key:
            content = b"".join(value.to_bytes(item.type.bytes, "little") for value in item.initial)
            step = min(item.type.bytes, narrowest)
            for begin in range(0, item.size, step):
                if not seen.isdisjoint((item.key, begin + i) for i in range(step)):
                    found.append(content[begin : begin + step])
    made = writers(test.threads, test.objects)
    if made:
        chunks = Chunks(test)
        for writer in made:
            own = {(key, offset): byte for key, offset, byte in _content(test, writer).places}
            for part in elements(test, writer, seen, chunks):
                whole = bytes(own[place] for place in part)
                found += [whole[i : i + narrowest] for i in range(0, len(whole), narrowest)]
    return found


def _assigned(test: Test, chosen: Mapping[int, int]) -> Assignment:
    """``test`` with the bytes ``chosen`` for those that stand for unknown ones."""

    def put(value: int, size: int) -> int:
        return int.from_bytes(bytes(chosen.get(b, b) for b in value.to_bytes(size, "little")), "little")

    objects = {
        key: replace(item, initial=tuple(put(v, item.type.bytes) for v in item.initial)) if item.unknown else item
        for key, item in test.objects.items()
    }
    threads = tuple(
        replace(thread, body=tuple(_put(op, chosen) for op in thread.body))
        if any(isinstance(op, WRITERS) for op in thread.body)
        else thread
        for thread in test.threads
    )
    changed = {old: new for old, new in chosen.items() if old != new}
    return Assignment(replace(test, objects=objects, threads=threads), changed)


def _put(op: ops.Op, chosen: Mapping[int, int]) -> ops.Op:
    if not isinstance(op, WRITERS):
        return op
    places = tuple((key, offset, chosen.get(byte, byte)) for key, offset, byte in op.content.places)
    return _with_content(op, ops.Undetermined(places, op.content.rest))


def computed_with(test: Test, asked: Collection[Term] = ()) -> list[str]:
    """Where the program may compute with unknown values, in words: then the values tried may not be all that matter.

    ``asked``: the final values that are asked for besides those of the condition.
    """
    if not has_unknown(test):
        return []
    found = dict(_uses(test, asked).found)
    _, choices = _choices(test, asked)
    if prod(map(len, choices)) > MOST_ASSIGNMENTS:
        most = max(map(len, choices)) - 1
        found[f"{len(choices)} values are compared with {most} others, one at a time"] = None
    return list(found)


def _uses(test: Test, asked: Collection[Term]) -> UnknownUses:
    return UnknownUses(test, list(comparisons(*test.propositions)), hidden(test, asked))


def _compared(test: Test) -> list[int]:
    """The values that the comparisons of the program and of its condition tell apart, none if there are none."""
    ordered = False
    compares = False
    for thread in test.threads:
        for op in thread.body:
            match op:
                case ops.SetPredicate(cmp=cmp) | ops.Branch(condition=ops.Compare(cmp=cmp)):
                    compares, ordered = True, ordered or cmp not in ("eq", "ne")
                case ops.Atomic(op="cas"):
                    compares = True
                case (
                    ops.Atomic(op="min" | "max" | "inc" | "dec")
                    | ops.Multimem(op="min" | "max")
                    | ops.Alu(op="min" | "max")
                ):
                    compares = ordered = True
    found: dict[int, None] = {}
    for comparison in comparisons(*test.propositions):
        compares = True
        ordered = ordered or comparison.op not in ("==", "!=")
    if not compares:
        return []
    for value in _constants(test.objects.values(), test):
        found[value] = None
    if ordered:
        found |= dict.fromkeys(value + step for value in tuple(found) for step in (-1, 1))
    return list(found)


def _constants(objects: Iterable[MemoryObject], test: Test) -> Iterator[int]:
    """Every integer constant of a test with these ``objects``: of instructions, initial values and conditions."""
    for item in objects:
        if not item.unknown:
            yield from dict.fromkeys(item.initial)
    for thread in test.threads:
        yield from thread.initial.values()
        for op in thread.body:
            yield from constants(op)
    for comparison in comparisons(*test.propositions):
        for term in (comparison.left, comparison.right):
            if isinstance(term, IntegerTerm):
                yield term.value
