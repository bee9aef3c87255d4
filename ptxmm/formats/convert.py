"""A test in another format, with the same executions, or the first thing that format can't say."""

from __future__ import annotations

from ptxmm.errors import PtxmmError
from ptxmm.formats import litmus, nvlitmus
from ptxmm.formats.typed import to_typed
from ptxmm.formats.untyped import to_dialect
from ptxmm.program.test import Test

TARGETS = ("litmus", "dialect", "nvlitmus")


def convert(test: Test, to: str) -> str:
    """``test`` as a file of the format ``to``: ``litmus`` (typed PTX), ``dialect`` (untyped) or ``nvlitmus``.

    Every execution, with its final values, is one of the result too and vice versa; a register for a predicate may
    come or go. Raises ``PtxmmError``: kind ``unsupported``, with its line, for what ``to`` can't say; kind ``usage``
    for another format.
    """
    if to not in TARGETS:
        raise PtxmmError(f"no format `{to}`", kind="usage", hint="formats: " + ", ".join(TARGETS))
    try:
        if to == "litmus":
            return litmus.write(to_typed(test) if test.dialect else test)
        untyped = test if test.dialect else to_dialect(test)
        return nvlitmus.write(untyped) if to == "nvlitmus" else litmus.write(untyped)
    except PtxmmError as error:
        raise error.place(test.file, test.text) from None
