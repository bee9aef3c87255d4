"""Random programs: shared memory by addresses of 32 bits, made in the ways of CUDA's inline assembly."""

from __future__ import annotations

import random
import re

from msgspec.structs import replace

from tests import random_bulk, random_copies, random_mbarriers, random_memory
from tests.random_programs import Line, Program

_MAKERS = (
    random_mbarriers.mbarriers, random_bulk.bulk, random_bulk.bulk, random_copies.cp_async, random_memory.cluster,
)  # fmt: skip
_NAMED = re.compile(r"\[([a-z])([+][0-9]+)?\]")


def addresses(rng: random.Random) -> Program:
    """A program of another family in which threads find shared memory by registers of 32 bits."""
    return narrowed(rng, rng.choice(_MAKERS)(rng))


def narrowed(rng: random.Random, source: Program) -> Program:
    """``source`` with registers of 32 bits in place of the names of shared variables, where an instruction says that
    its operand is in shared memory. The value of a register may be read from global memory."""
    declared = [re.match(r"\.shared (?:\.align 16 )?\.\w+ (\w)", d) for d in source.declarations]
    shared = {found[1] for found in declared if found}
    fixed = {m[1] for d in source.declarations if (m := re.match(r"\.shared .*?\.\w+ (\w)(?:\[\d+\])? @", d))}
    declarations = list(source.declarations)
    threads = []
    for thread in source.threads:
        registers: dict[str, str] = {}
        lines = []
        for line in thread:
            tail = line.tail
            if ".shared" in line.head + line.tail:
                for named in _NAMED.finditer(line.tail):
                    name, offset = named[1], named[2] or ""
                    if name in shared and rng.random() < 0.8:
                        register = registers.setdefault(name, f"r{80 + len(registers)}")
                        tail = tail.replace(named[0], f"[{register}{offset}]", 1)
            lines.append(replace(line, tail=tail))
        heads: list[Line] = []
        for name, register in registers.items():
            roll = rng.random()
            wide = f"d{register[1:]}"
            if roll < 0.4:
                heads.append(Line("mov", f".u32 {register}, {name}"))
            elif roll < 0.8 or name not in fixed:
                heads.append(Line("mov", f".u64 {wide}, {name}"))
                heads.append(Line("cvta.to.shared", f".u64 {wide}, {wide}"))
                heads.append(Line("cvt", f".u32.u64 {register}, {wide}"))
            else:
                place = f"q{name}"
                if not any(f" {place} " in d for d in declarations):
                    declarations.append(f".global .u32 {place} = {name};")
                heads.append(Line("ld", f".global.u32 {register}, [{place}]", "weak"))
        threads.append((*heads, *lines))
    return replace(source, declarations=tuple(declarations), threads=tuple(threads))
