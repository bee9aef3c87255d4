"""The words of a verdict and the exit codes, each with its meaning: text, JSON, exit code and documents take them from
here."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Exit(IntEnum):
    """An exit code and what it says. Of several, the first in this order applies."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Exit:
        made = int.__new__(cls, code)
        made._value_, made.meaning = code, meaning
        return made

    BUG = 4, "a bug of ptxmm: the engines disagree, a witness was not confirmed, or an internal error"
    BAD_INPUT = 2, "bad input or usage"
    FOUND = (
        1,
        "an expectation is contradicted; of an analysis: it found what it looks for (a race, a property that fails, "
        "a difference)",
    )
    INCONCLUSIVE = (
        3,
        "inconclusive: the search was cut, time or memory was too short, or the program is undefined (and, for `check` "
        "and `outcomes`, `Expect=` does not say so)",
    )
    OK = 0, "otherwise"
    INTERRUPTED = 130, "ptxmm was interrupted"
    TERMINATED = 143, "ptxmm was told to end (`SIGTERM`)"
    BROKEN_PIPE = 141, "the reader of its output went away"


class Conclusion(StrEnum):
    """Whether a verdict is what was expected. ``mark``: what says so in the text; ``finding``: as of an analysis."""

    mark: str
    finding: bool | None
    meaning: str

    def __new__(cls, word: str, mark: str, finding: bool | None, meaning: str) -> Conclusion:
        made = str.__new__(cls, word)
        made._value_, made.mark, made.finding, made.meaning = word, mark, finding, meaning
        return made

    expected = "expected", "ok", False, "the verdict is what was expected"
    contradicted = "contradicted", "FAIL", True, "it is not"
    inconclusive = "inconclusive", "?", None, "not known, nothing is claimed"
    unchecked = "unchecked", "-", False, "nothing was expected"


class Property(StrEnum):
    """What is asked for: the condition of the test never holds (``forall``: always); no data race; the final states
    are those of ``sc``."""

    never = "never"
    races = "races"
    robust = "robust"
