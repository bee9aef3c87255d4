"""Rules about functions whose name says a scope or a memory order (PTX ISA 8.5, 8.8)."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.analysis.lint.effects import FENCE_CALLS, SCOPES, fences, order, scope
from ptxmm.analysis.lint.finding import Finding, Rule, Site
from ptxmm.analysis.lint.names import parts, words
from ptxmm.cuda import Instruction
from ptxmm.ptx.tables.form import words as split

RULES = (
    Rule("PTX501", "scope-of-name", "warning", "another scope than the name of the function says", "PTX ISA 8.5"),
    Rule("PTX502", "order-of-name", "warning", "another memory order than the name of the function says",
         "PTX ISA 8.8"),
)  # fmt: skip
_SCOPE_WORDS = {
    "cta": "cta", "block": "cta", "cluster": "cluster", "gpu": "gpu", "device": "gpu", "sys": "sys", "system": "sys",
}  # fmt: skip
_ORDER_WORDS = ("acquire", "release", "relaxed", "acq_rel", "volatile")
_ACCESS_WORDS = frozenset(split("ld load st store atom atomic atomics red reduce fence membar threadfence cas exch"))
_FENCE_WORDS = frozenset({"fence", "membar", "threadfence"})
_ACTS = _ACCESS_WORDS | {"acquire", "release", "relaxed", "acq", "volatile"}
_WIDTH = {name: number for number, name in enumerate(SCOPES)}
_FENCE_CALLS = FENCE_CALLS | {"atomic_thread_fence"}


def check(site: Site) -> Iterator[Finding]:
    """PTX501 and PTX502."""
    function = site.function
    if function is None:
        return
    named = words(function.name)
    if not named & _ACCESS_WORDS or named & {"proxy", "init", "mbarrier", "view"}:
        return
    if site.facts.names & _FENCE_CALLS:
        return
    yield from _scope(site, named)
    yield from _order(site, named)


def _everything(site: Site) -> list[Instruction]:
    """All instructions of the function."""
    return [instruction for body in site.facts.bodies for instruction in body.instructions]


def _scope(site: Site, named: frozenset[str]) -> Iterator[Finding]:
    said = _said(site.name)
    if len(said) != 1 or not named & (_FENCE_WORDS | set(_ORDER_WORDS)):
        return
    wanted = next(iter(said))
    if wanted in {scope(instruction) for instruction in _everything(site)}:
        return
    for instruction in site.body.instructions:
        found = scope(instruction)
        if found is None or instruction.opcode == "mbarrier":
            continue
        how = "narrower" if _WIDTH[found] < _WIDTH[wanted] else "wider"
        spelling = instruction.qualifiers[0] if instruction.opcode == "membar" else found
        right = {"gpu": "gl"}.get(wanted, wanted) if instruction.opcode == "membar" else wanted
        at = site.qualifier(instruction, spelling)
        message = f"`.{spelling}` is {how} than the scope that the name `{site.name}` says"
        if right == "cluster" and instruction.opcode == "membar":
            yield site.at("PTX501", at, message)
            continue
        yield site.at("PTX501", at, message, f"write .{right}, or change the name")
        return


def _said(name: str) -> set[str]:
    """The scopes that a name says. A word before what the function does is of the prefix of a library
    (``xyz_gpu_dev_store_release``), unless it is right before it."""
    found = parts(name)
    acts = [number for number, word in enumerate(found) if word in _ACTS]
    first = min(acts, default=0)
    return {_SCOPE_WORDS[word] for number, word in enumerate(found) if word in _SCOPE_WORDS and number >= first - 1}


def _order(site: Site, named: frozenset[str]) -> Iterator[Finding]:
    said = [word for word in _ORDER_WORDS if word in named]
    if len(said) != 1 or (said == ["volatile"] and not named & {"ld", "st", "load", "store"}):
        return
    wanted = said[0]
    everything = _everything(site)
    if any(_is(instruction, wanted) for instruction in everything):
        return
    if wanted != "relaxed" and any(fences(instruction) for instruction in everything):
        return
    for instruction in site.body.instructions:
        found = _found(instruction)
        if found is not None and found not in _NEAR.get(wanted, ()):
            at = site.qualifier(instruction, found) if found in instruction.qualifiers else instruction
            message = f"`{instruction.mnemonic}` is {found}, and the name `{site.name}` says {wanted}"
            yield site.at("PTX502", at, message, _hint(instruction, wanted))
            return


_NEAR = {"volatile": ("relaxed",), "relaxed": ("relaxed", "volatile")}
"""For the order that a name says those that are no other."""
_STRONGER = {"acquire": {"acquire", "acq_rel", "sc"}, "release": {"release", "acq_rel", "sc"}}
"""For an order those that include it."""


def _found(instruction: Instruction) -> str | None:
    """The memory order of an access or a fence."""
    found = order(instruction)
    if found is None and instruction.opcode == "fence" and fences(instruction):
        return next((word for word in instruction.qualifiers if word in (*_ORDER_WORDS, "sc")), None)
    return found


def _is(instruction: Instruction, wanted: str) -> bool:
    if wanted in ("relaxed", "volatile"):
        return order(instruction) in ("relaxed", "volatile")
    return not _STRONGER.get(wanted, {wanted}).isdisjoint(instruction.qualifiers)


def _hint(instruction: Instruction, wanted: str) -> str | None:
    legal = {"ld": ("acquire", "relaxed", "volatile"), "st": ("release", "relaxed", "volatile")}
    options = legal.get(instruction.opcode, ("acquire", "release", "relaxed", "acq_rel"))
    return f"write .{wanted}" if wanted in options else None
