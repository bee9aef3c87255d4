"""What is asked of a test, as text: final states and conditions."""

from __future__ import annotations

from ptxmm.errors import PtxmmError
from ptxmm.formats.conditions import connective_hint, parse_final
from ptxmm.formats.conditions import proposition as parse
from ptxmm.formats.text import mask_comments, open_text
from ptxmm.formats.tokens import Cursor
from ptxmm.program.condition import Condition, Conjunction, Proposition
from ptxmm.program.propositions import names_of, proposition
from ptxmm.program.test import Test


def states(test: Test, text: str, source: str) -> Proposition:
    """The final states that ``text``, such as ``P1:r0=1 x=2``, names: propositions as in a condition, all of which
    hold.

    Raises ``PtxmmError`` as the parser of conditions does, with the place in ``source``; kind ``usage`` for no text.
    """
    if not text.strip():
        raise PtxmmError(f"{source} is empty", kind="usage", hint=f'write {source} "P1:r0=1 x=2"')
    try:
        opened = open_text(text, source)
        cursor = Cursor(opened, opened.characters, 0, len(opened.characters))
        found = []
        while True:
            found.append(proposition(parse(cursor), names_of(test.threads, test.objects)))
            cursor.take(",")
            if cursor.peek().kind == "end":
                break
            if (hint := connective_hint(cursor)) is not None:
                raise cursor.unexpected("a register or location", hint=f"{hint}, or left out")
    except PtxmmError as error:
        raise error.place(source, text) from None
    return found[0] if len(found) == 1 else Conjunction(tuple(found))


def condition(test: Test, text: str, source: str) -> Condition:
    """The condition that ``text`` is, such as ``exists (P1:r0 == 1)``. Raises ``PtxmmError`` as ``states`` does."""
    try:
        opened = open_text(text, source)
        final = parse_final(opened, mask_comments(opened, 0)[0], 0)
        if final.condition is None or final.locations or final.filter is not None:
            message = "this is no condition"
            raise PtxmmError(message, kind="usage", file=source, hint="write `exists (P1:r0 == 1)`")
        item = proposition(final.condition.proposition, names_of(test.threads, test.objects))
    except PtxmmError as error:
        raise error.place(source, text) from None
    return Condition(final.condition.kind, item, final.condition.text)
