"""Rules about the C++ around the PTX, where the text alone is certain (PTX ISA 8.7.1, 8.8, 9.7.14.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxmm.analysis.lint.effects import FENCE_CALLS
from ptxmm.analysis.lint.finding import Finding, Rule
from ptxmm.cuda import Unit
from ptxmm.cuda.source import Token
from ptxmm.ptx.tables.form import words as split

RULES = (
    Rule("PTX407", "plain-polling", "warning", "a loop polls memory through a pointer that is not volatile",
         "PTX ISA 8.7.1, 8.8"),
    Rule("PTX706", "divergent-barrier", "error",
         "a barrier of the CTA, or an aligned instruction, that only one thread executes", "PTX ISA 9.7.14.1"),
    Rule("PTX408", "plain-flag-store", "warning", "a plain store of a flag right after a fence", "PTX ISA 8.7.1, 8.8"),
)  # fmt: skip
_FLAGS = ("flag", "ready", "done", "lock", "signal", "semaphore", "mutex", "status")
_ATOMICS = frozenset({"volatile", "atomic", "atomic_ref"})


def check_functions(unit: Unit) -> Iterator[Finding]:
    """PTX407, PTX408 and PTX706, in every function of the device with parameters that are pointers."""
    for function in unit.functions:
        head = unit.tokens[function.head[0] : function.head[1]]
        if not any(token.text in ("__device__", "__global__") for token in head):
            continue
        body = unit.tokens[function.first : function.last]
        yield from _divergent(body)
        pointers = _pointers(head)
        if not pointers:
            continue
        yield from _polling(body, pointers)
        yield from _stores(body, pointers)


def _pointers(head: list[Token]) -> frozenset[str]:
    """The parameters that are pointers to what is not volatile (``const`` neither: that is no flag)."""
    opening = next((i for i, token in enumerate(head) if token.text == "(" and i and head[i - 1].kind == "name"), None)
    if opening is None:
        return frozenset()
    found: set[str] = set()
    parameter: list[Token] = []
    depth = 0
    for token in head[opening:]:
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(token.text, 0)
        if (token.text == "," and depth == 1) or (token.text == ")" and depth == 0):
            texts = [t.text for t in parameter]
            plain = texts.count("*") == 1 and not _ATOMICS & set(texts) and "[" not in texts
            if plain and parameter[-1].kind == "name" and _arithmetic(texts):
                found.add(texts[-1])
            parameter = []
            if depth == 0:
                break
        elif not (token.text == "(" and depth == 1):
            parameter.append(token)
    return frozenset(found)


_WORDS = frozenset(
    split("int unsigned long short uint32_t int32_t uint64_t int64_t uint size_t bool const __restrict__ * signed")
)


def _arithmetic(texts: list[str]) -> bool:
    return all(text in _WORDS for text in texts[:-1])


def _polling(body: list[Token], pointers: frozenset[str]) -> Iterator[Finding]:
    """``while (*p == 0) ;`` and ``while (p[i] != x) {}``: the compiler may read once."""
    for index, token in enumerate(body):
        if token.text != "while" or index + 3 >= len(body) or body[index + 1].text != "(":
            continue
        close = _closing(body, index + 1)
        after = body[close + 1 : close + 3] if close else []
        empty = [t.text for t in after[:1]] == [";"] or [t.text for t in after] == ["{", "}"]
        if not close or not empty or (index and body[index - 1].text == "}"):
            continue
        inside = body[index + 2 : close]
        if any(t.text == "(" for t in inside) or not any(t.text in ("==", "!=", "<", ">", "!") for t in inside):
            continue
        read = _dereference(inside, pointers)
        if read is not None:
            message = f"`{read.text}` is not volatile: the compiler may read it once, and the weak reads race with the "
            message += "store that ends the loop"
            yield Finding("PTX407", read.start, read.end, message, "poll with ld.acquire.SCOPE, or cuda::atomic_ref")


def _divergent(body: list[Token]) -> Iterator[Finding]:
    """``if (threadIdx.x == 0) { ... __syncthreads(); }``: the others never come, or at another barrier. The same in
    inline PTX, of whatever all threads of a warp execute together."""
    for index, token in enumerate(body):
        if token.text != "if" or [t.text for t in body[index + 1 : index + 6]] != ["(", "threadIdx", ".", "x", "=="]:
            continue
        close = index + 7
        if [t.text for t in body[close : close + 2]] != [")", "{"] or body[index + 6].kind != "number":
            continue
        depth = 0
        for at in range(close + 1, len(body)):
            text = body[at].text
            depth += {"{": 1, "}": -1}.get(text, 0)
            if depth == 0 or text in ("return", "for", "while", "["):
                break
            if text in ("asm", "__asm__"):
                found = _aligned(body, at)
                if found is not None:
                    message = f"only thread {body[index + 6].text} comes to this instruction, which all threads of its "
                    message += "warp execute together"
                    yield Finding("PTX706", found.start, found.end, message, "take it out of the condition")
                break
            if text == "__syncthreads":
                message = f"only thread {body[index + 6].text} comes to this barrier, which waits for all of the CTA"
                yield Finding("PTX706", body[at].start, body[at].end, message, "take it out of the condition")
                break


def _aligned(body: list[Token], at: int) -> Token | None:
    """The string of the ``asm`` statement at ``at`` with an instruction that is ``.aligned``, which nothing in it jumps
    over."""
    for token in body[at : at + 40]:
        if token.text == ";":
            break
        if token.kind in ("string", "raw") and re.search(r"\b(bra|ret|exit)\b|@", token.text):
            break
        if token.kind in ("string", "raw") and re.search(r"\.aligned\b|\bbar\.(cta\.)?(sync|arrive|red)\b", token.text):
            return token
    return None


def _stores(body: list[Token], pointers: frozenset[str]) -> Iterator[Finding]:
    """``__threadfence(); *flag = 1;``."""
    for index, token in enumerate(body):
        if token.text not in FENCE_CALLS or [t.text for t in body[index + 1 : index + 4]] != ["(", ")", ";"]:
            continue
        statement: list[Token] = []
        for other in body[index + 4 : index + 40]:
            if other.text in (";", "{", "}"):
                break
            statement.append(other)
        texts = [t.text for t in statement]
        if "=" not in texts or not texts or "(" in texts[: texts.index("=")]:
            continue
        stored = _dereference(statement[: texts.index("=")], pointers)
        if stored is not None and statement[0].text in ("*", stored.text) and _flag(stored.text):
            message = f"a plain store to `{stored.text}` after `{token.text}()` is weak: a release pattern ends with a "
            message += "strong write"
            hint = "st.release.SCOPE, atomicExch, or cuda::atomic_ref"
            yield Finding("PTX408", stored.start, stored.end, message, hint)


def _flag(name: str) -> bool:
    return any(word in name.lower() for word in _FLAGS)


def _dereference(tokens: list[Token], pointers: frozenset[str]) -> Token | None:
    """The pointer that ``*p`` or ``p[...]`` among ``tokens`` goes through."""
    for number, token in enumerate(tokens):
        if token.kind != "name" or token.text not in pointers:
            continue
        before = tokens[number - 1].text if number else ""
        after = tokens[number + 1].text if number + 1 < len(tokens) else ""
        if before not in (".", "->", "&") and (after == "[" or before == "*"):
            return token
    return None


def _closing(tokens: list[Token], opening: int) -> int | None:
    depth = 0
    for index in range(opening, min(len(tokens), opening + 200)):
        if tokens[index].text == "(":
            depth += 1
        elif tokens[index].text == ")":
            depth -= 1
            if depth == 0:
                return index
    return None
