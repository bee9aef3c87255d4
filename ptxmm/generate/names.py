"""Names of programs that say what they are."""

from __future__ import annotations

from ptxmm.generate.realize import location_name
from ptxmm.generate.skeleton import Skeleton, Slot

_KINDS = {"ld": "R", "st": "W", "atom": "X", "red": "A", "fence": "F", "alias": "Falias"}
_ORDERS = {"": "", "weak": "", "relaxed": "r", "acquire": "a", "release": "l", "acq_rel": "al", "sc": "sc"}


def canonical_name(skeleton: Skeleton) -> str:
    """The name of a program in canonical form: threads are joined by ``+``, the instructions of a thread by ``.``.

    An instruction is R (ld), W (st), X (atom.exch), A (red.add) or F (fence), then its location, then its order (none
    for weak, r relaxed, a acquire, l release, al acq_rel, sc) and the first letter of its scope (k for the cluster).
    The places of threads are not part of it.
    """
    return "+".join(".".join(_slot(slot) for slot in body) for body in skeleton.threads)


def _slot(slot: Slot) -> str:
    form = slot.form
    where = location_name(slot.location, slot.name) if slot.location >= 0 else ""
    scope = "" if form.scope is None else "k" if form.scope == "cluster" else form.scope[0]
    return f"{_KINDS[form.kind]}{where}{_ORDERS[form.order]}{scope}"
