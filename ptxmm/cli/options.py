"""The options that commands share, and the settings they make."""

from __future__ import annotations

import os
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from ptxmm.cli import completion
from ptxmm.errors import PtxmmError

if TYPE_CHECKING:
    from ptxmm.cat import Model


class Engine(StrEnum):
    """The engines that a user can choose."""

    auto = "auto"
    z3 = "z3"
    enumerate = "enumerate"
    both = "both"


Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILE...",
        help="Litmus tests (.litmus, .test), PTX modules (.ptx), CUDA sources (.cu), folders of them; - is stdin.",
        show_default=False,
    ),
]
Bundled = Annotated[bool, typer.Option("--bundled", help="Take the litmus tests that come with ptxmm.")]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME|FILE.cat",
        help="A model; may be repeated. [default: those named in Expect=]",
        autocompletion=completion.models,
    ),
]
OwnModel = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME|FILE.cat",
        help="A model; may be repeated. [default: ptx-8.5]",
        autocompletion=completion.models,
    ),
]
"""For commands that do not compare with ``Expect=``. (ptx-7.5 for files with surface accesses and ``.test`` files.)"""

Readings = Annotated[
    list[str] | None,
    typer.Option(
        "--reading",
        metavar="KEY=VALUE",
        help="Choose a reading of the model's text; may be repeated.",
        autocompletion=completion.readings,
    ),
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        metavar="NAME[:DISJUNCT]",
        help="Leave out a check of the model, or a disjunct of a definition, by its number or text; may be repeated.",
        autocompletion=completion.rules,
    ),
]
EngineOption = Annotated[
    Engine, typer.Option("--engine", help="How to search; auto is z3, both compares the two.", show_default=True)
]
Unroll = Annotated[
    int, typer.Option("--unroll", min=0, max=1000, metavar="N", help="Take each backward branch at most N times.")
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", min=0.001, metavar="S", help="Seconds to read a file, and for a test under a model."),
]
NvccOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--nvcc-option", metavar="OPTION", help="An option of nvcc for .cu files, such as -Ipath; may be repeated."
    ),
]
Memory = Annotated[
    int | None,
    typer.Option(
        "--memory",
        min=1,
        max=1 << 30,
        metavar="MB",
        help="Megabytes for each process. [default: its share of the machine's]",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, max=1024, metavar="N", help="Processes. [default: the CPUs]"),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Isa = Annotated[
    str | None,
    typer.Option(
        "--isa", metavar="X.Y", help="Read instructions of this version of the PTX ISA. [default: ISA=, or 8.5]"
    ),
]
Launch = Annotated[
    Path | None,
    typer.Option(
        "--launch",
        metavar="FILE",
        help="How the kernels of .ptx and .cu files are launched: a .toml file, or one with `// ptxmm:` comments.",
    ),
]
AllReadings = Annotated[
    bool,
    typer.Option("--all-readings", help="Change one reading of the model's text at a time; say which matter."),
]
AllState = Annotated[
    bool, typer.Option("--all-state", help="List every register written and every location, not just those named.")
]


class Settings(Struct, frozen=True):
    """Which models each test is run under, and how far: what every command that runs tests is asked for.

    ``models``: none for those that a test names itself. ``timeout``: seconds for reading a file, and for one test under
    one model. ``memory``: megabytes for each process, None: its share of the machine's.
    ``without``: what every model leaves out. ``stdin``: what standard input holds, where ``-`` is a file.
    """

    models: tuple[str, ...] = ()
    readings: tuple[tuple[str, str], ...] = ()
    isa: tuple[int, int] | None = None
    unroll: int = 3
    timeout: float = 60.0
    launch: str | None = None
    memory: int | None = None
    nvcc: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    stdin: str | None = None


LONGEST = 10**8
"""Seconds that every clock of the operating system can count."""


def settings(
    models: list[str] | None,
    readings: list[str] | None,
    isa: str | None,
    unroll: int,
    timeout: float,
    launch: Path | None = None,
    memory: int | None = None,
    nvcc: list[str] | None = None,
    without: list[str] | None = None,
) -> Settings:
    """Check the options that can be wrong for every test alike. Warn of models that define something in vain.

    Raises ``PtxmmError`` (kinds ``usage``, ``model``), also for a reading that has no effect on any model named, or on
    one that names it itself, and for what no model has to leave out.
    """
    if not timeout <= LONGEST:  # nor is it nan
        raise PtxmmError(f"--timeout {timeout:g}: at most {LONGEST} seconds", kind="usage")
    pairs: dict[str, str] = {}
    for item in readings or ():
        key, sign, value = item.partition("=")
        if not sign or not key or not value:
            raise PtxmmError(f"--reading {item}: expected KEY=VALUE", kind="usage", hint="e.g. --reading dep=syn")
        if pairs.setdefault(key, value) != value:
            raise PtxmmError(f"--reading {key} is given twice", kind="usage")
    names = tuple(dict.fromkeys(models or ()))
    if names:
        # A wrong model is one error of the command line, not one of each test.
        _check_models(names, pairs)
    elif pairs:
        from ptxmm.cat import load

        load("ptx-8.5", pairs)  # which readings there are does not depend on the model
    if without:
        _check_left_out(names, without)
    chosen = tuple(sorted(pairs.items()))
    specified = None if launch is None else str(launch)
    if specified == "-":
        hint = "write the launch into a file, or as `// ptxmm:` comments into the module"
        raise PtxmmError("--launch can't be standard input", kind="usage", hint=hint)
    lists = tuple(nvcc or ()), tuple(without or ())
    return Settings(names, chosen, version(isa), unroll, timeout, specified, memory, *lists)


def _check_models(names: tuple[str, ...], pairs: dict[str, str]) -> None:
    from ptxmm.analysis.readings import effective
    from ptxmm.cat import left_out_of, load, split_specification
    from ptxmm.cat.load import WITHOUT
    from ptxmm.cli.console import complain

    models = {name: load(name, pairs) for name in names}
    for name, model in models.items():
        for warning in model.warnings:
            complain(warning)
        plain, own = split_specification(name)
        if WITHOUT in own:
            left_out_of(plain, own[WITHOUT].split("+"))
        for key, value in own.items():
            if pairs.get(key, value) != value:
                raise PtxmmError(f"--reading {key}={pairs[key]}, but --model {name}", kind="usage")
            if key != WITHOUT and not effective(model, key):
                raise PtxmmError(f"the reading {key} has no effect on {plain}", kind="usage", hint=_readings_of(model))
    for key in pairs:
        if not any(effective(model, key) for model in models.values()):
            message = f"--reading {key}={pairs[key]} has no effect on {' and '.join(names)}"
            hint = _readings_of(next(iter(models.values()))) if len(models) == 1 else None
            raise PtxmmError(message, kind="usage", hint=hint)


def _readings_of(model: Model) -> str:
    from ptxmm.analysis.readings import effective
    from ptxmm.cat import index

    keys = [key for key in index().readings if effective(model, key)]
    return f"readings of {model.name}: {', '.join(keys)}"


def _check_left_out(names: tuple[str, ...], without: list[str]) -> None:
    """Each is in one of the models named, or of those that come with ptxmm."""
    from ptxmm.cat import index, left_out_of

    for item in without:
        errors = []
        for name in names or ("ptx-8.5", *index().models):
            try:
                left_out_of(name, [item])
                break
            except PtxmmError as error:
                errors.append(error)
        else:
            raise errors[0]


def version(isa: str | None) -> tuple[int, int] | None:
    """The version of the PTX ISA that ``--isa`` names. Raises ``PtxmmError`` (kind ``usage``) if it is none."""
    if isa is None:
        return None
    match = re.fullmatch(r"([0-9]{1,2})\.([0-9])", isa)
    if match is None:
        raise PtxmmError(f"--isa {isa}: not a version of the PTX ISA", kind="usage", hint="e.g. --isa 8.6")
    return int(match[1]), int(match[2])


def processes(jobs: int | None) -> int:
    """The number of processes to use: as told, else the CPUs this process may use."""
    if jobs is not None:
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
