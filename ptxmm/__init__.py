"""ptxmm: which final states does the PTX memory model allow, and why?

The public API, loaded on first use so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ptxmm.errors import PtxmmError

if TYPE_CHECKING:
    from ptxmm.analysis.outcomes import check
    from ptxmm.analysis.result import Failure, Note, Outcome, Result
    from ptxmm.cat import Model
    from ptxmm.cat import load as load_model
    from ptxmm.engines.result import Limits
    from ptxmm.formats import parse, read
    from ptxmm.program.test import Test

__version__ = "0.1.0"

__all__ = [
    "Failure",
    "Limits",
    "Model",
    "Note",
    "Outcome",
    "PtxmmError",
    "Result",
    "Test",
    "__version__",
    "check",
    "load_model",
    "parse",
    "read",
]


def __getattr__(name: str) -> Any:
    homes = {
        "Failure": "analysis.result",
        "Limits": "engines.result",
        "Model": "cat",
        "Note": "analysis.result",
        "Outcome": "analysis.result",
        "Result": "analysis.result",
        "Test": "program.test",
        "check": "analysis.outcomes",
        "load_model": "cat",
        "parse": "formats",
        "read": "formats",
    }
    if name not in homes:
        raise AttributeError(f"module 'ptxmm' has no attribute {name!r}")
    return getattr(import_module(f"ptxmm.{homes[name]}"), {"load_model": "load"}.get(name, name))
