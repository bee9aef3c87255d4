"""Every axiom and every disjunct of every shipped model matters to at least one test in litmus/.

A mutant is a model without one axiom, or with one operand of one union left out. Those that provably change no
verdict are listed with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import pytest

import ptxmm.formats
from ptxmm.cat import Axiom, Model, Node, index, parse_model
from ptxmm.cat.parser import parse
from ptxmm.cat.syntax import Call, Check, Conditional, Definition, Expression, Include, Let, Name, Operation, Statement
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.condition import evaluate
from ptxmm.program.test import Test
from tests.support import ROOT, model_named, run
from tests.test_corpora import observed_by

MODELS = ("ptx-6.0", "ptx-7.5", "ptx-8.5", "sc")
FENCE_SC = (
    "Fence-SC order: take an accepted execution whose witness order contradicts base causality or itself. Rearranging "
    "the order inside each cycle by a linear extension of base causality without it only takes edges away from base "
    "causality, so every other axiom still holds and so does the final state; and the rearranged order contradicts "
    "nothing. Base causality without it has no cycle through a fence (Coherence and Causality forbid one)"
)
EMPTY = "the relation is empty: no instruction makes such a pair yet (bar.warp.sync, API synchronization)"
MS_PO = (
    "one thread: strong operations of one thread are mutually in scope anyway, so only weak accesses of one location "
    "through one proxy lose anything. Communication along program order is in SC-per-Location as program order; "
    "CoTotalMS still has the pair the other way round; an observation of a weak write of the own thread starts no "
    "release pattern, and as a cause it orders nothing that program order on the location does not"
)
MS_PO_BACK = (
    "one thread: communication against program order on one location through one proxy is a cycle of Causality or "
    "Coherence, because program order is in base causality and its pairs on one location are causes; CoTotalMS "
    "still has the pair in program order. (Not so in ptx-6.0, where bare program order is no cause.)"
)
READ_ONLY = (
    "texture and constant accesses only read: nothing communicates through those proxies, and a cause from a read to "
    "a read takes part in no axiom"
)
LEAVE_ENTER = "contained in (3), in which generic accesses need no proxy fence to leave and to enter"
TORN = (
    "SC-per-Location: if a read takes one byte from a write and another from before it, and the two are morally "
    "strong, then reads-from and from-reads between them are a cycle of morally strong communication"
)
SAME_WIDTH = (
    "accesses that overlap partly are refused, and atomic operations of one width on one virtual address are morally "
    "strong whenever they are mutually in scope: CoTotalMS and Atomicity say the same"
)

# (model or *, mutant) -> why no test can tell
EXEMPT: dict[tuple[str, str], str] = {
    ("*", "axiom FenceSC-order"): FENCE_SC,
    ("*", "axiom Fence-SC"): FENCE_SC,
    ("*", "sync without warpphase"): EMPTY,
    ("*", "sync without api"): EMPTY,
    ("sc", "axiom Sequential-Consistency without warpphase"): EMPTY,
    ("sc", "axiom Sequential-Consistency without api"): EMPTY,
    ("*", "related without po"): MS_PO,
    ("ptx-7.5", "related without (po)^-1"): MS_PO_BACK,
    ("ptx-8.5", "related without (po)^-1"): MS_PO_BACK,
    ("ptx-7.5", "same-proxy-access without (TEX * TEX)"): READ_ONLY,
    ("ptx-7.5", "same-proxy-access without (CON * CON)"): READ_ONLY,
    ("ptx-7.5", "ppbc without ([(M & GEN)] ; (bc & vovl) ; [(M & GEN)])"): LEAVE_ENTER,
    ("ptx-8.5", "axiom SingleCopyAtomicity"): TORN,
    ("ptx-8.5", "amo-ms without po"): SAME_WIDTH,
    ("ptx-8.5", "amo-ms without (po)^-1"): SAME_WIDTH,
    ("ptx-8.5", "amo-ms without mutual"): SAME_WIDTH,
    ("ptx-8.5", "axiom MixedSizeRMW-order"): SAME_WIDTH,
    ("ptx-8.5", "axiom MixedSizeRMW"): SAME_WIDTH,
}


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
    if isinstance(item, Let):
        kind = "let rec " if item.recursive else "let "
        return kind + "\nand ".join(f"{d.name} = {text_of(d.body)}" for d in item.definitions)
    assert isinstance(item, Check)
    words = f"{'flag ' if item.flag else ''}{'~' if item.negated else ''}{item.kind} {text_of(item.body)}"
    return words + (f" as {item.name}" if item.name else "")


def decide(item: Expression, readings: dict[str, str]) -> Expression:
    """``item`` with every ``if`` replaced by its chosen branch."""
    match item:
        case Conditional(condition=condition, yes=yes, no=no):
            key, _, value = condition.partition("=")
            return decide(yes if readings.get(key) == value else no, readings)
        case Operation(operands=operands):
            return replace(item, operands=tuple(decide(o, readings) for o in operands))
    return item


def defaults(model: str) -> dict[str, str]:
    """The readings of a shipped model."""
    return dict(model_named(model).readings)


def statements(model: str) -> list[Statement]:
    """All statements of a shipped model, includes replaced by what they name, readings chosen."""
    folder, readings = ROOT / "ptxmm" / "models", defaults(model)
    result: list[Statement] = []
    todo = list(parse((folder / index().models[model].file).read_text(), model).statements)
    while todo:
        item = todo.pop(0)
        if isinstance(item, Include):
            todo[:0] = parse((folder / item.file).read_text(), item.file).statements
        elif isinstance(item, Let):
            bodies = tuple(replace(d, body=decide(d.body, readings)) for d in item.definitions)
            result.append(replace(item, definitions=bodies))
        elif isinstance(item, Check):
            result.append(replace(item, body=decide(item.body, readings)))
    return result


@dataclass(frozen=True, slots=True)
class Mutant:
    """A model with one thing left out; ``name`` says what."""

    model: str
    name: str
    text: str

    def load(self) -> Model:
        readings = defaults(self.model)
        own = parse_model(self.text, f"{self.model}.cat", readings)
        return replace(own, coverage=model_named(self.model).coverage)


def without_one(item: Expression) -> Iterator[tuple[Expression, str]]:
    """``item`` without one operand of one of its unions, and that operand."""
    if not isinstance(item, Operation):
        return
    for i, operand in enumerate(item.operands):
        rest = item.operands[:i] + item.operands[i + 1 :]
        if item.operator == "|":
            yield (replace(item, operands=rest) if len(rest) > 1 else rest[0]), text_of(operand)
        for smaller, what in without_one(operand):
            yield replace(item, operands=(*item.operands[:i], smaller, *item.operands[i + 1 :])), what


def mutants(model: str) -> list[Mutant]:
    """All mutants of a shipped model, flags and what only flags use left out."""
    everything = [s for s in statements(model) if not (isinstance(s, Check) and s.flag)]
    everything = [
        s for s in everything if not (isinstance(s, Let) and {d.name for d in s.definitions} <= {"conflict", "race"})
    ]
    result = []

    def add(name: str, at: int, new: list[Statement]) -> None:
        lines = [statement_text(s) for s in [*everything[:at], *new, *everything[at + 1 :]]]
        result.append(Mutant(model, name, f'"{model}"\n' + "\n".join(lines) + "\n"))

    for at, item in enumerate(everything):
        if isinstance(item, Check):
            add(f"axiom {item.name}", at, [])
            for body, what in without_one(item.body):
                add(f"axiom {item.name} without {what}", at, [replace(item, body=body)])
        elif isinstance(item, Let):
            for d, definition in enumerate(item.definitions):
                for body, what in without_one(definition.body):
                    changed: Definition = replace(definition, body=body)
                    both = (*item.definitions[:d], changed, *item.definitions[d + 1 :])
                    add(f"{definition.name} without {what}", at, [replace(item, definitions=both)])
    return result


# ---- verdicts --------------------------------------------------------------------------------------------------------

Verdict = tuple[bool, bool]


def verdict(test: Test, model: Model, seconds: float) -> Verdict | None:
    """Whether some final state satisfies the condition, and whether some one does not; None if it takes too long."""
    assert test.condition is not None
    proposition = test.condition.proposition
    limits = Limits(unroll=2, deadline=time.monotonic() + seconds)
    try:
        search = run("solve", test, model, observed_by(test), limits, proposition)
    except (Timeout, PtxmmError):
        return None
    found = {evaluate(proposition, f.state) for f in search.found}
    return None if search.timeout else (True in found, False in found)


@cache
def cheap_tests(model: str) -> list[tuple[Test, Verdict]]:
    """The tests in litmus/ that state an expectation for ``model`` and are decided quickly, with their verdicts."""
    result = []
    for path in sorted((ROOT / "litmus").rglob("*.litmus")):
        for test in ptxmm.formats.read(path):
            expected = dict(test.info).get("Expect", "")
            if test.condition is not None and f"{model}:" in expected:
                own = verdict(test, model_named(model), 0.5)
                if own is not None:
                    result.append((test, own))
    return result


def killer(mutant: Mutant) -> str | None:
    """The first test whose verdict the mutant changes."""
    model = mutant.load()
    for test, own in cheap_tests(mutant.model):
        other = verdict(test, model, 5)
        if other is not None and other != own:
            return test.name
    return None


def exempt(mutant: Mutant) -> str | None:
    return EXEMPT.get((mutant.model, mutant.name)) or EXEMPT.get(("*", mutant.name))


ALL = [m for model in MODELS for m in mutants(model)]


def shape(axiom: Axiom) -> tuple[object, ...]:
    """An axiom without the numbers of its nodes."""

    def of(node: Node | None) -> object:
        return node and (node.operator, node.name, tuple(of(o) for o in node.operands))

    return axiom.name, axiom.kind, axiom.negated, axiom.flag, of(axiom.body)


def test_text_of_a_model_is_the_model() -> None:
    """Writing a model out changes nothing (else mutants would mean nothing)."""
    for model in MODELS:
        text = f'"{model}"\n' + "\n".join(map(statement_text, statements(model)))
        again = parse_model(text, f"{model}.cat", defaults(model))
        assert [shape(a) for a in again.axioms] == [shape(a) for a in model_named(model).axioms]


def test_exemptions_name_mutants() -> None:
    names = {(m.model, m.name) for m in ALL} | {("*", m.name) for m in ALL}
    assert set(EXEMPT) <= names


SOME = [m for m in ALL if m.name.startswith("axiom ") and not exempt(m)][::4]


@pytest.mark.parametrize("mutant", SOME, ids=lambda m: f"{m.model}-{m.name}")
def test_some_axioms_matter(mutant: Mutant) -> None:
    assert killer(mutant), f"no test in litmus/ notices: {mutant.model} {mutant.name}"


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ALL, ids=lambda m: f"{m.model}-{m.name}")
def test_every_part_matters(mutant: Mutant) -> None:
    """A changed verdict for every mutant; for the exempt ones that there is none, as their reason says."""
    found = killer(mutant)
    if exempt(mutant):
        assert found is None, f"{found} notices: the exemption is wrong"
    else:
        assert found, f"no test in litmus/ notices: {mutant.model} {mutant.name}"
