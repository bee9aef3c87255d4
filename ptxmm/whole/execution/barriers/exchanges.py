"""What lanes of a warp give each other: shuffles, votes, matches, reductions (PTX ISA 9.7.10.6, 9.7.14.9 to .14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np

from ptxmm.events.explicit.values import arithmetic
from ptxmm.program.placement import WARP_SIZE
from ptxmm.ptx.ops import Type, WarpExchange
from ptxmm.whole.execution.values import Value, unknown

_LANE = WARP_SIZE - 1


def exchanged(op: WarpExchange, lanes: list[int], given: list[Value]) -> tuple[Value, Value]:
    """What ``dst`` and ``predicate`` get in each of ``lanes``, which execute ``op`` together; ``given``: its operands
    but the mask. Of lanes that elect one of them it is the lowest."""
    first, mode = op.op.partition(".")[::2]
    if first == "shfl":
        return _shuffled(mode, lanes, *given)
    if first == "elect":
        return _all(min(lanes), len(lanes)), _each([lane == min(lanes) for lane in lanes])
    (value,) = given
    if (
        op.op in ("vote.all", "vote.any")
        and (value.known & ((value.words ^ op.negated) == (op.op == "vote.any"))).any()
    ):
        return _all(op.op == "vote.any", len(lanes)), unknown(len(lanes))  # whatever the others say
    if not value.known.all():
        return unknown(len(lanes)), unknown(len(lanes))
    words = [int(word) for word in value.words]
    if first == "vote":
        return _voted(mode, lanes, [word ^ op.negated for word in words]), unknown(len(lanes))
    if first == "match":
        return _matched(mode, lanes, words)
    return _all(_reduced(mode, op.type, words), len(lanes)), unknown(len(lanes))


def _all(value: int, count: int) -> Value:
    return Value(np.full(count, value, np.uint64), np.ones(count, np.bool_))


def _each(values: list[bool] | list[int]) -> Value:
    return Value(np.array(values, np.uint64), np.ones(len(values), np.bool_))


def _bits(lanes: list[int]) -> int:
    return sum(1 << lane for lane in lanes)


def _shuffled(mode: str, lanes: list[int], value: Value, shift: Value, clamp: Value) -> tuple[Value, Value]:
    """The lanes whose values are taken, and whether those that were asked for are in range (9.7.10.6)."""
    lane = np.array(lanes)
    b, c, segment = (word.astype(np.int64) & _LANE for word in (shift.words, clamp.words, clamp.words >> np.uint64(8)))
    low = lane & segment
    high = low | (c & ~segment)
    wanted = {"up": lane - b, "down": lane + b, "bfly": lane ^ b}.get(mode, low | (b & ~segment))
    in_range = wanted >= high if mode == "up" else wanted <= high
    where = np.full(WARP_SIZE, -1)
    where[lane] = np.arange(len(lanes))
    taken = where[np.where(in_range, wanted, lane) & _LANE]
    # From a lane that does not take part the value is undefined.
    sure, part = shift.known & clamp.known, taken >= 0
    return Value(np.where(part, value.words[taken], 0), value.known[taken] & part & sure), Value(
        in_range.astype(np.uint64), sure
    )


def _voted(mode: str, lanes: list[int], truths: list[int]) -> Value:
    if mode == "ballot":
        return _all(_bits([lane for lane, true in zip(lanes, truths, strict=True) if true]), len(lanes))
    results: Mapping[str, bool] = {"all": all(truths), "any": any(truths), "uni": len(set(truths)) == 1}
    return _all(results[mode], len(lanes))


def _matched(mode: str, lanes: list[int], words: list[int]) -> tuple[Value, Value]:
    if mode == "all":
        same = len(set(words)) == 1
        return _all(_bits(lanes) if same else 0, len(lanes)), _all(same, len(lanes))
    masks = [_bits([lane for lane, word in zip(lanes, words, strict=True) if word == own]) for own in words]
    return _each(masks), unknown(len(lanes))


def _reduced(mode: str, type_: Type, words: list[int]) -> int:
    function: Callable[[int, int], int] = lambda a, b: arithmetic.compute(mode, type_, a, b)  # noqa: E731
    return reduce(function, words)
