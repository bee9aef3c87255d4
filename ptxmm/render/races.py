"""Data races as text."""

from __future__ import annotations

from ptxmm.analysis.races import RacesResult
from ptxmm.render.execution import execution_lines
from ptxmm.render.style import Style, clean
from ptxmm.render.text import head, separated, tail

_ALWAYS = "neither comes before the other in causality order (8.9.5)"


def text(result: RacesResult, style: Style) -> list[str]:
    """Each race with its two instructions, why they race, and an execution in which they do."""
    lines = head(result)
    for number, race in enumerate(result.races, 1):
        kind = "Mixed-size data race" if race.mixed else "Data race"
        lines.append(style.paint(f"{kind} {number}", "red"))
        for found, access, where in zip((race.first, race.second), race.kinds, race.locations, strict=True):
            lines.append(f"  {clean(str(found))}  ({access} of {clean(where)})")
        if not result.own:
            lines.append(f"  {_ALWAYS}, and they are not morally strong:")
        else:
            lines.append(f"  the flag of {clean(result.model)} relates them")
            lines += ["  and these conditions of morally strong operations do not hold:"] if race.fails else []
        lines += [f"    {reason.name}: {clean(reason.text)} ({reason.section})" for reason in race.fails]
        lines.append("  as in this execution:")
        lines += execution_lines(race.execution, "    ")
    lines.append(_verdict(result, style))
    return lines + tail(result)


def _verdict(result: RacesResult, style: Style) -> str:
    if result.race_free:
        return style.paint("Race-free", "green")
    if not result.races and result.status == "undefined":
        return style.paint("No race found, but the program has no meaning in some execution", "yellow")
    if not result.races and result.status == "inconclusive":
        return style.paint("No race found in the executions that reach their end", "yellow")
    if not result.races:
        return style.paint("No race found, but not all executions were searched", "yellow")
    return style.paint(f"Races {len(result.races)}{'' if result.listed else '+'}", "red")


pages = separated(text)
