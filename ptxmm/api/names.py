"""Things by name, as notebooks complete and correct them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeVar

from ptxmm.errors import PtxmmError

T = TypeVar("T")


class NoSuchName(PtxmmError, KeyError):
    """A name that a mapping does not have, with those that it may be a slip for."""

    __str__ = PtxmmError.__str__


class Named(Mapping[str, T]):
    """A mapping of which the keys are known at once, and each value is made when it is asked for."""

    _WHAT = "item"

    def _names(self) -> tuple[str, ...]:
        """The keys, in order."""
        raise NotImplementedError

    def _make(self, name: str) -> T:
        raise NotImplementedError

    def __getitem__(self, name: str) -> T:
        """The one of this name. Raises ``NoSuchName``, which is a ``KeyError`` too."""
        if name not in self._names():
            raise NoSuchName(f"there is no {self._WHAT} `{name}`", kind="usage", hint=self._hint(str(name)))
        return self._make(name)

    def _hint(self, name: str) -> str:
        begun = self.starting(name) if name else []
        known = self._names()
        lower = {k.lower(): k for k in reversed(known)}
        ends = [k for k in known if k.rpartition("/")[2] == name]
        close = begun or ends or [lower[n] for n in get_close_matches(name.lower(), list(lower), 3)]
        if not close:
            return self._listed(known)
        more = f" or {len(close) - _SHOWN} more" if len(close) > _SHOWN else ""
        return f"did you mean {', '.join(f'`{k}`' for k in close[:_SHOWN])}{more}?"

    def starting(self, prefix: str) -> list[str]:
        """The names that begin with ``prefix``."""
        return [name for name in self._names() if name.startswith(prefix)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._names())

    def __repr__(self) -> str:
        return f"<{len(self)} {self._listed(self._names())}>"

    def _listed(self, known: Sequence[str]) -> str:
        more = ", ..." if len(known) > _SHOWN else ""
        return f"{self._WHAT}s: {', '.join(known[:_SHOWN])}{more}"


_SHOWN = 5
