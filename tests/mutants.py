"""Mutants of the shipped models, and the verdicts of litmus tests under them.

A mutant is a model with one thing left out: an axiom or a flag, an operand of a union (``without``), or a condition,
which is an operand of an intersection, what a difference takes away, or a guard ``[S]`` of a sequence (``whatever``);
or with a closure taken away. Readings are chosen first, and what no check uses is not mutated. Of a model under a
reading that is not its default (``ptx-8.5[middle=scope]``) only what the reading has put in is.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

import ptxmm.formats
from ptxmm.analysis.expectation import expectations
from ptxmm.analysis.outcomes import check
from ptxmm.cat import Model, index, load, parse_model
from ptxmm.cat.parser import parse
from ptxmm.cat.syntax import (
    Call,
    Check,
    Conditional,
    Definition,
    Expression,
    Include,
    Let,
    Name,
    Operation,
    Statement,
)
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.program.test import Test

ROOT = Path(__file__).resolve().parent.parent
LITMUS = ROOT / "litmus"
MODELS = ROOT / "ptxmm" / "models"
UNCOVERED = "mixed-sizes"
"""Tests that some models cover only if they race."""


# ---- models as text again --------------------------------------------------------------------------------------------


def text_of(item: Expression) -> str:
    """The expression in cat, with every parenthesis."""
    match item:
        case Name(name=name):
            return name
        case Call(name=name, arguments=arguments):
            return f"{name}({', '.join(map(text_of, arguments))})"
        case Conditional():
            raise AssertionError("readings are chosen before")
    parts = [text_of(o) for o in item.operands]
    match item.operator:
        case "[]":
            return f"[{parts[0]}]"
        case "~":
            return f"(~{parts[0]})"
        case "star":
            return f"({parts[0]})*"
        case "+" | "?" | "^-1":
            return f"({parts[0]}){item.operator}"
    return "(" + f" {item.operator} ".join(parts) + ")"


def statement_text(item: Statement) -> str:
    """The statement in cat."""
    if isinstance(item, Let):
        kind = "let rec " if item.recursive else "let "
        return kind + "\nand ".join(f"{_head(d)} = {text_of(d.body)}" for d in item.definitions)
    assert isinstance(item, Check)
    words = f"{'flag ' if item.flag else ''}{'~' if item.negated else ''}{item.kind} {text_of(item.body)}"
    return words + (f" as {item.name}" if item.name else "")


def _head(item: Definition) -> str:
    if item.parameters is None:
        return item.name
    return f"{item.name}({', '.join(p.name for p in item.parameters)})"


def decide(
    item: Expression, readings: Mapping[str, str], default: Mapping[str, str], arms: list[Expression]
) -> Expression:
    """``item`` with every ``if`` replaced by its chosen branch; ``arms`` gets those that are not chosen by default."""
    match item:
        case Conditional(condition=condition, yes=yes, no=no):
            key, _, value = condition.partition("=")
            chosen = decide(yes if readings.get(key) == value else no, readings, default, arms)
            if (readings.get(key) == value) != (default.get(key) == value):
                arms.append(chosen)
            return chosen
        case Operation(operands=operands):
            return replace(item, operands=tuple(decide(o, readings, default, arms) for o in operands))
        case Call(arguments=arguments):
            return replace(item, arguments=tuple(decide(a, readings, default, arms) for a in arguments))
    return item


def names_in(item: Expression) -> set[str]:
    """The names that an expression uses, both branches of an ``if`` included."""
    match item:
        case Name(name=name):
            return {name}
        case Call(name=name, arguments=arguments):
            return {name}.union(*map(names_in, arguments))
        case Conditional(yes=yes, no=no):
            return names_in(yes) | names_in(no)
    return set().union(*map(names_in, item.operands))


def statements(model: str, arms: list[Expression] | None = None) -> list[Statement]:
    """All statements of a shipped model, includes replaced by what they name, readings chosen; ``arms`` gets what is
    there by a reading that is not the default."""
    arms = [] if arms is None else arms
    name = plain(model)
    readings, default = load(model).readings, load(name).readings
    result: list[Statement] = []
    todo = list(parsed(index().models[name].file))
    while todo:
        item = todo.pop(0)
        if isinstance(item, Include):
            todo[:0] = parsed(item.file)
        elif isinstance(item, Let):
            bodies = tuple(replace(d, body=decide(d.body, readings, default, arms)) for d in item.definitions)
            result.append(replace(item, definitions=bodies))
        elif isinstance(item, Check):
            result.append(replace(item, body=decide(item.body, readings, default, arms)))
    return result


@cache
def parsed(file: str) -> tuple[Statement, ...]:
    """The statements of a file of ``ptxmm/models``."""
    return parse((MODELS / file).read_text(), file).statements


def plain(model: str) -> str:
    """The model without readings."""
    return model.partition("[")[0]


def parts_of(item: Expression) -> Iterator[Expression]:
    """``item`` and all that it is made of, its readings chosen."""
    yield item
    for part in item.arguments if isinstance(item, Call) else item.operands if isinstance(item, Operation) else ():
        yield from parts_of(part)


def used(model: list[Statement]) -> set[str]:
    """The names that some check depends on."""
    bodies: dict[str, set[str]] = {}
    needed: set[str] = set()
    for item in model:
        if isinstance(item, Let):
            for d in item.definitions:
                bodies.setdefault(d.name, set()).update(names_in(d.body))
        elif isinstance(item, Check):
            needed |= names_in(item.body)
    todo = list(needed)
    while todo:
        for name in bodies.get(todo.pop(), set()) - needed:
            needed.add(name)
            todo.append(name)
    return needed


# ---- mutants ---------------------------------------------------------------------------------------------------------


class Mutant(Struct, frozen=True):
    """A model with one thing left out; ``name`` says what, ``part`` is the check or definition that it is left out of.

    ``text`` is the whole model. ``changed`` are the old and the new body of ``part`` (None: the check is gone), and
    ``lost`` the operand that a union has no longer.
    """

    model: str
    name: str
    part: str
    text: str
    changed: tuple[Expression, Expression] | None
    lost: Expression | None

    def load(self) -> Model:
        """The mutant as a model, which covers what the shipped one covers."""
        shipped = load(self.model)
        own = parse_model(self.text, f"{plain(self.model)}.cat", dict(shipped.readings))
        return replace(own, coverage=shipped.coverage)


_NEUTRAL = ("0", "emptyset", "_", "(_ * _)")
"""What a branch of an ``if`` says that adds nothing to a union or an intersection."""

_Change = tuple[Expression, str, Expression | None, Expression]
"""The changed expression, what is changed, the operand that a union has lost, and the part that is taken out."""


def changes(item: Expression) -> Iterator[_Change]:
    """``item`` with one thing left out, in each way there is."""
    if isinstance(item, Call):
        for i, argument in enumerate(item.arguments):
            for inner, name, lost, out in changes(argument):
                arguments = (*item.arguments[:i], inner, *item.arguments[i + 1 :])
                yield replace(item, arguments=arguments), name, lost, out
    if not isinstance(item, Operation):
        return
    operands = item.operands
    for i, operand in enumerate(operands):
        rest = operands[:i] + operands[i + 1 :]
        smaller = replace(item, operands=rest) if len(rest) > 1 else rest[0] if rest else operand
        guard = isinstance(operand, Operation) and operand.operator == "[]"
        if text_of(operand) in _NEUTRAL:
            continue
        if item.operator == "|":
            yield smaller, f"without {text_of(operand)}", operand, operand
        elif item.operator == "&" or (item.operator == ";" and guard):
            yield smaller, f"whatever {text_of(operand)}", None, operand
        elif item.operator == "\\" and i == 1:
            yield operands[0], f"with {text_of(operand)}", None, operand
        elif item.operator in ("+", "?"):
            yield operand, f"{text_of(item)} once", None, item
    if item.operator == ";":
        for i, operand in enumerate(operands):
            if isinstance(operand, Operation) and operand.operator == "?":
                rest = operands[:i] + operands[i + 1 :]
                smaller = replace(item, operands=rest) if len(rest) > 1 else rest[0]
                yield smaller, f"never {text_of(operand)}", None, operand
    for i, operand in enumerate(operands):
        for inner, name, lost, out in changes(operand):
            yield replace(item, operands=(*operands[:i], inner, *operands[i + 1 :])), name, lost, out


def mutants(model: str) -> list[Mutant]:
    """All mutants of a shipped model; under other readings, of what they have put in."""
    arms: list[Expression] = []
    everything = statements(model, arms)
    texts = [statement_text(s) for s in everything]
    inside = {id(part) for arm in arms for part in parts_of(arm)}
    needed = used(everything)
    before = set() if model == plain(model) else used(statements(plain(model)))
    result: list[Mutant] = []
    seen: Counter[str] = Counter()

    def changes_of(body: Expression, name: str = "") -> Iterator[_Change]:
        """All changes of what is there by the reading only."""
        new = model == plain(model) or (name and name not in before)
        return (change for change in changes(body) if new or id(change[3]) in inside)

    def add(part: str, name: str, at: int, new: list[Statement], changed: _Change | None, old: Expression) -> None:
        lines = [*texts[:at], *map(statement_text, new), *texts[at + 1 :]]
        seen[name] += 1
        unique = name if seen[name] == 1 else f"{name} ({seen[name]})"
        text = f'"{plain(model)}"\n' + "\n".join(lines) + "\n"
        bodies, lost = ((old, changed[0]), changed[2]) if changed else (None, None)
        result.append(Mutant(model, unique, part, text, bodies, lost))

    for at, item in enumerate(everything):
        if isinstance(item, Check):
            kind = "flag" if item.flag else "axiom"
            part = item.name or ""
            if model == plain(model):
                add(part, f"{kind} {part}", at, [], None, item.body)
            for change in changes_of(item.body):
                name = f"{kind} {part} {change[1]}"
                add(part, name, at, [replace(item, body=change[0])], change, item.body)
        elif isinstance(item, Let):
            for d, definition in enumerate(item.definitions):
                if definition.name not in needed:
                    continue
                for change in changes_of(definition.body, definition.name):
                    both = (*item.definitions[:d], replace(definition, body=change[0]), *item.definitions[d + 1 :])
                    name = f"{definition.name} {change[1]}"
                    add(definition.name, name, at, [replace(item, definitions=both)], change, definition.body)
    return result


UNLISTED = frozenset(("mbarrier", "proxy-locality", "scploc"))
"""Readings whose texts are mutated under their default value only; the reference states the other values."""


def with_readings() -> list[str]:
    """Each model with each value of a reading that its text asks for and that is not its default."""
    return [
        f"{model}[{key}={value}]"
        for model in index().models
        for key in sorted(load(model).reading_keys - UNLISTED)
        for value in index().readings[key].values
        if value != load(model).readings[key]
    ]


# ---- verdicts --------------------------------------------------------------------------------------------------------

Verdict = tuple[object, ...]
"""Observation, status and flags; or one word, where the model does not cover the test."""


class Case(Struct, frozen=True):
    """A litmus file with one test; ``name`` is its path below ``litmus/`` without the suffix."""

    name: str
    test: Test


@cache
def case_named(name: str) -> Case:
    """The test in a litmus file."""
    (test,) = ptxmm.formats.read(LITMUS / f"{name}.litmus")
    return Case(name, test)


def verdict(case: Case, model: Model, seconds: float = 10, engine: str = "z3") -> Verdict | None:
    """What the checker says of a test; None if it takes too long."""
    try:
        limits = Limits(unroll=2, deadline=time.monotonic() + seconds)
        result = check(case.test, model, engine=engine, limits=limits, enumerate_all=False)
    except PtxmmError as error:
        return (error.kind,) if error.kind == "unsupported" else None
    if result.status == "timeout":
        return None
    return result.observation, result.status, result.flags


@cache
def own_verdict(name: str, model: str) -> Verdict | None:
    """The verdict of a litmus test under the shipped model; the model may have readings."""
    return verdict(case_named(name), load(model))


def notices(name: str, mutant: Mutant, loaded: Model, engine: str = "z3") -> bool:
    """Whether the verdict of a litmus test changes with the model."""
    own = own_verdict(name, mutant.model)
    other = verdict(case_named(name), loaded, engine=engine)
    return own is not None and other is not None and own != other


@cache
def cases(model: str) -> list[str]:
    """The tests in ``litmus/`` that state an expectation for ``model``, under its readings or any: those first that say
    most with least text.

    Tests on which the checker itself takes long are left out.
    """
    found = []
    for path in sorted(LITMUS.rglob("*.litmus")):
        name = f"{path.parent.name}/{path.stem}"
        try:
            test = case_named(name).test
        except (PtxmmError, ValueError):
            continue
        # What a model does not cover has no verdict to be expected.
        expected = expectations(test, tuple(index().models))
        if model != plain(model) and plain(model) not in expected and model not in expected:
            continue
        covered = path.parent.name != UNCOVERED and {model, plain(model)} & expected.keys()
        if test.condition is None or not (covered or path.parent.name == UNCOVERED):
            continue
        start = time.monotonic()
        if own_verdict(name, model) is not None and time.monotonic() - start < 2:
            later = path.parent.name == "bugs", model not in expected
            found.append((later, sum(len(t.body) for t in test.threads), name))
    return [name for *_, name in sorted(found)]
