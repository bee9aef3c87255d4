"""What of a model no witness decides: evaluated once for all executions along the same paths."""

from __future__ import annotations

from collections.abc import Callable

from ptxmm.cat.evaluate import Evaluator
from ptxmm.cat.ir import Model
from ptxmm.cat.names import SELDOM, SETS, absent
from ptxmm.events.explicit.relations.base import base_of, precomputed
from ptxmm.events.explicit.relations.execution import Layout, ReadsFrom


def evaluator_of(model: Model, layout: Layout, base: Callable[[str], int | None]) -> Evaluator[int, int]:
    """An evaluator of ``model`` in an execution with these base sets and relations (``relations.base.base_of``)."""
    sets = {name for name in SETS if not layout.sets.get(name)}
    seldom = {"lives": precomputed(layout, "lives"), "same-value": layout.scene.test.same_value is not None}
    return Evaluator(model, layout.algebra, base, absent(sets, {name for name in SELDOM if not seldom[name]}))


def precomputed_evaluator(model: Model, layout: Layout, *, flags: bool = True) -> Evaluator[int, int]:
    """An evaluator of ``model`` in which nothing is read, ordered or synchronized yet, and that has the values of what
    stays the same; ``flags``: of the model's flags too."""
    evaluator = evaluator_of(model, layout, base_of(layout, ReadsFrom(), 0, 0, {}))
    for _ in evaluator.axioms(flags=flags):
        pass
    return evaluator
