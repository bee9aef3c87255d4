"""Ways through a part of a thread that only computes and branches: what registers hold there as expressions, and what
has to be so for control to take each way."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ptxmm.ptx.isa import computation, names_read, names_written
from ptxmm.ptx.ops import Alu, Branch, Imm, Op, Reg, SetPredicate, Type

_NEGATED = {"ne": "eq", "ge": "lt", "gt": "le"}

Form = object
"""What a register holds as an expression of the value that was read, or another part of an instruction with these in
place of its registers."""

Held = Mapping[str, Form]
"""The registers that have been written on a way, with what they hold; None where that is not known."""


class Rejected(Exception):
    """A part of a thread does more than what is looked for."""


class Ways:
    """The ways through instructions of ``body`` that write no other registers than ``written``."""

    def __init__(self, body: Sequence[Op], written: Collection[str]) -> None:
        self.body, self.written = body, written

    def step(
        self, pc: int, held: dict[str, Form], when: dict[Form, bool]
    ) -> Iterator[tuple[int, dict[str, Form], dict[Form, bool]]]:
        op = self.body[pc]
        if op.guard is not None:
            guard = self.held(op.guard.register, held)
            if guard is None:
                raise Rejected
            form, true = predicate(guard)
            for truth in (True, False):
                if when.get(form, truth) == truth:
                    yield from self.done(pc, (truth == true) != op.guard.negated, held, {**when, form: truth})
            return
        yield from self.done(pc, True, held, when)

    def done(
        self, pc: int, taken: bool, held: dict[str, Form], when: dict[Form, bool]
    ) -> Iterator[tuple[int, dict[str, Form], dict[Form, bool]]]:
        op = self.body[pc]
        if isinstance(op, Branch):
            if op.condition is not None:
                raise Rejected
            yield (op.target if taken else pc + 1), held, when
            return
        if taken:
            written = names_written(op)
            if isinstance(op, Alu) and op.op == "mov" and isinstance(op.sources[0], Reg | Imm):
                yield pc + 1, {**held, op.dst.name: self.form_of(op.sources[0], held)}, when
                return
            form: Form = None
            if all(self.held(name, held) is not None for name in names_read(op)):
                form = (type(op), *(self.form_of(part, held) for part in computation(op)))
            places = {name: number for number, name in enumerate(written)}
            held = {**held, **{name: None if form is None else (places[name], form) for name in written}}
        yield pc + 1, held, when

    def held(self, name: str, held: Mapping[str, Form]) -> Form:
        """What a register holds; None if that depends on the way that led here."""
        return held.get(name) if name in self.written else ("register", name)

    def form_of(self, item: object, held: Mapping[str, Form]) -> Form:
        match item:
            case Reg(name):
                return self.held(name, held)
            case tuple():
                return tuple(self.form_of(part, held) for part in item)
        return item


def predicate(form: Form) -> tuple[Form, bool]:
    """A predicate that is no negation, and the value that it has where ``form`` is true."""
    match form:
        case (int(result), (kind, str(comparison), Type() as type_, a, b, None, *rest)) if kind is SetPredicate:
            if type_.kind != "f":
                true = (comparison in _NEGATED) == bool(result)
                return (0, (kind, _NEGATED.get(comparison, comparison), type_, a, b, None, *rest)), true
    return form, True
