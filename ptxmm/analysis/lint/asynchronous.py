"""Rules about asynchronous copies, mbarriers and read-only loads in one template (PTX ISA 8.9, 9.7.10, 9.7.14.15)."""

from __future__ import annotations

from collections.abc import Iterator

from ptxmm.analysis.lint.effects import effect
from ptxmm.analysis.lint.finding import Finding, Rule, Site
from ptxmm.cuda import Instruction

RULES = (
    Rule("PTX701", "try-wait-once", "warning", "mbarrier.try_wait without a loop, and its result is not used",
         "PTX ISA 9.7.14.15.16"),
    Rule("PTX702", "missing-proxy-fence", "error",
         "a bulk copy of shared memory that was just written, without fence.proxy.async", "PTX ISA 8.9.1.1, 9.7.14.4"),
    Rule("PTX703", "wait-before-commit", "error", "a wait for copies that are not committed", "PTX ISA 9.7.10.24.3"),
    Rule("PTX704", "read-wait-before-release", "warning",
         "wait_group.read before a release: the writes of the copies may be pending", "PTX ISA 9.7.10.24.13"),
    Rule("PTX705", "read-only-load-of-written", "error", "ld.global.nc of memory that the same asm writes",
         "PTX ISA 9.7.10.9"),
    Rule("PTX707", "access-passes-wait", "warning",
         "an access after an mbarrier wait that happens whether or not the wait returned true", "PTX ISA 9.7.14.15.16"),
)  # fmt: skip


def check(site: Site) -> Iterator[Finding]:
    """PTX701 to PTX705, and PTX707."""
    instructions = site.body.instructions
    for number, instruction in enumerate(instructions):
        words = set(instruction.qualifiers)
        match instruction.opcode:
            case "mbarrier" if words & {"try_wait", "test_wait"}:
                yield from _wait(site, instruction)
                yield from _passing(site, instruction, instructions[number + 1 :])
            case "cp" if "bulk" in words:
                yield from _bulk(site, instructions[:number], instruction)
            case "cp" if words & {"wait_group", "wait_all"}:
                yield from _not_committed(site, instructions[:number], instruction)
            case "ld" if "nc" in words:
                yield from _read_only(site, instructions[:number], instruction)
            case _:
                pass


def _wait(site: Site, instruction: Instruction) -> Iterator[Finding]:
    """A wait whose result goes nowhere: the statement has no outputs and no branch."""
    others = {i.opcode for i in site.body.instructions} & {"bra", "brx", "trap", "st", "exit", "ret"}
    if (site.statement.operands and site.statement.outputs) or others or site.statement.macro:
        return
    kind = "try_wait" if "try_wait" in instruction.qualifiers else "test_wait"
    message = f"`mbarrier.{kind}` may return false before the phase is complete, and nothing looks at its result"
    yield site.at("PTX701", instruction, message, "branch back to it until its predicate is true")


def _passing(site: Site, wait: Instruction, after: tuple[Instruction, ...]) -> Iterator[Finding]:
    """The first access after an acquire of the CTA that has no guard, with neither a branch, a label nor an
    instruction that orders between them. (Of ``.cluster`` the machine code waits for the result.)"""
    if {"relaxed", "cluster"} & set(wait.qualifiers):
        return
    for other in after:
        orders = effect(other) == "order" and other.opcode not in _ACCESSES
        if orders or other.opcode in _LEAVES or any(wait.start < at < other.start for _, at, _ in site.body.labels):
            return
        if other.opcode in _ACCESSES and not other.guarded and _of_memory(other):
            message = f"only a wait that returned true orders the accesses after it, and `{other.mnemonic}` happens "
            message += f"whether or not `{wait.mnemonic}` returned true: a GPU may perform it before the wait has ended"
            yield site.at("PTX707", other, message, "branch back to the wait until its predicate is true")
            return


_ACCESSES = ("ld", "st", "atom", "red", "multimem", "ldmatrix", "stmatrix")
_LEAVES = ("bra", "brx", "call", "exit", "ret", "trap")


def _of_memory(instruction: Instruction) -> bool:
    """Whether an access is one of memory that threads write, and not an asynchronous one."""
    return effect(instruction) != "none" and "async" not in instruction.qualifiers


def _bulk(site: Site, before: tuple[Instruction, ...], instruction: Instruction) -> Iterator[Finding]:
    words = instruction.qualifiers
    if "wait_group" in words:
        yield from _read_wait(site, instruction)
        if not any("commit_group" in i.qualifiers for i in before) and any(_grouped(i) for i in before):
            message = f"`{instruction.mnemonic}` waits for groups, and the copies before it are in none"
            yield site.at("PTX703", instruction, message, "cp.async.bulk.commit_group; before it")
        return
    if "prefetch" in words or "commit_group" in words or not _from_shared(words):
        return
    written: Instruction | None = None
    for other in before:
        if other.opcode in ("st", "atom", "red", "stmatrix") and "async" not in other.qualifiers:
            if any(word.startswith("shared") for word in other.qualifiers):
                written = other
        elif other.opcode in ("fence", "membar") and "proxy" in other.qualifiers:
            written = None
    if written is not None:
        message = f"`{written.mnemonic}` writes through the generic proxy, `{instruction.mnemonic}` reads through the "
        message += "async proxy, and no proxy fence is between them"
        yield site.at("PTX702", instruction, message, "fence.proxy.async.shared::cta; between them")


def _grouped(instruction: Instruction) -> bool:
    return instruction.opcode == "cp" and "bulk_group" in instruction.qualifiers


def _from_shared(words: tuple[str, ...]) -> bool:
    spaces = [word for word in words if word in ("global", "shared::cta", "shared::cluster", "shared")]
    return (len(spaces) > 1 and spaces[1].startswith("shared")) or ("tensor" in words and spaces[:1] == ["global"])


def _read_wait(site: Site, instruction: Instruction) -> Iterator[Finding]:
    if "read" not in instruction.qualifiers:
        return
    for other in site.body.instructions:
        if other.start > instruction.start and {"release", "acq_rel"} & set(other.qualifiers):
            message = f"`{instruction.mnemonic}` waits only until the sources are read: the writes may be pending "
            message += f"when `{other.mnemonic}` releases them"
            yield site.at("PTX704", site.qualifier(instruction, "read"), message, "leave out .read")
            return


def _not_committed(site: Site, before: tuple[Instruction, ...], instruction: Instruction) -> Iterator[Finding]:
    if "wait_all" in instruction.qualifiers:
        return
    copies = [i for i in before if i.opcode == "cp" and i.qualifiers[:1] == ("async",) and len(i.qualifiers) > 2]
    copies = [i for i in copies if not {"bulk", "mbarrier"} & set(i.qualifiers)]
    commits = [i for i in before if "commit_group" in i.qualifiers]
    if copies and not any(commit.start > copies[-1].start for commit in commits):
        message = f"`{instruction.mnemonic}` waits for groups, and `{copies[-1].mnemonic}` before it is in none"
        yield site.at("PTX703", instruction, message, "cp.async.commit_group; before it")


def _read_only(site: Site, before: tuple[Instruction, ...], instruction: Instruction) -> Iterator[Finding]:
    addresses = {use.number for use in instruction.uses if use.space is not None}
    for other in before:
        if other.opcode not in ("st", "atom", "red"):
            continue
        if addresses & {use.number for use in other.uses if use.space is not None}:
            message = f"`{instruction.mnemonic}` is for memory that nobody writes while the kernel runs, and "
            message += f"`{other.mnemonic}` before it writes there"
            yield site.at("PTX705", site.qualifier(instruction, "nc"), message, "leave out .nc")
            return
