"""Rules about the text of a template: is it PTX, and does nvcc pass it on as it is meant (PTX ISA 4, 9.7)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxmm.analysis.lint.finding import Edit, Finding, Rule, Site
from ptxmm.cuda import Body, Instruction, Problem
from ptxmm.cuda.opcodes import OPCODES, writes_first
from ptxmm.ptx import syntax
from ptxmm.ptx.tables.form import words as split

RULES = (
    Rule("PTX201", "ptx-syntax", "error", "the template is not PTX", "PTX ISA 4"),
    Rule("PTX202", "illegal-instruction", "error", "the instruction has no such form", "PTX ISA 9.7"),
    Rule("PTX203", "operand-number", "error", "the template refers to an operand that there is not",
         "Inline PTX Assembly 1.1"),
    Rule("PTX204", "operand-modifier", "error", "a single % before a letter and a digit is an operand modifier",
         "Inline PTX Assembly 2.4"),
    Rule("PTX205", "percent-without-operands", "error",
         "%% in an asm without operands stays %%", "Inline PTX Assembly 1.1"),
    Rule("PTX206", "single-percent", "note", "a single % before a register name", "Inline PTX Assembly 1.1",
         default=False),
    Rule("PTX207", "operand-glued", "error", "a letter follows the number of an operand", "Inline PTX Assembly 1.1"),
    Rule("PTX208", "declaration-outside-scope", "warning",
         "a register or label is declared outside of { }", "Inline PTX Assembly 2.1"),
    Rule("PTX209", "undeclared-register", "error", "a register is used that is not declared", "PTX ISA 4.4, 5.1"),
    Rule("PTX210", "named-operand", "note", "nvcc does not know %[name]", "Inline PTX Assembly 1.1", default=False),
)  # fmt: skip
_PLAIN_REFERENCE = re.compile(r"(?<!%)%[0-9]+")
_LABEL_USERS = frozenset({"bra", "brx", "call"})
_LEGACY = "needs `.sync`"
_KNOWN_WHOLE = frozenset(split("ld st atom red fence membar bar barrier mbarrier cp multimem mov cvta mapa bra"))
_GROWING = ("cp.async.bulk", "cp.reduce.async.bulk", "fence", "multimem", "mov.v", "st.async", "red.async")
"""Instructions of which every version of PTX has new forms, made of qualifiers that others have had before."""
_MISTAKES = {
    "device": "gpu", "system": "sys", "block": "cta", "thread_block": "cta", "grid": "gpu", "gl": "gpu",
    "seq_cst": "sc", "seqcst": "sc", "acquire_release": "acq_rel",
}  # fmt: skip
"""Words of CUDA C++ and of C++ where PTX has others."""
_LATER = re.compile(r"has no qualifier `\.([\w:.]+)`")
_SUGGESTED = re.compile(r"did you mean `\.([\w:]+)`")
_COUNT = re.compile(r"takes (?:\d+ to )?(\d+) operands? .*, (\d+) given")


def check(site: Site) -> Iterator[Finding]:
    """PTX201 to PTX210."""
    yield from _escapes(site)
    yield from _numbers(site)
    yield from _syntax(site)
    yield from _scopes(site)
    yield from _undeclared(site)


def misspelt(body: Body) -> bool:
    """Whether a template that has no instruction of PTX looks as if it should have: an opcode with qualifiers that is
    nearly one of PTX."""
    return any(i.qualified and len(i.opcode) > 2 and _nearly(i.opcode) is not None for i in body.instructions)


def _nearly(opcode: str) -> str | None:
    """The opcode of PTX that ``opcode`` is probably a misspelling of."""
    if opcode in OPCODES:
        return opcode
    from difflib import get_close_matches  # only on the way to a finding

    found = get_close_matches(opcode.lower(), sorted(OPCODES), 1, 0.74)
    return found[0] if found else None


def _escapes(site: Site) -> Iterator[Finding]:
    template = site.template
    if not site.statement.operands:
        if template.escapes:
            escape = template.escapes[0]
            message = "nvcc passes on the template of an asm without operands as it is: PTX gets `%%`"
            edits = tuple(Edit(e.start, e.end, "%") for e in template.escapes if e.end - e.start == 2)
            yield Finding("PTX205", escape.start, escape.end, message, "write a single %", edits)
        return
    for escape in template.escapes:
        match escape.kind:
            case "modifier":
                message = f"`{escape.text}`: nvcc takes this for an operand with a modifier, which it does not support"
                hint = f"write %{escape.text} for a register"
                yield Finding("PTX204", escape.start, escape.end, message, hint, (_doubled(escape.start),))
            case "single":
                message = f"`{escape.text}` has a single %: other compilers than nvcc refuse that"
                hint = f"write %{escape.text}"
                yield Finding("PTX206", escape.start, escape.end, message, hint, (_doubled(escape.start),))
            case "glued":
                message = f"`{escape.text}`: a letter follows the operand, and becomes part of its name"
                yield Finding("PTX207", escape.start, escape.end, message)
            case "named":
                message = f"`{escape.text}`: nvcc refuses symbolic operand names"
                yield Finding("PTX210", escape.start, escape.end, message, "refer to the operand by its number")
            case _:
                message = f"`{escape.text}`: no operand of this asm has this name"
                yield Finding("PTX203", escape.start, escape.end, message)


def _doubled(offset: int) -> Edit:
    return Edit(offset, offset, "%")


def _numbers(site: Site) -> Iterator[Finding]:
    template, count = site.statement.template, len(site.statement.operands)
    assert template is not None
    if count == 0:
        hit = _PLAIN_REFERENCE.search(template.text)
        if hit is not None:
            yield site.at("PTX203", hit.span(), f"`{hit[0]}`: this asm has no operands")
        return
    seen: set[int] = set()
    for number in template.numbers:
        if number < count or number in seen:
            continue
        seen.add(number)
        at = template.text.find(f"%${number}")
        operands = "operand, %0" if count == 1 else f"operands, %0 to %{count - 1}"
        message = f"`%{number}`: this asm has {count} {operands}"
        yield site.at("PTX203", (at, at + len(f"%${number}")), message)


def _syntax(site: Site) -> Iterator[Finding]:
    body = site.body
    for problem in body.problems:
        yield site.at("PTX201", problem, problem.message, problem.hint)
    template = site.template
    if body.problems or (template.escapes and not site.statement.operands):
        return
    for instruction in body.instructions:
        found = instruction.problem
        if found is None:
            yield from _opcode(site, instruction)
        elif "needs a scope" not in found.message and _LEGACY not in found.message:  # PTX401 speaks of scopes
            yield from _refused(site, instruction, found)
    if body.balance and sum(other.balance for other in site.facts.bodies) != 0:
        mark = "{" if body.balance > 0 else "}"
        at = template.text.rfind(mark) if mark == "}" else template.text.find(mark)
        message = f"`{mark}` without its `{'}' if mark == '{' else '{'}`"
        yield site.at("PTX201", (max(at, 0), max(at, 0) + 1), message)


def _refused(site: Site, instruction: Instruction, found: Problem) -> Iterator[Finding]:
    """An instruction that the grammar or the table does not take, if no later version of PTX can have it."""
    if instruction.parsed is None:
        yield site.at("PTX201", found, found.message, found.hint)
        return
    hint = found.hint
    later = _LATER.search(found.message)
    if later is not None and not _misspells(later[1], hint):
        if later[1] not in _MISTAKES or instruction.opcode not in _KNOWN_WHOLE:
            return
        hint = f"write .{_MISTAKES[later[1]]}"
    if not _maybe_later(instruction, found.message):
        yield site.at("PTX202", found, found.message, hint)


def _misspells(word: str, hint: str | None) -> bool:
    """Whether an unknown qualifier is a misspelling of the one that ``hint`` says. One with more parts between ``::``
    is none: later versions of PTX add them (``.multicast::cluster::32b``)."""
    suggested = _SUGGESTED.search(hint or "")
    return suggested is not None and word.count("::") == suggested[1].count("::") and "." not in word


def _maybe_later(instruction: Instruction, message: str) -> bool:
    """Whether an instruction that the table refuses may be of a later version of PTX, or is one that ptxas takes."""
    if " takes no `." in message:
        growing = instruction.mnemonic.startswith(_GROWING) and not message.startswith("`cp.async` ")
        return growing or instruction.opcode not in _KNOWN_WHOLE  # arithmetic gets new types with every version
    count = _COUNT.search(message)
    if count is not None and int(count[2]) > int(count[1]):
        return instruction.opcode not in _KNOWN_WHOLE  # max.f32 of three values
    # Another instruction of the same first word; mov.b128 from register to register, which ptxas takes.
    return message.startswith("there is no such form of ") or "packs or unpacks a vector" in message


def _opcode(site: Site, instruction: Instruction) -> Iterator[Finding]:
    opcode = instruction.opcode
    if opcode in OPCODES or not opcode or opcode.startswith("%") or not instruction.qualifiers:
        return
    match = _nearly(opcode)
    hint = f"did you mean `{match}`?" if match else None
    if match or site.body.is_ptx:
        yield site.at("PTX202", instruction, f"unknown instruction `{opcode}`", hint)


def _scopes(site: Site) -> Iterator[Finding]:
    """Names that are declared twice where the function is inlined twice."""
    body = site.body
    if body.balance or not body.instructions or not body.is_ptx or site.name == "":
        return
    template = site.template
    depths = _label_depths(site)
    numbered = "%=" in template.raw
    outside = [(d.start, d.end, f"the register `{d.name}`") for d in body.declarations if d.depth <= 0 and not numbered]
    outside += [
        (start, end, f"the label `{name}`")
        for (name, start, end), depth in zip(body.labels, depths, strict=True)
        if depth <= 0 and not numbered
    ]
    if outside:
        start, end, what = min(outside)
        message = f"{what} is declared outside of {{ }}: inlining the function twice declares it twice"
        yield site.at("PTX208", (start, end), message, "put the template in { }")


def _label_depths(site: Site) -> list[int]:
    """The depth of ``{ }`` of each label: that of the instruction after it, or before it."""
    found: list[int] = []
    for _, start, _ in site.body.labels:
        after = [i.depth for i in site.body.instructions if i.start > start]
        before = [i.depth for i in site.body.instructions if i.start < start]
        found.append(min(after[:1] + before[-1:], default=0))
    return found


def _undeclared(site: Site) -> Iterator[Finding]:
    """Registers that an instruction writes, or that guard it, and that nothing in the file declares."""
    known = site.registers | {declaration.name for declaration in site.body.declarations}
    seen: set[str] = set()
    for instruction in site.body.instructions:
        parsed = instruction.parsed
        names = [] if parsed is None or instruction.opcode in _LABEL_USERS else [*_written(parsed, instruction)]
        if parsed is not None and parsed.guard is not None:
            names.append(parsed.guard.name)
        for name in names:
            text = name.text
            if name.name.startswith("$") or name.name == "_" or text in seen:
                continue
            if not known.isdisjoint((text, text.partition(".")[0])):
                continue
            seen.add(text)
            start = instruction.start + name.span.column - 1
            other = f"%{text}" if not text.startswith("%") else text[1:]
            message = f"the register `{text}` is not declared" + (f", but `{other}` is" if other in known else "")
            yield site.at("PTX209", (start, start + len(text)), message, f"declare it: .reg .b32 {text};")


def _written(parsed: syntax.Instruction, instruction: Instruction) -> Iterator[syntax.Name]:
    if not writes_first(instruction.opcode, frozenset(instruction.qualifiers)) or not parsed.operands:
        return
    match parsed.operands[0]:
        case syntax.Name() as name:
            yield name
        case syntax.Pair(first, second):
            yield first
            yield second
        case syntax.Vector(items):
            yield from (item for item in items if isinstance(item, syntax.Name))
        case _:
            return
