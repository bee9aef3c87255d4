"""Rules about ``volatile`` and the ``"memory"`` clobber (Inline PTX Assembly 2.3)."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.analysis.lint.effects import carry, effect, reads_clock
from ptxmm.analysis.lint.finding import Edit, Finding, Rule, Site
from ptxmm.cuda import Instruction

_SECTION = "Inline PTX Assembly 2.3"
RULES = (
    Rule("PTX101", "missing-volatile", "warning",
         "asm with outputs that accesses memory, synchronizes or passes on the carry flag is not volatile", _SECTION),
    Rule("PTX102", "missing-memory-clobber", "warning",
         'asm that writes memory or orders accesses has no "memory" clobber', _SECTION),
    Rule("PTX103", "load-without-memory-clobber", "note",
         'asm volatile that loads from shared or global memory has no "memory" clobber', _SECTION),
    Rule("PTX104", "clock-without-volatile", "warning",
         "asm that reads a clock is not volatile", _SECTION),
    Rule("PTX105", "copy-without-memory-clobber", "note",
         'a non-bulk asynchronous copy or its wait has no "memory" clobber', _SECTION, default=False),
    Rule("PTX106", "compiler-barrier-only", "note",
         "an empty asm with a memory clobber orders the compiler, not the threads", "PTX ISA 8.9, " + _SECTION,
         default=False),
)  # fmt: skip

_WHY_VOLATILE = {
    "read": "loads from memory that may change",
    "write": "writes memory",
    "order": "orders memory accesses",
    "matrix": "accesses shared or tensor memory",
    "copy": "copies asynchronously",
    "collective": "exchanges values with other lanes",
}


def check(site: Site) -> Iterator[Finding]:
    """PTX101 to PTX105."""
    statement, memory = site.statement, site.memory
    if statement.volatile and memory:
        return
    effects = [(effect(instruction), instruction) for instruction in site.body.instructions]
    outputs = bool(statement.outputs)
    if not statement.volatile and outputs and not memory:
        yield from _not_volatile(site, effects)
    if memory:
        return
    add = (clobber(site),)
    hint = 'add a "memory" clobber'
    for what in ("order", "write"):
        found = next((i for name, i in effects if name == what), None)
        if found is not None:
            does = "orders other memory accesses" if what == "order" else "writes memory"
            message = f'`{found.mnemonic}` {does}, but there is no "memory" clobber: the compiler may move or keep '
            message += "accesses of memory across it"
            yield site.at("PTX102", found, message, hint, add)
            return
    read = next((i for name, i in effects if name == "read"), None)
    if read is not None and statement.volatile:
        message = f'`{read.mnemonic}` loads from memory, but there is no "memory" clobber: the compiler may move '
        message += "stores of this thread across it"
        yield site.at("PTX103", read, message, hint, add)
    copy = next((i for name, i in effects if name == "copy"), None)
    if copy is not None:
        message = f'`{copy.mnemonic}` has no "memory" clobber: accesses of its bytes may move across it'
        yield site.at("PTX105", copy, message, hint, add)


def _not_volatile(site: Site, effects: list[tuple[str, Instruction]]) -> Iterator[Finding]:
    keyword = site.statement.keyword
    edits: tuple[Edit, ...] = (Edit(keyword.end, keyword.end, " volatile"),)
    hint = f"write {keyword.text} volatile"
    template = site.template
    for name, instruction in effects:
        if reads_clock(instruction, template.text[instruction.start : instruction.end]):
            message = "a clock is read, but the asm is not volatile: the compiler may merge or move its reads"
            yield site.whole("PTX104", message, hint, edits)
            return
        why = _WHY_VOLATILE.get(name)
        if why is not None:
            message = f"`{instruction.mnemonic}` {why}, but the asm is not volatile: the compiler may delete, merge or "
            if name in ("read", "write", "order"):
                edits, hint = (*edits, clobber(site)), f'{hint}, with a "memory" clobber'
            yield site.whole("PTX101", message + "move it", hint, edits)
            return
    flag = carry(site.body.instructions)
    if flag is not None:
        does = "takes the carry flag from" if flag[0] == "takes" else "sets the carry flag for"
        message = f"`{flag[1].mnemonic}` {does} another asm, but this asm is not volatile: the compiler, which knows "
        yield site.whole("PTX101", message + "nothing of the flag, may delete, merge or move it", hint, edits)


def clobber(site: Site) -> Edit:
    """The edit that adds a ``"memory"`` clobber."""
    statement = site.statement
    if statement.sections >= 3:
        text = ', "memory"' if statement.clobbers else ' "memory"'
    else:
        text = " " + ":" * (3 - statement.sections) + ' "memory"'
    return Edit(statement.close, statement.close, text)


def check_empty(site: Site) -> Iterator[Finding]:
    """PTX106: ``asm volatile("" ::: "memory")``."""
    template = site.statement.template
    if template is not None and not template.text.strip() and not site.statement.operands and site.memory:
        message = "this stops the compiler from moving accesses; it is no fence, and orders nothing for other threads"
        yield site.whole("PTX106", message, "between threads: fence.acq_rel.gpu, or __threadfence()")
