"""The options that commands share, each declared once, and the records of those that go together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from enum import StrEnum
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from msgspec import Struct
from msgspec.structs import fields

from ptxmm.analysis.words import Property
from ptxmm.cli import completion
from ptxmm.errors import PtxmmError
from ptxmm.render import DRAWN, formats


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


def _model(default: str) -> Any:
    help = f"A model; may be repeated. [default: {default}]"
    return typer.Option("--model", "-m", metavar="NAME|FILE.cat", help=help, autocompletion=completion.models)


Models = Annotated[list[str] | None, _model("those named in Expect=")]
OwnModel = Annotated[list[str] | None, _model("ptx-8.5")]
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
Format = Annotated[str, typer.Option("--format", help="The form of the output.")]
Json = Annotated[bool, typer.Option("--json", help="Short for --format json.")]
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
Wanted = Annotated[
    Property | None,
    typer.Option(
        "--property",
        help="What must hold: the condition never, no data races, only states of sc. [default: what the launch of "
        "a kernel claims, else never]",
    ),
]
AllReadings = Annotated[
    bool,
    typer.Option("--all-readings", help="Change one reading of the model's text at a time; say which matter."),
]
Each = Annotated[
    bool, typer.Option("--each", help="In pictures (svg, dot): draw every execution, not just the one that decides.")
]
AllState = Annotated[
    bool, typer.Option("--all-state", help="List every register written and every location, not just those named.")
]


class Tests(Struct, frozen=True, kw_only=True):
    """Which tests are run, and under which models."""

    files: Files = None
    bundled: Bundled = False
    model: Models = None
    reading: Readings = None
    without: Without = None


class OwnTests(Tests, frozen=True, kw_only=True):
    """The same where ``Expect=`` is not looked at."""

    model: OwnModel = None


class Run(Struct, frozen=True, kw_only=True):
    """How tests are read and run, and how their results are shown."""

    unroll: Unroll = 3
    timeout: Timeout = 60.0
    jobs: Jobs = None
    memory: Memory = None
    format: Format = "text"
    json: Json = False
    isa: Isa = None
    launch: Launch = None
    nvcc_option: NvccOptions = None


class Programs(Struct, frozen=True, kw_only=True):
    """The programs that ``compare --generate`` tries."""

    kinds: Annotated[
        str | None,
        typer.Option(
            "--kinds",
            metavar="K,...",
            help="Instructions of --generate, of: ld st atom red fence alias. [default: those of both models]",
        ),
    ] = None
    scopes: Annotated[
        str | None, typer.Option("--scopes", metavar="S,...", help="Scopes of --generate. [default: cta,gpu]")
    ] = None
    orders: Annotated[
        str | None, typer.Option("--orders", metavar="O,...", help="Orders of --generate. [default: all]")
    ] = None
    threads: Annotated[
        int | None, typer.Option("--threads", min=1, metavar="N", help="The most threads of --generate.")
    ] = None
    locations: Annotated[
        int | None, typer.Option("--locations", min=1, metavar="N", help="The most locations of --generate.")
    ] = None  # fmt: skip


class Cycles(Struct, frozen=True, kw_only=True):
    """Which tests are generated: those of cycles that are given, or a family."""

    cycles: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CYCLE...",
            help="Cycles of relaxations, such as `MP`, or `PodWW release.gpu Rfe acquire.gpu PodRR Fre @cta`.",
            show_default=False,
        ),
    ] = None
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=2, max=8, metavar="N", help="Of a family: at most so many threads. [default: 2]"),
    ] = None
    instructions: Annotated[
        int | None,
        typer.Option(
            "--instructions",
            min=2,
            max=8,
            metavar="N",
            help="At most so many accesses; fences and barriers come on top. [default: 4]",
        ),
    ] = None
    orders: Annotated[
        str | None,
        typer.Option(
            "--orders",
            metavar="O,...",
            help="Of: weak volatile relaxed acquire release acq_rel fence.acq_rel fence.sc. "
            "[default: weak,relaxed,acquire,release]",
        ),
    ] = None
    scopes: Annotated[
        str | None, typer.Option("--scopes", metavar="S,...", help="Of: cta cluster gpu sys. [default: gpu]")
    ] = None
    placements: Annotated[
        str | None,
        typer.Option(
            "--placements",
            metavar="P,...",
            help="How far the threads are from each other: cta cluster gpu sys, or with mixed all scope trees of "
            "these. [default: gpu]",
        ),
    ] = None
    edges: Annotated[
        str | None,
        typer.Option(
            "--edges",
            metavar="E,...",
            help="Of: po pos addr data ctrl rmw vector bar cluster mbarrier alias b64. [default: po]",
        ),
    ] = None
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, metavar="K", help="Only K tests of the family, drawn by chance.")
    ] = None
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="What they are drawn with.")] = 1
    interesting: Annotated[
        bool,
        typer.Option(
            "--interesting", help="Only tests that are allowed, and forbidden with one order, scope or fence stronger."
        ),
    ] = False
    separate: Annotated[
        str | None,
        typer.Option(
            "--separate", metavar="A,B", help="Only tests of which two models, or readings, say different things."
        ),
    ] = None  # fmt: skip


def format_of(run: Run) -> str:
    """The form of the output."""
    return "json" if run.json else str(run.format)


def graphs_of(run: Run) -> bool:
    """Whether the form of the output shows executions as graphs."""
    return format_of(run) in DRAWN


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` as typer takes it: with the options themselves in the place of each record of options, and in
    ``--format`` the formats that the results of the command have. Only one form of output can be asked for."""
    hints = get_type_hints(command, include_extras=True)
    records = {name: kind for name, kind in hints.items() if isinstance(kind, type) and issubclass(kind, Struct)}

    def parameters() -> Iterator[Parameter]:
        for name, parameter in signature(command).parameters.items():
            if name in records:
                own = get_type_hints(records[name], include_extras=True)
                yield from (_parameter(field.name, own[field.name], field.default) for field in fields(records[name]))
            else:
                yield _parameter(name, hints[name], parameter.default)

    def _parameter(name: str, kind: Any, default: Any) -> Parameter:
        if name == "format":
            names = formats(command.__name__)
            if command.__name__ == "check":
                names = list(dict.fromkeys((*names, *formats("whole"))))  # those of --whole, too
            kind = Annotated[StrEnum("Format", {f: f for f in names}), *get_args(kind)[1:]]
        return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)

    def wrapper(context: typer.Context, **options: Any) -> None:
        named = context.get_parameter_source("format")
        if options.get("json") and named is not None and named.name == "COMMANDLINE" and options["format"] != "json":
            raise PtxmmError(f"--json and --format {options['format']} exclude each other", kind="usage")
        for name, record in records.items():
            options[name] = record(**{field.name: options.pop(field.name) for field in fields(record)})
        command(**options)

    wrapper.__name__, wrapper.__doc__ = command.__name__, command.__doc__
    context = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    wrapper.__signature__ = Signature([context, *parameters()])  # type: ignore[attr-defined]
    return wrapper


def processes(jobs: int | None) -> int:
    """The number of processes to use: as told, else the CPUs this process may use."""
    if jobs is not None:
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
