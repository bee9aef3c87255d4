"""What all questions to a test have in common: limits, expectations, where errors are, and what is told besides."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError, Timeout
from ptxmm.program.test import Test

if TYPE_CHECKING:
    from ptxmm.analysis.expectation import Expectation
    from ptxmm.analysis.result import Status
    from ptxmm.analysis.words import Property


def limits_of(test: Test, unroll: int, timeout: float | None) -> Limits:
    """The limits of a question that is asked now, ``timeout`` in seconds; a launch may state the bound of its loops."""
    from ptxmm.analysis.claims import limits_of as claimed

    deadline = None if timeout is None else time.monotonic() + timeout
    return claimed(test, Limits(unroll=unroll, deadline=deadline))


def tell_if_cut(status: Status) -> None:
    """Warn the caller of the caller that a list is not complete. Raises ``Timeout``."""
    if status == "timeout":
        raise Timeout("the time limit ended the search: there may be others")
    if status == "undefined":
        warnings.warn("the program has no meaning under this model: see check()", stacklevel=3)
    elif status == "bounded":
        warnings.warn("the search was cut, so there may be others: see check()", stacklevel=3)


def property_named(wanted: Property | str | None) -> Property | None:
    """What must hold. Raises ``PtxmmError`` (kind ``usage``) for another word."""
    from ptxmm.analysis.words import Property

    try:
        return None if wanted is None else Property(wanted)
    except ValueError:
        known = ", ".join(Property)
        raise PtxmmError(f"no property `{wanted}`", kind="usage", hint=f"one of {known}") from None


def expected(test: Test, model: str) -> Expectation | None:
    """What ``Expect=`` says of ``model``, or the launch of a kernel."""
    from ptxmm.analysis.claims import HOLDS
    from ptxmm.analysis.expectation import expectation_for, expectations
    from ptxmm.cat import index

    found = expectation_for(test, model, expectations(test, index().models.keys()))
    return HOLDS if found is not None and test.claims is not None else found


@contextmanager
def placed(test: Test) -> Iterator[None]:
    """Errors about ``test`` show the line that they are about."""
    try:
        yield
    except PtxmmError as error:
        raise error.place(test.file, test.text) from None
