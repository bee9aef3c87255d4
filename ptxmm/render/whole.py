"""Whole launches as text."""

from __future__ import annotations

from ptxmm.render.style import Style, clean
from ptxmm.render.text import head, separated, tail, verdict_line
from ptxmm.whole.result import WholeResult

WORDS = {
    "race-free": "race-free: no execution has a data race",
    "race": "data race",
    "deadlock": "threads wait for ever",
    "outside": "an access outside of all variables",
    "undefined": "undefined",
    "undecided": "not decided: one execution does not tell of all",
    "unsupported": "not decided: not all of this kernel is followed in a whole launch yet",
    "timeout": "not decided: the time limit was reached",
}
"""What each answer says."""


def text(result: WholeResult, style: Style) -> list[str]:
    """The answer, then where and why."""
    lines = [*head(result), f"Launch {result.ctas} CTAs, {result.threads} threads, {result.accesses} accesses"]
    colour = {True: "green", False: "red", None: "yellow"}[result.holds]
    lines.append(style.paint(f"Answer {WORDS[result.answer]}", colour))
    for race in result.races:
        several = "" if race.pairs == 1 else f" and {race.pairs - 1} other pairs"
        lines += [
            clean(f"Race of {race.place}{several}"),
            f"  {clean(str(race.first))}",
            f"  {clean(str(race.second))}",
        ]
        if race.steps:
            lines += ["  almost ordered by", *(f"    {clean(str(step))}" for step in race.steps)]
        lines += [f"  but {clean(text)}" if race.steps else f"  {clean(text)}" for text in race.fails]
    if result.reason is not None:
        lines.append(f"  {result.reason}")
    if result.spot is not None:
        lines.append(f"  {clean(str(result.spot))}")
    if result.other is not None:
        lines.append(f"  {clean(str(result.other))}")
    if result.choice is not None:
        chosen = result.choice
        lines += [f"  {chosen.text}:", f"  {clean(str(chosen.operation))}", f"  {clean(chosen.advice)}"]
    for item in result.waiting:
        lines.append(
            f"{item.threads} threads at {clean(str(item.spot))}" if item.threads > 1 else clean(str(item.spot))
        )
        lines.append(f"  wait{'' if item.threads > 1 else 's'} for {clean(item.lacks)}")
        lines += [f"    not there: {clean(str(spot))}" for spot in item.missing]
    for claim in result.claims:
        lines.append(verdict_line(claim, style, 0, False))
        lines += [f"      {clean(note.text)}" for note in claim.notes if note.kind == "value"]
    return lines + tail(result)


pages = separated(text)
