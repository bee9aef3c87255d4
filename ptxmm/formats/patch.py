"""A litmus file with some instructions changed, everything else in it left as it is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import unified_diff
from itertools import pairwise

from msgspec import Struct

from ptxmm.errors import PtxmmError
from ptxmm.formats.litmus import parse, same
from ptxmm.formats.text import Text, mask_comments, open_text
from ptxmm.formats.writer import placement_text
from ptxmm.program.edit import canonical
from ptxmm.program.test import Test
from ptxmm.ptx.ops import Op


class Rewrite(Struct, frozen=True):
    """``new`` in the place of the instruction ``index`` of a thread, or before it (``insert``); None: nothing.

    At the length of the body ``insert`` means the end of the thread.
    """

    thread: int
    index: int
    insert: bool
    new: Op | None


def patched(test: Test, rewrites: Sequence[Rewrite], wanted: Test) -> str | None:
    """The text of the file of ``test`` with ``rewrites``, read back and found to be the program ``wanted``.

    Instructions keep what the change is not about, if possible. None where the text can't be changed like
    that: a file of several tests, an instruction that stands on several lines.
    """
    for keep in (True, False):
        try:
            text = _Patch(test, keep).text(rewrites)
            if text is not None and same(parse(text, test.file)[0], wanted):
                return text
        except PtxmmError:
            continue
    return None


def moved(test: Test, wanted: Test) -> str | None:
    """The text of the file of ``test`` with its threads placed as in ``wanted``, read back and found to be that test.

    None where more has to change than what stands after the names of the threads.
    """
    opened = open_text(test.text, test.file)
    masked, _ = mask_comments(opened, 0)
    start = masked.find("}", max(0, masked.find("\n{")))
    pieces, done = [], 0
    for thread in wanted.threads:
        name = rf"(?<![\w$]){re.escape(thread.name)}(?![\w$:])"
        head = re.compile(name + r"[^;|{}\n]*?[ \t]*(?=[;|{])").search(masked, start)
        if head is None:
            return None
        place = placement_text(thread.placement)
        written = f"{thread.name} @ {place}" if place else thread.name
        pieces += [opened.characters[done : head.start()], written.ljust(len(head[0]) - 1) + " "]
        start = done = head.end()
    text = "".join((*pieces, opened.characters[done:]))
    try:
        return text if same(parse(text, test.file)[0], wanted) else None
    except PtxmmError:
        return None


def diff(old: str, new: str, file: str) -> list[str]:
    """The lines of a unified diff."""
    return [
        line.rstrip("\n") for line in unified_diff(old.splitlines(), new.splitlines(), file, file, lineterm="", n=2)
    ]


class _Patch:
    def __init__(self, test: Test, keep: bool) -> None:
        self.test = test
        self.keep = keep
        self.opened: Text = open_text(test.text, test.file)
        places = [op.source.span for thread in test.threads for op in thread.body]
        first = min((span.line, span.column) for span in places)
        start = self.opened.starts[first[0] - 1]
        self.masked, _ = mask_comments(self.opened, start)
        braces = re.findall(r"[{}]", self.masked[: start + first[1] - 1])
        self.blocks = bool(braces) and braces[-1] == "{"

    def text(self, rewrites: Sequence[Rewrite]) -> str | None:
        """The file with the changes made from its end to its beginning, so that places stay true: of each line what is
        replaced first, then what is inserted, each from the right to the left."""
        lines = self.opened.characters.split("\n")
        ordered = sorted(
            enumerate(rewrites),
            key=lambda item: (self._place(item[1])[0], not item[1].insert, self._place(item[1]), item[0]),
            reverse=True,
        )
        above: dict[int, int] = {}
        for _, rewrite in ordered:
            line, column = self._place(rewrite)
            if not self._fits(rewrite):
                return None
            if self.blocks:
                self._in_block(lines, line - 1, column - 1, rewrite)
            else:
                above[line] = self._in_columns(lines, line - 1, column - 1, rewrite, above.get(line, 0))
        return "\n".join(lines)

    def _op(self, rewrite: Rewrite) -> Op:
        body = self.test.threads[rewrite.thread].body
        return body[min(rewrite.index, len(body) - 1)]

    def _place(self, rewrite: Rewrite) -> tuple[int, int]:
        span = self._op(rewrite).source.span
        return span.line, span.column

    def _fits(self, rewrite: Rewrite) -> bool:
        """Whether the instruction stands where it says, on one line."""
        op, (line, column) = self._op(rewrite), self._place(rewrite)
        start = self.opened.starts[line - 1] + column - 1
        return "\n" not in op.source.text and self.opened.characters.startswith(op.source.text, start)

    def _in_block(self, lines: list[str], line: int, column: int, rewrite: Rewrite) -> None:
        op, row = self._op(rewrite), lines[line]
        end = column + len(op.source.text)
        if not rewrite.insert:
            if rewrite.new is not None:
                lines[line] = row[:column] + self._written(op, rewrite.new) + row[end:]
                return
            rest = re.sub(r"^\s*;[ \t]*", "", row[end:])
            lines[line] = row[:column] + rest
            if not lines[line].strip():
                del lines[line]
            return
        assert rewrite.new is not None
        added = canonical(self.test, rewrite.new)
        if rewrite.index == len(self.test.threads[rewrite.thread].body):
            stop = row.find(";", end)
            indent = row[: len(row) - len(row.lstrip())]
            if stop >= 0 and not row[stop + 1 :].strip(" \t"):
                lines.insert(line + 1, f"{indent}{added};")
            else:
                stop = stop if stop >= 0 else end
                lines[line] = f"{row[:stop]}; {added}{row[stop:]}"
        elif row[:column].strip():
            lines[line] = f"{row[:column]}{added}; {row[column:]}"
        else:
            lines.insert(line, f"{row[:column]}{added};")

    def _in_columns(self, lines: list[str], line: int, column: int, rewrite: Rewrite, above: int) -> int:
        """Change one cell, or add one above it. ``above``: how many rows have been added above the row at ``line``;
        returns how many there are then."""
        op, row = self._op(rewrite), lines[line + above]
        end = column + len(op.source.text)
        if not rewrite.insert:
            new = "" if rewrite.new is None else self._written(op, rewrite.new)
            stop = next(edge for edge in _edges(row) if edge >= end)
            lines[line] = row[:column] + new.ljust(stop - column - 1) + " " + row[stop:]
            return above
        assert rewrite.new is not None
        added = canonical(self.test, rewrite.new)
        edges = _edges(row)
        cell = sum(1 for edge in edges[1:-1] if edge < self._edge_before(rewrite, edges, column))
        last = rewrite.index == len(self.test.threads[rewrite.thread].body)
        inside = row[edges[cell] + 1 : edges[cell + 1]]
        label = "" if last else inside[: len(inside) - len(inside.lstrip())] + _label(inside)
        text = f" {label.strip() + ' ' if label.strip() else ''}{added} "
        widths = [b - a - 1 for a, b in pairwise(edges)]
        if label.strip():
            rest = inside.replace(_label(inside), "", 1).strip()
            lines[line + above] = row[: edges[cell] + 1] + f" {rest} ".ljust(widths[cell]) + row[edges[cell + 1] :]
        if above and not last:
            first = lines[line]
            marks = _edges(first)
            if not first[marks[cell] + 1 : marks[cell + 1]].strip():
                wide = max(marks[cell + 1] - marks[cell] - 1, 0)
                lines[line] = first[: marks[cell] + 1] + text.ljust(wide) + first[marks[cell + 1] :]
                return above
        cells = [" " * width for width in widths]
        cells[cell] = text.ljust(widths[cell])
        lines.insert(line + above + 1 if last else line, "|".join(cells) + ";")
        return above if last else above + 1

    def _edge_before(self, rewrite: Rewrite, edges: Sequence[int], column: int) -> int:
        """Where in the row, as it is now, the cell begins that began before ``column`` in the file."""
        start = self.opened.starts[self._place(rewrite)[0] - 1]
        bars = self.masked[start : start + column].count("|")
        return edges[bars] + 1

    def _written(self, old: Op, new: Op) -> str:
        """``new`` as the text of ``old`` with other qualifiers; its canonical text where that can't be."""
        before, after = canonical(self.test, old), canonical(self.test, new)
        if not self.keep:
            return after
        guard = r"^(@!?%?[\w$]+\s+)?"
        old_name, new_name = (re.sub(guard, "", text).split()[0].split(".") for text in (before, after))
        text = old.source.text
        match = re.match(guard + r"([\w.:]+)", text)
        if match is None or match[2].split(".")[0] != new_name[0]:
            return after
        return text[: match.start(2)] + _mnemonic(match[2], old_name, new_name) + text[match.end(2) :]


def _edges(row: str) -> list[int]:
    """The places of the separators of a row of cells: before the first, between, and after the last."""
    masked = _masked(row)
    return [-1, *(i for i, character in enumerate(masked) if character == "|"), masked.index(";")]


def _masked(row: str) -> str:
    """``row`` with blanks for its comments."""
    return re.sub(r"/\*.*?\*/|\(\*.*?\*\)", lambda match: " " * len(match[0]), row)


def _label(cell: str) -> str:
    """The labels before the instruction in a cell."""
    match = re.match(r"\s*((?:[A-Za-z_$][\w$]*\s*:(?!:)\s*)+)", cell)
    return match[1].strip() if match else ""


def _mnemonic(written: str, old: Sequence[str], new: Sequence[str]) -> str:
    """The mnemonic ``written`` with what tells the canonical ``new`` from the canonical ``old``."""
    words = written.split(".")
    gone = [word for word in old if word not in new]
    added = [word for word in new if word not in old]
    place = 1
    while place < len(words) and words[place] in ("arrive", "wait", "proxy", "cluster") and words[place] in new[:3]:
        place += 1
    for word in gone:
        if word in words[1:]:
            where = words.index(word, 1)
            if added:
                words[where] = added.pop(0)
                place = where + 1
            else:
                del words[where]
                place = where
    words[place:place] = added
    return ".".join(words)
