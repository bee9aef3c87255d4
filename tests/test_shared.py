"""What both engines share (``ptxmm.program.shared``), against plain statements of the same.

Engines that share a mistake agree. So the reference imports nothing of it but what is named here, with the reason.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from ptxmm.errors import PtxmmError
from ptxmm.formats import read
from ptxmm.program.shared.chunks import Chunks
from ptxmm.program.shared.control import control_flow
from ptxmm.program.shared.idempotent import idempotent_atomics
from ptxmm.program.shared.mbarriers import counted, mbarriers
from ptxmm.program.shared.undetermined import writers
from ptxmm.program.test import Test
from ptxmm.ptx import ops
from ptxmm.ptx.isa import definitions
from ptxmm.ptx.ops import Address, Imm, Reg, WmmaLoad, WmmaStore
from tests import (
    random_dependencies,
    random_families,
    random_places,
    random_programs,
    random_spins,
    reference,
    reference_places,
)
from tests.reference_dependencies import TooSlow
from tests.reference_events import Run
from tests.reference_expressions import const
from tests.reference_flow import Flow
from tests.reference_places import Division, computes_with_states, made_up
from tests.reference_readings import read as read_model
from tests.reference_threads import CALCULATES, Walker
from tests.support import ROOT, ask, model_named, parse_one
from tests.tally import Tally

HERE = Path(__file__).parent
SHARED = "ptxmm.program.shared."

IMPORTED = {
    # Where in its 128 bytes an opaque tensor map keeps what is our own choice (PTX ISA 5.5: the format is opaque).
    ("reference_accesses.py", "tensors", "FIELDS"),
    ("reference_tensors.py", "tensors", "FIELDS"),
    ("reference_tensors.py", "tensors", "ELEMENT_TYPES"),
    # What two ways of a branch have alike (dep=value): the tests below execute both ways.
    ("reference_flow.py", "control", "control_flow"),
}


FORBIDDEN = ("ptxmm.analysis", "ptxmm.cat", "ptxmm.events", "ptxmm.program.unspecified", "ptxmm.relations")


def test_the_reference_imports_no_more_than_this() -> None:
    found = set()
    for file in HERE.glob("reference*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("ptxmm") for alias in node.names), file
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ptxmm"):
                module = node.module or ""
                assert not module.startswith(FORBIDDEN), (file, module)
                names = [alias.name for alias in node.names]
                assert "shared" not in names and not {f"{module}.{name}" for name in names} & set(FORBIDDEN), file
                if module.startswith(SHARED):
                    found |= {(file.name, module.removeprefix(SHARED), name) for name in names}
    assert found == IMPORTED


@cache
def corpus() -> tuple[tuple[str, Test], ...]:
    """Tests of all kinds: the bundled ones, and random programs."""
    return tuple(_tests())


def _tests() -> Iterator[tuple[str, Test]]:
    for path in sorted((ROOT / "litmus").rglob("*")):
        if path.suffix in (".litmus", ".test", ".ptx", ".cu"):
            for test in read(path):
                yield str(path), test
    for name in random_families.NAMES:
        for seed in range(12):
            yield f"{name}/{seed}", parse_one(random_families.seeded(name, seed).text())
    for model in random_programs.MODELS:
        for seed in range(40):
            yield f"{model}/{seed}", parse_one(random_programs.seeded(seed, model).text())
    for seed in range(1000):
        with suppress(PtxmmError):  # not all of these can be read
            yield f"accesses/{seed}", parse_one(random_places.accesses(seed))
    for seed in range(60):
        yield f"spins/{seed}", parse_one(random_spins.program(seed))


def test_mbarriers() -> None:
    for name, test in corpus():
        assert set(mbarriers(test.threads, test.objects)) == reference_places.mbarriers(test.threads, test.objects), (
            name
        )
        assert counted(test.threads) == computes_with_states(test.threads), name


def test_what_is_left_open() -> None:
    for name, test in corpus():
        keys = {key for writer in writers(test.threads, test.objects) for key in writer.ranges}
        assert keys == made_up(test.threads, test.objects), name


@pytest.mark.parametrize(("split", "whole"), [(False, False), (True, False), (False, True)])
def test_division(split: bool, whole: bool) -> None:
    for name, test in corpus():
        here, plain = Chunks(test, split, whole), Division(test, split, whole)
        units = {op.tile.unit for t in test.threads for op in t.body if isinstance(op, WmmaLoad | WmmaStore)}
        for item in test.objects.values():
            for unit in (0, *units):
                for offset, size in ((0, item.size), (item.size // 2, item.size)):
                    assert list(here.of(item.key, offset, size, unit)) == plain.of(item.key, offset, size, unit), name


def test_branches() -> None:
    for name, test in corpus():
        for thread in test.threads:
            known, plain = control_flow(thread), Flow(thread)
            for field in ("join", "assigned", "spin", "leaving", "skipping", "backward"):
                assert getattr(known, field) == getattr(plain, field), (name, thread.name, field)


def test_rounds_that_are_left_out(monkeypatch: pytest.MonkeyPatch, tally: Tally) -> None:
    """Where the reference goes round loops that spin as round any other, it finds the final states of the engines,
    which leave these rounds out, also those whose atomics write back what they read."""
    monkeypatch.setattr(Flow, "spins", lambda self, pc: None)
    compared = 0
    for seed in range(60):
        test = parse_one(random_spins.program(seed))
        left_out = idempotent_atomics(test)
        spins = (control_flow(t, q).spin for t, q in zip(test.threads, left_out, strict=True))
        if not (any(left_out) and any(spins)):
            continue
        try:
            found = reference.outcomes(test, "ptx-8.5", unroll=1, seconds=0.5)
        except TooSlow:
            continue
        compared += 1
        assert ask("solve", test, model_named("ptx-8.5"), unroll=1).states == found, seed
    tally.notes.append(f"spin loops gone round in the reference: {compared}")
    assert compared >= 10


# -- what two ways have alike (dep=value): both are executed, with numbers


class Met(Struct, frozen=True):
    """An instruction that a run has come to, ``taken`` if its guard holds: what it does, on numbers."""

    pc: int
    taken: bool
    what: tuple[object, ...]


class Numbers:
    """Executions of a thread on numbers; ``given``: what each instruction gets from memory or from other threads."""

    def __init__(self, test: Test, thread: int, rng: random.Random) -> None:
        self.walker = Walker(test, thread, 3, read_model("ptx-8.5")[1])
        self.body = test.threads[thread].body
        self.given = [rng.choice((0, 1, 1, 2, rng.getrandbits(32))) for _ in self.body]
        registers = test.threads[thread].registers
        self.begin = {name: const(rng.choice((0, 1, 2)) & (1 << kind.bits) - 1) for name, kind in registers.items()}
        self.begin |= {name: const(value) for name, value in test.threads[thread].initial.items()}

    def run(self, stop: int, branch: int | None = None, way: bool = False, most: int = 200) -> tuple[Run, list[Met]]:
        """The run up to ``stop`` in which ``branch`` goes this ``way`` when it is first met, whatever it asks; and
        what it has come to since then, or from the beginning."""
        run, met = Run(0, dict(self.begin), (), (), (), {}, {}), list[Met]()
        while most and run.pc < stop:
            pc, op, most = run.pc, self.body[run.pc], most - 1
            taken = bool(self.walker.predicate(run, op)[1])
            if pc == branch:
                taken, branch, met = way, None, []
            if isinstance(op, ops.Branch | ops.Exit):
                target = op.target if isinstance(op, ops.Branch) else len(self.body)
                run = replace(run, pc=target if taken else pc + 1)
            elif isinstance(op, CALCULATES):
                run = self.walker.calculate(run, op, const(int(taken)))
            else:
                met.append(Met(pc, taken, self.told(run, op)))
                given = {name: const(self.given[pc]) for name, _ in definitions(op) if taken}
                run = replace(run, pc=pc + 1, registers={**run.registers, **given})
        return run, met

    def told(self, run: Run, op: ops.Op) -> tuple[object, ...]:
        def number(item: object) -> object:
            match item:
                case Reg(name):
                    return run.registers[name][1]
                case Imm(value):
                    return value
                case Address(base, offset):
                    return number(base), offset
                case tuple():
                    return tuple(map(number, item))
            return item

        fields = (name for name in op.__struct_fields__ if name not in ("source", "guard"))
        return (type(op), *(getattr(op, name) if name == "dst" else number(getattr(op, name)) for name in fields))


def alike(test: Test, rng: random.Random) -> tuple[int, int]:
    """How many registers, and how many instructions made whichever way it goes, have been seen to be so."""
    registers = made = 0
    for t, thread in enumerate(test.threads):
        flow = control_flow(thread, values=True)
        for pc, join in flow.join.items() if any(flow.same.values()) or flow.twins else ():
            ways = Numbers(test, t, rng)
            if ways.run(pc)[0].pc != pc:
                continue
            (here, first), (there, second) = (ways.run(join, pc, way) for way in (True, False))
            if join not in (here.pc, there.pc):
                continue
            for name in flow.same.get(pc, ()):
                registers += 1
                assert here.registers[name] == there.registers[name], (name, pc)
            twins = [[m.what for m in met if m.taken and flow.twins.get(m.pc) == pc] for met in (first, second)]
            made += len(twins[0])
            assert twins[0] == twins[1], pc
        own = {pc for pc, branch in flow.twins.items() if pc == branch}
        _, met = Numbers(test, t, rng).run(len(thread.body)) if own else (None, [])
        if own and own == {m.pc for m in met}.intersection(own):
            made += len(own) // 2
            each = Counter(m.what for m in met if m.pc in own)
            assert Counter(m.what for m in met if m.pc in own and m.taken) == {k: n // 2 for k, n in each.items()}
    return registers, made


def test_what_two_ways_have_alike() -> None:
    rng, registers, made = random.Random("alike"), 0, 0
    for seed in range(250):
        for text in (
            random_dependencies.seeded(seed, "ptx-8.5"),
            *map(random_places.ways, range(3 * seed, 3 * seed + 3)),
        ):
            found = alike(parse_one(text), rng)
            registers, made = registers + found[0], made + found[1]
    assert registers > 300 and made > 100, (registers, made)
