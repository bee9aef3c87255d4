"""Rules about the state space of pointers (PTX ISA 5.1, 6.4.1, 9.7.10.19; Inline PTX Assembly 2.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxmm.analysis.lint.finding import Finding, Rule, Site

RULES = (
    Rule("PTX801", "generic-pointer-as-shared", "error",
         "a pointer is passed to an instruction on .shared memory without __cvta_generic_to_shared",
         "Inline PTX Assembly 2.2, PTX ISA 6.4.1.1, 9.7.10.19"),
    Rule("PTX802", "shared-address-as-generic", "error",
         "an address of shared memory is passed to an instruction on generic or global memory",
         "Inline PTX Assembly 2.2, PTX ISA 6.4.1.1, 9.7.10.19"),
)  # fmt: skip
_TO_SHARED = ("__cvta_generic_to_shared", "cast_smem_ptr_to_uint", "__nvvm_get_smem_pointer")
_POINTER_CAST = re.compile(r"^(?:\( *(?:const )?(?:void|char|int|float|uint32_t|unsigned) (?:const )?\* *\))|^& (?!\*)")
_IDENTIFIER = re.compile(r"^[A-Za-z_]\w*$")


def check(site: Site) -> Iterator[Finding]:
    """PTX801 and PTX802."""
    for instruction in site.body.instructions:
        for use in instruction.uses:
            if use.space is None or use.number >= len(site.statement.operands):
                continue
            operand = site.statement.operands[use.number]
            if operand.letter != "l":
                continue
            if use.space == "shared" and _pointer(site, operand.expression):
                message = f"`{operand.expression}` is a generic pointer, and `{instruction.mnemonic}` takes an address "
                message += "in .shared, so that the access is undefined"
                hint = f'pass (uint32_t)__cvta_generic_to_shared({_plain(operand.expression)}) as "r"'
                yield site.at("PTX801", use, message, hint)
            elif use.space in ("generic", "global") and _converted(operand.expression):
                message = f"`{_call(operand.expression)}` gives an address in .shared, and `{instruction.mnemonic}` "
                message += f"takes one in {use.space} memory"
                yield site.at("PTX802", use, message, "say .shared in the instruction")


def _pointer(site: Site, expression: str) -> bool:
    """Whether an expression is surely a pointer: a cast to one, an address, or a parameter declared as one."""
    if _POINTER_CAST.match(expression):
        return not any(name in expression for name in _TO_SHARED)
    function = site.function
    if function is None or not _IDENTIFIER.fullmatch(expression):
        return False
    head = site.unit.tokens[function.head[0] : function.head[1]]
    declared = False
    for number, token in enumerate(head):
        if token.text == expression and number and head[number + 1 : number + 2] != []:
            declared = any(t.text == "*" for t in head[max(0, number - 3) : number]) and "(" not in [
                t.text for t in head[max(0, number - 2) : number]
            ]
            ends = head[number + 1].text in (",", ")", "=")
            if not ends or "," in [t.text for t in head[max(0, number - 1) : number]]:
                declared = False
    return declared and expression not in site.facts.assigned


def _converted(expression: str) -> bool:
    return expression.replace("( uint64_t ) ", "").replace("( size_t ) ", "").startswith("__cvta_generic_to_shared (")


def _call(expression: str) -> str:
    return "__cvta_generic_to_shared(...)" if "__cvta_generic_to_shared" in expression else expression


def _plain(expression: str) -> str:
    return expression if _IDENTIFIER.fullmatch(expression) else "pointer"
