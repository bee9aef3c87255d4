"""What is kept of each test of a sweep."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ptxmm.analysis.result import Error, Observation, Status
from ptxmm.analysis.words import Conclusion

Said = Literal["forbidden", "allowed", "undefined", "undecided"]


class Swept(Struct, frozen=True, omit_defaults=True, tag_field="analysis", tag="sweep"):
    """The verdict on a test under a model, as ``Result`` has it, or the ``error`` in its place.

    ``key``: a hash of all that it follows from: the texts of test and model, the options and the program. ``file``:
    empty where the test was generated. ``states``: how many final states are listed, with a hash of them in
    ``outcomes``. ``kept``: it was known from an earlier sweep.
    """

    key: str
    file: str
    test: str
    model: str
    engine: str
    quantifier: str | None = None
    observation: Observation | None = None
    holds: bool | None = None
    status: Status | None = None
    flags: tuple[str, ...] = ()
    expected: str | None = None
    conclusion: Conclusion = Conclusion.unchecked
    states: int = 0
    outcomes: str = ""
    seconds: float = 0.0
    error: Error | None = None
    kept: bool = False

    @property
    def said(self) -> Said:
        """What the model says of the proposition of the condition."""
        if self.status == "undefined":
            return "undefined"
        if self.observation is None:
            return "undecided"
        return "forbidden" if self.observation == "never" else "allowed"

    @property
    def finding(self) -> bool | None:
        """Whether an expectation is contradicted; None where that is not known."""
        return self.conclusion.finding

    @property
    def lasting(self) -> bool:
        """Whether another sweep would find the same: neither time nor memory has ended it."""
        return self.status != "timeout" and (
            self.error is None or self.error.kind not in ("timeout", "memory", "killed", "internal")
        )
