"""The words of messages and results."""

from collections.abc import Sequence


def number_of(number: int, noun: str) -> str:
    """``1 thread``, else ``3 threads``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def alternatives(words: Sequence[str]) -> str:
    """``a, b or c``; nothing of none."""
    return " or ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)
