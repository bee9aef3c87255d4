"""What programs are made of: the forms that one instruction may take, and the places of threads."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

SCOPES = ("cta", "cluster", "gpu", "sys")
"""From the narrowest to the widest (PTX ISA 8.5)."""

KINDS = ("ld", "st", "atom", "red", "fence", "alias")
"""The kinds of instructions. ``alias`` stands for second virtual addresses of a location and ``fence.proxy.alias``."""

ORDERS = ("weak", "relaxed", "acquire", "release", "acq_rel", "sc")
"""Memory orders (8.4 Table 19), roughly from the weakest."""

_ORDERS = {
    "ld": ("weak", "relaxed", "acquire"),
    "st": ("weak", "relaxed", "release"),
    "atom": ("relaxed", "acquire", "release", "acq_rel"),
    "red": ("relaxed", "release"),
    "fence": ("acq_rel", "sc"),
}


class Form(Struct, frozen=True, order=True):
    """An instruction without its operands. ``kind``: one of ``KINDS``; ``scope`` is None where it has none.

    ``atom`` is an exchange, ``red`` an addition, ``alias`` the fence ``fence.proxy.alias``.
    """

    kind: str
    order: str = ""
    scope: str | None = None

    @property
    def reads(self) -> bool:
        """Whether it reads memory."""
        return self.kind in ("ld", "atom", "red")

    @property
    def writes(self) -> bool:
        """Whether it writes memory."""
        return self.kind in ("st", "atom", "red")

    @property
    def accesses(self) -> bool:
        """Whether it has an address."""
        return self.reads or self.writes

    def __str__(self) -> str:
        name = "fence.proxy.alias" if self.kind == "alias" else self.kind
        return ".".join(part for part in (name, self.order, self.scope) if part)


class Vocabulary(Struct, frozen=True):
    """All programs in which every instruction is one of ``forms``, every location is accessed at least twice, no thread
    is empty, and the values that are written tell the writes of a location apart.

    ``scopes``: those that instructions may have, the narrowest first. Threads are placed together or apart at each
    level but the widest, which has them all. ``aliases``: an access may use a second virtual address of its location.
    ``narrow``: a scope that includes no more threads than a narrower one of the vocabulary is left out.
    ``threads`` and ``locations``: how many at most; None: any number.
    """

    forms: tuple[Form, ...]
    scopes: tuple[str, ...]
    aliases: bool = False
    narrow: bool = True
    threads: int | None = None
    locations: int | None = None

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels at which threads may be apart, the outermost first."""
        return tuple(reversed(self.scopes[:-1]))


def vocabulary(
    kinds: Collection[str],
    scopes: Collection[str],
    orders: Collection[str] | None = None,
    *,
    narrow: bool = True,
    threads: int | None = None,
    locations: int | None = None,
) -> Vocabulary:
    """The vocabulary with all forms of ``kinds`` in ``scopes``, of ``orders`` only if that is given."""
    chosen = tuple(s for s in SCOPES if s in scopes)
    forms: list[Form] = []
    for kind in KINDS:
        if kind not in kinds:
            continue
        if kind == "alias":
            forms.append(Form("alias"))
            continue
        for order in _ORDERS[kind]:
            if orders is None or order in orders:
                forms += [Form(kind, order)] if order == "weak" else [Form(kind, order, s) for s in chosen]
    return Vocabulary(tuple(forms), chosen, "alias" in kinds, narrow, threads, locations)


def thread_sizes(size: int, threads: int | None = None) -> list[tuple[int, ...]]:
    """How ``size`` instructions can be divided among threads: the sizes of the threads, the largest first."""
    found: list[tuple[int, ...]] = []

    def extend(sizes: tuple[int, ...], rest: int) -> None:
        if rest == 0:
            found.append(sizes)
            return
        if threads is not None and len(sizes) == threads:
            return
        for next_ in range(min(rest, sizes[-1] if sizes else rest), 0, -1):
            extend((*sizes, next_), rest - next_)

    extend((), size)
    return found
