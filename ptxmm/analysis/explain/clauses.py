"""Which numbered clause of chapter 8 a step of a derivation is, and what each step means."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.explain.sentences import sentence
from ptxmm.cat.derivation import EDGES, Proof
from ptxmm.cat.ir import Model, Node


class Definition(Struct, frozen=True, omit_defaults=True):
    """What a step named ``relation`` (or the axiom of this name) with this ``section`` means: ``written`` is the
    statement of the model that defines it, in a line of a file of models (``place``), None for what executions supply;
    ``sentence`` the one of PTX ISA 8.5, where one is quoted."""

    relation: str
    section: str | None
    written: str | None = None
    place: str | None = None
    sentence: str | None = None


def definition(model: Model, relation: str, section: str | None) -> Definition:
    """What a step of ``model`` means."""
    found = model.written.get(relation)
    if found is None:
        return Definition(relation, section, sentence=sentence(section))
    return Definition(relation, section, found.text, f"{Path(found.file).name}:{found.line}", sentence(section))


def unfolded(proof: Proof, named: Collection[int]) -> Proof:
    """``proof`` with the unions of ``named`` nodes that it went through: a derivation takes a branch of all unions in
    one another at once."""
    known: dict[int, Proof] = {}

    def made(proof: Proof) -> Proof:
        if id(proof) not in known:
            parts = tuple(map(made, proof.parts))
            if proof.node.operator == "union":
                for node in _between(proof.node, parts[0].node, named):
                    parts = (Proof(node, proof.first, proof.second, parts, proof.cost),)
            known[id(proof)] = replace(proof, parts=parts)
        return known[id(proof)]

    return made(proof)


def _between(node: Node, branch: Node, named: Collection[int]) -> list[Node]:
    """The ``named`` unions inside the union ``node`` that ``branch`` is a branch of, the innermost first."""
    stack: list[tuple[Node, tuple[Node, ...]]] = [(node, ())]
    while stack:
        union, above = stack.pop()
        for part in union.operands:
            if part is branch:
                return list(above)
            if part is not None and part.operator == "union":
                stack.append((part, (part, *above) if part.index in named else above))
    return []


class Ground(Struct, frozen=True):
    """What a derivation rests on at its own level: the names of ``base`` sets and relations, and of the definitions
    that are steps of their own (``named``). ``first`` and ``last``: the kinds of the events that it leads from and to;
    ``single``: they are one event; ``edges``: how many steps it has."""

    base: frozenset[str]
    named: frozenset[str]
    first: str
    last: str
    single: bool
    edges: int


def ground(proof: Proof, named: Mapping[int, str], kinds: Callable[[int], str], edges: int) -> Ground:
    """What ``proof``, which became so many ``edges``, rests on; the nodes ``named`` are steps of their own."""
    base: set[str] = set()
    found: set[str] = set()
    stack: list[Proof] = list(proof.parts)
    while stack:
        part = stack.pop()
        if part.node.index in named:
            found.add(named[part.node.index])
            continue
        if part.node.operator == "base":
            base.add(part.node.name)
        stack += part.parts
    second = proof.first if proof.second is None else proof.second
    return Ground(frozenset(base), frozenset(found), kinds(proof.first), kinds(second), proof.first == second, edges)


def _observed(found: Ground) -> str:
    return "8.9.2 (2)" if "rmw" in found.base else "8.9.2 (1)"


def _base_causality(found: Ground) -> str:
    if found.edges > 1:
        return "8.9.5 base (3)"
    if found.base & EDGES <= {"po"} and not found.named:
        return "8.9.5 base (1)"
    return "8.9.1.1" if found.base & {"issue", "issue-all", "acomp", "aord"} else "8.9.5 base (2)"


_PRESERVED = (
    ({"AF"}, "8.9.5 ppbc (3)"),
    ({"API"}, "8.9.4 API"),
    ({"TMREL", "tmcov"}, "9.7.14.4"),
    ({"TCB", "TEN", "TCM"}, "9.7.16.6 of PTX ISA 9.0"),
    ({"ASREL", "ASACQ", "rcov"}, "9.7.13.4 of PTX ISA 9.0"),
    ({"PF", "pfence"}, "8.6"),
    ({"scta"}, "8.9.5 ppbc (2)"),
)
"""By what a path of proxy-preserved base causality order rests on, the clause."""


def _preserved(found: Ground) -> str:
    return next((clause for names, clause in _PRESERVED if found.base & names), "8.9.5 ppbc (1)")


def _causality(found: Ground) -> str:
    if "obs" in found.named:
        return "8.9.5 causality (2)"
    return "8.9.5 causality (1)" if found.named & {"ppbc", "bc"} else "8.6"


def _releases(found: Ground) -> str:
    return f"8.8 release ({'3' if found.first == 'F' else '1' if found.single else '2'})"


def _acquires(found: Ground) -> str:
    return f"8.8 acquire ({'3' if found.last == 'F' else '1' if found.single else '2'})"


CLAUSES: Mapping[str, Callable[[Ground], str]] = MappingProxyType(
    {
        "obs": _observed,
        "bc": _base_causality,
        "ppbc": _preserved,
        "cause": _causality,
        "release-pattern": _releases,
        "acquire-pattern": _acquires,
    }
)
"""The definitions of the models that have several clauses, and which one a derivation takes."""


def axiom_clause(axiom: str, section: str | None, relations: Iterable[str]) -> str | None:
    """The clause of an axiom that a chain of ``relations`` violates."""
    if axiom != "Causality" or section is None:
        return section
    return f"{section} ({1 if next(iter(relations), '') == 'rf' else 2})"


def unique(found: Iterable[Definition]) -> Iterator[Definition]:
    """Each definition once; those of one relation together, in the order in which they are first met."""
    every = list(dict.fromkeys(found))
    place = {item.relation: number for number, item in reversed(list(enumerate(every)))}
    yield from sorted(every, key=lambda item: place[item.relation])
