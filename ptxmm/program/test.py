"""A litmus test: threads with their place in the scope tree, memory objects, aliases, and what is asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from msgspec import Struct, field

from ptxmm.errors import Span
from ptxmm.program.condition import Condition, MemoryTerm, Proposition, Term, terms
from ptxmm.program.identity import Site
from ptxmm.ptx.ops import Op, Type

OwnerPath = tuple[int, int, int | None, int | None]
"""The place of a CTA: (gpu, grid, cluster, cta)."""


class Placement(Struct, frozen=True):
    """The place of a thread, as written. ``warp``, ``cta`` and ``cluster`` are None where left out.

    A thread without ``cta`` is in a CTA of its own; one without ``warp`` is a warp of its own; a CTA without
    ``cluster`` is its own cluster. A CTA is identified by (gpu, grid, cluster, cta). ``host`` threads have none.
    Grids of one GPU run one after the other in the order of their numbers; one that is launched with ``overlap`` may
    run before the earlier ones end (programmatic launch, A50).
    """

    gpu: int = 0
    grid: int = 0
    cluster: int | None = None
    cta: int | None = None
    warp: int | None = None
    host: bool = False
    overlap: bool = False

    @property
    def path(self) -> OwnerPath:
        """That of the CTA, as in ``MemoryObject.owner``; host threads have none."""
        return self.gpu, self.grid, self.cluster, self.cta


class Thread(Struct, frozen=True):
    """One thread: ``body[i]`` is the instruction with index i, branches jump to indices.

    ``registers`` gives every register that occurs its type; ``initial`` the initial values that are not 0 (unsigned,
    of the register's width). A register that is read before it is written holds 0.
    """

    name: str
    placement: Placement
    body: tuple[Op, ...]
    registers: dict[str, Type]
    initial: dict[str, int] = field(default_factory=dict)


class TensorMap(Struct, frozen=True):
    """The initial content of a tensor map (PTX ISA 5.5); its tensor is of ``type`` and begins with ``target``.

    For each dimension, innermost first: ``box``, the size of a box; ``dims``, that of the tensor; ``steps``, the
    traversal stride; for all but the innermost ``strides``, in bytes. How the 128 bytes hold it is in ``tensors``.
    ``fixed``: no instruction of the test changes how many bytes a box has.
    """

    target: str
    type: Type
    box: tuple[int, ...]
    dims: tuple[int, ...]
    strides: tuple[int, ...] = ()
    steps: tuple[int, ...] = (1,)
    fixed: bool = True

    @property
    def size(self) -> int:
        """The bytes of a box in shared memory."""
        return prod(-(-size // step) for size, step in zip(self.box, self.steps, strict=True)) * self.type.bytes


class MemoryObject(Struct, frozen=True):
    """A variable or an alias of one.

    ``key`` is its unique name in results and in ``Sym`` operands (``x``, or ``cta 1:s`` where several CTAs have one);
    ``name`` is as written. ``type`` and ``count`` are those of its elements; ``initial`` their values (unsigned).
    ``address`` is the virtual address of its first byte. ``owner`` is the placement path (gpu, grid, cluster, cta) of
    the CTA a ``.shared`` object lies in. ``virtual`` and ``physical`` are keys: a plain variable has its own key in
    both; ``y @ generic aliases x`` has its own virtual key and x's physical key; ``s @ surface aliases x`` has x's
    virtual and physical keys, x's address, and ``proxy`` surface. ``mbarrier`` is empty, or has for each element that
    is an mbarrier initialised in phase 0 before the program (pending arrivals, pending bytes), else None; the value of
    any mbarrier in a final state is the number of phases that it has completed. The ``target`` of a ``tensormap`` is a
    key. ``unknown``: it has no initial value that the program may rely on. ``replicas`` is empty unless this is a
    multimem address: then the physical keys of the locations it stands for, of which ``physical`` is the first.
    ``alignment``: that of its declaration in bytes, for those who write it; every object is aligned well enough.
    ``thread``: the number of the thread that a ``.local`` object belongs to, or that is alone in the CTA without a name
    that a ``.shared`` one lies in. ``window`` and ``mapped``: the addresses of its first byte in the window of its
    state space and in ``.shared::cluster`` (``program.windows``); 0 where it has none.
    """

    key: str
    name: str
    space: str
    type: Type
    count: int
    is_array: bool
    initial: tuple[int, ...]
    address: int
    virtual: str
    physical: str
    owner: OwnerPath | None = None
    proxy: str = "generic"
    alias_of: str | None = None
    mbarrier: tuple[tuple[int, int] | None, ...] = ()
    tensormap: TensorMap | None = None
    unknown: bool = False
    replicas: tuple[str, ...] = ()
    alignment: int | None = None
    thread: int | None = None
    window: int = 0
    mapped: int = 0

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.type.bytes * self.count

    def initial_value(self, offset: int, size: int) -> int:
        """The unsigned value of ``size`` bytes from ``offset`` on before the program, little-endian."""
        width = self.type.bytes
        first = offset // width
        elements = self.initial[first : (offset + size - 1) // width + 1]
        content = b"".join(value.to_bytes(width, "little") for value in elements)
        return int.from_bytes(content[offset - first * width :][:size], "little")


class AssumedReading(Struct, frozen=True):
    """A reading of the text of the model that a launch assumes, as it stands in a ``line`` of its ``file``."""

    key: str
    value: str
    file: str
    line: str
    span: Span


class Allowance(Struct, frozen=True):
    """That writes of a ``line`` may race with each other where they write the same value, and ``why``."""

    line: int
    why: str


class Claims(Struct, frozen=True):
    """What is said of a launched kernel besides its condition: it has no data ``races``; it is ``robust``; it accesses
    nothing outside of its objects (``bounds``); its threads come to ``barriers`` together; it never ``traps``.
    ``trapping``: the kernel in which a trap is an access of ``TRAP``, where nothing is, so that it has no meaning.

    ``unroll``: the bound of its loops, None for that of the command line; ``remarks``: what the reader of a verdict
    has to know of how the test was made of the kernel. ``partial``: why the test leaves executions or threads of
    the kernel out, so that it can only refute what is claimed. ``readings``: those under which all of this is meant;
    ``allowed``: what the source allows at its lines. ``endless``: loops that only compute and are left out, of which it
    is not known that they end, in words. ``others``: so many threads of the launch are not in the test.
    """

    races: bool = False
    robust: bool = False
    unroll: int | None = None
    remarks: tuple[str, ...] = ()
    partial: tuple[str, ...] = ()
    readings: tuple[AssumedReading, ...] = ()
    allowed: tuple[Allowance, ...] = ()
    bounds: bool = False
    barriers: bool = False
    traps: bool = False
    trapping: Test | None = None
    endless: tuple[str, ...] = ()
    others: int = 0


TRAP = 0x7472617000000000
"""An address of nothing, by which a trap is known."""


class SameValue(Struct, frozen=True):
    """Which writes of a kernel may race with each other where they write the same value: those of the ``lines`` of its
    threads (None: of all threads).

    ``open``: the lines of those whose values are not worked out, so that it is not known. ``terms``: all that the
    others write: their values count.
    """

    lines: frozenset[int] | None
    open: frozenset[int] = frozenset()
    terms: tuple[MemoryTerm, ...] = ()

    def allows(self, line: int) -> bool:
        """Whether writes of this line may race with others."""
        return self.lines is None or line in self.lines


class Test(Struct, frozen=True):
    """A litmus test. ``dialect`` is true for the untyped dialect; ``info`` holds its ``Key=Value`` lines in order;
    ``isa`` is the version of the PTX ISA that its instructions were read in; ``claims`` are those about a kernel,
    and ``same_value`` which of its writes may race."""

    __test__ = False

    name: str
    threads: tuple[Thread, ...]
    objects: dict[str, MemoryObject]
    condition: Condition | None
    locations: tuple[Term, ...] = ()
    filter: Proposition | None = None
    description: str = ""
    info: tuple[tuple[str, str], ...] = ()
    dialect: bool = False
    default_model: str = "ptx-8.5"
    file: str = "<text>"
    text: str = ""
    isa: tuple[int, int] = (8, 5)
    claims: Claims | None = None
    same_value: SameValue | None = None

    @property
    def propositions(self) -> tuple[Proposition, ...]:
        """Those of the condition and of the filter."""
        condition = None if self.condition is None else self.condition.proposition
        return tuple(item for item in (condition, self.filter) if item is not None)

    @property
    def named(self) -> list[Term]:
        """The registers and memory elements that ``locations``, the condition and the filter name, and those that are
        written by what may race with the same value."""
        return [*self.locations, *terms(*self.propositions), *self.compared]

    @property
    def compared(self) -> tuple[MemoryTerm, ...]:
        """The memory elements that are written by what may race with the same value."""
        return () if self.same_value is None else self.same_value.terms

    def allows(self, site: tuple[int, int]) -> bool:
        """Whether a write of the instruction at ``site`` may race with one of the same value, if that is known."""
        allowed = self.same_value
        if allowed is None or (self.threads[site[0]].placement.host and allowed.lines is not None):
            return False
        return allowed.allows(self.at(site).source.span.line)

    def may_race(self, site: tuple[int, int]) -> bool:
        """Whether a write of the instruction at ``site`` may race with one of the same value, which is known."""
        allowed = self.same_value
        return allowed is not None and self.allows(site) and self.at(site).source.span.line not in allowed.open

    @property
    def instructions(self) -> Iterator[tuple[Site, Op]]:
        """Each instruction with its site, thread by thread."""
        for number, thread in enumerate(self.threads):
            yield from ((Site(number, index), op) for index, op in enumerate(thread.body))

    def at(self, site: tuple[int, int]) -> Op:
        """The instruction at a site."""
        return self.threads[site[0]].body[site[1]]

    def locate(self, address: int) -> tuple[MemoryObject, int] | None:
        """The object (never a proxy alias) at the virtual ``address`` and the byte offset in it, or None."""
        for item in self.objects.values():
            if item.virtual == item.key and item.address <= address < item.address + item.size:
                return item, address - item.address
        return None
