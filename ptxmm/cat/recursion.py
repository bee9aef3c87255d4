"""Recursive definitions: the shapes with a closed solution, and fixpoints for the rest."""

from __future__ import annotations

from functools import reduce

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
    starts: list[Node] = []
    before, after, between = list[Node](), list[Node](), list[Node]()
    squared = False
    for arm in graph.flatten(body, "union"):
        if not arm.open:
            starts.append(arm)
        elif arm is not variable:
            factors = graph.flatten(arm, "sequence")
            first, last = factors[0] is variable, factors[-1] is variable
            steps = factors[first : len(factors) - last]
            if not (first or last) or any(f.open for f in steps):
                return None
            if steps:
                (between if first and last else after if first else before).append(graph.sequence(steps))
            squared = squared or not steps
    if not starts:
        return graph.constant("empty_relation")
    if squared + bool(between) + bool(before or after) > 1:
        return None
    found = reduce(graph.union, starts)
    if squared:
        return graph.unary("plus", found)
    if between:
        again = graph.sequence([reduce(graph.union, between), found])
        return graph.union(found, graph.sequence([found, graph.unary("plus", again)]))
    if after:
        found = graph.union(found, graph.sequence([found, graph.unary("plus", reduce(graph.union, after))]))
    if before:
        found = graph.union(found, graph.sequence([graph.unary("plus", reduce(graph.union, before)), found]))
    return found
