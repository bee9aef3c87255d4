"""Spin loops that go round again only if each ``cas`` of the round has failed.

``do { old = *p; } while (atomicCAS(p, old, f(old)) != old);`` goes round only where what the ``cas`` returns is not
what it has compared. That follows from the instructions alone, whatever memory holds: the ways of a round are followed
on which a ``cas`` succeeds, so that it returns what it compares, and none of them comes to the branch back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from ptxmm.program.shared.ways import Form, Rejected, Ways, predicate
from ptxmm.ptx.isa import names_written
from ptxmm.ptx.ops import COMPUTING, Atomic, Branch, Exit, Imm, Op, SetPredicate, Type

_MOST = 512
"""The steps that are followed in one loop."""
NOTHING: Mapping[int, Collection[int]] = MappingProxyType({})


def fails(
    body: Sequence[Op], header: int, back: int, loop: set[int], changed: Mapping[int, Collection[int]] = NOTHING
) -> bool:
    """Whether each way through the spin ``loop`` from its ``header`` to the branch ``back`` that goes there again has
    no write, if a ``cas`` that fails is none, and an atomic in ``changed`` only where it returns one of these."""
    atomics = {pc: op for pc in loop if isinstance(op := body[pc], Atomic)}
    if any(pc not in changed and (op.op != "cas" or op.packed != 1) for pc, op in atomics.items()):
        return False
    try:
        return not atomics or not _Round(body, header, back, loop, changed).succeeds()
    except Rejected:
        return False


class _Round(Ways):
    """The ways through one round of a loop."""

    def __init__(
        self, body: Sequence[Op], header: int, back: int, loop: set[int], changed: Mapping[int, Collection[int]]
    ) -> None:
        super().__init__(body, {name for pc in loop for name in names_written(body[pc])})
        self.header, self.back, self.loop, self.changed = header, back, loop, changed

    def succeeds(self) -> bool:
        """Whether an atomic may have written when the branch back is taken. Raises ``Rejected`` where there are too
        many ways."""
        start: dict[str, Form] = {name: ("entry", name) for name in self.written}
        stack: list[tuple[int, dict[str, Form], dict[Form, bool], bool]] = [(self.header, start, {}, False)]
        for _ in range(_MOST):
            if not stack:
                return False
            pc, held, when, done = stack.pop()
            for target, then, facts in self.step(pc, held, when):
                if pc == self.back and target == self.header and done:
                    return True
                if target in self.loop and target != self.header:
                    stack.append((target, then, facts, done))
            op = self.body[pc]
            if isinstance(op, Atomic):
                values = self.changed.get(pc)
                for returned in (op.operands[0][0],) if values is None else map(Imm, values):
                    given = dict.fromkeys(names_written(op), self.form_of(returned, held))
                    stack.append((pc + 1, {**held, **given}, when, True))
        raise Rejected

    def step(
        self, pc: int, held: dict[str, Form], when: dict[Form, bool]
    ) -> Iterator[tuple[int, dict[str, Form], dict[Form, bool]]]:
        op = self.body[pc]
        if isinstance(op, Exit):
            raise Rejected
        if not isinstance(op, (*COMPUTING, Branch)):
            return iter([(pc + 1, {**held, **{name: ("found", pc, name) for name in names_written(op)}}, when)])
        if op.guard is not None:
            form, true = predicate(self.held(op.guard.register, held))
            match form:
                case (0, (kind, "eq", Type(kind=of), a, b, None, *_)) if kind is SetPredicate and of != "f" and a == b:
                    return self.done(pc, true != op.guard.negated, held, when)
        return super().step(pc, held, when)
