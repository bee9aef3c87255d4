"""Programs with one instruction replaced by a plainer or weaker one."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ptxmm.generate.skeleton import Skeleton
from ptxmm.generate.vocabulary import KINDS, ORDERS, SCOPES, Form, Vocabulary

_PLAINER = {"ld": ("ld",), "st": ("st",), "atom": ("ld", "st", "atom"), "red": ("st", "red"), "fence": ("fence",)}


def weaker(skeleton: Skeleton, place: tuple[int, int], words: Vocabulary) -> Iterator[Skeleton]:
    """``skeleton`` with the instruction at ``place`` (thread, position) in a weaker form, the weakest first: a load or
    store for an atomic operation, a weaker order, a narrower scope."""
    t, i = place
    body = skeleton.threads[t]
    old = body[i].form
    forms = [f for f in words.forms if _strength(f) < _strength(old) and f.kind in _PLAINER.get(old.kind, ())]
    for form in sorted(forms, key=_strength):
        changed = (*body[:i], replace(body[i], form=form), *body[i + 1 :])
        yield replace(skeleton, threads=(*skeleton.threads[:t], changed, *skeleton.threads[t + 1 :]))


def _strength(form: Form) -> tuple[int, int, int]:
    return (
        0 if form.kind in ("ld", "st") else KINDS.index(form.kind),
        ORDERS.index(form.order) if form.order else 0,
        SCOPES.index(form.scope) if form.scope is not None else -1,
    )
