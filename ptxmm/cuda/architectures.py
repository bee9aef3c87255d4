"""What a preprocessor condition says about ``__CUDA_ARCH__``, where it is simple."""

from __future__ import annotations

import re

Range = tuple[int, int]
"""The least architecture (as in ``__CUDA_ARCH__``: 900) and the first that is too high."""

ANY: Range = (0, 1 << 30)
_COMPARISON = re.compile(r"__CUDA_ARCH__\s*(>=|<=|==|>|<)\s*([0-9]{3,4})")
_DEFINED = re.compile(r"defined\s*(?:\(\s*__CUDA_ARCH__\s*\)|\s__CUDA_ARCH__)|\(?__CUDA_ARCH__\)?")


def both(first: Range, second: Range) -> Range:
    """What is in both ranges."""
    return max(first[0], second[0]), min(first[1], second[1])


def condition(text: str) -> Range:
    """The architectures for which the condition can hold; all of them if it is not a conjunction of comparisons."""
    if len(text) > 1000 or "||" in text or "!" in text:
        return ANY
    found = ANY
    for part in text.split("&&"):
        hit = _COMPARISON.fullmatch(part.replace("(", " ").replace(")", " ").strip())
        if hit is not None:
            found = both(found, _range(hit[1], int(hit[2])))
    return found


def negation(text: str) -> Range:
    """The architectures for which the condition can fail. (Without ``__CUDA_ARCH__`` there is no PTX at all.)"""
    parts = [part.strip() for part in text.split("&&")]
    rest = [part for part in parts if not _DEFINED.fullmatch(part)]
    if len(text) > 1000 or len(rest) != 1 or "||" in text or "!" in text:
        return ANY
    hit = _COMPARISON.fullmatch(rest[0].replace("(", " ").replace(")", " ").strip())
    if hit is None:
        return ANY
    opposite = {">=": "<", "<": ">=", ">": "<=", "<=": ">"}.get(hit[1])
    return ANY if opposite is None else _range(opposite, int(hit[2]))


def _range(operator: str, number: int) -> Range:
    match operator:
        case ">=":
            return number, ANY[1]
        case ">":
            return number + 1, ANY[1]
        case "<":
            return 0, number
        case "<=":
            return 0, number + 1
        case _:
            return number, number + 1
