"""The places in source files that ``.file`` and ``.loc`` give (PTX ISA 11.5.3, 11.5.4)."""

from __future__ import annotations

from ptxmm.ptx.module_syntax import Place
from ptxmm.ptx.module_tokens import Cursor
from ptxmm.ptx.parser import parse_integer

_MAX_DEPTH = 64


class Places:
    """The files of a module and the place in force, None at the beginning of a function.

    Files are known from the start, though ``.file`` may come last; a ``.loc`` whose index no ``.file`` has (ptxas
    takes that) has the file ``<file N>``.
    """

    __slots__ = ("_files", "_known", "current")

    def __init__(self, cursor: Cursor) -> None:
        self.current: Place | None = None
        self._files: dict[int, str] = {}
        self._known: dict[tuple[str, int, int], tuple[Place, int]] = {}
        tokens, types = cursor.tokens, cursor.types
        for index, token in enumerate(tokens):
            if token == ".file" and types[index + 1] == "NUMBER" and types[index + 2] == "STRING":
                number = parse_integer(str(tokens[index + 1]))
                if number is not None:
                    self._files.setdefault(number, str(tokens[index + 2])[1:-1])

    def loc(self, cursor: Cursor) -> None:
        """Read a ``.loc``, after that word. Raises ``PtxmmError``.

        loc: LOC _place ("," (function_name | inlined_at))*
        function_name: FUNCTION_NAME (IDENT | QUALIFIER) (SIGN NUMBER)?
        inlined_at: INLINED_AT _place
        """
        file, line, column = self._place(cursor, "`.loc`")
        inlined: Place | None = None
        depth = 0
        while cursor.accept(",") is not None:
            word = cursor.take("IDENT", "after `.loc`")
            if word == "function_name":
                if cursor.accept("QUALIFIER") is None:
                    cursor.take("IDENT", "after `function_name`")
                if cursor.accept("SIGN") is not None:
                    _number(cursor, "after `+`")
            elif word == "inlined_at":
                at = self._place(cursor, "`inlined_at`")
                # That place was in a `.loc` before, which says where it was inlined itself. (Recursion that is
                # inlined could make that a circle, so it goes only so far.)
                inlined, depth = self._known.get(at, (Place(*at), 0))
                if depth >= _MAX_DEPTH:
                    inlined, depth = Place(*at), 0
            else:
                raise cursor.error(f"unknown attribute `{word}` of `.loc`", word, "function_name or inlined_at")
        self.current = Place(file, line, column, inlined)
        self._known[file, line, column] = self.current, depth + 1

    def _place(self, cursor: Cursor, where: str) -> tuple[str, int, int]:
        """_place: NUMBER NUMBER NUMBER"""
        number = _number(cursor, f"(the file) after {where}")
        line = _number(cursor, f"(the line) after {where}")
        column = _number(cursor, f"(the column) after {where}")
        return self._files.get(number, f"<file {number}>"), line, column


def _number(cursor: Cursor, where: str) -> int:
    token = cursor.take("NUMBER", where)
    value = parse_integer(token)
    if value is None:
        raise cursor.error("expected an integer constant", token)
    return value
