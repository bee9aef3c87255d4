"""An execution in the order of chapter 8 of the PTX ISA: one kind of relation after the other, up to the axioms."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ptxmm.analysis.explain.expected import Expected
from ptxmm.analysis.explain.sentences import sentence
from ptxmm.analysis.explain.steps import Reason
from ptxmm.analysis.explain.words import COMPOSITE
from ptxmm.analysis.result import ExecutionGraph, Related
from ptxmm.web.requests import Clause, Stage

_MOST = 40
"""So many lines of a stage are told."""

_SYNCHRONIZES = (*COMPOSITE, "barphase", "warpphase", "cluphase", "mbphase", "exitphase", "api", "trigger")
_STAGES: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("po", "program order", ("po",), ("8.9.1",)),
    ("rf", "who reads from whom", ("rf",), ("8.9.7 (1)",)),
    ("co", "coherence order, and from-reads which follows from it", ("co", "fr"), ("8.9.6", "8.9.7 (3)")),
    ("ms", "morally strong operations", (), ("8.7", "8.7 (1)", "8.7 (2)", "8.7 (3)")),
    ("obs", "observation order", ("obs",), ("8.9.2 (1)", "8.9.2 (2)")),
    ("dependency", "dependencies", ("addr", "data", "ctrl"), ("8.10.4",)),
    ("asynchronous", "asynchronous operations", ("issue", "issue-all", "aord", "acomp"), ("8.9.1.1",)),
    ("fsc", "Fence-SC order", ("fsc",), ("8.9.3",)),
    ("sync", "what synchronizes", _SYNCHRONIZES, ()),
    ("bc", "base causality order", ("bc",), ("8.9.5 base (1)", "8.9.5 base (2)", "8.9.5 base (3)")),
    ("cause", "causality order", ("cause",), ("8.9.5 causality (1)", "8.9.5 causality (2)")),
)
"""For each its name, what it is, the relations in it, and the clauses that say what it is."""
_ALWAYS = {"rf", "co", "ms", "obs", "sync", "bc", "cause"}
"""What is told also where there is nothing of it."""


def stages(graph: ExecutionGraph, model: str, reason: Reason | None, expected: Expected | None) -> tuple[Stage, ...]:
    """The stages of ``graph``, an execution under ``model``; ``reason``: why it is forbidden, if it is; else what is
    known of why it is not (``expected``)."""
    return (Stage("events", "what the threads do", (), ()), *_relations(graph), _axioms(model, reason, expected))


def _relations(graph: ExecutionGraph) -> Iterator[Stage]:
    known = {item.relation: item for item in graph.relations}
    for name, title, relations, sections in _STAGES:
        found = [known[relation] for relation in relations if relation in known]
        if name == "sync" and "fsc" in known:
            found.insert(0, replace(known["fsc"], text="synchronizes by Fence-SC order", section="8.9.4 (1)"))
        lines = _conflicts(graph) if name == "ms" else () if name == "po" else _lines(graph, found)
        if found or name in _ALWAYS:
            cited = sections or tuple(dict.fromkeys(item.section for item in found if item.section is not None))
            yield Stage(name, title, _clauses(*cited), _cut(tuple(dict.fromkeys(lines))))


def _lines(graph: ExecutionGraph, found: list[Related]) -> Iterator[str]:
    for item in found:
        where = f" ({item.section})" if item.section else ""
        for a, b in item.pairs:
            first, second = graph.events[a].view, graph.events[b].view
            begins = first.instruction is None or second.instruction is None
            if first.same != second.same and not (begins and item.relation in ("co", "bc")):
                yield f"{first.label} → {second.label}: {item.text}{where}"


def _conflicts(graph: ExecutionGraph) -> Iterator[str]:
    for item in graph.conflicts:
        first, second = graph.events[item.first].view, graph.events[item.second].view
        found = f"not morally strong: {'; '.join(item.fails)}" if item.fails else "morally strong (8.7)"
        yield f"{first.label} and {second.label}: {found}"


def _cut(lines: tuple[str, ...]) -> tuple[str, ...]:
    if len(lines) > _MOST:
        return (*lines[:_MOST], f"and {len(lines) - _MOST} more")
    return lines


def _axioms(model: str, reason: Reason | None, expected: Expected | None) -> Stage:
    title = "what the axioms say"
    if reason is None:
        why = () if expected is None else (expected.sentence,)
        return Stage("axioms", title, (), (f"every axiom of {model} holds: the execution is allowed", *why))
    where = f" ({reason.section})" if reason.section else ""
    clauses = _clauses(reason.section) if reason.section else ()
    return Stage("axioms", title, clauses, (f"{reason.axiom}{where}: {reason.sentence}",))


def _clauses(*sections: str) -> tuple[Clause, ...]:
    return tuple(Clause(section, text) for section in sections if (text := sentence(section)) is not None)
