"""``python -m docs.website build --strict``: writes the pages that are made here into ``docs``, then runs Zensical."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.website.reference import PAGES

if __name__ == "__main__":
    from zensical.main import cli

    for name, page in PAGES.items():
        path, text = Path("docs") / name, page()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    cli(sys.argv[1:], prog_name="python -m docs.website")
