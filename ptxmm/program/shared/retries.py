"""Loops of compare-and-swap that try again with what the last one has found: the load before them stands for all.

``old = *p; do { seen = old; old = atomicCAS(p, seen, f(seen)); } while (old != seen);`` goes round with another value
each time, so no round is like the one before and it is no spin loop. But what follows a ``cas`` that fails and returns
v is what follows the load if that returns v. So every such ``cas`` goes back to the load instead.

- **No final state is lost.** Take an execution of the program, and the last ``cas`` of such a loop that fails. Take out
  all that failed before it, and this too, and let the load read what it has read: the same write, nothing but what
  looks is between the two, and the thread goes on as it did after that ``cas``. A ``cas`` that fails is a read. The
  load is no stronger than that read (the same order and scope, or weaker), so it has no relation with another event
  that the read had not, and what an axiom forbids about the load it forbids about the read.
- **None is added** by executions without a failing round: they are executions of the program as they are.
- **No race, and no access outside every object, is lost or added.** If the load is as strong as a failing ``cas``, one
  round may fail (``control.SPINS``): then the second load is the next ``cas`` of the program, which fails and reads the
  same; or, where both return the same value, the ``cas`` before it reads what the second load does. If the load is
  weaker, no round fails in what is made here: the ``cas`` goes to itself for ever. A race of what is taken out with an
  access a is one of the load with a: the load comes before it in program order with nothing between them that orders,
  and is not ordered after a by reading something else, as it is no acquire operation.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ptxmm.program.graph import dominates, dominators, graph_of, live_at, reach
from ptxmm.program.shared.ways import Form, Held, Rejected, Ways, predicate
from ptxmm.program.test import Thread
from ptxmm.ptx.isa import names_read, names_written
from ptxmm.ptx.ops import COMPUTING, Atomic, Branch, Load, Op, Reg, Type

_VALUE: Form = ("value",)
_FOUND: Form = ("found",)
_MOST = 64
"""The ways that are followed from one access to the next."""

_Leaves = frozenset[tuple[frozenset[tuple[Form, bool]], Form]]
"""Where ways lead, each with the predicates that are so on it."""


def without_retries(thread: Thread, asked: frozenset[str]) -> list[Op]:
    """The instructions of ``thread``, whose final registers ``asked`` count, with every ``cas`` that fails as said
    above; all pcs stay."""
    body = list(thread.body)
    if not any(isinstance(op, Atomic) and op.op == "cas" for op in body):
        return body
    for first in [pc for pc, op in enumerate(body) if isinstance(op, Load) and len(op.dst) == 1 and _plain(op)]:
        changed = _retried(body, first, asked)
        if changed is not None:
            body = changed
    return body


def _retried(body: list[Op], first: int, asked: frozenset[str]) -> list[Op] | None:
    """``body`` with what fails behind the load ``first`` going back to it; None if there is none such."""
    try:
        loop = _Retries(body, first, asked)
        loop.follow()
    except Rejected:
        return None
    if not loop.fails:
        return None
    made, graph = list(body), graph_of(body)
    dominator = dominators(graph)
    failing = {branch for branch, _ in loop.fails.values()}
    for cas, (branch, away) in loop.fails.items():
        if not dominates(dominator, first, cas):
            return None
        op = body[branch]
        assert isinstance(op, Branch)
        if op.target == away:
            made[branch] = replace(op, target=first if loop.alike else branch)
        elif failing.issuperset(graph.before[away]):
            made[away] = Branch(first if loop.alike else away, None, body[away].source)
        else:
            return None
    before, now = reach(graph.after, [0]), reach(graph_of(made).after, [0])
    return [Branch(first, None, op.source) if pc in before - now else op for pc, op in enumerate(made)]


class _Retries(Ways):
    """What follows the load ``first``. ``fails``: for each ``cas`` that it leads to, the branch that is taken, or not,
    if it fails, and where that leads to. ``alike``: whether the load orders as much as they do."""

    def __init__(self, body: Sequence[Op], first: int, asked: frozenset[str]) -> None:
        self.first, load = first, body[first]
        assert isinstance(load, Load) and load.dst[0] is not None
        self.load, self.value = load, load.dst[0].name
        graph = graph_of(body)
        self.live = live_at(body, graph, asked)
        ends = {pc for pc, op in enumerate(body) if not isinstance(op, (*COMPUTING, Branch)) and not self._retries(op)}
        after = [() if pc in ends else targets for pc, targets in enumerate(graph.after)]
        around = reach(after, [first + 1]) - {*ends, graph.end}
        super().__init__(body, {name for pc in (first, *around) for name in names_written(body[pc])})
        self.fails: dict[int, tuple[int, int]] = {}
        self.alike = True

    def _retries(self, op: Op) -> bool:
        """Whether ``op`` may be a ``cas`` that tries again: of the place of the load, and no weaker."""
        load = self.load
        return (
            isinstance(op, Atomic)
            and op.op == "cas"
            and _plain(op)
            and op.packed == 1
            and len(op.dst) == 1
            and op.dst[0] is not None
            and isinstance(op.operands[0][0], Reg)
            and op.type.kind in "bus"
            and (op.address, op.type.bits, op.space) == (load.address, load.type.bits, load.space)
            and (load.sem == "weak" or op.scope == load.scope)
            and (load.sem != "acquire" or op.sem in ("acquire", "acq_rel"))
        )

    def follow(self) -> None:
        """Find what fails. Raises ``Rejected`` if what follows it is not what follows the load."""
        if any(name in self.written for name in names_read(self.load)):
            raise Rejected
        leaves = self._leaves(self.first + 1, {self.value: _VALUE}, True)
        known: set[int] = set()
        while unknown := self.fails.keys() - known:
            cas = min(unknown)
            known.add(cas)
            branch, away = self.fails[cas]
            held = {name: _renamed(form) for name, form in self._found(cas, branch, {}).items()}
            if self._leaves(away, held, True) != leaves:
                raise Rejected

    def _leaves(self, pc: int, held: Held, tries: bool) -> _Leaves:
        """Where the ways from ``pc`` on lead; ``tries``: what a ``cas`` of the value that was read does is followed."""
        found: set[tuple[frozenset[tuple[Form, bool]], Form]] = set()
        stack: list[tuple[int, dict[str, Form], dict[Form, bool], int]] = [(pc, dict(held), {}, 0)]
        while stack:
            at, holds, when, steps = stack.pop()
            if at == len(self.body) or not isinstance(self.body[at], (*COMPUTING, Branch)):
                found.add((frozenset(when.items()), self._leaf(at, holds, tries)))
            elif steps > _MOST * len(self.body) or len(stack) + len(found) > _MOST:
                raise Rejected
            else:
                stack += [(*way, steps + 1) for way in self.step(at, holds, when)]
        return frozenset(found)

    def _leaf(self, pc: int, held: Held, tries: bool) -> Form:
        op = self.body[pc] if pc < len(self.body) else None
        if tries and isinstance(op, Atomic) and self._retries(op):
            compared, new = (self.form_of(operand, held) for operand in op.operands[0])
            if compared == _VALUE and new is not None:
                return op.sem, op.scope, op.type, new, self._success(pc, held)
        needed = tuple((name, held.get(name)) for name in sorted(self.live[pc].intersection(self.written)))
        if any(form is None for _, form in needed):
            raise Rejected
        return pc, needed

    def _success(self, cas: int, held: Held) -> _Leaves:
        """Where the ``cas`` leads that finds what it compares; where else it leads to goes into ``fails``."""
        branch = next((pc for pc in range(cas, len(self.body)) if isinstance(self.body[pc], Branch)), cas)
        op, holds = self.body[branch], self._found(cas, branch, held)
        if not isinstance(op, Branch) or op.guard is None or op.condition is not None:
            raise Rejected
        form, true = predicate(self.held(op.guard.register, holds))
        width = self.load.type.bits
        match form:
            case (0, (_, "eq", Type(bits=bits), a, b, None, *_)) if {a, b} == {_FOUND, _VALUE} and bits == width:
                sides = (op.target, branch + 1) if true != op.guard.negated else (branch + 1, op.target)
            case _:
                raise Rejected
        self.fails[cas] = branch, sides[1]
        swap = self.body[cas]
        assert isinstance(swap, Atomic)
        acquires = swap.sem in ("acquire", "acq_rel")
        self.alike = self.alike and self.load.sem == ("acquire" if acquires else "relaxed")
        return self._leaves(sides[0], {name: _renamed(form) for name, form in holds.items()}, False)

    def _found(self, cas: int, branch: int, held: Held) -> dict[str, Form]:
        """What registers hold at the ``branch`` behind a ``cas``."""
        op = self.body[cas]
        assert isinstance(op, Atomic) and op.dst[0] is not None
        holds: dict[str, Form] = {**held, op.dst[0].name: _FOUND}
        for pc in range(cas + 1, branch):
            if not isinstance(self.body[pc], COMPUTING) or self.body[pc].guard is not None:
                raise Rejected
            ((_, holds, _),) = self.done(pc, True, holds, {})
        return holds


def _plain(op: Load | Atomic) -> bool:
    """Whether ``op`` accesses one place, whatever memory holds."""
    return (
        op.guard is None and op.proxy == "generic" and not (isinstance(op, Load) and (op.mmio or op.nc or op.volatile))
    )


def _renamed(form: Form) -> Form:
    """``form`` of what a ``cas`` has found as one of the value that was read last."""
    if form == _FOUND:
        return _VALUE
    return tuple(map(_renamed, form)) if isinstance(form, tuple) else form
