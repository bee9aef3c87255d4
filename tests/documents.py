"""Entries of the JSON documents, each seen to be of the types that the schema is made of."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ptxmm.render import Entry, Page, renderer
from ptxmm.render.schema import Document


def entry(kind: str, report: object) -> dict[str, Any]:
    """The entry of a result of this kind, or of an error."""
    (text,) = renderer(kind, "json")([Entry(report)], Page())
    msgspec.json.decode(text, type=Document)
    (found,) = json.loads(text)["results"]
    assert isinstance(found, dict)
    return found
