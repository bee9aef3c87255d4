"""The JSON schema of the documents, from the types of what is in them: ``python -m ptxmm.render.schema`` prints it."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct
from msgspec.json import schema_components

from ptxmm.analysis.compare import CompareResult
from ptxmm.analysis.lint import LintResult
from ptxmm.analysis.progress import ProgressResult
from ptxmm.analysis.races import RacesResult
from ptxmm.analysis.result import Expired, Failure, Result
from ptxmm.analysis.robust import RobustResult
from ptxmm.analysis.scopes import ScopesResult
from ptxmm.analysis.swept import Swept
from ptxmm.hardware.compare import RunResult
from ptxmm.render.compare import SeparateEntry
from ptxmm.render.document import Schema
from ptxmm.render.explain import ExplainEntry
from ptxmm.render.fences import FencesEntry
from ptxmm.render.listing import Listing
from ptxmm.whole.fences.search import WholeFences
from ptxmm.whole.result import WholeResult


class Document(Struct, frozen=True):
    """What ``--json`` prints: results and errors in the order of the input."""

    schema: Schema
    results: tuple[
        Result
        | ExplainEntry
        | RacesResult
        | FencesEntry
        | RobustResult
        | ScopesResult
        | ProgressResult
        | CompareResult
        | SeparateEntry
        | LintResult
        | Listing
        | WholeResult
        | WholeFences
        | RunResult
        | Failure
        | Expired,
        ...,
    ]


def text() -> str:
    """The schema, as docs/schema.json has it: of a document, and under ``Swept`` of a line of a sweep."""
    (document, _), kinds = schema_components((Document, Swept), ref_template="#/$defs/{name}")
    found: dict[str, Any] = {"$schema": "https://json-schema.org/draft/2020-12/schema", **document, "$defs": kinds}
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    print(text(), end="")
