"""ptxmm: which final states does the PTX memory model allow, and why?

The public API, loaded on first use so that importing the package costs nothing.
"""

TYPE_CHECKING = False  # as in typing, which takes a while to load
if TYPE_CHECKING:
    from typing import Any

    from ptxmm.analysis.result import Failure, Note, Outcome
    from ptxmm.analysis.words import Property
    from ptxmm.api.check import Result, check
    from ptxmm.api.compare import CompareResult, compare, compare_versions
    from ptxmm.api.execution import Execution, Relation, Why
    from ptxmm.api.explain import ExplainResult, explain
    from ptxmm.api.fences import FencesResult, fences
    from ptxmm.api.library import library
    from ptxmm.api.lint import LintResult, lint
    from ptxmm.api.listing import Listing
    from ptxmm.api.model import Model, load_model, model
    from ptxmm.api.progress import ProgressResult, progress
    from ptxmm.api.races import RacesResult, races
    from ptxmm.api.reading import parse, read, test
    from ptxmm.api.robust import RobustResult, robust
    from ptxmm.api.scopes import ScopesResult, scopes
    from ptxmm.api.test import Test
    from ptxmm.engines.result import Limits
    from ptxmm.errors import PtxmmError

__version__ = "0.1.0"

__all__ = [
    "CompareResult",
    "Execution",
    "ExplainResult",
    "Failure",
    "FencesResult",
    "Limits",
    "LintResult",
    "Listing",
    "Model",
    "Note",
    "Outcome",
    "ProgressResult",
    "Property",
    "PtxmmError",
    "RacesResult",
    "Relation",
    "Result",
    "RobustResult",
    "ScopesResult",
    "Test",
    "Why",
    "__version__",
    "check",
    "compare",
    "compare_versions",
    "explain",
    "fences",
    "library",
    "lint",
    "load_model",
    "model",
    "parse",
    "progress",
    "races",
    "read",
    "robust",
    "scopes",
    "test",
]

_HOMES = {
    "CompareResult": "api.compare",
    "Execution": "api.execution",
    "ExplainResult": "api.explain",
    "Failure": "analysis.result",
    "FencesResult": "api.fences",
    "Limits": "engines.result",
    "LintResult": "api.lint",
    "Listing": "api.listing",
    "Model": "api.model",
    "Note": "analysis.result",
    "Outcome": "analysis.result",
    "ProgressResult": "api.progress",
    "Property": "analysis.words",
    "PtxmmError": "errors",
    "RacesResult": "api.races",
    "Relation": "api.execution",
    "Result": "api.check",
    "RobustResult": "api.robust",
    "ScopesResult": "api.scopes",
    "Test": "api.test",
    "Why": "api.execution",
    "check": "api.check",
    "compare": "api.compare",
    "compare_versions": "api.compare",
    "explain": "api.explain",
    "fences": "api.fences",
    "library": "api.library",
    "lint": "api.lint",
    "load_model": "api.model",
    "model": "api.model",
    "parse": "api.reading",
    "progress": "api.progress",
    "races": "api.races",
    "read": "api.reading",
    "robust": "api.robust",
    "scopes": "api.scopes",
    "test": "api.reading",
}


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module 'ptxmm' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"ptxmm.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
