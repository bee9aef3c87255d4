"""The litmus tests that come with ptxmm, by name."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from ptxmm import files
from ptxmm.api.names import Named
from ptxmm.api.reading import read
from ptxmm.api.test import Test

_SUFFIX = ".litmus"


class Library(Named[Test]):
    """The tests of ``litmus/`` by ``FAMILY/NAME``, such as ``mp/MP+rel+acq``; each is read when it is asked for."""

    _WHAT = "test"

    @cached_property
    def folder(self) -> Path:
        """Where the files are. Raises ``PtxmmError`` (kind ``io``) if they are missing."""
        return files.bundled_folder()

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        found = self.folder.rglob(f"*{_SUFFIX}")
        return tuple(sorted(path.relative_to(self.folder).as_posix().removesuffix(_SUFFIX) for path in found))

    def _names(self) -> tuple[str, ...]:
        return self._keys

    def _make(self, name: str) -> Test:
        (test,) = read(self.folder / f"{name}{_SUFFIX}")
        return test

    @property
    def families(self) -> list[str]:
        """The folders, one for each family of tests."""
        return list(dict.fromkeys(name.partition("/")[0] for name in self._keys))


library = Library()
