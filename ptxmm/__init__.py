"""ptxmm: which final states does the PTX memory model allow, and why?

The public API, loaded on first use so that importing the package costs nothing.
"""

TYPE_CHECKING = False  # as in typing, which takes a while to load
if TYPE_CHECKING:
    from typing import Any

    from ptxmm.analysis.compare import CompareResult, compare, compare_versions
    from ptxmm.analysis.explain import ExplainResult, explain
    from ptxmm.analysis.fences import FencesResult, fences
    from ptxmm.analysis.lint import LintResult, lint
    from ptxmm.analysis.outcomes import check
    from ptxmm.analysis.progress import ProgressResult, progress
    from ptxmm.analysis.races import RacesResult, races
    from ptxmm.analysis.result import Failure, Note, Outcome, Result
    from ptxmm.analysis.robust import RobustResult, robust
    from ptxmm.analysis.scopes import ScopesResult, scopes
    from ptxmm.analysis.words import Property
    from ptxmm.cat import Model
    from ptxmm.cat import load as load_model
    from ptxmm.engines.result import Limits
    from ptxmm.errors import PtxmmError
    from ptxmm.formats import parse, read
    from ptxmm.program.test import Test

__version__ = "0.1.0"

__all__ = [
    "CompareResult",
    "ExplainResult",
    "Failure",
    "FencesResult",
    "Limits",
    "LintResult",
    "Model",
    "Note",
    "Outcome",
    "ProgressResult",
    "Property",
    "PtxmmError",
    "RacesResult",
    "Result",
    "RobustResult",
    "ScopesResult",
    "Test",
    "__version__",
    "check",
    "compare",
    "compare_versions",
    "explain",
    "fences",
    "lint",
    "load_model",
    "parse",
    "progress",
    "races",
    "read",
    "robust",
    "scopes",
]

_HOMES = {
    "CompareResult": "analysis.compare",
    "ExplainResult": "analysis.explain",
    "Failure": "analysis.result",
    "FencesResult": "analysis.fences",
    "Limits": "engines.result",
    "LintResult": "analysis.lint",
    "Model": "cat",
    "Note": "analysis.result",
    "Outcome": "analysis.result",
    "ProgressResult": "analysis.progress",
    "Property": "analysis.words",
    "PtxmmError": "errors",
    "RacesResult": "analysis.races",
    "Result": "analysis.result",
    "RobustResult": "analysis.robust",
    "ScopesResult": "analysis.scopes",
    "Test": "program.test",
    "check": "analysis.outcomes",
    "compare": "analysis.compare",
    "compare_versions": "analysis.compare",
    "explain": "analysis.explain",
    "fences": "analysis.fences",
    "lint": "analysis.lint",
    "load_model": "cat",
    "parse": "formats",
    "progress": "analysis.progress",
    "races": "analysis.races",
    "read": "formats",
    "robust": "analysis.robust",
    "scopes": "analysis.scopes",
}


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module 'ptxmm' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"ptxmm.{_HOMES[name]}"), {"load_model": "load"}.get(name, name))
