"""What an analysis of one test under one model answers (the vocabulary of the JSON documents)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct

from ptxmm.analysis.words import Conclusion

Observation = Literal["never", "sometimes", "always"]
Status = Literal["complete", "bounded", "timeout", "undefined", "inconclusive"]


class Analysed(Protocol):
    """What the results of all analyses have (frozen structs)."""

    @property
    def test(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def status(self) -> Status: ...
    @property
    def notes(self) -> tuple[Note, ...]: ...
    @property
    def seconds(self) -> float: ...


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


class EventView(Struct, frozen=True):
    """An event of an execution.

    ``instruction``: what performs it; None for an initial write, and for the start or end of a thread, which ``text``
    tells. ``action``: what it does, such as ``reads x = 1``. ``round``: how often the thread has taken the branches
    back around it before. ``crowded``: its thread has other instructions in the same line.
    """

    instruction: Instruction | None
    text: str
    action: str = ""
    round: int = 0
    crowded: bool = False

    @property
    def place(self) -> str:
        """``P1:12``; ``P1:12 (round 2)`` in a loop."""
        if self.instruction is None:
            return self.text
        return f"{self.instruction.place} (round {self.round + 1})" if self.round else self.instruction.place

    @property
    def label(self) -> str:
        """The place, which is enough to know the instruction by: with its column if there are others in the line."""
        if self.instruction is None or not self.crowded:
            return self.place
        return self.place.replace(self.instruction.place, f"{self.instruction.place}:{self.instruction.column}")

    @property
    def name(self) -> str:
        """The label and the text of the instruction."""
        return self.text if self.instruction is None else f"{self.label}: {self.instruction.text}"

    def __str__(self) -> str:
        return f"{self.name}  ({self.action})" if self.action else self.name

    @property
    def same(self) -> tuple[Instruction | None, str, int]:
        """What the events of one execution of one instruction have in common."""
        return self.instruction, self.text, self.round


class Access(Struct, frozen=True):
    """What one event of an instruction reads or writes. ``value``: an integer, an address as ``&x+4``, or a
    floating-point number.
    ``sources``: of a read, the instructions whose writes it takes bytes from."""

    kind: str
    location: str
    value: int | str
    sources: tuple[str, ...] = ()


class Step(Struct, frozen=True):
    """One execution of an instruction; ``round`` counts how often its thread went back to it before, ``crowded``: its
    thread has other instructions in the same line."""

    instruction: Instruction
    round: int
    accesses: tuple[Access, ...]
    crowded: bool = False

    @property
    def name(self) -> str:
        """As ``EventView.name``."""
        return EventView(self.instruction, "", round=self.round, crowded=self.crowded).name


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


class PlacedThread(Struct, frozen=True):
    """A thread, and what it is in, the largest first: ``("GPU 0", "cluster 1", "CTA 2")``. A level that tells no two
    threads apart may be left out."""

    thread: str
    path: tuple[str, ...]


class GraphEvent(Struct, frozen=True):
    """An event of a graph: of ``thread`` (its index; None: an initial write), of a ``kind`` that models have a set for
    (R, W, F, ...). ``asynchronous``: it is no part of program order. ``location`` and ``value``: of a read or a write,
    as in ``Access``."""

    view: EventView
    thread: int | None
    kind: str
    asynchronous: bool
    location: str | None = None
    value: int | str | None = None


class Related(Struct, frozen=True):
    """A relation of a graph: its name in the model, or in the vocabulary of models, what it is in words, its section of
    PTX ISA 8.5, and pairs of events by their indices."""

    relation: str
    text: str
    section: str | None
    pairs: tuple[tuple[int, int], ...]


class Conflict(Struct, frozen=True):
    """Conflicting operations of two threads (8.7.1), by their indices, and the conditions of morally strong operations
    (8.7) that they do not meet: none, if they are morally strong."""

    first: int
    second: int
    fails: tuple[str, ...]


class ExecutionGraph(Struct, frozen=True):
    """All events of an execution, and relations between them. Of an order only neighbours are related; of observation,
    what is reads-from too; of base causality order (``bc``), what another relation has as well; of causality order
    (``cause``), what is in conflict. ``conflicts``: the first of them."""

    threads: tuple[PlacedThread, ...]
    events: tuple[GraphEvent, ...]
    relations: tuple[Related, ...]
    conflicts: tuple[Conflict, ...] = ()


class Execution(Struct, frozen=True, omit_defaults=True):
    """The threads of an execution, and the orders among their writes and fences. ``folded``: of a kernel, so many steps
    are left out that only access ``.local`` memory or read what nothing writes. ``graph``: all of it as a graph, where
    that is asked for."""

    threads: tuple[ThreadSteps, ...]
    coherence: tuple[CoherentWrites, ...]
    fence_sc: tuple[OrderedFences, ...]
    folded: int = 0
    graph: ExecutionGraph | None = None


class Outcome(Struct, frozen=True, omit_defaults=True):
    """One confirmed final state. ``satisfies``: the condition's proposition holds in it; None without a condition.
    ``execution``: one that ends so, where that is asked for."""

    registers: Mapping[str, Value]
    memory: Mapping[str, Value]
    satisfies: bool | None
    execution: Execution | None = None

    def __str__(self) -> str:
        """``P1:r0=1 x=2``."""
        return " ".join(f"{name}={value}" for name, value in (*self.registers.items(), *self.memory.items()))


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


class FinalState(Struct, frozen=True, tag_field="analysis", tag="state"):
    """One confirmed final state of a list that is told one by one; see ``Outcome``."""

    file: str
    test: str
    model: str
    registers: Mapping[str, Value]
    memory: Mapping[str, Value]
    satisfies: bool | None

    @property
    def finding(self) -> bool:
        """There is nothing to warn of."""
        return False


class Listed(Struct, frozen=True, tag_field="analysis", tag="states"):
    """The end of a list of final states: how many there are, how many satisfy the proposition of the condition (None:
    there is none), and whether these are all. ``cut``: not because no more were asked for."""

    file: str
    test: str
    model: str
    states: int
    satisfying: int | None
    listed: bool
    cut: bool
    seconds: float

    @property
    def finding(self) -> bool | None:
        """There is nothing to warn of; None where others may exist that were asked for."""
        return None if self.cut else False


ALL_THREADS = "`ptxmm check --whole` asks one execution of all threads of a kernel"
"""What may answer where the executions of a kernel are too many."""
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
