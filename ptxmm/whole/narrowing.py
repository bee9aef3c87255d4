"""What one execution tells of the others: after a run, what each read may find in any of them.

A run begins with reads that acquire all that they found in it. What another execution may keep from them is taken
away, and the launch is run again, until nothing changes (docs/whole.md).
"""

from __future__ import annotations

from collections.abc import Callable

from ptxmm.whole.clocks import Release
from ptxmm.whole.machine import Machine
from ptxmm.whole.options import Option, Options, Unclear
from ptxmm.whole.polls import Outcome, Poll
from ptxmm.whole.state import Stopped
from ptxmm.whole.strong import Plan, Read


def narrowed(machine: Machine, plan: Plan) -> bool:
    """Take from ``plan`` what other executions than that of ``machine`` need not have; whether that was anything.

    Raises ``Stopped`` where it is not known what they have."""
    options = Options(machine.strong)
    changed = False
    for read in machine.strong.reads:
        step = {"poll": _poll, "load": _load, "atomic": _atomic}[read.kind]
        changed |= step(machine, plan, options, read)
    return changed


def _poll(machine: Machine, plan: Plan, options: Options, read: Read) -> bool:
    poll, outcomes = _outcomes(machine, read)
    likes: Callable[[int], bool] = lambda value: _ends(poll, outcomes(value), read)  # noqa: E731
    try:
        found = options.of(read, likes)
        if options.stuck(read, likes):
            message = "this loop may miss what it waits for in another schedule"
            raise Stopped("undecided", message, read.at, read.thread)
    except Unclear as reason:
        message = f"what this loop may find is not known: {reason}"
        raise Stopped("undecided", message, read.at, read.thread) from None
    ends = [outcome for option in found for value in option.values for outcome in outcomes(value)]
    if len({outcome.fences for outcome in ends}) > 1:
        message = "which fences come between this loop and what is behind it depends on the schedule"
        raise Stopped("undecided", message, read.at, read.thread)
    forgotten = plan.forgotten.setdefault(poll.start, set())
    more = {name for name in poll.outputs - forgotten if len({outcome.registers.get(name) for outcome in ends}) > 1}
    forgotten |= more
    return _acquired(plan, options, read, found) or bool(more)


def _outcomes(machine: Machine, read: Read) -> tuple[Poll, Callable[[int], list[Outcome]]]:
    """The loop of a read that waited, and where each of its loads leads when it finds some value."""
    assert read.waited is not None
    start, inputs = read.waited
    poll = machine.waiting[start]

    def outcomes(value: int) -> list[Outcome]:
        first = machine.round(poll, start, inputs, value, again=False)
        return [first, *(machine.round(poll, at, inputs, value, again=True) for at in sorted(poll.again))]

    return poll, outcomes


def _ends(poll: Poll, outcomes: list[Outcome], read: Read) -> bool:
    ends = {outcome.at == poll.end for outcome in outcomes}
    if len(ends) > 1:
        message = "whether this loop ends depends on how many rounds it has had"
        raise Stopped("undecided", message, read.at, read.thread)
    return ends == {True}


def _load(machine: Machine, plan: Plan, options: Options, read: Read) -> bool:
    """A load that does not wait: what it finds is not known if there is a choice; it never orders anything."""
    if read.at in plan.unknown:
        return False
    try:
        values = {value for option in options.of(read, lambda _: True) for value in option.values}
        if len(values) == 1:
            return False
    except Unclear:
        pass
    plan.unknown.add(read.at)
    return True


def _atomic(machine: Machine, plan: Plan, options: Options, read: Read) -> bool:
    if not read.tails:
        return False
    try:
        found: list[Option] | None = options.of(read, lambda _: True)
    except Unclear:
        found = None
    return _acquired(plan, options, read, found)


def _acquired(plan: Plan, options: Options, read: Read, found: list[Option] | None) -> bool:
    """Keep of what a read acquired what it acquires whatever it finds; whether that is less."""
    changed = False
    for level in read.tails:
        key = read.key, level
        had = {head.release for head in read.heads}
        had &= plan.allowed.get(key, had)
        kept: frozenset[Release] = frozenset()
        if found is not None:
            tests = [options.covered(read, option, level) for option in found]
            kept = frozenset(release for release in had if all(test(release) for test in tests))
        if kept != plan.allowed.get(key, had):
            plan.allowed[key] = kept
            changed = True
    return changed
