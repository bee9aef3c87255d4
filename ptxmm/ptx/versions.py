"""The first PTX ISA version and target of an instruction, and the refusal of what is too new for a test."""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import chain

from ptxmm.errors import Span
from ptxmm.ptx import syntax
from ptxmm.ptx.qualified import Qualified
from ptxmm.ptx.qualifiers import DEFAULT_ISA, row_of, too_new
from ptxmm.ptx.table import Form, Version
from ptxmm.ptx.tables.form import CLUSTER, EVICT, PREFETCH, V6

_EVERYWHERE = {
    V6: "weak relaxed acquire release acq_rel",
    CLUSTER: "cluster shared::cluster",
    Version((7, 8), 30): "shared::cta",
    Version((8, 3)): "param::entry param::func",
    Version((8, 2), 70): "mmio",
    Version((7, 4), 70): " ".join(EVICT),
    Version((7, 4), 75): " ".join(PREFETCH),
    Version((7, 4), 80): "L2::256B L2::cache_hint",
    Version((1, 0), 13): "f64",
    Version((8, 3), 70): "b128",
    Version((8, 4), 70): "b128+sys",
}
"""The first versions of qualifiers of all instructions: see ``Form.newer``. None is later than ``DEFAULT_ISA``."""
_IGNORE_SOURCE = Version((7, 5), 80)
_ARRIVAL_COUNT = Version((7, 8), 90)
_SINK = Version((7, 1), 80)
_UNIFIED = Version((8, 0), 90)


def requires(instruction: syntax.Instruction, *, predicates: Container[str] = ()) -> Version:
    """The first PTX ISA version and target that have ``instruction`` (the latest of its qualifiers and operands).

    ``sm`` is the number of the target without the suffix of its architecture-specific features: ``tensormap.replace``
    and ``wgmma`` need sm_90a. ``predicates`` are registers that are predicates (for ``cp.async``).
    """
    form = row_of(instruction, dialect=False).form
    given = {name for name, _ in instruction.qualifiers}
    versions = [form.since, *(version for needed, version in newer(form) if given.issuperset(needed))]
    versions += (version for version, _, _ in _of_operands(form, instruction, predicates))
    return Version(max(v.ptx for v in versions), max(v.sm for v in versions))


def newer(form: Form, isa: tuple[int, int] = (0, 0)) -> Iterator[tuple[list[str], Version]]:
    """Qualifiers of ``form`` that are later than PTX ISA ``isa``: words that are all there, and their version."""
    for version, names in chain(_EVERYWHERE.items() if isa < DEFAULT_ISA else (), form.newer.items()):
        if version.ptx > isa:
            for name in names.split():
                yield name.split("+"), version


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
    for needed, version in newer(form, isa):
        if given.issuperset(needed):
            span = next(span for word, span in q.instruction.qualifiers if word == needed[0])
            raise too_new(span, f"`{'.'.join((form.opcode, *needed))}`", version, isa)
    if form.since.ptx > isa:
        raise too_new(q.instruction.opcode_span, f"`{form.opcode}`", form.since, isa)
    if isa < DEFAULT_ISA:
        for version, span, what in _of_operands(form, q.instruction, predicates):
            if version.ptx > isa:
                raise too_new(span, f"{what} (`{form.opcode}`)", version, isa)
