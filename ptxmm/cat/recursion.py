"""Recursive definitions: the shapes with a closed solution, and fixpoints for the rest."""

from __future__ import annotations

from ptxmm.cat.ir import Graph, Node


def solve(graph: Graph, variables: list[Node], bodies: list[Node]) -> list[Node]:
    """The least relations that satisfy ``variables = bodies`` (monotone in the variables).

    One definition of the shape ``r = e | r; s | t; r``, ``r = e | r; r`` or ``r = e | r; s; r`` (e, s, t free of r)
    is solved by closures: ``t*; e; s*``, ``e+`` and ``e; (s; e)*``. Otherwise the nodes are fixpoints.
    """
    if all(not body.open for body in bodies):
        return bodies
    if len(variables) == 1:
        solution = _closed_form(graph, variables[0], bodies[0])
        if solution is not None:
            return [solution]
    return graph.fixpoint(variables, bodies)


def _closed_form(graph: Graph, variable: Node, body: Node) -> Node | None:
    start: Node | None = None
    suffix: Node | None = None
    prefix: Node | None = None
    between: Node | None = None
    squared = False
    for arm in graph.flatten(body, "union"):
        if not arm.open:
            start = arm if start is None else graph.union(start, arm)
            continue
        factors = graph.flatten(arm, "sequence")
        inner = factors[1:-1]
        if arm is variable:
            continue
        if factors[0] is variable and not any(f.open for f in factors[1:]):
            step = graph.sequence(factors[1:])
            suffix = step if suffix is None else graph.union(suffix, step)
        elif factors[-1] is variable and not any(f.open for f in factors[:-1]):
            step = graph.sequence(factors[:-1])
            prefix = step if prefix is None else graph.union(prefix, step)
        elif factors[0] is variable and factors[-1] is variable and not any(f.open for f in inner):
            if not inner:
                squared = True
            else:
                step = graph.sequence(inner)
                between = step if between is None else graph.union(between, step)
        else:
            return None
    if start is None:
        return graph.constant("empty_relation")
    if squared + (between is not None) + (suffix is not None or prefix is not None) > 1:
        return None
    if squared:
        return graph.unary("plus", start)
    if between is not None:
        return graph.union(start, graph.sequence([start, graph.unary("plus", graph.sequence([between, start]))]))
    if suffix is not None:
        start = graph.union(start, graph.sequence([start, graph.unary("plus", suffix)]))
    if prefix is not None:
        start = graph.union(start, graph.sequence([graph.unary("plus", prefix), start]))
    return start
