"""What is claimed of a launched kernel: its condition, freedom from data races, robustness."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from ptxmm.analysis.expectation import Expectation
from ptxmm.analysis.readings import effective
from ptxmm.cat import load, specification, split_specification
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.program.test import AssumedReading, Test

RACES, ROBUST = "no data races", "robust"
BOUNDS, BARRIERS, TRAPS = "no access outside", "convergent barriers", "no traps"
CLAIMS = (RACES, ROBUST, BOUNDS, BARRIERS, TRAPS)
"""The claims besides the condition, as results name them."""

KEYS: Mapping[str, str] = MappingProxyType({BOUNDS: "bounds", BARRIERS: "barriers", TRAPS: "traps"})
"""The keys in a launch of the claims that executions without meaning refute."""

MISUSES: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        BOUNDS: re.compile("access outside every object"),
        BARRIERS: re.compile(
            r"in one phase of barrier \d|barrier\.cluster|barrier \d+, but a CTA|threads at a barrier, which"
            r"|not in its own mask|execute together"
        ),
        TRAPS: re.compile(": traps$"),
    }
)
"""By which words the misuses are known that refute a claim."""

HOLDS = Expectation("holds", False)
"""What is expected of the condition of a kernel: it holds, and no execution waits for ever at a barrier."""


def claimed(test: Test) -> tuple[str | None, ...]:
    """What has to be decided of ``test``: None stands for its condition (its final states, if there is none)."""
    claims = test.claims
    if claims is None:
        return (None,)
    wanted = claims.races, claims.robust, claims.bounds, claims.barriers, claims.traps
    found = [name for name, there in zip(CLAIMS, wanted, strict=True) if there]
    return tuple(found) if found and test.condition is None else (None, *found)


def trapping(test: Test) -> Test:
    """The kernel ``test`` with traps that have no meaning; as it is where nothing is claimed of traps."""
    return test if test.claims is None or test.claims.trapping is None else test.claims.trapping


def limits_of(test: Test, limits: Limits) -> Limits:
    """``limits`` with the bound of loops that the launch states."""
    unroll = None if test.claims is None else test.claims.unroll
    return limits if unroll is None else replace(limits, unroll=unroll)


def assumed_of(test: Test, model: str, chosen: Mapping[str, str] | None = None) -> str:
    """``model`` with the readings that the launch of ``test`` assumes, as a specification: verdicts name it.

    Left out are those that are ``chosen`` otherwise, or by ``model`` itself, and those that have no effect on it.
    Raises ``PtxmmError`` (kind ``usage``) at its place in the launch for what is no reading.
    """
    return model if test.claims is None else assuming(test.claims.readings, model, chosen)


def assuming(assumed: Sequence[AssumedReading], model: str, chosen: Mapping[str, str] | None = None) -> str:
    """The same of the readings ``assumed`` in a launch."""
    if not assumed:
        return model
    name, own = split_specification(model)
    readings = dict(own)
    for item in assumed:
        try:
            found = load(name, {item.key: item.value})
        except PtxmmError as error:
            error.file, error.source = item.file, item.line
            raise error.at(item.span) from None
        if effective(found, item.key) and item.key not in (chosen or ()):
            readings.setdefault(item.key, item.value)
    return specification(name, readings)
