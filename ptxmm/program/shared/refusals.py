"""What both engines refuse where they come to it, in the same words: a clear error instead of a wrong answer.

What no engine could give a meaning is refused as a test is read. What is too big for one engine it refuses itself.
"""

from __future__ import annotations

from ptxmm.errors import PtxmmError
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Op

NONCOHERENT = "a non-coherent load of bytes that are written is outside the memory model"
"""``ld.global.nc`` reads what may be written (PTX ISA 8.1, decision A41)."""
SEVERAL_MATRICES = "stmatrix of more than one matrix is not supported yet"
"""The rows of the others are those that other lanes name."""
UNDECIDABLE = "whether this instruction depends on every value that goes into its operands is too much to decide"
"""Whether an expression has the same value for all values of what is read (PTX ISA 8.10.4)."""

OPAQUE = "what this gives is not worked out, and an address, a branch or a value that is asked for depends on it"
"""The result of an ``ops.Opaque`` is seen (see ``unseen``)."""

ABSENT = (
    "not all lanes run that give values here, and an address, a branch or a value that is asked for depends on them"
)
"""What lanes would give that are not in the test is seen."""

_HINTS = {
    ABSENT: 'run whole warps (threads = "warp 0"), or launch with as few threads as run',
    OPAQUE: "races, and conditions on what does not depend on it, can be asked about",
    NONCOHERENT: "use ld without .nc, or write nothing there",
    UNDECIDABLE: "--reading dep=sem takes it to",
}


def named_warp(instruction: str) -> str:
    """``instruction`` would access rows that other lanes of its warp name."""
    return f"{instruction} in a warp with a name is not supported yet"


def refusal(message: str) -> PtxmmError:
    """The error that says ``message``."""
    return PtxmmError(message, kind="unsupported", hint=_HINTS.get(message))


def placed(error: PtxmmError, test: Test, op: Op) -> PtxmmError:
    """``error`` at ``op``, an instruction of ``test``, if it has no place yet."""
    if error.line is None:
        error.at(op.source.span)
    return error.place(test.file, test.text)


def refused(message: str, test: Test, op: Op) -> PtxmmError:
    """The error that says ``message`` of ``op``, an instruction of ``test``."""
    return placed(refusal(message), test, op)


def same_group(one: Op, other: Op) -> str:
    """Why a group is undefined of which two copies write the same bytes."""
    lines = " and ".join(dict.fromkeys(f"line {op.source.span.line}" for op in (one, other)))
    return f"two cp.async of this group write to the same location: {lines} (PTX ISA 9.7.10.24.4)"
