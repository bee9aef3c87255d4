"""Rules about the operands of an ``asm`` statement: constraints against uses (Inline PTX Assembly 1.1, 1.2, 3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ptxmm.analysis.lint.finding import Edit, Finding, Rule, Site
from ptxmm.cuda import AsmOperand, Instruction, Use
from ptxmm.ptx import syntax

_SECTION = "Inline PTX Assembly 1.2"
RULES = (
    Rule("PTX301", "constraint", "error", "not a constraint of inline PTX", _SECTION + ", 3"),
    Rule("PTX302", "operand-width", "error", "the constraint has another width than the instruction",
         _SECTION + ", PTX ISA 9.4"),
    Rule("PTX303", "operand-class", "warning", "a floating-point register where the instruction has an integer type",
         _SECTION + ", PTX ISA 9.4"),
    Rule("PTX304", "input-written", "error", "an input operand is written", "Inline PTX Assembly 1.1"),
    Rule("PTX305", "output-read", "error", "an output operand is read before it is written; it needs +",
         "Inline PTX Assembly 1.1"),
    Rule("PTX306", "output-not-written", "warning", "an output operand is never written", "Inline PTX Assembly 1.1"),
    Rule("PTX307", "conditional-output", "warning", "an output operand is written under a condition only; it needs +",
         "Inline PTX Assembly 1.1"),
    Rule("PTX308", "unused-input", "warning", "an input operand is never used", "Inline PTX Assembly 1.1"),
    Rule("PTX309", "address-width", "error", "a 32-bit register as the address of generic or global memory",
         "PTX ISA 6.4.1"),
    Rule("PTX310", "constant-cut", "warning", "a constant does not fit the type of the instruction",
         "PTX ISA 4.5.1, 9.4"),
)  # fmt: skip

_BITS = {"h": 16, "r": 32, "f": 32, "l": 64, "d": 64, "q": 128}
_LETTERS = {16: "h", 32: "r", 64: "l", 128: "q"}
_FLOATS = {32: "f", 64: "d"}
_WIDER = frozenset({"ld", "ldu", "st", "cvt"})
_SIZED = (16, 32, 64, 128)
_WIDE_SPACES = frozenset({"generic", "global"})


def check(site: Site) -> Iterator[Finding]:
    """PTX301 to PTX310."""
    for instruction in site.body.instructions:
        for cut in instruction.cuts:
            yield site.at("PTX310", cut, cut.message, cut.hint)
    uses: dict[int, list[tuple[Instruction, Use]]] = defaultdict(list)
    for instruction in site.body.instructions:
        for use in instruction.uses:
            uses[use.number].append((instruction, use))
    for number, operand in enumerate(site.statement.operands):
        wrong = _constraint(operand)
        if wrong is not None:
            yield Finding("PTX301", operand.start, operand.end, *wrong)
            continue
        if operand.letter is None:
            continue
        yield from _types(site, number, operand, uses[number])
        yield from _directions(site, number, operand, uses[number])
    yield from _vectors(site)


def _constraint(operand: AsmOperand) -> tuple[str, str | None] | None:
    """What is wrong with a constraint, and the mend."""
    text = operand.constraint
    if text is None:
        return None
    letters = text.lstrip("=+&")
    modifiers = text[: len(text) - len(letters)]
    if len(letters) > 1 and all(letter in "hrlfdnqC" for letter in letters):
        return f'the constraint "{text}" has more than one letter', "nvcc takes one letter"
    if len(letters) != 1 or letters not in "hrlfdnqCibNx0123456789":
        return f'"{text}" is not a constraint of inline PTX', "the letters are h r l f d n C, and q for 128 bits"
    if operand.output and not modifiers.startswith(("=", "+")):
        return f'the output "{text}" has no modifier', f'write "={letters}", or "+{letters}" if it is read too'
    if not operand.output and modifiers.strip("&"):
        return f'the input "{text}" has the modifier of an output', f'write "{letters}"'
    if operand.output and letters in "nC":
        return f'"{text}": a constant cannot be an output', None
    return None


def _types(site: Site, number: int, operand: AsmOperand, uses: list[tuple[Instruction, Use]]) -> Iterator[Finding]:
    letter = operand.letter or ""
    bits = _BITS.get(letter)
    if bits is None:
        return
    for instruction, use in uses:
        if use.space is not None:
            if (bits < 64 and use.space in _WIDE_SPACES) or bits < 32:
                message = f"`%{number}` is an address of {use.space} memory, which has 64 bits; "
                message += f'"{operand.constraint}" has {bits}'
                yield site.at("PTX309", use, message, _address_hint(operand))
                return
            continue
        type_ = use.type
        if type_ is None or (type_.bits not in _SIZED and type_.kind != "pred" and instruction.opcode not in _WIDER):
            continue
        if type_.kind == "pred":
            message = f"`%{number}` is a predicate of `{instruction.mnemonic}`: no constraint gives a predicate"
            hint = "declare .reg .pred p; and move its value with setp and selp"
            yield site.at("PTX302", use, message, hint)
            return
        if bits < type_.bits or (bits > type_.bits and instruction.opcode not in _WIDER):
            message = f'`%{number}` has {bits} bits ("{operand.constraint}"), `{instruction.mnemonic}` takes '
            message += f".{type_.name}"
            yield site.at("PTX302", use, message, _letter_hint(operand, type_.kind, type_.bits))
            return
        if letter in "fd" and type_.kind in ("u", "s"):
            message = f'`%{number}` is a floating-point register ("{operand.constraint}"), '
            message += f"`{instruction.mnemonic}` takes .{type_.name}"
            mend = _letter_hint(operand, type_.kind, type_.bits)
            yield site.at("PTX303", use, message, mend)
            return


def _vectors(site: Site) -> Iterator[Finding]:
    """The elements of the vector of a load or a store have one width, that of the type or a wider one."""
    operands = site.statement.operands
    for instruction in site.body.instructions:
        if instruction.opcode not in ("ld", "st") or len(instruction.uses) < 3 or instruction.op is None:
            continue
        elements = [use for use in instruction.uses if use.type is not None and use.number < len(operands)]
        known = [(use, bits) for use in elements if (bits := _BITS.get(operands[use.number].letter or ""))]
        odd = next(((use, bits) for use, bits in known if bits != known[0][1]), None)
        if odd is not None:
            use, bits = odd
            message = f"`%{use.number}` has {bits} bits, and `%{known[0][0].number}` of the same vector "
            message += f"{known[0][1]}"
            yield site.at("PTX302", use, message, "one constraint for all elements of a vector")


def _letter_hint(operand: AsmOperand, kind: str, bits: int) -> str | None:
    letter = _FLOATS.get(bits) if kind in ("f", "bf") else _LETTERS.get(max(bits, 16))
    if letter is None or operand.constraint is None:
        return None
    return f'a constraint for .{kind}{bits} is "{operand.constraint[:-1]}{letter}"'


def _address_hint(operand: AsmOperand) -> str:
    if "smem" in operand.expression or "shared" in operand.expression:
        return "for an address of shared memory, say .shared in the instruction"
    return f'write "l" for a pointer, not "{operand.constraint}"'


def _directions(site: Site, number: int, operand: AsmOperand, uses: list[tuple[Instruction, Use]]) -> Iterator[Finding]:
    template = site.template
    if not site.body.instructions:
        return
    if not uses:  # if it is there: in a comment of the template, or glued to an opcode
        if number not in template.numbers and all(escape.kind != "modifier" for escape in template.escapes):
            yield from _unused(site, number, operand)
        return
    if not operand.output:
        written = next(((i, u) for i, u in uses if u.writes), None)
        if written is not None and written[0].op is not None and operand.letter not in ("n", "C"):
            message = f"`{written[0].mnemonic}` writes `%{number}`, which is an input"
            yield site.at("PTX304", written[1], message, "make it an output")
    elif not operand.read_write:
        yield from _output(site, number, operand, uses)


def _unused(site: Site, number: int, operand: AsmOperand) -> Iterator[Finding]:
    if operand.output and not operand.read_write:
        message = f"the output `%{number}` is not in the template: its value is undefined"
        yield Finding("PTX306", operand.start, operand.end, message)
    elif not operand.output and site.body.is_ptx:
        message = f"the input `%{number}` is not in the template"
        yield Finding("PTX308", operand.start, operand.end, message)


def _output(site: Site, number: int, operand: AsmOperand, uses: list[tuple[Instruction, Use]]) -> Iterator[Finding]:
    """An ``=`` operand: written on every path, and before it is read."""
    ordered = sorted(uses, key=lambda pair: pair[1].start)
    hint = f'write "+{operand.letter}"'
    if all(use.writes is False for _, use in ordered) and all(i.op is not None for i, _ in ordered):
        message = f'`%{number}` is an output ("{operand.constraint}"), but no instruction writes it'
        first = ordered[0][1]
        yield site.at("PTX306", first, message, "make it an input, or write + if it is both")
        return
    if site.body.labels:
        return
    # What an instruction reads it reads before it writes.
    ordered.sort(key=lambda pair: (pair[0].start, pair[1].writes is not False, pair[1].start))
    for instruction, use in ordered:
        if use.reads and instruction.op is not None:
            message = f'`{instruction.mnemonic}` reads `%{number}` before it is written: "{operand.constraint}" says '
            message += "that it is only written"
            yield site.at("PTX305", use, message, hint, _plus(site, operand))
            return
        if use.writes is not False or use.reads is None:
            break
    yield from _conditional(site, number, operand, [(i, use) for i, use in ordered if use.writes is not False])


def _conditional(
    site: Site, number: int, operand: AsmOperand, writes: list[tuple[Instruction, Use]]
) -> Iterator[Finding]:
    """An ``=`` operand that is written under a condition only."""
    if writes and all(i.guarded and i.parsed is not None for i, _ in writes):
        guards = {(i.parsed.guard.name.name, i.parsed.guard.negated) for i, _ in writes if i.parsed and i.parsed.guard}
        told = {name for name, _ in guards} & (_told(site) | _canceled(site))
        if not told and not any((name, not negated) in guards for name, negated in guards):
            instruction, use = writes[0]
            message = f"`%{number}` is written only where the predicate of `{instruction.mnemonic}` holds, and "
            message += f'"{operand.constraint}" says that it always is'
            yield site.at("PTX307", use, message, f'write "+{operand.letter}"', _plus(site, operand))


def _told(site: Site) -> set[str]:
    """The predicates whose value another output tells: who reads that knows whether the others are valid."""
    return {
        instruction.parsed.operands[3].name
        for instruction in site.body.instructions
        if instruction.opcode == "selp" and instruction.parsed is not None and len(instruction.parsed.operands) == 4
        and isinstance(instruction.parsed.operands[3], syntax.Name) and any(use.writes for use in instruction.uses)
    }  # fmt: skip


def _canceled(site: Site) -> set[str]:
    """The predicates of ``query_cancel.is_canceled``: where one is false there is no CTA whose index could be asked
    for, so nobody expects a value."""
    return {
        instruction.parsed.operands[0].name
        for instruction in site.body.instructions
        if "is_canceled" in instruction.qualifiers and instruction.parsed is not None and instruction.parsed.operands
        and isinstance(instruction.parsed.operands[0], syntax.Name)
    }  # fmt: skip


def _plus(site: Site, operand: AsmOperand) -> tuple[Edit, ...]:
    """The edit from ``=`` to ``+``, where the constraint is written in one piece."""
    text = site.unit.source.text
    at = text.find('"=', operand.start, operand.end)
    return (Edit(at + 1, at + 2, "+"),) if at >= 0 else ()
