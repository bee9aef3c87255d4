"""Tensor copies of the reference, and the tensor maps that they read (PTX ISA 5.5, 9.7.10.24.9, .10, 9.7.10.25).

A tensor map is a table of fields. Which values a field may have is read off the test: those at first in any 128 bytes,
and those that some ``tensormap.replace`` puts there. A path supposes one for each.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.program.shared.tensors import ELEMENT_TYPES, FIELDS
from ptxmm.program.test import MemoryObject, Test
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Type
from tests.reference_accesses import TENSORMAP, placed
from tests.reference_events import Event, Run, Step
from tests.reference_expressions import Expr, Leaf, as_typed, const, is_const, joined_bytes, mask, reads

if TYPE_CHECKING:
    from tests.reference_asynchronous import Operation, Where
    from tests.reference_threads import Walker

S32 = Type("s", 32)

Key = tuple[str, int]
"""A field of a tensor map and its ordinal."""


class Element(Struct, frozen=True):
    """One element of a box: where it is in the box and, if it lies in the tensor, its address."""

    at: int
    address: int | None


def keys(rank: int) -> list[Key]:
    """The fields that a copy of ``rank`` dimensions looks at."""
    single = ("global_address", "rank", "elemtype", "interleave_layout", "swizzle_mode", "fill_mode")
    return [
        *((name, 0) for name in single),
        *((name, i) for name in ("box_dim", "global_dim", "element_stride") for i in range(rank)),
        *(("global_stride", i) for i in range(rank - 1)),
    ]


def place(key: Key) -> tuple[int, int]:
    first, size = FIELDS[key[0]]
    return first + size * key[1], size


def known_values(test: Test, key: Key) -> set[int]:
    """The values that the field may have anywhere."""
    first, size = place(key)
    found = set()
    for item in test.objects.values():
        if item.size >= TENSORMAP and item.type.kind != "f":
            content = b"".join(v.to_bytes(item.type.bytes, "little") for v in item.initial)
            found.add(int.from_bytes(content[first : first + size], "little"))
    for thread in test.threads:
        for op in thread.body:
            if isinstance(op, ops.TensormapReplace) and (op.field, op.ordinal or 0) == key:
                match op.value:
                    case ops.Imm(value):
                        found.add(mask(value, 8 * size))
                    case ops.Reg(name) if not any(ops_write(o, name) for o in thread.body):
                        found.add(thread.initial.get(name, 0))
                    case _:
                        raise NotImplementedError(op)
    return found


def ops_write(op: ops.Op, name: str) -> bool:
    from ptxmm.ptx.isa import definitions

    return any(written == name for written, _ in definitions(op))


def box(fields: dict[Key, int], rank: int, start: list[int]) -> tuple[Type, list[Element]] | None:
    """The elements of the box at ``start``, the innermost dimension running first; None if the map means nothing."""
    kind = ELEMENT_TYPES.get(fields["elemtype", 0])
    layouts = any(fields[name, 0] for name in ("interleave_layout", "swizzle_mode", "fill_mode"))
    if kind is None or layouts or fields["rank", 0] != rank - 1:
        return None
    steps = [fields["element_stride", i] for i in range(rank)]
    sizes = [fields["box_dim", i] for i in range(rank)]
    strides = [kind.bytes, *(fields["global_stride", i] for i in range(rank - 1))]
    if not all(steps) or steps[0] != 1 or not all(0 < n <= 256 for n in sizes) or any(s % 16 for s in strides[1:]):
        return None
    found = []
    lines = [range(0, n, s) for n, s in zip(sizes, steps, strict=True)]
    for number, position in enumerate(itertools.product(*lines[::-1])):
        where = [c + p for c, p in zip(start, position[::-1], strict=True)]
        inside = all(0 <= w < fields["global_dim", i] for i, w in enumerate(where))
        address = fields["global_address", 0] + sum(w * s for w, s in zip(where, strides, strict=True))
        found.append(Element(number * kind.bytes, address if inside else None))
    if len(found) * kind.bytes % 16:
        return None
    return kind, found


def reducible(name: str, kind: Type) -> bool:
    """Whether elements of a type can be reduced so (9.7.10.24.10, the table of .redOp and element type)."""
    if kind.kind in ("f", "bf"):
        return (name == "add" and kind.bits < 64) or (name in ("min", "max") and kind.bits == 16)
    if name == "add":
        return kind.bits == 32 or (kind.bits == 64 and kind.kind == "u")
    if name in ("inc", "dec"):
        return (kind.kind, kind.bits) == ("u", 32)
    return kind.bits >= 32


def tensor(walker: Walker, run: Run, op: ops.BulkCopy, common: Event) -> Iterator[Run]:
    """``cp.async.bulk.tensor`` and ``cp.reduce.async.bulk.tensor``."""
    from tests.reference_asynchronous import Operation

    assert op.tensormap is not None
    rank = len(op.coordinates)
    start = [walker.operand(run, c, S32) for c in op.coordinates]
    if op.load_mode != "tile" or not all(is_const(c) for c in start):
        raise NotImplementedError(op)
    first = [as_typed(c[1], S32) for c in start]
    choices = {key: sorted(known_values(walker.test, key)) for key in keys(rank)}
    for fork, item, offset, address in walker.places(run, op.tensormap, TENSORMAP, 64):
        for chosen in itertools.product(*choices.values()):
            fields = dict(zip(choices, chosen, strict=True))
            found = box(fields, rank, first)
            made = Operation(walker, run, common)
            event = placed(replace(made.common, kind="R", proxy="TMP", addr=reads(address)), item, offset, TENSORMAP)
            leaf = made.add(event)
            supposed = fork
            for key, value in fields.items():
                if len(choices[key]) > 1:
                    held = joined_bytes((("read", leaf), *place(key)))
                    equal = walker.apply("eq", Type("b", 8 * place(key)[1]), held, const(value))
                    supposed = replace(supposed, constraints=(*supposed.constraints, (equal, True)))
            if found is None or (op.reduction is not None and not reducible(op.reduction, found[0])):
                walker.strays.append(replace(supposed, events=(*run.events, *made.events)))
                continue
            yield from sides(walker, run, supposed, op, made, *found, frozenset({leaf}) | reads(address))


def sides(
    walker: Walker,
    run: Run,
    fork: Run,
    op: ops.BulkCopy,
    made: Operation,
    kind: Type,
    elements: list[Element],
    known: frozenset[Leaf],
) -> Iterator[Run]:
    """The shared side of the copy, its mbarrier, and the events."""
    from tests.reference_asynchronous import multicast

    near = op.src if op.dst is None else op.dst
    assert near is not None
    size, events = len(elements) * kind.bytes, list(made.events)
    far = runs(walker, kind, elements)
    if far is None:
        walker.strays.append(replace(fork, events=(*run.events, *events)))
        return
    for second, item, offset, address in walker.places(fork, near, size, 16):
        if op.mbarrier is None:
            made.events = list(events)
            save(walker, op, made, (item, offset), far, size, kind, known, reads(address))
            loose = (*run.loose, ("bulk", made.common.step))
            yield replace(second, pc=run.pc + 1, events=(*run.events, *made.events), loose=loose)
            continue
        for last, barrier, at, where in walker.places(second, op.mbarrier, 8, 8):
            made.events = list(events)
            targets, mbarriers = multicast(walker, run, op, (item, offset)), multicast(walker, run, op, (barrier, at))
            if targets is None or mbarriers is None:
                walker.strays.append(replace(last, events=(*run.events, *events)))
                continue
            fill(walker, made, targets, far, size, known, reads(address))
            decided = known | reads(address) | reads(where)
            later = [made.complete(mbarrier, const(size), decided) for mbarrier in mbarriers]
            step = Step(walker.index, "issue", op, later=tuple(later))
            yield replace(last, pc=run.pc + 1, events=(*run.events, *made.events), steps=(*run.steps, step))


Piece = tuple[int, int, "Where | None"]
"""Bytes of the box: where they begin, how many, and where they are in global memory (None: outside of the tensor)."""


def runs(walker: Walker, kind: Type, elements: list[Element]) -> list[Piece] | None:
    """The box in pieces that are whole in both memories; None if an element lies in no variable."""
    found: list[Piece] = []
    for element in elements:
        where: Where | None = None
        if element.address is not None:
            here = walker.test.locate(element.address)
            if here is None or here[1] + kind.bytes > here[0].size or here[0].space != "global":
                return None
            where = here
        if found:
            begin, size, before = found[-1]
            joins = before is None if where is None else before is not None and follows(before, size, where)
            if joins:
                found[-1] = (begin, size + kind.bytes, before)
                continue
        found.append((element.at, kind.bytes, where))
    return found


def follows(before: tuple[MemoryObject, int], size: int, where: tuple[MemoryObject, int]) -> bool:
    return before[0].key == where[0].key and before[1] + size == where[1]


def fill(
    walker: Walker,
    made: Operation,
    targets: list[Where],
    far: list[Piece],
    size: int,
    known: frozenset[Leaf],
    addr: frozenset[Leaf],
) -> None:
    """Global to shared memory, zeros where there is no element."""
    parts: list[tuple[Expr, int, int]] = []
    for _, length, where in far:
        parts += [(const(0), 0, length)] if where is None else made.copy_in(walker, where, length, "ASY", known)
    value = joined_bytes(*parts)
    for target in targets:
        made.copy_out(walker, target, value, size, "ASY", known | addr)
    fences(made)


def save(
    walker: Walker,
    op: ops.BulkCopy,
    made: Operation,
    source: Where,
    far: list[Piece],
    size: int,
    kind: Type,
    known: frozenset[Leaf],
    addr: frozenset[Leaf],
) -> None:
    """Shared to global memory, where there are elements."""
    value = joined_bytes(*made.copy_in(walker, source, size, "ASY", known | addr))
    for begin, length, where in far:
        if where is None:
            continue
        piece = joined_bytes((value, begin, length))
        if op.reduction is None:
            made.copy_out(walker, where, piece, length, "ASY", known)
        else:
            event = replace(made.common, proxy="ASY", scope="gpu", addr=known)
            made.reduce(where, piece, length, op.reduction, kind, event)
    fences(made)


def fences(made: Operation) -> None:
    made.add(replace(made.common, kind="PF", fences="ASY", after="reads"))
    made.add(replace(made.common, kind="PF", fences="ASY", after="writes"))
