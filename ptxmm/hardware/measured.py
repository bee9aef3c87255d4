"""What the program of the tests says: lines of JSON, the first about the GPU, then one for each test."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from ptxmm.errors import PtxmmError


class Gpu(Struct, frozen=True):
    """The GPU that ran the tests. ``gpus``: how many play, at most as many as a test needs; ``driver`` and ``runtime``:
    the versions of CUDA, times 1000."""

    gpu: str
    capability: str
    multiprocessors: int
    gpus: int
    driver: int
    runtime: int


class Measured(Struct, frozen=True):
    """How often a test ended how. ``test``: its identity; ``histogram``: counts with the values that were looked at.

    ``incomplete``: instances that gave a loop up; ``missing``: some role did not run in them; ``overflow``: more
    different ends than are told apart. ``teams``: how often threads met, ``misplaced`` of them not in the CTAs,
    clusters and GPUs that the test says, ``same_sm`` with several CTAs on one multiprocessor. ``apart``: launches in
    which several GPUs did not start in time for each other. ``roles``: the instances that each thread of the test ran
    in. ``error``: why there is nothing else.
    """

    test: str
    seed: int = 0
    instances: int = 0
    launches: int = 0
    seconds: float = 0.0
    incomplete: int = 0
    missing: int = 0
    overflow: int = 0
    teams: int = 0
    misplaced: int = 0
    same_sm: int = 0
    apart: int = 0
    roles: tuple[int, ...] = ()
    histogram: tuple[tuple[int, tuple[int, ...]], ...] = ()
    error: str | None = None

    @property
    def invalid(self) -> str | None:
        """Why nothing can be concluded; None where something can."""
        if self.error is not None:
            return self.error
        if self.instances == 0 or not self.roles or min(self.roles) == 0:
            return "some thread never ran"
        if self.missing:
            return f"some thread did not run in {self.missing} instances"
        if self.misplaced:
            return f"{self.misplaced} of {self.teams} teams ran elsewhere than the test says"
        if self.apart:
            return f"the GPUs did not run at the same time in {self.apart} of {self.launches} launches"
        if self.overflow:
            return f"{self.overflow} instances ended in more ways than are counted"
        if sum(count for count, _ in self.histogram) + self.incomplete != self.instances:
            return "the counts do not add up"
        return None


def together(one: Measured, two: Measured) -> Measured:
    """Two measurements of one test as one; what is wrong with either is wrong with both."""
    counts: dict[tuple[int, ...], int] = {}
    for count, values in (*one.histogram, *two.histogram):
        counts[values] = counts.get(values, 0) + count
    added = {
        name: getattr(one, name) + getattr(two, name)
        for name in (
            "instances",
            "launches",
            "seconds",
            "incomplete",
            "missing",
            "overflow",
            "teams",
            "misplaced",
            "same_sm",
            "apart",
        )
    }
    return Measured(
        one.test,
        one.seed,
        roles=tuple(a + b for a, b in zip(one.roles, two.roles, strict=True))
        if one.roles and two.roles
        else one.roles or two.roles,
        histogram=tuple((count, values) for values, count in counts.items()),
        error=one.error or two.error,
        **added,
    )


def read(lines: Iterable[str], name: str) -> tuple[Gpu | None, list[Measured]]:
    """What a program said, or a file of it, which is called ``name``. Lines that are no JSON are left out.

    Raises ``PtxmmError`` (kind ``format``) for a line of JSON that the programs do not write.
    """
    gpu: Gpu | None = None
    found: list[Measured] = []
    for number, line in enumerate(lines, 1):
        if not line.startswith("{"):
            continue
        try:
            if line.startswith('{"gpu"'):
                gpu = msgspec.json.decode(line, type=Gpu)
            else:
                found.append(msgspec.json.decode(line, type=Measured))
        except msgspec.DecodeError as error:
            raise PtxmmError(f"no result of a test: {error}", kind="format", file=name, line=number) from None
    return gpu, found
