"""A model without some of its checks, or without some disjuncts of its definitions, as a change of its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from ptxmm.cat import names
from ptxmm.cat.parser import without_comments
from ptxmm.cat.reader import tokens
from ptxmm.errors import PtxmmError
from ptxmm.tokens import Token

SEPARATOR = "+"
"""Between several items in one text, as in ``ptx-8.5[without=Causality+sync:2]``."""
_STARTS = frozenset(("let", "LETREC", "FLAG", "CHECK", "include", "SHOW", "override"))
_OPENING, _CLOSING = frozenset("(["), frozenset(")]")


class _Disjunct(Struct, frozen=True):
    """A disjunct of a definition by its first and last character; ``segment``: of an ``if`` each branch is one."""

    start: int
    end: int
    segment: int
    text: str


class Parts(Struct, frozen=True):
    """What can be left out of one text: checks, by the place of their statement, and definitions by their disjuncts
    (of a name that is defined several times, those of its last definition)."""

    checks: Mapping[str, tuple[int, int]]
    definitions: Mapping[str, Sequence[_Disjunct]]


@lru_cache(maxsize=64)
def parts(text: str) -> Parts:
    """The checks and definitions of a text that was parsed without an error."""
    clean = without_comments(text)[1]
    found = tokens(clean) or []
    checks: dict[str, tuple[int, int]] = {}
    definitions: dict[str, list[_Disjunct]] = {}
    for first, last in statements_of(found):
        kinds = [token.type for token in found[first:last]]
        if kinds[0] in ("FLAG", "CHECK") and kinds[-2] == "as":
            checks[found[last - 1]] = found[first].start_pos, found[last - 1].end_pos
        elif kinds[0] in ("let", "LETREC"):
            for name, begin, stop in definitions_of(found, first + 1, last):
                definitions[name] = list(_disjuncts(clean, found, begin, stop))
    return Parts(checks, definitions)


def statements_of(found: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """The first token of each statement, and the one after its last."""
    starts = [i for i, t in enumerate(found) if t.type in _STARTS and (i == 0 or found[i - 1].type != "FLAG")]
    starts = [i for i in starts if i == 0 or found[i - 1].type != "override"]
    yield from pairwise([*starts, len(found)])


def definitions_of(found: Sequence[Token], first: int, last: int) -> Iterator[tuple[str, int, int]]:
    """The names of a ``let``, each with the first token of its body and the one after the last."""
    joints = [i for i in range(first, last) if found[i].type == "and"]
    for begin, stop in zip([first, *(i + 1 for i in joints)], [*joints, last], strict=True):
        equals = next(i for i in range(begin, stop) if found[i].type == "=")
        yield str(found[begin]), equals + 1, stop


def _disjuncts(clean: str, found: Sequence[Token], first: int, last: int) -> Iterator[_Disjunct]:
    depth = segment = 0
    begin = first
    for i in range(first, last + 1):
        kind = found[i].type if i < last else "|"
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth or kind not in ("|", "then", "else"):
            continue
        if kind != "then":  # what stands before it is the condition of an ``if``
            start, end = found[begin].start_pos, found[i - 1].end_pos
            yield _Disjunct(start, end, segment, " ".join(clean[start:end].split()))
        segment += kind != "|"
        begin = i + 1


def found_in(item: str, text: Parts) -> list[str]:
    """What ``item`` names in the text: ``NAME`` of a check, ``NAME:NUMBER`` of the disjuncts of this number or text."""
    name, colon, which = (part.strip() for part in item.partition(":"))
    if not colon:
        return [name] if name in text.checks else []
    disjuncts = text.definitions.get(name, ())
    wanted = " ".join(which.split())
    found = [
        f"{name}:{number}"
        for number, disjunct in enumerate(disjuncts, 1)
        if wanted in (str(number), disjunct.text, f"({disjunct.text})")
    ]
    return found if len(found) < len(disjuncts) else []


def disjunctions(texts: Iterable[Parts]) -> dict[str, dict[str, str]]:
    """The definitions that are disjunctions, each with its disjuncts: their text by what ``found_in`` calls them."""
    found: dict[str, dict[str, str]] = {}
    for text in texts:
        for name, disjuncts in text.definitions.items():
            beside = Counter(disjunct.segment for disjunct in disjuncts)
            several = {f"{name}:{n}": d.text for n, d in enumerate(disjuncts, 1) if beside[d.segment] > 1}
            if several:
                found[name] = several
    return found


def changed(text: str, items: Iterable[str], is_set: Mapping[str, bool]) -> str:
    """``text`` without ``items``, each as ``found_in`` gives it; ``is_set``: the definitions that are sets."""
    known = parts(text)
    edits: list[tuple[int, int, str]] = []
    dropped: dict[str, set[int]] = {}
    for item in items:
        name, colon, number = item.partition(":")
        if colon:
            dropped.setdefault(name, set()).add(int(number) - 1)
        else:
            start, end = known.checks[name]
            edits.append((start, end, f"(* left out: {text[start:end]} *)"))
    for name, numbers in dropped.items():
        disjuncts = list(enumerate(known.definitions[name]))
        for segment in dict.fromkeys(d.segment for _, d in disjuncts):
            inside = [(n, d) for n, d in disjuncts if d.segment == segment]
            if numbers & {n for n, _ in inside}:
                kept = [text[d.start : d.end] for n, d in inside if n not in numbers]
                empty = "emptyset" if is_set.get(name) else "0"
                edits.append((inside[0][1].start, inside[-1][1].end, " | ".join(kept) or empty))
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def missing(item: str, model: str, texts: Iterable[Parts]) -> PtxmmError:
    """The error that ``item`` is in none of the ``texts`` of ``model``."""
    name, colon, which = (part.strip() for part in item.partition(":"))
    checks: list[str] = []
    definitions: dict[str, Sequence[_Disjunct]] = {}
    for text in texts:
        checks += text.checks
        definitions |= text.definitions
    if name in definitions and (colon or name not in checks):
        disjuncts = definitions[name]
        if len(disjuncts) < 2:
            hint = "leave out a check, or a disjunct of a definition that has several"
            return PtxmmError(f"the definition of `{name}` in {model} is no disjunction", kind="usage", hint=hint)
        listed = ", ".join(f"{name}:{n} is `{d.text}`" for n, d in enumerate(disjuncts, 1))
        what = f"has no disjunct `{which}`" if colon else "is a definition: leave out one of its disjuncts"
        return PtxmmError(f"`{name}` of {model} {what}", kind="usage", hint=listed)
    if name in checks:
        message = f"`{name}` of {model} is a check: it has no disjuncts"
        return PtxmmError(message, kind="usage", hint=f"--without {name}")
    close = names.close(name, [*definitions, *checks], 1)
    hint = f"did you mean `{close[0]}`? " if close else ""
    hint += f"checks: {', '.join(checks)}"
    return PtxmmError(f"{model} has no check or definition `{name}`", kind="usage", hint=hint)
