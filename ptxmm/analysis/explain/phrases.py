"""A reason in a sentence: which relations contradict each other, and between which instructions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from ptxmm.analysis.explain.steps import Absence, Edge, chain
from ptxmm.analysis.result import EventView

_NOUNS: Mapping[str, str] = MappingProxyType(
    {
        "ld": "load", "st": "store", "atom": "atomic", "red": "reduction", "fence": "fence", "membar": "fence",
        "bar": "barrier", "barrier": "barrier", "cp": "copy", "mbarrier": "mbarrier operation",
    }
)  # fmt: skip

_PHRASES: Mapping[str, str] = MappingProxyType(
    {
        "po": "{a} comes before {b} in program order",
        "po-loc": "{a} comes before {b} in program order",
        "rf": "{b} reads from {a}",
        "co": "{a} comes before {b} in coherence order",
        "fr": "{a} reads a value from before {b}",
        "fsc": "{a} comes before {b} in Fence-SC order",
        "sync_fence": "{a} comes before {b} in Fence-SC order",
        "rmw": "{a} and {b} are one operation",
        "addr": "the address of {b} depends on {a}",
        "data": "the value of {b} depends on {a}",
        "ctrl": "that {b} is executed depends on {a}",
        "obs": "{a} is observed by {b}",
        "bc": "base causality order leads from {a} to {b}",
        "ppbc": "base causality order leads from {a} to {b}",
        "ms": "{a} and {b} are morally strong",
        **dict.fromkeys(("barphase", "warpphase", "cluphase", "exitphase"), "{a} lets {b} go on"),
        "mbphase": "{b} has waited for {a}",
        "mbcount": "what {b} returns counts {a}",
        "api": "{b} has waited for {a}",
        **dict.fromkeys(("issue", "issue-all"), "{a} starts {b}"),
        "acomp": "{a} is over before {b}",
    }
)

_HEADS: Mapping[str, str] = MappingProxyType(
    {
        "FenceSC-order": "Fence-SC order has a cycle",
        "FenceSC-total": "Fence-SC order misses a pair",
        "Fence-SC": "Fence-SC order contradicts causality order",
        "Coherence": "Coherence order contradicts causality order",
        "CoTotalMS": "Coherence order misses a pair",
        "SingleCopyAtomicity": "A read takes bytes from a write and from one before it",
        "Atomicity-RMW": "A write falls between the two halves of an atomic operation",
        "Atomicity": "A write falls between the two halves of an atomic operation",
        "MixedSizeRMW": "A write falls between the two halves of an atomic operation",
        "No-Thin-Air": "A value comes out of thin air",
        "SC-per-Location": "Communication order contradicts program order on one location",
        "Sequential-Consistency": "No order of all operations agrees with every thread's",
    }
)
"""What goes wrong where an axiom of this name is violated."""


def contradiction(
    axiom: str, edges: tuple[Edge, ...], absent: tuple[Absence, ...], member: EventView | None = None
) -> str:
    """What a violation of ``axiom`` says, in one sentence, without its full stop."""
    parts = list(_parts(edges))
    first = edges[0].relation if edges else ""
    if axiom == "Causality" and first in ("rf", "fr"):
        head = f"{'From-reads' if first == 'fr' else 'Reads-from'} contradicts causality order"
        return f"{head}: {_joined(map(phrase, parts[1:]))}, but {phrase(parts[0])}"
    told = [phrase(edge) for edge in parts]
    if member is not None:
        told.insert(0, f"{noun(member)} is as it must not be")
    head = _HEADS.get(axiom, f"{axiom} is violated")
    text = f"{head}: {_joined(told)}" if told else head
    return text + "".join(f", but {_missing(item)}" for item in absent)


def placed(path: Sequence[Edge]) -> str:
    """The last step of ``path`` in words: where those of its relation make a total order, the order as one chain."""
    last = path[-1]
    before: dict[EventView, set[EventView]] = {}
    for step in path:
        if step.relation == last.relation:
            before.setdefault(step.first, set())
            before.setdefault(step.second, set()).add(step.first)
    if last.relation == "rf" or len(before) < 3:
        return phrase(last)
    for _ in before:
        for found in before.values():
            found |= {early for event in found for early in before[event]}
    order = sorted(before, key=lambda event: len(before[event]))
    if [len(before[event]) for event in order] != list(range(len(order))):
        return phrase(last)
    first, *rest = map(noun, order)
    return f"in {last.text}, {first} comes first, {', '.join(f'then {event}' for event in rest)}"


def _parts(edges: Iterable[Edge]) -> Iterator[Edge]:
    """The steps that are told of: orders of causality as a whole, but what makes causality order of them."""
    for edge in edges:
        if edge.relation in ("cause", "precedes"):
            yield from _parts(edge.inner)
        else:
            yield edge


def _joined(parts: Iterable[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)}, and {last}" if most else last


def phrase(edge: Edge) -> str:
    """A step in words."""
    first, second = (edge.second, edge.first) if edge.backwards else (edge.first, edge.second)
    a, b = noun(first), noun(second)
    if edge.relation.startswith("sync-"):
        return f"{a} synchronizes with {b}"
    if edge.relation == "ppbc" and any("fence" in step.first.action for step in chain(edge.inner)):
        return f"base causality order leads from {a} to {b}, through a proxy fence"
    return _PHRASES.get(edge.relation, f"{a} is related to {b} ({edge.text})").format(a=a, b=b)


def _missing(absence: Absence) -> str:
    first = noun(absence.first)
    order = absence.text or "what the axiom demands"
    if absence.second is None:
        return f"{first} has no place in {order}"
    if absence.unrelated:
        return f"{first} and {noun(absence.second)} are unrelated in {order}"
    return f"{first} does not come before {noun(absence.second)} in {order}"


def noun(event: EventView) -> str:
    """``the store P0:10``."""
    if event.instruction is None:
        return f"the {event.text}" if event.text.startswith("initial") else event.text
    text = event.instruction.text
    opcode = text.split()[1] if text.startswith("@") and " " in text else text
    noun = _NOUNS.get(opcode.split(".")[0].split()[0].strip(";"), "instruction")
    return f"the {noun} {event.label}"
