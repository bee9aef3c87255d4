"""The steps of reasons: each holds wherever the reason does, is made of what it says, and means what the ISA says."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxmm.analysis.explain.chains import derived, reason
from ptxmm.analysis.explain.clauses import CLAUSES, definition
from ptxmm.analysis.explain.events import Views
from ptxmm.analysis.explain.reasons import Found, Search, applies, reasons
from ptxmm.analysis.explain.sentences import SENTENCES
from ptxmm.analysis.explain.steps import Edge, Reason, chain, every_step
from ptxmm.analysis.result import EventView
from ptxmm.cat import Model, load
from ptxmm.engines.explicit.witness import Rebuilt
from ptxmm.engines.result import Limits
from ptxmm.formats import read
from ptxmm.program.test import Test
from ptxmm.program.unspecified.unknown import assignments
from tests.support import ROOT, model_named
from tests.test_explain import FILES, MODELS, NAMES, forbidden, litmus_test, question


class Executions:
    """Executions of a test that end in what it asks about, and a reason for each."""

    def __init__(self, test: Test, model: Model) -> None:
        proposition = question(test)
        assert proposition is not None
        limits = Limits(deadline=time.monotonic() + 60)
        self.test, self.model = test, model
        self.found = list(reasons(Search(test, model, proposition, limits), limits))

    def told(self) -> Iterator[tuple[Found, Reason]]:
        for found in self.found:
            yield found, reason(self.model, Views(self.test, found.execution), found)


def holds(edge: Edge, views: Views) -> bool:
    """Whether the relation that a step names has a pair of events that look like those of the step."""
    execution = views.execution
    if edge.relation == "product":
        return True
    value = execution.evaluator.value(edge.relation) if _known(execution, edge.relation) else 0
    first, second = (edge.second, edge.first) if edge.backwards else (edge.first, edge.second)
    pairs = ((a, b) for a in _numbers(views, first) for b in _numbers(views, second))
    return any(execution.layout.algebra.has(value, a, b) for a, b in pairs)


def _known(execution: Rebuilt, relation: str) -> bool:
    return relation in execution.evaluator.model.definitions or execution.base(relation) is not None


def _numbers(views: Views, event: EventView) -> list[int]:
    """The events that look like ``event``, whatever values they read and write."""
    every = ((number, views.event(number)) for number in range(len(views.execution.layout.events)))
    return [n for n, view in every if (view.same, _does(view)) == (event.same, _does(event))]


def _does(event: EventView) -> str:
    return event.action.partition(" ")[0]


def joined(edges: tuple[Edge, ...], first: EventView, second: EventView) -> bool:
    """Whether ``edges`` lead from one instruction to the other, each from where the one before it ends."""
    steps = list(chain(edges))
    ends = [first.same, *(end.same for step in steps for end in (step.first, step.second)), second.same]
    return all(a == b for a, b in zip(ends[::2], ends[1::2], strict=True))


def check_steps(test: Test, model: Model) -> int:
    """How many steps there are in the reasons for what ``test`` forbids, all of which hold wherever the facts of the
    reason do."""
    count = 0
    for assigned in assignments(test):
        executions = Executions(assigned.test, model)
        for found, told in executions.told():
            others = [other for other in executions.found if applies(found.named, other.execution)]
            assert found in others
            for step in told.steps:
                count += 1
                for other in others:
                    assert holds(step, Views(assigned.test, other.execution)), step
                if step.inner and step.relation not in ("release-pattern", "acquire-pattern"):
                    assert joined(step.inner, step.first, step.second), step
                meaning = definition(model, step.relation, step.section)
                assert meaning.written is not None or step.relation not in model.definitions
            for absence in told.absent:
                assert absence.first is not None
    return count


@pytest.mark.parametrize("path", FILES[::15], ids=NAMES[::15])
def test_steps_hold(path: Path) -> None:
    for test in read(path):
        each_step_holds(test, test.default_model)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_all_steps_hold(path: Path) -> None:
    for test in read(path):
        for model in MODELS:
            each_step_holds(test, model)


def each_step_holds(test: Test, name: str) -> None:
    model, proposition = model_named(name), question(test)
    if proposition is not None and forbidden(test, model, proposition):
        check_steps(test, model)


@pytest.mark.parametrize(
    ("name", "clauses"),
    [
        ("mp/MP+rel+acq", {"8.8 release (1)", "8.8 acquire (1)", "8.9.4 (4)", "8.9.5 causality (1)", "8.7 (3)"}),
        ("mp/MP+fence+relaxed-then-acq", {"8.8 release (3)", "8.8 acquire (2)", "8.9.2 (1)", "8.10.6 (2)"}),
        ("mp/MP+rel-then-relaxed+acq", {"8.8 release (2)", "8.9.5 ppbc (1)", "8.9.5 base (3)"}),
        ("mp/MP+rel+fence", {"8.8 acquire (3)"}),
        ("rmw/MP+rel+atom+acq", {"8.9.2 (2)"}),
        ("sb/ISA-SB", {"8.9.4 (1)"}),
        ("barriers/BAR-MP", {"8.9.4 (2)"}),
        ("iriw/IRIW+fence.sc", {"8.9.5 causality (2)"}),
        ("aliases/ISA-CoWR", {"8.9.5 ppbc (3)", "8.9.5 base (1)"}),
        ("async/TMA-load", {"8.6", "8.9.1.1"}),
        ("coherence/ISA-CoRR", {"8.10.5", "8.7 (1)"}),
        ("s/S+rel+acq", {"8.10.1"}),
        ("rmw/atom.add+st", {"8.10.3 RMW"}),
    ],
)
def test_clauses(name: str, clauses: set[str]) -> None:
    """Each step names the clause that it takes."""
    test, model = litmus_test(name), model_named("ptx-8.5")
    named = {told.section for _, told in Executions(test, model).told()}
    for _, told in Executions(test, model).told():
        named |= {step.section for step in told.steps}
    assert clauses <= named, named


def test_observation_is_no_reads_from() -> None:
    """A store is observed through an atomic operation that it is not read by in the end."""
    test, model = litmus_test("rmw/MP+rel+atom+acq"), model_named("ptx-8.5")
    steps = [step for _, told in Executions(test, model).told() for step in told.steps if step.relation == "obs"]
    longest = max(steps, key=lambda step: len(step.inner))
    assert [(step.relation, step.strong) for step in longest.inner] == [("rf", True), ("rmw", False), ("rf", True)]


def test_a_relation_that_is_asked_for_is_unfolded() -> None:
    test, model = litmus_test("mp/MP+rel+acq"), model_named("ptx-8.5")
    found = Executions(test, model).found[0]
    views = Views(test, found.execution)
    algebra = found.execution.layout.algebra
    for name in CLAUSES:
        for a, b in algebra.pairs(found.execution.evaluator.value(name)):
            told = derived(model, views, name, a, b)
            assert all(holds(step, views) for step in every_step(told.edges))


def test_what_is_written_is_in_the_model() -> None:
    """The text of a definition is that of its line, and that of a model without a part of it lacks the part."""
    model = load("ptx-8.5")
    for name, written in model.written.items():
        lines = Path(written.file).read_text(encoding="utf-8").splitlines()
        first = " ".join(lines[written.line - 1].split())
        assert name in written.text and (first.startswith(written.text) or written.text.startswith(first)), name
    less = load("ptx-8.5[without=Causality+cause:2]")
    assert "Causality" in model.written and "Causality" not in less.written
    assert "(obs; ppbc)" in model.written["cause"].text and "(obs; ppbc)" not in less.written["cause"].text


@pytest.mark.skipif("PTXMM_ISA" not in os.environ, reason="PTXMM_ISA names no text of PTX ISA 8.5")
def test_sentences_are_those_of_the_isa() -> None:
    text = " ".join(Path(os.environ["PTXMM_ISA"]).read_text(encoding="utf-8").split())
    assert [clause for clause, quoted in SENTENCES.items() if quoted not in text] == []


def test_every_clause_of_a_step_is_quoted() -> None:
    """What definitions with several clauses are told to be has its sentence; all that is quoted is told somewhere."""
    source = "".join(
        (ROOT / "ptxmm" / "analysis" / "explain" / f"{n}.py").read_text() for n in ("chains", "clauses", "words")
    )
    named = {clause for clause in SENTENCES if f'"{clause}"' in source}
    made = {f"8.8 {kind} ({n})" for kind in ("release", "acquire") for n in (1, 2, 3)}
    made |= {"8.10.6 (1)", "8.10.6 (2)"}
    assert SENTENCES.keys() - named - made == set()
