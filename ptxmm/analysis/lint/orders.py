"""Rules about memory orders, scopes and cache operators (PTX ISA 8.3 to 8.9, 9.7.10.1, 9.7.14.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from ptxmm.analysis.lint.effects import FENCE_CALLS, SCOPES, fences, order, scope
from ptxmm.analysis.lint.finding import Finding, Rule, Site
from ptxmm.analysis.lint.names import words
from ptxmm.cuda import Instruction
from ptxmm.ptx.tables.form import words as split

RULES = (
    Rule("PTX401", "missing-scope", "error", "a relaxed, acquire or release access or a fence without a scope",
         "PTX ISA 9.7.10.8, 9.7.14.4"),
    Rule("PTX402", "implicit-scope", "note", "an atomic with a memory order but no scope has .gpu scope",
         "PTX ISA 9.7.14.5", default=False),
    Rule("PTX403", "membar", "note", "membar where a fence says order and scope", "PTX ISA 9.7.14.4"),
    Rule("PTX404", "volatile-access", "note", "ld.volatile or st.volatile where .relaxed has a scope",
         "PTX ISA 8.4, 9.7.10.8"),
    Rule("PTX405", "cache-operator", "warning", "a cache operator where a memory order is needed",
         "PTX ISA 9.7.10.1"),
    Rule("PTX406", "weak-access-at-fence", "warning", "a weak access of a flag next to a fence", "PTX ISA 8.7.1, 8.8"),
)  # fmt: skip
_FLAG_WORDS = frozenset(
    split("flag flags lock unlock wait signal poll spin ready arrive sync barrier semaphore acquire release status")
)
_FLAGS = frozenset(split("flag flags lock mutex ready done signal semaphore status"))
_RELEASES = frozenset(split("release unlock signal publish notify"))
_WAITS = frozenset(split("wait poll spin"))
_ORDER_WORDS = frozenset({"acquire", "release", "relaxed"})


def check(site: Site) -> Iterator[Finding]:
    """PTX401 to PTX406."""
    for instruction in site.body.instructions:
        yield from _scope(site, instruction)
        yield from _old(site, instruction)
        yield from _cache(site, instruction)
    yield from _weak(site)


def _scope(site: Site, instruction: Instruction) -> Iterator[Finding]:
    problem = instruction.problem
    if problem is not None and "needs a scope" in problem.message:
        yield site.at("PTX401", problem, problem.message, problem.hint or "add .cta, .cluster, .gpu or .sys")
    named = [word for word in ("acquire", "release", "acq_rel") if word in instruction.qualifiers]
    if instruction.opcode in ("atom", "red") and named and set(SCOPES).isdisjoint(instruction.qualifiers):
        if "async" in instruction.qualifiers:
            return
        message = f"`{instruction.mnemonic}` has no scope, which means .gpu"
        yield site.at("PTX402", site.qualifier(instruction, named[0]), message, f"write .{named[0]}.gpu")


def _old(site: Site, instruction: Instruction) -> Iterator[Finding]:
    if site.before_volta or instruction.problem is not None:
        return
    named = words(site.name) | site.facts.head
    if instruction.opcode == "membar" and "proxy" not in instruction.qualifiers:
        if named & {"membar", "threadfence"}:
            return
        level = scope(instruction) or "gpu"
        message = f"`{instruction.mnemonic}` is `fence.sc.{level}`, the most expensive fence"
        hint = f"fence.acq_rel.{level} orders release and acquire patterns; fence.sc.{level} where it must be sc"
        yield site.at("PTX403", instruction, message, hint)
    elif order(instruction) == "volatile" and "volatile" not in named:
        opcode = instruction.opcode
        message = f"`{instruction.mnemonic}` is relaxed at .sys scope, and synchronizes with nothing"
        other = "acquire" if opcode == "ld" else "release"
        hint = f"write {opcode}.relaxed.SCOPE, or {opcode}.{other}.SCOPE where it synchronizes"
        yield site.at("PTX404", site.qualifier(instruction, "volatile"), message, hint)


def _cache(site: Site, instruction: Instruction) -> Iterator[Finding]:
    if order(instruction) != "weak" or instruction.opcode not in ("ld", "st") or site.before_volta:
        return
    if {"shared", "shared::cta", "shared::cluster"} & set(instruction.qualifiers):
        return
    operators = ("cv", "cg") if instruction.opcode == "ld" else ("wt", "cg")
    for operator in operators:
        if operator not in instruction.qualifiers:
            continue
        named = words(site.name)
        if re.search(rf"(?:ld|st|load|store)_?(?:\w*_)?{operator}$", site.name.lower()):
            return  # a wrapper that says so
        polling = site.statement.loop and not site.statement.macro and instruction.opcode == "ld"
        telling = named & (_ORDER_WORDS | _FLAG_WORDS if polling else _ORDER_WORDS)
        if operator in ("cv", "wt") or telling or any(fences(other) for other in site.body.instructions):
            message = f"`.{operator}` is a hint to the caches: `{instruction.mnemonic}` is a weak access, which orders "
            message += "nothing and may race"
            other = "acquire" if instruction.opcode == "ld" else "release"
            hint = f"{instruction.opcode}.relaxed.SCOPE for a value that other threads change, .{other} to synchronize"
            yield site.at("PTX405", site.qualifier(instruction, operator), message, hint)


def _weak(site: Site) -> Iterator[Finding]:
    """A weak load right before a fence, a weak store as the last access after one: neither makes a pattern of 8.8."""
    accesses = [i for i in site.body.instructions if order(i) is not None or fences(i)]
    for before, after in pairwise(accesses):
        if not fences(before) and fences(after) and before.opcode == "ld" and _plain(before):
            message = f"`{before.mnemonic}` before `{after.mnemonic}` is weak: an acquire pattern begins with a strong "
            message += "read"
            yield site.at("PTX406", before, message, "write ld.relaxed.SCOPE, or ld.acquire.SCOPE")
        stores = fences(before) and after is accesses[-1] and after.opcode == "st" and _plain(after)
        if stores and not any(_strong_read(access) for access in accesses):
            yield _weak_store(site, before.mnemonic, after)
    if len(accesses) == 1 and _plain(accesses[0]) and not site.statement.macro and not site.before_volta:
        yield from _alone(site, accesses[0])


def _alone(site: Site, access: Instruction) -> Iterator[Finding]:
    """A weak access that is all of its statement: the store of a flag after a fence, or a load that polls."""
    if access.opcode == "st" and _of_flag(site, access, _RELEASES):
        fence = _fence_before(site)
        if fence is not None:
            yield _weak_store(site, fence, access)
    elif access.opcode == "ld" and site.statement.loop and _of_flag(site, access, _WAITS):
        message = f"`{access.mnemonic}` polls a flag, and is weak: it races with the store that it waits for"
        yield site.at("PTX406", access, message, "write ld.acquire.SCOPE, or ld.relaxed.SCOPE")


def _weak_store(site: Site, fence: str, store: Instruction) -> Finding:
    message = f"`{store.mnemonic}` after `{fence}` is weak: a release pattern ends in a strong write"
    return site.at("PTX406", store, message, "write st.relaxed.SCOPE, or st.release.SCOPE")


def _strong_read(instruction: Instruction) -> bool:
    return instruction.opcode in ("ld", "atom") and order(instruction) not in (None, "weak")


def _of_flag(site: Site, access: Instruction, names: frozenset[str]) -> bool:
    """Whether the address of ``access`` is called a flag, or the function is called by one of ``names``."""
    for use in access.uses:
        if use.space in ("generic", "global") and use.number < len(site.statement.operands):
            called = words(site.statement.operands[use.number].expression)
            return bool(called & _FLAGS) or (bool(words(site.name) & names) and len(site.facts.bodies) <= 2)
    return False


def _fence_before(site: Site) -> str | None:
    """The fence that the statement before this one is."""
    index = site.statement.index
    if index in site.facts.fences:
        return site.facts.fences[index]
    before = [token.text for token in site.unit.tokens[max(0, index - 4) : index]]
    return f"{before[0]}()" if before[1:] == ["(", ")", ";"] and before[0] in FENCE_CALLS else None


def _plain(instruction: Instruction) -> bool:
    """Whether it is weak, and nothing else has been said about it (PTX405 speaks of cache operators)."""
    return order(instruction) == "weak" and not {"cg", "cv", "wt"} & set(instruction.qualifiers)
