"""Comparisons of results that are not worked out, where an address, a branch or a value that is asked for depends on
them.

Such a predicate may be either, each time that it is made: every execution of the program is then among those of the
test that says so, and what holds of all these holds. The other way round each of these is one of the program only where
no more depends on such predicates than which registers get what, of values that nothing sees: else none may be. That
the same function of the same values is the same each time is left out.

What holds of all executions must not rest on dependencies that the program need not have: of ``p|q`` one is the
opposite of the other, and a comparison of a value with itself depends on nothing. So a predicate that may matter is
made of nothing, and whatever the guard of its instruction is. What other values depend on may still depend on what it
gives: ``selp v, r, 1, p`` on ``r``, unless the comparison is never true. Where ``r`` comes from another thread, that
decides what No-Thin-Air forbids: then nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.program.condition import Term
from ptxmm.program.shared.flows import Flow, is_open
from ptxmm.program.shared.unseen import Undecided, undecided
from ptxmm.program.test import Test
from ptxmm.ptx import ops
from ptxmm.ptx.isa import names_written, uses
from ptxmm.ptx.ops import Op, Reg
from ptxmm.ptx.ops.basic import PREDICATE

_NAMED = 5


class Either(Struct, frozen=True):
    """``test``, in which the predicates that nothing decides may be either; ``telling``: which of them may matter, as
    lines, so that an execution need not be one of the program. ``loose``: what depends on what other threads write may
    depend on them, so that the program may have others."""

    test: Test
    telling: tuple[int, ...] = ()
    loose: bool = False


def either_way(test: Test, asked: Iterable[Term] = ()) -> Either:
    """``test`` with free predicates; ``asked``: the final values that are asked for besides those of the condition."""
    terms = (*test.named, *asked)
    telling: set[int] = set()
    while any(is_open(op) for thread in test.threads for op in thread.body):
        found = undecided(test, terms)
        if not any(found.instructions):
            break
        telling.update(
            thread.body[pc].source.span.line
            for thread, pcs in zip(test.threads, found.telling, strict=True)
            for pc in pcs
        )
        test = _freed(test, found)
    return Either(test, tuple(sorted(telling)), bool(telling) and _loose(test))


def _loose(test: Test) -> bool:
    """Whether a value that matters is made of a free predicate and of what another thread may write."""
    flow = Flow(test, forks=False)
    free = [
        (number, name)
        for number, thread in enumerate(test.threads)
        for op in thread.body
        if isinstance(op, ops.Opaque) and op.free and not op.sources
        for name in names_written(op)
    ]
    return any(
        not flow.given_by_others(number).isdisjoint(flow.local(node))
        for number, node in flow.mattering()
        if not flow.local(node).isdisjoint(free)
    )


def note(telling: Iterable[int], loose: bool = False) -> str:
    """What to say of predicates that may matter."""
    lines = sorted(telling)
    words = ", ".join(map(str, lines[:_NAMED])) + (", ..." if len(lines) > _NAMED else "")
    which = f"the comparison of line {words} gives" if len(lines) == 1 else f"the comparisons of lines {words} give"
    if loose:
        return f"what {which} is not worked out, and what depends on values of other threads with it"
    return f"what {which} is not worked out: both values were tried each time, so that an execution found may be none"


def _freed(test: Test, found: Undecided) -> Test:
    threads = tuple(
        replace(thread, body=tuple(_free(op, pc in apart) if pc in pcs else op for pc, op in enumerate(thread.body)))
        for thread, pcs, apart in zip(test.threads, found.instructions, found.telling, strict=True)
    )
    return replace(test, threads=threads)


def _free(op: Op, apart: bool) -> Op:
    """``op`` with free predicates; ``apart``: made of nothing."""
    if apart:
        return _made_of_nothing(op)
    if isinstance(op, ops.Opaque):
        return replace(op, free=True)
    assert isinstance(op, ops.SetPredicate)
    guard = None if op.guard is None else op.guard.register
    given = [(name, type_) for name, type_ in uses(op) if name != guard]
    return ops.Opaque(
        op.source.text.split()[0], PREDICATE, tuple(type_ for _, type_ in given), op.dst, op.complement,
        tuple(Reg(name) for name, _ in given), op.source, op.guard, free=True,
    )  # fmt: skip


def _made_of_nothing(op: Op) -> Op:
    if isinstance(op, ops.Opaque):
        return replace(op, free=True, given=(), sources=(), guard=None)
    assert isinstance(op, ops.SetPredicate)
    name = op.source.text.split()[0]
    return ops.Opaque(name, PREDICATE, (), op.dst, op.complement, (), op.source, None, free=True)
