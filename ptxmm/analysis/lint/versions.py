"""Rules about the PTX ISA version and the target that an instruction needs (PTX ISA 9.7, the notes of each section)."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.analysis.lint.finding import Finding, Rule, Site
from ptxmm.cuda import Instruction
from ptxmm.errors import PtxmmError
from ptxmm.ptx.isa import requires
from ptxmm.ptx.tables.form import Version

RULES = (
    Rule("PTX601", "ptx-version", "error", "the instruction is of a later PTX ISA version than --isa", "PTX ISA 9.7"),
    Rule("PTX602", "target", "error",
         "the instruction needs a later target than --arch, or than the __CUDA_ARCH__ condition around it",
         "PTX ISA 9.7"),
)  # fmt: skip
_TARGETS = (500, 520, 530, 600, 610, 620, 700, 720, 750, 800, 860, 870, 880, 890, 900, 1000, 1010, 1030, 1100, 1200)
"""The targets that there are, as in ``__CUDA_ARCH__``."""


def check(site: Site) -> Iterator[Finding]:
    """PTX601 and PTX602."""
    least, below = site.statement.architectures
    if site.isa is None and site.arch is None and least == 0 and below > 10_000:
        return
    for instruction in site.body.instructions:
        if instruction.parsed is None:
            continue
        try:
            needed = requires(instruction.parsed)
        except PtxmmError:
            continue
        if site.isa is not None and needed.ptx > site.isa:
            message = f"`{instruction.mnemonic}` needs PTX ISA {needed.name}, and --isa is {Version(site.isa).name}"
            yield site.at("PTX601", instruction, message)
        yield from _target(site, instruction, needed.sm)


def _target(site: Site, instruction: Instruction, needed: int) -> Iterator[Finding]:
    mnemonic = instruction.mnemonic
    least, below = site.statement.architectures
    least = next((known for known in _TARGETS if known >= least), least) if least else 0
    if below <= needed * 10 and below > least:
        message = f"`{mnemonic}` needs sm_{needed}, and the condition around it allows only __CUDA_ARCH__ < {below}"
        yield site.at("PTX602", instruction, message)
    elif 0 < least < needed * 10:
        message = f"`{mnemonic}` needs sm_{needed}, and the condition around it is __CUDA_ARCH__ >= {least}"
        yield site.at("PTX602", instruction, message, f"write __CUDA_ARCH__ >= {needed * 10}")
    elif site.arch is not None and site.arch < needed and least < needed * 10:
        if least and least > site.arch * 10:
            return  # not compiled for it
        message = f"`{mnemonic}` needs sm_{needed}, and --arch is sm_{site.arch}"
        yield site.at("PTX602", instruction, message, f"#if __CUDA_ARCH__ >= {needed * 10} around it")
