"""What all results have besides their attributes: text, HTML, JSON, a data frame."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from msgspec import Struct

from ptxmm.errors import PtxmmError
from ptxmm.render import Entry, Page, renderer
from ptxmm.render.document import taken
from ptxmm.render.notebook import preformatted
from ptxmm.render.style import Style

if TYPE_CHECKING:
    from pandas import DataFrame

    from ptxmm.analysis.result import Execution

P = ParamSpec("P")
S = TypeVar("S", bound=Struct)


class Displayed:
    """What shows itself: as text by ``str``, as HTML in a notebook."""

    __slots__ = ()

    def _text(self, style: Style) -> str:
        raise NotImplementedError

    def __str__(self) -> str:
        return self._text(Style(False))

    def _repr_html_(self) -> str:
        return preformatted(self._text(Style(True))) + (self._repr_svg_() or "")

    def _repr_svg_(self) -> str | None:
        """The picture, or None where there is none."""
        return None

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        """All forms that a notebook may show, by MIME type; of ``include`` and without ``exclude``, if given."""
        forms = {"text/plain": self.__str__, "text/html": self._repr_html_, "image/svg+xml": self._repr_svg_}
        wanted = [kind for kind in forms if (include is None or kind in include) and kind not in (exclude or ())]
        return {kind: shown for kind in wanted if (shown := forms[kind]()) is not None}


class Tabular(Displayed):
    """What is a table as well."""

    __slots__ = ()

    def rows(self) -> list[dict[str, object]]:
        """The rows of ``to_pandas``, by the names of the columns."""
        raise NotImplementedError

    def to_pandas(self) -> DataFrame:
        """The rows as a ``pandas.DataFrame``. Raises ``PtxmmError`` (kind ``usage``) where pandas is not installed."""
        try:
            from pandas import DataFrame
        except ImportError:
            message = "to_pandas needs pandas, which is not installed"
            raise PtxmmError(message, kind="usage", hint="pip install pandas; rows() has the same as a list") from None
        return DataFrame(self.rows())


class Shown(Tabular):
    """A result of an analysis: its text and its JSON are those of the command of this name."""

    __slots__ = ()

    _KIND: ClassVar[str]

    def _text(self, style: Style) -> str:
        return "\n".join(renderer(self._KIND, "text")([Entry(self)], Page(style)))

    def to_json(self) -> str:
        """The document that the command prints with ``--json``, with this result in it (docs/results.md)."""
        return "\n".join(renderer(self._KIND, "json")([Entry(self)], Page()))


class Pictured(Shown):
    """A result with a picture of an execution, if its executions are given as graphs."""

    __slots__ = ()

    def _executions(self) -> Iterable[Execution | None]:
        """Those that may have a graph."""
        raise NotImplementedError

    def _repr_svg_(self) -> str | None:
        if all(found is None or found.graph is None for found in self._executions()):
            return None
        return "\n".join(renderer(self._KIND, "svg")([Entry(self)], Page()))


def shown(kind: type[S], analysis: Callable[P, Struct]) -> Callable[P, S]:
    """``analysis`` with results that show themselves: of ``kind``, which has the attributes of its own."""

    @wraps(analysis)
    def function(*arguments: P.args, **options: P.kwargs) -> S:
        return taken(kind, analysis(*arguments, **options))

    function.__annotations__ = {**analysis.__annotations__, "return": kind.__name__}
    return function


def accesses(execution: Any) -> list[dict[str, object]]:
    """A row for each access of an execution, and one for each instruction without any."""
    rows: list[dict[str, object]] = []
    for thread in execution.threads:
        for step in thread.steps:
            row = {
                "thread": thread.thread,
                "line": step.instruction.line,
                "instruction": step.instruction.text,
                "round": step.round,
            }
            found = [
                {"kind": a.kind, "location": a.location, "value": a.value, "sources": ", ".join(a.sources)}
                for a in step.accesses
            ]
            empty: dict[str, object] = {"kind": None, "location": None, "value": None, "sources": ""}
            rows += [row | access for access in found or [empty]]
    return rows
