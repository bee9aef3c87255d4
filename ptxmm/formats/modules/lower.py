"""From the flat list of a kernel to resolved instructions, and what of it can't be modelled."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import PtxmmError, Span, together
from ptxmm.formats.modules.inline import Flat, Step
from ptxmm.formats.text import at
from ptxmm.program.naming import did_you_mean
from ptxmm.ptx import syntax
from ptxmm.ptx.isa import PREDICATE, definitions, resolve, uses
from ptxmm.ptx.module_syntax import Place
from ptxmm.ptx.ops import Nothing, Op, Reg, Source, Type
from ptxmm.ptx.ops.signatures import CARRY
from ptxmm.ptx.spelling import refuse

_NO_RESULT = ("st", "red", "bar", "barrier", "fence", "membar", "cp", "prefetch", "discard", "call", "wgmma")
_COPY = re.compile(r"\$[0-9]+$")


Locate = Callable[[Place | None], tuple[Span | None, str]]
"""For a place of the source that the PTX was compiled from: the place that results name, None for that in the PTX
itself, and what is said beside the instruction: the lines of the calls that were inlined, the innermost first, or where
it is in another file."""


class Code(Struct, frozen=True):
    """The instructions of a kernel; branches jump to indices of ``body``.

    ``refused``: for the instructions that can't be modelled why, and whether they do more than give registers values.
    Such an instruction is a ``Nothing`` for each register that it writes.
    """

    body: tuple[Op, ...]
    registers: Mapping[str, Type]
    refused: Mapping[int, tuple[PtxmmError, bool]]


def lower(
    flat: Flat,
    variables: Container[str],
    others: Mapping[str, str],
    isa: tuple[int, int],
    locate: Locate,
    start: Span | None = None,
) -> Code:
    """Resolve the instructions of ``flat`` in PTX of version ``isa``.

    ``variables``: the names of memory objects; ``others``: those of what has an address that means nothing here, each
    with what it is (``functions``). ``locate``: see there; ``start``: the place where that gives none. Raises
    ``PtxmmError`` for a branch to nowhere.
    """
    steps = [item for item in flat.statements if isinstance(item, Step)]
    made: list[list[tuple[Op, tuple[PtxmmError, bool] | None]]] = []
    places = _located(steps, locate, start)
    predicates = {name for name, type_ in flat.registers.items() if type_ == PREDICATE}
    numbers: dict[str, int] = {}
    count = 0
    for item in flat.statements:
        if isinstance(item, Step):
            count += 1
        else:
            numbers[item] = count
    meant = partial(resolve, dialect=False, variables=variables, labels=numbers, isa=isa, predicates=predicates)
    wrong: list[PtxmmError] = []
    for number, (step, (place, said)) in enumerate(zip(steps, places, strict=True)):
        cuts: list[PtxmmError] = []
        try:
            found = _resolved(step, flat, others, partial(meant, cuts=cuts))
        except PtxmmError as error:
            wrong.append(error)
            continue
        made.append([(_placed(op, number, place, said), why) for op, why in found])
        for cut in cuts:
            where = step.instruction.span if place is None else place
            flat.remarks[f"line {where.line}: `{step.instruction.text}`: {cut.message}: {cut.hint}"] = None
    if wrong:
        raise together(wrong)
    starts = [0]
    for chunk in made:
        starts.append(starts[-1] + len(chunk))
    body: list[Op] = []
    refused: dict[int, tuple[PtxmmError, bool]] = {}
    for chunk in made:
        for op, why in chunk:
            if why is not None:
                refused[len(body)] = why
            body.append(_jump(op, starts))
    return Code(tuple(body), {**flat.registers, CARRY: PREDICATE}, refused)


def _located(steps: Sequence[Step], locate: Locate, start: Span | None) -> list[tuple[Span | None, str]]:
    """The place of each step. One that a compiler gives no line of the source (``.loc 1 0``) has that of the step
    before it, or of the first one that has one; one of another file, that of the last step of the source."""
    found = [locate(step.place) for step in steps]
    last = next((where for where in found if where[0] is not None or where[1]), (start, ""))
    span = next((where[0] for where in found if where[0] is not None), start)
    for number, where in enumerate(found):
        last = where if where[0] is not None or where[1] else last
        span = last[0] or span
        found[number] = span, last[1]
    return found


def _jump(op: Op, starts: list[int]) -> Op:
    target = getattr(op, "target", None)
    return op if target is None else replace(op, target=starts[target])


def _placed(op: Op, number: int, place: Span | None, said: str) -> Op:
    """``op`` with its number, at a place of the source, and what is ``said`` of it."""
    text = op.source.text if place is None else op.source.text + said
    return replace(op, source=Source(op.source.span if place is None else place, text, number))


def _resolved(
    step: Step, flat: Flat, others: Mapping[str, str], meant: Callable[[syntax.Instruction], Op]
) -> list[tuple[Op, tuple[PtxmmError, bool] | None]]:
    item = step.instruction
    error = step.refusal
    if error is None:
        try:
            return [(_known(meant(item), flat, others), None)]
        except PtxmmError as problem:
            if item.opcode == "bra" or problem.kind == "name":
                raise
            error = problem
    results = [] if step.effect else _results(item, flat)
    effect = step.effect or not results or any(isinstance(o, syntax.Memory) for o in item.operands)
    source = Source(item.span, item.text)
    if effect:
        return [(Nothing(None, None, source), (error, True))]
    return [(Nothing(Reg(name), flat.registers[name], source), (error, False)) for name in results]


def _known(op: Op, flat: Flat, others: Mapping[str, str]) -> Op:
    """``op``, the registers of which are declared.

    Raises ``PtxmmError`` (kind ``name``; ``unsupported`` for the address of what is in ``others``).
    """
    for name, _ in (*definitions(op), *uses(op)):
        if name in others and name not in flat.registers:
            raise refuse(op, f"addresses of {others[name]} are not supported")
        if name not in flat.registers and name != CARRY:
            sign = "%" if f"%{name}" in op.source.text else ""
            # As they are written: without the number of a call that is inlined, and without the slots of its arguments.
            names = {_COPY.sub("", known) for known in flat.registers if "@" not in known and " " not in known}
            message = f"`{sign}{name}` is neither a register nor a variable"
            raise at(message, op.source.span, kind="name", hint=did_you_mean(sign + name, [sign + n for n in names]))
    return op


def _results(item: syntax.Instruction, flat: Flat) -> list[str]:
    """The registers that an instruction without a row writes: its first operand."""
    if not item.operands or item.opcode in _NO_RESULT:
        return []
    first = item.operands[0]
    match first:
        case syntax.Name():
            names = [first]
        case syntax.Pair():
            names = [first.first, first.second]
        case syntax.Vector():
            names = [o for o in first.items if isinstance(o, syntax.Name)]
        case _:
            names = []
    return [name.name for name in names if name.name in flat.registers]
