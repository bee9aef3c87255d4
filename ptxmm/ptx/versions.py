"""The first PTX ISA version and target of an instruction, and the refusal of what is too new for a test."""

from __future__ import annotations

from collections.abc import Container, Iterator

from ptxmm.errors import Span
from ptxmm.ptx import syntax
from ptxmm.ptx.qualified import Qualified
from ptxmm.ptx.qualifiers import DEFAULT_ISA, form_of, too_new
from ptxmm.ptx.table import SINCE, Form, Version

# The entries of SINCE that matter for the version that nearly every test is checked with.
_NEWER = tuple(entry for entry in SINCE if entry[2].ptx > DEFAULT_ISA)
_NEWER_WORDS = frozenset(needed[0] for _, needed, _ in _NEWER)
_IGNORE_SOURCE = Version((7, 5), 80)
_ARRIVAL_COUNT = Version((7, 8), 90)
_SINK = Version((7, 1), 80)
_UNIFIED = Version((8, 0), 90)


def requires(instruction: syntax.Instruction, *, dialect: bool = False, predicates: Container[str] = ()) -> Version:
    """The first PTX ISA version and target that have ``instruction`` (the latest of its qualifiers and operands).

    ``sm`` is the number of the target without the suffix of its architecture-specific features: ``tensormap.replace``
    and ``wgmma`` need sm_90a. ``predicates`` are registers that are predicates (for ``cp.async``).
    """
    form = form_of(instruction, dialect)
    given = {name for name, _ in instruction.qualifiers}
    found = [
        version
        for opcodes, needed, version in SINCE
        if given.issuperset(needed) and (not opcodes or form.opcode in opcodes)
    ]
    found += (version for version, _, _ in _of_operands(form, instruction, predicates))
    versions = [form.since, *found]
    return Version(max(v.ptx for v in versions), max(v.sm for v in versions))


def _of_operands(
    form: Form, instruction: syntax.Instruction, predicates: Container[str]
) -> Iterator[tuple[Version, Span, str]]:
    """The versions that operands need, with their places and what they are."""
    items = instruction.operands
    match form.opcode:
        case "ld" | "ld.nc" | "ldu":
            for item in items:
                if isinstance(item, syntax.Memory) and item.extra == "unified":
                    yield _UNIFIED, item.span, "an address with `.unified`"
        case "cp.async" if len(items) > 3:
            item = items[3]
            name = item.name.name if isinstance(item, syntax.Negated) else getattr(item, "name", "")
            if isinstance(item, syntax.Negated) or name in predicates:
                yield _IGNORE_SOURCE, item.span, "ignore-src"
        case "mbarrier.arrive" | "mbarrier.arrive_drop" if items:
            if isinstance(items[0], syntax.Name) and items[0].name == "_":
                yield _SINK, items[0].span, "`_` for the state"
            arrivals = {"expect_tx", "noComplete"}
            if len(items) > 2 and arrivals.isdisjoint(name for name, _ in instruction.qualifiers):
                yield _ARRIVAL_COUNT, items[2].span, "a count without `.noComplete`"


def check_version(q: Qualified, isa: tuple[int, int], predicates: Container[str]) -> None:
    """Refuse what is later than PTX ISA ``isa``. Raises ``PtxmmError`` of kind ``isa``, which names the version."""
    form = q.form
    words = form.opcode.split(".")
    given = {name for name, _ in q.instruction.qualifiers if name not in words}
    if isa == DEFAULT_ISA and _NEWER_WORDS.isdisjoint(given) and form.since.ptx <= isa:
        return
    for opcodes, needed, version in _NEWER if isa == DEFAULT_ISA else SINCE:
        if version.ptx > isa and (not opcodes or form.opcode in opcodes) and given.issuperset(needed):
            span = next(span for word, span in q.instruction.qualifiers if word == needed[0])
            raise too_new(span, f"`{'.'.join((form.opcode, *needed))}`", version, isa)
    if form.since.ptx > isa:
        raise too_new(q.instruction.opcode_span, f"`{form.opcode}`", form.since, isa)
    if isa < DEFAULT_ISA:
        for version, span, what in _of_operands(form, q.instruction, predicates):
            if version.ptx > isa:
                raise too_new(span, f"{what} (`{form.opcode}`)", version, isa)
