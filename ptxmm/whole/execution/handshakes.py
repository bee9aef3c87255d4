"""Loops that try a ``cas`` until it succeeds, by which threads take turns: one sets a word where it finds it clear, the
other one clears it where it finds it set.

Such a loop waits for one value, as a load would, and then it writes. If each value that is waited for at a location is
waited for by one thread only, and nobody else writes there, these operations succeed in one order in every execution:
what is there lets one thread go on, and this does its next one (docs/whole.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.formats.modules.kernel import observed
from ptxmm.program.graph import graph_of, reach
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written
from ptxmm.whole.execution.polls import Poll, polls
from ptxmm.whole.execution.rounds import Place, Rounds
from ptxmm.whole.execution.state import Stopped
from ptxmm.whole.launched import Launched, load_of
from ptxmm.whole.order.strong import INITIAL, Location, Log

_MOST_PLACES = 64


class Swap(Struct, frozen=True):
    """A ``cas`` that has succeeded in the loop ``poll`` of a thread, begun at a ``place``: what it compares with."""

    thread: int
    poll: Poll
    place: Place
    compared: int


def taking_turns(launch: Launched) -> Launched:
    """``launch`` with loads in the place of atomic operations that are tried until they succeed: each in a loop that
    does nothing else, and in a scope that includes all threads."""
    body, several = launch.kernel.code.body, len({part.device for part in launch.parts}) > 1
    tries = {at: op for at, op in enumerate(body) if isinstance(op, ops.Atomic) and op.op == "cas" and op.guard is None}
    found = {at: load for at, op in tries.items() if (load := load_of(op, several)) is not None}
    while found:
        tried = tuple(found.get(at, op) for at, op in enumerate(body))
        waiting = polls(tried, observed(launch.kernel))
        kept = {at: load for at, load in found.items() if at in waiting and _alone(body, waiting[at], at)}
        if len(kept) == len(found):
            kernel = replace(launch.kernel, code=replace(launch.kernel.code, body=tried))
            swapping = {at: tries[at] for at in found}
            return replace(launch, kernel=kernel, swapping=swapping)
        found = kept
    return launch


def _alone(body: Sequence[ops.Op], poll: Poll, at: int) -> bool:
    """Whether a loop that waits has one load, whose operands are the same in each round."""
    op = body[at]
    assert isinstance(op, ops.Atomic)
    region = reach(graph_of(body).after, [at], poll.end)
    compared, new = (_constants(body, region, operand) for operand in op.operands[0])
    plain = poll.loads == {at} and not poll.late and not poll.fixed and poll.vote is None
    return plain and compared is not None and new is not None


def _constants(body: Sequence[ops.Op], region: set[int], operand: ops.Operand) -> set[int] | None:
    """What an operand is given in a loop, if that are numbers; None if it is anything else."""
    found: set[int] = set()
    for pc in region:
        op = body[pc]
        if isinstance(operand, ops.Reg) and operand.name in names_written(op):
            given = op.sources[0] if isinstance(op, ops.Alu) and op.op == "mov" and op.guard is None else None
            if not isinstance(given, ops.Imm):
                return None
            found.add(given.value)
    return found if len(found) < 2 else None


def same_turns(location: Location, log: Log, swaps: Sequence[Swap], rounds: Rounds) -> None:
    """Raise ``Stopped`` where what succeeds at a location may come in another order in another execution."""
    others = [write for write in log.writes if write.thread != INITIAL]
    threads = {(swap.compared, swap.thread) for swap in swaps}
    values = {write.value for write in log.writes}
    same = not log.mixed and len(others) == len(swaps) and len(threads) == len({value for value, _ in threads})
    for swap in swaps:
        if not same or None in values or not _waits(rounds, swap, {value for value in values if value is not None}):
            raise Stopped("undecided", "which thread has it next depends on the schedule", swap.poll.start, swap.thread)


def _waits(rounds: Rounds, swap: Swap, values: set[int]) -> bool:
    """Whether a loop ends if it finds what is compared with, and if it finds another one of some ``values`` it goes
    on."""
    seen, work = {swap.place}, [swap.place]
    while work:
        place = work.pop()
        for value in values | {swap.compared}:
            for outcome in rounds.following(swap.poll, place, (value,)):
                if (outcome.at == swap.poll.end) != (value == swap.compared):
                    return False
                onward = outcome.at, outcome.words
                if outcome.at != swap.poll.end and onward not in seen:
                    seen.add(onward)
                    work.append(onward)
        if len(seen) > _MOST_PLACES:
            return False
    return True
