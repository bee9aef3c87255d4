"""Whether the machine code of each thread of a test has every access and fence of it, in order.

nvdisasm names for each instruction the line of the source that it comes from, and the ``asm`` block of a thread has a
line of its own.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from ptxmm.program.test import Test
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Op

_ROLE = re.compile(r"/\* (t[0-9a-f]{12}) role (\d+) \*/")
_LINE = re.compile(r'//## File "[^"]*", line (\d+)')
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE)
_KINDS = (
    ("L", r"(LDG|LD|LDS)\b.*"),
    ("S", r"(STG|ST|STS)\b.*"),
    ("A", r"(ATOM|ATOMG|ATOMS|RED|REDG|REDS)\b.*"),
    ("M", r"MEMBAR\b.*"),
    ("C", r"CCTL\.IVALL\b.*"),
    ("I", r"SYNCS\.(EXCH|CCTL)\b.*"),
    ("V", r"SYNCS\.ARRIVE\b.*|ARRIVES\b.*"),
    ("W", r"SYNCS\.PHASECHK\b.*"),
    ("T", r"(STAS|REDAS)\b.*"),
    ("G", r"LDGSTS\b.*"),
    ("K", r"(UBLKCP|UBLKRED)\b.*"),
)
"""A letter for the instructions that count: loads, stores, atomics, fences, and what drops the first-level cache; of
mbarriers initializations, arrivals and waits; asynchronous stores, and copies without and with the copy engine."""
_EXACT = (
    ops.Load, ops.Store, ops.Atomic, ops.Fence, ops.MbarrierInit, ops.MbarrierArrive, ops.MbarrierTx, ops.MbarrierWait,
    ops.AsyncStore, ops.Branch, ops.Exit, *ops.COMPUTING,
)  # fmt: skip


def threads_of(code: str, source: str) -> dict[tuple[str, int], str]:
    """The machine code of each thread in ``code`` as letters of ``_KINDS``, by the identity of its test and its number;
    ``source`` is the CUDA that it was made of."""
    lines = {n: (m[1], int(m[2])) for n, line in enumerate(source.splitlines(), 1) for m in _ROLE.finditer(line)}
    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    at: tuple[str, int] | None = None
    for line in code.splitlines():
        place = _LINE.search(line)
        if place is not None:
            at = lines.get(int(place[1]))
        elif at is not None and (instruction := _INSTRUCTION.match(line)) is not None:
            found[at].append(_letter(instruction[1]))
    return {key: "".join(letters) for key, letters in found.items()}


def _letter(opcode: str) -> str:
    return next((letter for letter, names in _KINDS if re.fullmatch(names, opcode)), "")


def pattern(op: Op) -> str:
    """What an instruction becomes, as a regular expression over the letters."""
    match op:
        case ops.Load():
            return "L(M?C)?" if op.sem == "acquire" else "L"
        case ops.Store():
            return "M*C?S" if op.sem == "release" else "S"
        case ops.Atomic():
            before = "M*C?" if op.sem in ("release", "acq_rel") else ""
            after = "C?" if op.sem in ("acquire", "acq_rel") else ""
            return f"{before}(L?A)+{after}"  # where there is no such instruction: a load, and a loop of cas
        case ops.Fence(sem="acquire"):
            return "M*C?"
        case ops.Fence() | ops.ProxyFence(kind="alias"):
            return "M+C?"
        case ops.MbarrierArrive(sem="release", scope="cluster"):
            return "M*C?V"
        case ops.MbarrierWait(sem="acquire", scope="cluster"):
            return "WC?"
        case _:
            return _OTHERS.get(type(op), "")


_OTHERS: dict[type, str] = {
    ops.MbarrierInit: "I",
    ops.MbarrierArrive: "V",
    ops.MbarrierTx: "V",
    ops.MbarrierWait: "W",
    ops.CopyAsyncArrive: "V+",  # one more where its own arrival is to be counted in
    ops.AsyncStore: "T",
    ops.CopyAsync: "G",
    ops.BulkCopy: "K",
}
"""What instructions become that are always the same."""


def missing(test: Test, name: str, found: Mapping[tuple[str, int], str]) -> list[str]:
    """What is not as it should be in the machine code ``found`` of ``test``, which is called ``name`` there."""
    problems = []
    for number, thread in enumerate(test.threads):
        letters = found.get((name, number))
        wanted = [text for op in thread.body if (text := pattern(op))]
        if letters is None:
            if wanted:
                problems.append(f"{thread.name}: no machine code")
        elif not _agree(thread.body, wanted, letters):
            problems.append(f"{thread.name}: {letters or 'nothing'} where {' '.join(wanted) or 'nothing'} should be")
    return problems


def _agree(body: Iterable[Op], wanted: list[str], letters: str) -> bool:
    """Whether the machine code is that of the thread: where it goes straight on and all it does is known, exactly; with
    branches, it has as many of each kind at least; else what is known stands in this order."""
    kinds = [type(op) for op in body]
    if ops.Branch in kinds:
        least = Counter(letter for text in wanted for letter in re.sub(r"\(.*?\)\?|.[*?]|[+()]|\?", "", text))
        have = Counter(letters)
        return all(have[letter] >= count for letter, count in least.items())
    if all(issubclass(kind, _EXACT) for kind in kinds):
        return re.fullmatch("".join(wanted), letters) is not None
    return re.search(".*?".join(wanted), letters) is not None
