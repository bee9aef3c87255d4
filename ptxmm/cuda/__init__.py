"""Inline PTX in CUDA C++: where the ``asm`` statements of a source are, and what their templates say.

``scan`` finds the statements without compiling anything; a ``Reader`` reads the PTX of one of them.
"""

from __future__ import annotations

from ptxmm.cuda.ptx import Body, Declaration, Instruction, Problem, Reader
from ptxmm.cuda.scan import scan
from ptxmm.cuda.source import Source
from ptxmm.cuda.statement import AsmOperand, AsmStatement, Function, Unit
from ptxmm.cuda.uses import Use

__all__ = [
    "AsmOperand",
    "AsmStatement",
    "Body",
    "Declaration",
    "Function",
    "Instruction",
    "Problem",
    "Reader",
    "Source",
    "Unit",
    "Use",
    "scan",
]
