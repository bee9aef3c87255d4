"""Which lane of a warp ``elect.sync`` elects (PTX ISA 9.7.14.14).

It is one of the threads of the membermask, and no more is said than that it is the same for the same mask every time. A
test stands for one test for each choice of a leader for each mask of each warp, in which every ``elect`` has the
choices of its warp as ``leaders``; the engines know nothing else of it. Of lanes that may change places one stands for
all. The leader is one of the lanes in the test whose code has an election with that mask: the others are never active
there. A lane that is alone in the test stands for its warp, and is elected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.program.condition import RegisterTerm
from ptxmm.program.test import Test, Thread
from ptxmm.program.unspecified.active import lanes_of
from ptxmm.ptx.isa import names_read, names_written, placeless
from ptxmm.ptx.ops import Alu, Imm, Op, Operand, Reg, WarpBarrier, WarpExchange

_MOST = 64
"""At most so many choices are tried."""
_MOST_LEADERS = 8
"""At most so many lanes are tried for one mask."""
_SUBSETS = 3
"""Where a mask is computed, all sets of the lanes are tried for it if there are at most so many lanes."""
_EVERYONE = 0xFFFFFFFF

Choice = Mapping[int, int]
"""The leader for each mask."""


def with_leaders(test: Test, asked: Collection[int] = (), every: bool = False) -> Iterator[Test]:
    """``test`` for each choice of the lanes that its elections elect; itself if there are none.

    ``asked``: the threads whose registers are asked for besides those of the condition. ``every``: all choices, one by
    one, however many there are and whatever is asked.
    """
    warps = _warps(test, range(len(test.threads)) if every else asked)
    if not warps:
        yield test
        return
    for chosen in islice(_products(warps, None if every else _MOST_LEADERS), None if every else _MOST):
        threads = list(test.threads)
        for warp, leaders in zip(warps, chosen, strict=True):
            for t in warp.lanes:
                threads[t] = _led(threads[t], tuple(leaders.items()))
        yield replace(test, threads=tuple(threads))


def untried_leaders(test: Test, asked: Collection[int] = ()) -> list[str]:
    """The elections of which not all leaders are tried, in words."""
    warps = _warps(test, asked)
    every = sum(1 for _ in islice(_products(warps, _MOST_LEADERS), _MOST + 1)) <= _MOST
    found = [w for w in warps if not every or w.computed or any(len(w.classes(m)) > _MOST_LEADERS for m in w.masks)]
    return [warp.words() for warp in found]


class _Warp(Struct, dict=True):
    """The lanes of a warp of which several are in the test, and elect: thread by thread."""

    test: Test
    lanes: tuple[int, ...]
    asked: frozenset[int]

    @cached_property
    def known(self) -> dict[int, set[int] | None]:
        """The masks of the elections of each lane; None where one of them is computed."""
        return {lane: _masks(self.test.threads[t]) for lane, t in enumerate(self.lanes)}

    @property
    def computed(self) -> bool:
        """Whether some mask is computed."""
        return None in self.known.values()

    @cached_property
    def masks(self) -> list[int]:
        """The masks that get a leader."""
        found = set[int]().union(*(masks or () for masks in self.known.values()))
        if self.computed:
            everyone = (1 << len(self.lanes)) - 1
            found |= {everyone, _EVERYONE}
            found |= set(range(1, everyone)) if len(self.lanes) <= _SUBSETS else set()
        return sorted(found, reverse=True)

    def candidates(self, mask: int) -> list[int]:
        """The lanes that may be elected."""
        return [lane for lane, masks in self.known.items() if mask >> lane & 1 and (masks is None or mask in masks)]

    def classes(self, mask: int) -> list[list[int]]:
        """``candidates``, those together that may change places."""
        found: dict[int, list[int]] = {}
        for lane in self.candidates(mask):
            found.setdefault(self._alike[lane], []).append(lane)
        return list(found.values())

    @cached_property
    def _alike(self) -> list[int]:
        """For each lane the first that it may change places with."""
        first: dict[object, int] = {}
        masks = self._named_masks()
        found = []
        for lane, t in enumerate(self.lanes):
            own = t in self.asked or masks is None or any(item.thread == t for item in self.test.objects.values())
            thread = self.test.threads[t]
            initial, types = sorted(thread.initial.items()), sorted(thread.registers.items(), key=str)
            code = (placeless(thread.body), repr(initial), repr(types), tuple(mask >> lane & 1 for mask in masks or ()))
            found.append(first.setdefault(lane if own else code, lane))
        return found

    def _named_masks(self) -> list[int] | None:
        """All masks of the warp; None if something besides them tells its lanes apart."""
        found = set[int]()
        for t in self.lanes:
            body = self.test.threads[t].body
            read = {name for op in body for name in names_read(op)}
            for op in body:
                if not isinstance(op, WarpExchange | WarpBarrier):
                    continue
                mask = op.mask if isinstance(op, WarpBarrier) else op.operands[-1] if op.operands else None
                if not isinstance(mask, Imm):
                    return None
                found.add(mask.value & _EVERYONE)
                if isinstance(op, WarpExchange):
                    shown = op.dst is not None and (op.dst.name in read or t in self.asked)
                    if (op.op == "elect" and shown) or (op.op not in _SYMMETRIC and not op.op.startswith("redux.")):
                        return None
        return sorted(found)

    def choices(self, most: int | None) -> Iterator[Choice]:
        """The leaders of all masks, the lowest lanes first; of each class the lanes in order."""
        yield from self._chosen(self.masks, {}, most)

    def _chosen(self, masks: Sequence[int], before: Choice, most: int | None) -> Iterator[Choice]:
        if not masks:
            yield before
            return
        used = set(before.values())
        tried = 0
        for alike in self.classes(masks[0])[:most]:
            fresh = next((lane for lane in alike if lane not in used), None)
            for lane in alike:
                if lane in used or lane == fresh:
                    tried += 1
                    yield from self._chosen(masks[1:], {**before, masks[0]: lane}, most)
        if not tried:
            yield from self._chosen(masks[1:], before, most)

    def words(self) -> str:
        """Where the first election is."""
        t, op = next((t, op) for t in self.lanes for op in self.test.threads[t].body if _is_election(op))
        return f"{self.test.threads[t].name} line {op.source.span.line}: elect"


_SYMMETRIC = ("elect", "vote.all", "vote.any", "vote.uni")
"""Exchanges that know no numbers of lanes but those of the mask."""


def _warps(test: Test, asked: Collection[int]) -> list[_Warp]:
    """The warps with elections of which several lanes are in the test."""
    seen = frozenset(asked) | {term.thread for term in test.named if isinstance(term, RegisterTerm)}
    electing = [t for t, thread in enumerate(test.threads) if any(map(_is_election, thread.body))]
    warps = dict.fromkeys(lanes_of(test, t) for t in electing if test.threads[t].placement.warp is not None)
    return [_Warp(test, lanes, seen) for lanes in warps if len(lanes) > 1]


def _products(warps: Sequence[_Warp], most: int | None) -> Iterator[tuple[Choice, ...]]:
    if not warps:
        yield ()
        return
    for first in warps[0].choices(most):
        for rest in _products(warps[1:], most):
            yield (first, *rest)


def _led(thread: Thread, leaders: tuple[tuple[int, int], ...]) -> Thread:
    body = list(thread.body)
    for pc, op in enumerate(body):
        if isinstance(op, WarpExchange) and _is_election(op):
            body[pc] = replace(op, leaders=leaders)
    return replace(thread, body=tuple(body))


def _is_election(op: Op) -> bool:
    return isinstance(op, WarpExchange) and op.op == "elect" and not op.leaders


def _masks(thread: Thread) -> set[int] | None:
    """The masks of the elections of ``thread``; None if some are computed."""
    found = set[int]()
    for op in thread.body:
        if isinstance(op, WarpExchange) and op.op == "elect":
            values = _values(thread, op.operands[-1])
            if values is None:
                return None
            found |= values
    return found


def _values(thread: Thread, operand: Operand) -> set[int] | None:
    """What ``operand`` may hold, if only constants are moved there, or masks of ``activemask`` that are chosen."""
    if isinstance(operand, Imm):
        return {operand.value & _EVERYONE}
    if not isinstance(operand, Reg):
        return None
    found = {thread.initial.get(operand.name, 0)}
    for op in thread.body:
        if operand.name not in names_written(op):
            continue
        match op:
            case Alu(op="mov", sources=(Imm(value),)) | WarpExchange(op="activemask", operands=(Imm(value),)):
                found.add(value & _EVERYONE)
            case _:
                return None
    return found
