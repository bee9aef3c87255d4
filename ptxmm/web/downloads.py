"""What the page without a server needs of others, as their package registries have it: each file by its hash."""

from __future__ import annotations

import hashlib
import ssl
from urllib.error import URLError
from urllib.request import urlopen

from msgspec import Struct

from ptxmm.errors import PtxmmError

_SECONDS = 60.0


class Download(Struct, frozen=True):
    """A file at an address, the SHA-256 of it, and whose it is."""

    url: str
    sha256: str
    about: str


PYODIDE = Download(
    "https://registry.npmjs.org/pyodide/-/pyodide-314.0.7.tgz",
    "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0",
    "Pyodide, CPython for browsers: MPL-2.0 and PSF-2.0, https://github.com/pyodide/pyodide",
)
MSGSPEC = Download(
    "https://files.pythonhosted.org/packages/75/5d/c0e6bdb81a87f6bd56a663a330c271af7670490c80d8d635d9fa21ad1adf/"
    "msgspec-0.22.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl",
    "a66b1766311e42371e509c996c3933b161c7ae0eabdf361af5316dec197e1022",
    "msgspec: BSD-3-Clause, https://github.com/jcrist/msgspec",
)
Z3 = Download(
    "https://files.pythonhosted.org/packages/be/0d/39cfeb73dafdc22000e5e915abe7d1e3f238710a32f0531b23b77f80608a/"
    "z3_solver-5.3.3.0-py3-none-pyemscripten_2026_0_wasm32.whl",
    "9381d9516345f53b21a8f4df243c5d608e9625aac658c3fb3975457bad260f60",
    "Z3: MIT, https://github.com/Z3Prover/z3",
)


def downloaded(wanted: Download) -> bytes:
    """The file. Raises ``PtxmmError`` (kind ``io``) where it can't be had or is another."""
    try:
        with urlopen(wanted.url, timeout=_SECONDS) as response:
            data: bytes = response.read()
    except (OSError, ssl.SSLError) as error:
        cause = error.reason if isinstance(error, URLError) else error
        reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        hint = "ptxmm site needs the network for what runs Python in a browser; nothing was written"
        raise PtxmmError(f"can't download {wanted.url}: {reason}", kind="io", hint=hint) from None
    if hashlib.sha256(data).hexdigest() != wanted.sha256:
        hint = "nothing was written"
        raise PtxmmError(f"{wanted.url} is not the file that it was", kind="io", hint=hint)
    return data
