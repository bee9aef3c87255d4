"""One-line mutations of kernels, made mechanically: what people forget, or write a little too weak.

Each changes one instruction that orders or synchronizes: it is left out, comes before or after the access beside it, a
scope is narrower, an order weaker, a parity turned, a count one less, a wait leaves one more group open. The text is
changed, not what ptxmm has made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

_LINE = re.compile(r"^(?P<head>\s*(?:@!?%?\w+\s+)?)(?P<opcode>[a-z][\w.:]*)(?P<rest>(?:\s[^;]*)?);\s*(?://.*)?$")
_DROPPED = re.compile(
    r"fence\.|membar\.|bar(rier)?\.(cta\.)?(sync|arrive)|bar\.warp\.sync|barrier\.cluster\."
    r"|mbarrier\.(arrive|expect_tx|inval|complete_tx)"
    r"|griddepcontrol\.wait|cp\.async\.(bulk\.)?(commit_group|wait_group|wait_all)|cp\.async\.mbarrier"
)
_WAIT = re.compile(r"mbarrier\.(test|try)_wait\.")
_ACCESS = re.compile(
    r"(ld|st)\.(?!param|const|local|async)|atom\.|red\.|cp\.(reduce\.)?async\.(?!wait|commit|bulk\.(wait|commit))"
)
_ORDERED = re.compile(r"(ld|st|atom|red|fence|mbarrier\.\w+)\.")
_BLOCK = re.compile(r"^\s*(\$?\w+:|(@!?%?\w+\s+)?(bra|ret|exit)|[{}])")
_STRONG = re.compile(r"\.(relaxed\.(cta|cluster|gpu|sys)|volatile)(?=\.)")
_NARROWER = ((".sys", ".gpu"), (".gpu", ".cta"), (".sys", ".cta"), (".cluster", ".cta"))
_WEAKER = (
    (".acq_rel", (".acquire", ".release", ".relaxed")),
    (".sc", (".acq_rel",)),
    (".acquire", (".relaxed",)),
    (".release", (".relaxed",)),
)


class Mutant(Struct, frozen=True):
    """A changed kernel: what was done (``kind``), in which ``line`` of the text, to which instruction (``old``), what
    stands there now, and the ``text`` of the whole."""

    kind: str
    line: int
    old: str
    new: str
    text: str

    def __str__(self) -> str:
        return f"{self.line}: {self.kind}: {self.old}" + (f" -> {self.new}" if self.new else "")


def mutants(text: str) -> Iterator[Mutant]:
    """All mutants of a PTX text."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        match = _LINE.match(line.rstrip("\n"))
        if match is None:
            continue
        head, opcode, rest = match["head"], match["opcode"], match["rest"]
        old = f"{opcode} {' '.join(rest.split())}".strip()
        for what, new in _changes(opcode, rest):
            changed = f"{head}{new}{'' if new.startswith('{') else ';'}\n" if new else "\n"
            yield Mutant(
                what, number + 1, old, " ".join(new.split()), "".join((*lines[:number], changed, *lines[number + 1 :]))
            )
        if _DROPPED.match(opcode):
            for what, step in (("early", -1), ("late", 1)):
                other = _beside(lines, number, step)
                if other is not None:
                    rows = lines[:]
                    rows.insert(other if step < 0 else other + 1, line)
                    del rows[number + (step < 0)]
                    yield Mutant(what, number + 1, old, "", "".join(rows))


def _beside(lines: list[str], number: int, step: int) -> int | None:
    """The line of the access before or behind a line that comes by no branch."""
    at = number + step
    while not _BLOCK.match(lines[at]):
        match = _LINE.match(lines[at].rstrip("\n"))
        if match is not None and _ACCESS.match(match["opcode"]):
            return at
        if match is not None and (_DROPPED.match(match["opcode"]) or _WAIT.match(match["opcode"])):
            return None
        at += step
    return None


def _changes(opcode: str, rest: str) -> Iterator[tuple[str, str]]:
    """What may stand in the place of an instruction; an empty text: nothing."""
    if _DROPPED.match(opcode):
        yield "drop", ""
    operands = [operand.strip() for operand in rest.split(",")]
    if _WAIT.match(opcode):
        yield "drop", f"setp.eq.u32 {operands[0]}, 0, 0"
        if ".parity" in opcode:
            given = ", ".join((*operands[:2], "turned", *operands[3:]))
            yield "parity", f"{{ .reg .b32 turned; xor.b32 turned, {operands[2]}, 1; {opcode} {given}; }}"
    if _ORDERED.match(opcode):
        for wide, narrow in _NARROWER:
            if re.search(rf"{re.escape(wide)}(\.|$)", opcode):
                yield "scope", re.sub(rf"{re.escape(wide)}(?=\.|$)", narrow, opcode, count=1) + rest
        yield from (("order", new + rest) for new in _weaker(opcode))
    if opcode.startswith("membar."):
        narrower = {"sys": ("gl", "cta"), "gl": ("cta",)}.get(opcode.partition(".")[2], ())
        yield from (("scope", f"membar.{level}") for level in narrower)
    if opcode.startswith("fence.proxy.async"):
        yield "space", "fence.proxy.async" + (".global" if "shared" in opcode else ".shared::cta")
    if re.fullmatch(r"cp\.async\.(bulk\.)?wait_group(\.read)?", opcode):
        yield "open", f"{opcode} {int(operands[0]) + 1}"
    if opcode == "cp.async.wait_all":
        yield "open", "cp.async.wait_group 1"
    if opcode == "cp.async.bulk.wait_group":
        yield "order", f"cp.async.bulk.wait_group.read{rest}"
    if opcode.startswith("mbarrier.init") and len(operands) == 2:
        yield "count", f"{{ .reg .b32 less; sub.u32 less, {operands[1]}, 1; {opcode} {operands[0]}, less; }}"


def _weaker(opcode: str) -> Iterator[str]:
    """Weaker orders of an instruction."""
    if not opcode.startswith(("fence.proxy", "fence.mbarrier")):
        for strong, weak in _WEAKER:
            if re.search(rf"{re.escape(strong)}(\.|$)", opcode):
                for other in weak:
                    if other != ".relaxed" or not opcode.startswith("fence."):
                        yield re.sub(rf"{re.escape(strong)}(?=\.|$)", other, opcode, count=1)
    if opcode.startswith(("ld.", "st.")) and "async" not in opcode and _STRONG.search(opcode):
        yield _STRONG.sub("", opcode, count=1)
