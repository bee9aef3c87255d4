"""Many tests on a GPU: what is built, run, run again where it is strange, and compared."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct, field
from msgspec.structs import replace

from ptxmm.analysis.compatibility import check_compatible
from ptxmm.cat import Model
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.hardware.build import Built, build
from ptxmm.hardware.compare import Allowed, RunResult, allowed, compared
from ptxmm.hardware.emit import Emitted, emit, source
from ptxmm.hardware.launch import Campaign, launch
from ptxmm.hardware.machine_code import missing, threads_of
from ptxmm.hardware.measured import Gpu, Measured, together
from ptxmm.hardware.seats import Seating
from ptxmm.program.test import Test
from ptxmm.ptx import ops
from ptxmm.ptx.ops import Op

TOGETHER = 64
"""So many tests are built as one program."""


class Prepared(Struct, frozen=True):
    """A test that can run: as CUDA, with its relaxed sibling if it has one, and what ``model`` allows."""

    test: Test
    model: str
    made: Emitted
    sibling: Emitted | None
    known: Allowed
    seconds: float = 0.0

    @property
    def finding(self) -> None:
        """It has not run yet."""
        return None


class Evidence(Struct):
    """What was seen: by the identity of a test the first run, and the second with another seed; what is wrong with the
    machine code (nothing for a test that was not looked at); the GPU."""

    gpu: Gpu | None = None
    first: dict[str, Measured] = field(default_factory=dict)
    again: dict[str, Measured] = field(default_factory=dict)
    code: dict[str, list[str]] = field(default_factory=dict)

    def add(self, gpu: Gpu | None, rows: Iterable[Measured]) -> None:
        """Take the lines of a program in. Those of one seed belong together."""
        self.gpu = self.gpu or gpu
        for row in rows:
            known = self.first.get(row.test)
            if known is None:
                self.first[row.test] = row
            elif known.seed == row.seed:
                self.first[row.test] = together(known, row)
            else:
                other = self.again.get(row.test)
                self.again[row.test] = row if other is None else together(other, row)

    def inspect(self, program: Built, text: str, tests: Mapping[str, Test]) -> None:
        """Look at the machine code that ``program``, made of ``text``, has for ``tests``, if it was disassembled."""
        if program.code is None:
            return
        found = threads_of(program.code, text)
        for name, test in tests.items():
            self.code[name] = [*dict.fromkeys([*self.code.get(name, ()), *missing(test, name, found)])]


def prepare(test: Test, model: Model, name: str, limits: Limits) -> Prepared:
    """``test`` made ready to run, with what ``model``, which the user calls ``name``, allows.

    Raises ``PtxmmError``: kind ``unsupported`` for what is not run on a GPU, or what the model does not cover.
    """
    start = time.perf_counter()
    check_compatible(test, model)
    made = emit(test)
    other = relaxed(test)
    sibling = None
    if other is not None:
        sibling = emit(other)
    return Prepared(test, name, made, sibling, allowed(test, model, limits), time.perf_counter() - start)


def run(tests: Sequence[Prepared], campaign: Campaign, arch: str, jobs: int, seconds: float) -> Evidence:
    """Build ``tests`` for GPUs of ``arch``, in ``jobs`` processes of nvcc of at most ``seconds`` each, look at the
    machine code, and run them. What the model forbids and was seen is run again, with another seed and in a program of
    its own.

    Raises ``PtxmmError`` as ``build`` and ``launch`` do.
    """
    evidence = Evidence()
    wanted: dict[str, tuple[str, Emitted, Test | None]] = {}
    for one in tests:
        wanted[one.made.id] = (one.test.name, one.made, one.test)
    for one in tests:
        if one.sibling is not None:
            wanted.setdefault(one.sibling.id, (f"relaxed sibling of {one.test.name}", one.sibling, None))
    names = list(wanted)
    groups = [names[at : at + TOGETHER] for at in range(0, len(names), TOGETHER)]
    sources = [source((wanted[name][0], wanted[name][1]) for name in group) for group in groups]
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        built = list(pool.map(lambda text: build(text, arch, seconds), sources))
    for group, text, program in zip(groups, sources, built, strict=True):
        evidence.inspect(program, text, {name: test for name in group if (test := wanted[name][2]) is not None})
        evidence.add(*launch(program.program, group, campaign))
    for one in tests:
        name = one.made.id
        if name not in evidence.again and _judged(one, evidence).verdict == "suspected":
            text = source([(one.test.name, one.made)])
            program = build(text, arch, seconds)
            evidence.inspect(program, text, {name: one.test})
            evidence.add(*launch(program.program, [name], replace(campaign, seed=campaign.seed + 1)))
    return evidence


def judge(one: Prepared, evidence: Evidence) -> RunResult:
    """What was seen of a test against what the model allows.

    Raises ``PtxmmError`` (kind ``io``) where nothing was seen of it, or the program says why not.
    """
    found = evidence.first.get(one.made.id)
    if found is None:
        message = "there is no result of this test"
        hint = f"it is called {one.made.id} in the program that `ptxmm emit` writes"
        raise PtxmmError(message, kind="io", file=one.test.file, hint=hint)
    if found.error is not None:
        raise PtxmmError(f"the GPU gives no result: {found.error}", kind="io", file=one.test.file)
    return _judged(one, evidence)


def _judged(one: Prepared, evidence: Evidence) -> RunResult:
    name = one.made.id
    return compared(
        one.test,
        one.model,
        one.known,
        evidence.first[name],
        gpu=evidence.gpu.gpu if evidence.gpu is not None else "",
        placement=placement_text(one.made.seats),
        again=evidence.again.get(name),
        missing=evidence.code.get(name),
        sibling=None if one.sibling is None else evidence.first.get(one.sibling.id),
        seconds=one.seconds,
    )


def placement_text(seats: Seating) -> str:
    """``1 CTA``, ``3 CTAs``, ``2 CTAs, 1 cluster``, ``2 GPUs, 2 CTAs``, ``1 CTA, 1 warp``."""
    ctas = len({seat.cta for seat in seats.seats})
    warps = len({(*seat.cta, seat.seat) for seat in seats.seats})
    clusters = len({seat.cta[:2] for seat in seats.seats})
    parts = [f"{seats.devices} {'grids' if seats.grids else 'GPUs'}"] if seats.devices > 1 else []
    parts.append("1 CTA" if ctas == 1 else f"{ctas} CTAs")
    if clusters < ctas:
        parts.append("1 cluster" if clusters == 1 else f"{clusters} clusters")
    if seats.lanes > 1:
        parts.append("1 warp" if warps == 1 else f"{warps} warps")
    return ", ".join(parts)


def relaxed(test: Test) -> Test | None:
    """The relaxed sibling of ``test``, to compare what is never seen with: all orders relaxed and no fences. None where
    it has nothing of that, or branches or barriers."""
    kept = (ops.Branch, ops.Exit, *ops.FAMILIES["mbarrier"], ops.Barrier, ops.ClusterBarrier)
    if any(isinstance(op, kept) for _, op in test.instructions):
        return None
    threads = tuple(
        replace(thread, body=tuple(weaker for op in thread.body if (weaker := _weaker(op)) is not None))
        for thread in test.threads
    )
    return None if threads == test.threads else replace(test, threads=threads)


def _weaker(op: Op) -> Op | None:
    match op:
        case ops.Load(sem="acquire") | ops.Store(sem="release"):
            return replace(op, sem="relaxed")
        case ops.Atomic() if op.sem != "relaxed":
            return replace(op, sem="relaxed")
        case ops.Fence() | ops.ProxyFence() | ops.GenericToAsyncFence() | ops.MbarrierInitFence():
            return None
        case _:
            return op
