"""Memory without an initial value of which no register ever gets an unknown byte.

What it holds at first does not matter then, so it may as well hold 0: nothing that is computed with it or compared has
to be treated as unknown. Shared memory of real kernels is nearly always of this kind.

Why the executions with the marks of ``program.unknown`` in place of the unknown bytes tell: take an execution with any
bytes in which some register gets an unknown one, and in it the read that no other such read comes before in (program
order | reads-from)+. What comes before it is the same whatever the unknown bytes are, so with marks too, and it can be
gone on with to an execution: the threads, one after the other, read what is last in coherence order and write after it.

A register that a kernel may read before it writes it is read from such memory when the thread begins
(``formats.modules.unwritten``). Where that register is only given to shuffles, it is their results that count: a lane
of ``cg::coalesced_threads()`` gives a value that nobody takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ptxmm.cat import Model
from ptxmm.engines.result import Limits, Observed
from ptxmm.errors import PtxmmError
from ptxmm.program.condition import MemoryTerm, RegisterTerm, Term
from ptxmm.program.latest import Latest
from ptxmm.program.symbols import symbols
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import assignments, choices, computed_with, hidden, unknown_bytes
from ptxmm.ptx.isa import names_read
from ptxmm.ptx.ops import Load, Op, Reg, Sym, WarpExchange
from ptxmm.relations.formula import Formula

_WORD = 4
"""The bytes that an exchange between lanes returns."""


def settle_uninitialised(test: Test, model: Model, limits: Limits, what: Observed | None = None) -> Test:
    """``test`` with 0 in the objects no unknown byte of which comes into a register, where that makes it simpler, and
    something may see their contents.

    ``what``: whose final values are asked for besides those of the condition; they are left as they are. Raises as
    the engine does.
    """
    if not any(item.unknown for item in test.objects.values()):
        return test
    asked: tuple[Term, ...] = () if what is None else (*what.registers, *what.memory)
    shown: tuple[Term, ...] = tuple(dict.fromkeys((*asked, *test.named)))
    candidates = {item.physical for item in test.objects.values() if item.unknown} - hidden(test, shown)
    if not candidates:
        return test
    key = shown, model, limits.unroll
    return _latest.get(test, key) or _latest.keep(test, key, _settled(test, model, limits, shown, candidates))


_latest: Latest[Test] = Latest(8)


def _settled(test: Test, model: Model, limits: Limits, shown: Sequence[Term], candidates: set[str]) -> Test:
    if not _matters(test, shown):
        return test
    seen = set[str]().union(*(_seen(chosen, model, limits, shown) for chosen in choices(test)))
    unseen = candidates - seen
    return _zero(test, unseen) if unseen else test


def _matters(test: Test, shown: Sequence[Term]) -> bool:
    """Whether unknown values are computed with or compared, so that it is worth a search to know that none is read."""
    if computed_with(test, shown):
        return True
    try:
        return sum(1 for _ in zip(assignments(test, shown), range(2), strict=False)) > 1
    except PtxmmError:
        return True  # too many to try them all


def _zero(test: Test, keys: set[str]) -> Test:
    objects = {
        key: replace(item, unknown=False, initial=(0,) * item.count) if item.physical in keys else item
        for key, item in test.objects.items()
    }
    return replace(test, objects=objects)


def _seen(test: Test, model: Model, limits: Limits, shown: Sequence[Term]) -> set[str]:
    """The objects an unknown byte of which a register gets in some execution, one that ends or not, or ``shown``."""
    from ptxmm.engines.symbolic.problem import Problem  # with Z3, which takes time to load

    problem = Problem(test, model, Observed((), ()), limits, shown)
    program, formulas = problem.program, problem.formulas
    marks = {byte: origin[0] for byte, origin in unknown_bytes(test).items()}
    passed = _passed(test, shown)
    when: dict[str, list[Formula]] = {}

    def collect(found: Iterable[tuple[int, Formula]], presence: Formula) -> None:
        for byte, holds in found:
            when.setdefault(marks[byte], []).append(formulas.both(presence, holds))

    for event in program.events:
        if event.kind == "R" and not event.asynchronous:
            own = passed.get((event.id.thread, event.id.instruction))
            known = {byte: name for byte, name in marks.items() if name != own}
            for (_, _, size), domain in program.read_cells[event.number].items():
                collect(domain.having(known, size), event.presence)
        if event.kind == "W" and test.may_race(event.id.site):
            for place in event.places:
                collect(event.value.having(marks, place.size), event.presence)
    for step in (step for thread in program.threads for step in thread.barriers) if passed else ():
        if step.kind == "warp.exchange" and step.result is not None:
            collect(step.result.having(marks, _WORD), step.presence)
    for term in shown:
        if isinstance(term, MemoryTerm):
            collect(problem.domain(term).having(marks, term.type.bytes), program.final)
    return {key for key, choices in when.items() if problem.solver.satisfiable(formulas.any(choices))}


def _passed(test: Test, shown: Sequence[Term]) -> dict[tuple[int, int], str]:
    """Of the loads of a variable that nothing else names those, by the thread and the place in it, whose register only
    shuffles take, as what they give: the variable of each."""
    asked = {(term.thread, term.register) for term in shown if isinstance(term, RegisterTerm)}
    named = Counter(name for thread in test.threads for op in thread.body for name in symbols(op))
    found: dict[tuple[int, int], str] = {}
    for number, thread in enumerate(test.threads):
        takers: dict[str, list[Op]] = {}
        for op in thread.body:
            for name in set(names_read(op)):
                takers.setdefault(name, []).append(op)
        for pc, op in enumerate(thread.body):
            if not isinstance(op, Load) or not isinstance(op.address.base, Sym) or op.dst[0] is None:
                continue
            item, register = test.objects[op.address.base.name], op.dst[0]
            private = item.unknown and item.space == "local" and item.key == item.physical and named[item.key] == 1
            gives = len(op.dst) == 1 and all(_only_gives(taker, register) for taker in takers.get(register.name, ()))
            if private and gives and (number, register.name) not in asked:
                found[number, pc] = item.physical
    return found


def _only_gives(op: Op, register: Reg) -> bool:
    """Whether ``op`` is a shuffle that takes ``register`` as the value that its lane gives, and for nothing else."""
    if not isinstance(op, WarpExchange) or not op.op.startswith("shfl.") or op.operands[0] != register:
        return False
    return names_read(op).count(register.name) == 1
