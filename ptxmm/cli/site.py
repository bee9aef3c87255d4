"""``ptxmm site``: the playground as files that any web server can give."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ptxmm.cli.files import writing
from ptxmm.errors import PtxmmError


def site(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A folder that is new, empty or written by this command.", show_default=False
        ),
    ],
) -> None:
    """Write the playground as files that need no server of their own: the engines run in the browser.

    CPython, msgspec and Z3 for browsers are downloaded (13 MB, each with its hash); visitors load them from DIR.
    """
    from ptxmm.files import bundled_folder
    from ptxmm.web.site import PYTHON, site

    with writing(folder, "site"):
        known = not folder.exists() or not any(folder.iterdir()) or (folder / PYTHON / "ptxmm.zip").is_file()
        if not known:
            hint = "give a new folder: what is there may be overwritten"
            raise PtxmmError("the folder is not empty", kind="usage", file=str(folder), hint=hint)
        made = site(bundled_folder())
        for name, data in made.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    size = sum(map(len, made.values())) >> 20
    print(f"{folder}: {len(made)} files, {size} MB; to look at it: python -m http.server --directory {folder}")
