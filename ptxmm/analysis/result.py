"""What an analysis of one test under one model answers (the vocabulary of the JSON documents)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from ptxmm.analysis.words import Conclusion

Observation = Literal["never", "sometimes", "always"]
Status = Literal["complete", "bounded", "timeout", "undefined", "inconclusive"]


class Unknown(Struct, frozen=True):
    """A value that memory without an initial value holds: ``s``, ``s+1`` for bytes further on in s, or hexadecimal
    digits with ``??`` for each byte that is unknown."""

    unknown: str

    def __str__(self) -> str:
        return self.unknown if self.unknown.startswith("0x") else f"?{self.unknown}"


Value = int | str | Unknown
"""An integer (signed where its type is), an address as ``&x+4``, a floating-point number as ``1.5`` or by its bits, or
an unknown value. A condition takes them as they are printed."""


class Note(Struct, frozen=True):
    """A remark on a result; ``kind`` is a short stable word (``bound``, ``timeout``, ``undefined``, ``deadlock``,
    ``vacuous``, ``reading``)."""

    kind: str
    text: str


class Outcome(Struct, frozen=True):
    """One confirmed final state. ``satisfies``: the condition's proposition holds in it; None without a condition."""

    registers: Mapping[str, Value]
    memory: Mapping[str, Value]
    satisfies: bool | None


class Instruction(Struct, frozen=True):
    """An instruction of a test: ``index`` in the body of ``thread``; ``line`` and ``column`` are 1-based."""

    thread: str
    index: int
    line: int
    column: int
    text: str

    @property
    def place(self) -> str:
        """``P1:12``."""
        return f"{self.thread}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


class Access(Struct, frozen=True):
    """What one event of an instruction reads or writes. ``value``: an integer, an address as ``&x+4``, or a
    floating-point number.
    ``sources``: of a read, the instructions whose writes it takes bytes from."""

    kind: str
    location: str
    value: int | str
    sources: tuple[str, ...] = ()


class Step(Struct, frozen=True):
    """One execution of an instruction; ``round`` counts how often its thread went back to it before."""

    instruction: Instruction
    round: int
    accesses: tuple[Access, ...]


class ThreadSteps(Struct, frozen=True):
    """What a thread executes, in program order."""

    thread: str
    steps: tuple[Step, ...]


class CoherentWrites(Struct, frozen=True):
    """Two writes to a location that are neighbours in coherence order."""

    location: str
    first: str
    second: str


class OrderedFences(Struct, frozen=True):
    """Two fences that are neighbours in Fence-SC order."""

    first: str
    second: str


class Execution(Struct, frozen=True):
    """The threads of an execution, and the orders among their writes and fences."""

    threads: tuple[ThreadSteps, ...]
    coherence: tuple[CoherentWrites, ...] = ()
    fence_sc: tuple[OrderedFences, ...] = ()


class Result(Struct, frozen=True, tag_field="analysis", tag="check"):
    """The verdict on one test under one model.

    ``quantifier`` and ``condition`` are the kind and the text of the test's condition. ``holds`` (the quantified
    statement) and ``observation`` (does the proposition hold in no, some or all final states) are None where a longer
    search could change them, where the program is undefined and, for ``observation``, where there is no final state.
    ``outcomes`` lists final states; all of them iff ``listed``. ``expected`` is the expectation as written, and
    ``conclusion`` says whether the result agrees with it (``unchecked``: there is none). Of a claim about a kernel,
    such as freedom from data races, ``quantifier`` and ``condition`` are its name. ``status`` is ``inconclusive`` where
    nothing cut the search, but ``conclusion`` is. ``execution`` refutes what is
    claimed of a kernel.
    """

    file: str
    test: str
    model: str
    engine: str
    quantifier: str | None
    condition: str | None
    holds: bool | None
    observation: Observation | None
    status: Status
    flags: tuple[str, ...]
    expected: str | None
    conclusion: Conclusion
    outcomes: tuple[Outcome, ...]
    listed: bool
    notes: tuple[Note, ...]
    seconds: float
    execution: Execution | None = None

    @property
    def finding(self) -> bool | None:
        """Whether an expectation is contradicted; None where that is not known."""
        return self.conclusion.finding


TIMEOUT = Note("timeout", "the time limit ended the search; --timeout takes a higher one")


class Error(Struct, frozen=True):
    """What is wrong, of what ``kind`` (``PtxmmError``), and where: ``line`` and ``column`` are 1-based."""

    kind: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str | None = None


class Failure(Struct, frozen=True, tag_field="analysis", tag="error"):
    """What gave no result: a file, or one test under one model. ``errors``: everything that is wrong, ``error`` first,
    where that is more; ``text`` is the whole message with places and carets."""

    file: str
    test: str | None
    model: str | None
    error: Error
    errors: tuple[Error, ...]
    text: str


Report = Result | Failure


class Expired(Struct, frozen=True, tag_field="analysis", tag="expired"):
    """An analysis that was ended from outside at its deadline, so that nothing of what it found is known."""

    file: str
    test: str
    model: str
    status: Status
    notes: tuple[Note, ...]
    seconds: float

    @property
    def finding(self) -> None:
        """A longer search could find something."""
        return None


def expired(file: str, test: str, model: str, seconds: float) -> Expired:
    """What stands for the result of an analysis that did not come within ``seconds``."""
    text = f"the time limit of {seconds:g} s ended the analysis; --timeout takes a higher one"
    return Expired(file, test, model, "timeout", (Note("timeout", text),), seconds)


def told(status: Status, known: bool) -> Status:
    """The status of a result: ``inconclusive`` where nothing cut the search and the program has a meaning, and still
    what was asked for is not ``known``."""
    return "inconclusive" if status == "complete" and not known else status
