"""The head of a litmus file: title, description and ``Key=Value`` lines, up to the line that starts with ``{``."""

from __future__ import annotations

import re

from msgspec import Struct

from ptxmm.formats.text import Text

_TITLE = re.compile(r"PTX[ \t]+(\S.*)")
INFO = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)[ \t]*=(?!=)[ \t]*(.*)")


class Header(Struct, frozen=True):
    """What stands before the initial state; ``end`` is the offset of its ``{``. ``isa``: the ``ISA=`` line, or None."""

    name: str
    description: str
    info: tuple[tuple[str, str], ...]
    end: int
    isa: tuple[int, int] | None = None


def parse_header(text: Text) -> Header:
    """Read title, description and information.

    A description is any text. One that starts with ``"`` goes on to the line on which its quotes are even in number,
    and nothing in it is read. Raises ``PtxmmError`` for a missing title or ``{``, a quote without end and a key that
    occurs twice.
    """
    name: str | None = None
    description: list[str] = []
    info: dict[str, str] = {}
    isa: tuple[int, int] | None = None
    opened: int | None = None
    quoted: list[str] = []
    odd = False
    for start in text.starts:
        end = text.characters.find("\n", start)
        raw = text.characters[start : end if end >= 0 else len(text.characters)]
        line = raw.strip()
        begin = start + len(raw) - len(raw.lstrip())
        if opened is not None or (name is not None and line.startswith('"')):
            opened = begin if opened is None else opened
            quoted.append(line)
            odd ^= line.count('"') % 2 == 1
            if not odd:
                description.append(_unquoted("\n".join(quoted)))
                quoted.clear()
                opened = None
        elif name is None:
            if line:
                name = _title(text, line, begin)
        elif line.startswith("{"):
            return Header(name, "\n".join(description).strip("\n"), tuple(info.items()), begin, isa)
        elif match := INFO.fullmatch(line):
            if match[1] in info:
                raise text.error(f"a second `{match[1]}=` line", begin, begin + len(match[1]))
            info[match[1]] = match[2]
            if match[1] == "ISA":
                isa = _isa(text, match[2], begin + match.start(2))
        elif line:
            description.append(line)
    if opened is not None:
        raise text.error('this `"` is never closed', opened, hint='end the description with `"`')
    end = len(text.characters.rstrip())
    raise text.error("there is no initial state", end, hint="write it on a line that starts with `{`, or `{ }`")


def _isa(text: Text, value: str, begin: int) -> tuple[int, int]:
    """The version of the PTX ISA that a test is written in."""
    match = re.fullmatch(r"([0-9]{1,2})\.([0-9])", value)
    if match is None:
        end = begin + max(1, len(value))
        raise text.error("this is not a version of the PTX ISA", begin, end, hint="as in ISA=8.6")
    return int(match[1]), int(match[2])


def _unquoted(text: str) -> str:
    """``text`` without the quotes around it, if there are some."""
    if text.endswith('"'):
        text = text[1:-1]
    return "\n".join(line.strip() for line in text.split("\n"))


def _title(text: Text, line: str, begin: int) -> str:
    match = _TITLE.fullmatch(line)
    if match:
        return match[1]
    if line == "PTX":
        raise text.error("the title has no name", begin, begin + 3, hint="the first line is `PTX NAME`")
    end = begin + min(len(line), 40)
    raise text.error("this is not a PTX litmus test", begin, end, kind="format", hint="the first line is `PTX NAME`")
