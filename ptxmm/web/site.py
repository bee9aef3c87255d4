"""The playground as files: the same page, with the engines in the browser of whoever opens it."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path, PurePosixPath

import lark
import msgspec

import ptxmm
from ptxmm.web.assets import POLICY, page_files
from ptxmm.web.downloads import MSGSPEC, PYODIDE, Z3, downloaded
from ptxmm.web.gallery import Catalog, models, tests

PYTHON = "python"
"""The folder of what runs Python in a browser."""

_CHARSET = '<meta charset="utf-8">'
_POLICY = POLICY.replace("script-src 'self'", "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'")
_PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
_LEFT_OUT = (
    "ptxmm/cli/",
    "ptxmm/litmus/",
    "ptxmm/web/page/",
    "ptxmm/web/browser/",
    "ptxmm/web/codemirror/",
    "ptxmm/web/licences/",
)
"""What is no part of what answers requests."""
_DATE = (1980, 1, 1, 0, 0, 0)


def site(litmus: Path) -> dict[str, bytes]:
    """The files of the page by their path; ``litmus``: the folder of the tests to choose from.

    ``index.html`` and ``page/`` are as a server has them, but for what is behind ``backend``; ``python/`` has CPython
    for browsers, this package, and what it needs. Raises ``PtxmmError`` (kind ``io``) where that can't be downloaded.
    """
    entries, texts = tests(litmus)
    page = page_files()
    index = page.pop("index.html").decode()
    assert _CHARSET in index
    policy = f'{_CHARSET}\n<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    made = {
        ".nojekyll": b"",  # for GitHub Pages: files are to be served as they are
        "index.html": index.replace(_CHARSET, policy).encode(),
        "catalog.json": msgspec.json.encode(Catalog(ptxmm.__version__, models(), entries)),
    }
    made |= {f"page/{name}": data for name, data in page.items()}
    made |= {f"page/{item.name}": item.read_bytes() for item in (files("ptxmm.web") / "browser").iterdir()}
    made |= {f"litmus/{name}": text.encode() for name, text in texts.items()}
    return made | {f"{PYTHON}/{name}": data for name, data in _python()}


def _python() -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(downloaded(PYODIDE))) as archive:
        for name in _PYODIDE:
            member = archive.extractfile(f"package/{name}")
            assert member is not None
            yield name, member.read()
    yield "msgspec.zip", downloaded(MSGSPEC)
    yield "z3.zip", downloaded(Z3)
    yield "ptxmm.zip", _zipped(Path(ptxmm.__file__).parent, Path(lark.__file__).parent)
    yield "LICENSES.txt", f"\n{'-' * 79}\n\n".join(_licences()).encode()


def _licences() -> Iterator[str]:
    """Whose all of it is, with the text of each licence: what the downloads themselves do not carry is kept here."""
    kept = files("ptxmm.web") / "licences"
    for found, names in ((PYODIDE, ("pyodide", "cpython")), (Z3, ("z3",))):
        texts = [(kept / f"{name}.txt").read_text(encoding="utf-8") for name in names]
        yield "\n".join((found.about, found.url, "", *texts))
    yield f"{MSGSPEC.about}\n{MSGSPEC.url}\n\n{_licence('msgspec')}"
    yield f"lark: MIT, https://github.com/lark-parser/lark, in ptxmm.zip\n\n{_licence('lark')}"
    yield f"ptxmm\n\n{_licence('ptxmm')}"


def _licence(package: str) -> str:
    """The licence that an installed package brings."""
    return "\n".join(file.read_text() for file in distribution(package).files or () if file.name.startswith("LICENSE"))


def _zipped(*packages: Path) -> bytes:
    """The sources and data of packages, the same bytes for the same files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in packages:
            for path in sorted(package.rglob("*")):
                name = str(PurePosixPath(package.name, *path.relative_to(package).parts))
                if path.is_file() and path.parent.name != "__pycache__" and not name.startswith(_LEFT_OUT):
                    archive.writestr(zipfile.ZipInfo(name, _DATE), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return data.getvalue()
