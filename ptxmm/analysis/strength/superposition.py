"""All strengths of a program in one: every instruction in its strongest form, and the fences that could be added."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.strength.forms import Forms, forms_of, scopes_of
from ptxmm.analysis.strength.units import units
from ptxmm.cat.ir import Coverage
from ptxmm.program.edit import edited
from ptxmm.program.identity import Site, Switch
from ptxmm.program.test import Test
from ptxmm.program.variation import Variation
from ptxmm.ptx import ops

FENCES = (ops.Fence, ops.ProxyFence, ops.TensormapFence, ops.MbarrierInitFence)
_ASYNCHRONOUS = (ops.BulkCopy, ops.AsyncStore, ops.Wgmma, ops.TensorCopy, ops.TensorProduct)
ORDERED = (ops.Load, ops.Store, ops.Atomic, ops.Multimem, *(kind for kinds in ops.FAMILIES.values() for kind in kinds))
"""Between two of these a fence can have an effect."""


class Place(Struct, frozen=True):
    """What stands at a site of the superposition: the instruction that is at ``site`` in the program as written, or the
    ``rank``-th of the candidates before it."""

    site: Site
    rank: int | None = None

    @property
    def added(self) -> bool:
        """Whether the program as written has no such instruction."""
        return self.rank is not None


class Superposition(Struct, frozen=True):
    """``test``: the strongest program. ``forms`` and ``places``: those of each of its instructions that varies.

    ``owners``: for each the first of those that change together with it, whose switches are theirs.
    """

    test: Test
    original: Test
    forms: Mapping[Site, Forms]
    places: Mapping[Site, Place]
    owners: Mapping[Site, Site]

    @property
    def sites(self) -> tuple[Site, ...]:
        """The sites that have switches, in the order of the text."""
        return tuple(sorted(set(self.owners.values())))

    @property
    def variations(self) -> dict[Site, Variation]:
        """The same, for the engine."""
        return {site: forms.variation(self.owners[site]) for site, forms in self.forms.items()}

    @property
    def at(self) -> dict[Place, Site]:
        """The sites by what stands there."""
        return {place: site for site, place in self.places.items()}

    @property
    def given(self) -> frozenset[Switch]:
        """The switches that make the program as it is written."""
        return frozenset(
            Switch(*site, step) for site in self.sites if not self.places[site].added for step in self.forms[site].given
        )

    @property
    def switches(self) -> frozenset[Switch]:
        """All switches."""
        return frozenset(Switch(*site, step) for site in self.sites for step in range(len(self.forms[site].steps)))

    def step(self, switch: Switch) -> str:
        """The name of the step of a switch."""
        return self.forms[switch.site].steps[switch.number]

    def form(self, site: Site, on: frozenset[Switch]) -> ops.Op | None:
        """The instruction at a site where exactly the switches ``on`` are on."""
        return self.forms[site].at(self.steps(self.owners[site], on))

    @staticmethod
    def steps(site: Site, on: frozenset[Switch]) -> frozenset[int]:
        """Those of the switches ``on`` that are of a site, as its steps."""
        return frozenset(step for thread, index, step in on if (thread, index) == site)

    def program(self, on: frozenset[Switch]) -> Test:
        """The program that exactly the switches ``on`` make."""
        edits: dict[Site, tuple[ops.Op, ...]] = {}
        for site in self.forms:
            form = self.form(site, on)
            edits[site] = () if form is None else (form,)
        return replace(edited(self.test, edits), file=self.original.file, text=self.original.text)


def superposition(test: Test, coverage: Coverage, *, stronger: bool) -> Superposition:
    """The superposition of what is as strong as ``test`` or weaker; or, where ``stronger``, of what is as strong as
    ``test`` or stronger, with fences added between its instructions, of those kinds that can matter in it."""
    edits: dict[Site, tuple[ops.Op, ...]] = {}
    forms: dict[Site, Forms] = {}
    places: dict[Site, Place] = {}
    owners: dict[Site, Site] = {}
    first: dict[Hashable, Site] = {}
    together = units(test)

    def vary(site: Site, place: Place, found: Forms) -> None:
        # What is added beside an aligned instruction of a litmus test is one thread's own.
        unit = place.site if place.added and test.claims is None else together.of[place.site]
        forms[site], places[site] = found, place
        owners[site] = first.setdefault((unit, place.rank, found.steps, found.given), site)

    for number, thread in enumerate(test.threads):
        position = 0
        gaps = frozenset(_gaps(thread.body)) if stronger else frozenset()
        for index, op in enumerate(thread.body):
            chunk: list[ops.Op] = []
            where = Site(number, index)
            threads = together.threads(where)
            beside = (number,) if test.claims is None else threads
            for rank, added in enumerate(_candidates(test, beside, op, coverage) if index in gaps else ()):
                if isinstance(added, ops.Fence) and _beside_fence(thread.body, index):
                    continue
                found = forms_of(test, beside, added, coverage, True)
                assert found is not None
                vary(Site(number, position + len(chunk)), Place(where, rank), found)
                chunk.append(found.strongest)
            found = forms_of(test, threads, op, coverage, stronger)
            if found is not None:
                vary(Site(number, position + len(chunk)), Place(where), found)
                op = found.strongest
            chunk.append(op)
            edits[where] = tuple(chunk)
            position += len(chunk)
    return Superposition(edited(test, edits), test, forms, places, owners)


def _gaps(body: tuple[ops.Op, ...]) -> Iterator[int]:
    """Before which instructions a fence can be added: those that are ordered after others, maybe of an earlier round
    of a loop."""
    before = False
    loops = [(op.target, index) for index, op in enumerate(body) if isinstance(op, ops.Branch) and op.target <= index]
    for index, op in enumerate(body):
        ordered = isinstance(op, ORDERED)
        if ordered and (before or any(first <= index <= last for first, last in loops)):
            yield index
        before = before or ordered


def _beside_fence(body: tuple[ops.Op, ...], index: int) -> bool:
    """Whether a memory fence is always passed right before an instruction: it can be made stronger instead."""
    targets = {op.target for op in body if isinstance(op, ops.Branch)}
    while index and index not in targets and isinstance(body[index - 1], FENCES):
        index -= 1
        op = body[index]
        if isinstance(op, ops.Fence) and op.guard is None and op.restrict is None:
            return True
    return False


def _candidates(test: Test, threads: Collection[int], op: ops.Op, coverage: Coverage) -> Iterator[ops.Op]:
    """The fences that can be added before ``op`` in ``threads``, each in one of its forms."""
    source = ops.Source(op.source.span, "")
    scopes: tuple[ops.Scope, ...] = scopes_of(test, threads, coverage)
    yield ops.Fence("acq_rel", scopes[0], source)
    everything = [item for _, item in test.instructions]
    if coverage.aliases and any(o.virtual != o.physical for o in test.objects.values()):
        yield ops.ProxyFence("alias", source)
    if "async" in coverage.proxies and any(isinstance(item, _ASYNCHRONOUS) for item in everything):
        spaces = {o.space for o in test.objects.values()}
        if "shared" in spaces:
            yield ops.ProxyFence("async", source, None, "shared::cta")
        if "global" in spaces:
            yield ops.ProxyFence("async", source, None, "global")
    if any(isinstance(item, ops.MbarrierInit) and item.count is not None for item in everything):
        yield ops.MbarrierInitFence(source)
    if any(isinstance(item, ops.TensormapReplace | ops.TensormapFence) for item in everything):
        yield ops.TensormapFence("release", scopes[0], None, source)
        for item in test.objects.values():
            if item.tensormap is not None and item.space == "global":
                yield ops.TensormapFence("acquire", scopes[0], ops.Address(ops.Sym(item.key)), source)
