"""The files of the page, and what it may load and do wherever it is."""

from __future__ import annotations

from importlib.resources import files

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
"""The Content-Security-Policy: no script, style or picture but the page's own."""


def page_files() -> dict[str, bytes]:
    """The files of the page by their path in its folder."""
    folder = files("ptxmm.web") / "page"
    found = {item.name: item.read_bytes() for item in folder.iterdir() if item.is_file()}
    below = [item for item in (folder / "vendor").iterdir() if item.is_file()]
    return found | {f"vendor/{item.name}": item.read_bytes() for item in below}
