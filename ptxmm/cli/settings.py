"""What the options that commands share come to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from ptxmm.errors import PtxmmError

if TYPE_CHECKING:
    from ptxmm.cat import Model
    from ptxmm.cli.options import Run, Tests


class Settings(Struct, frozen=True):
    """Which models each test is run under, and how far: what every command that runs tests is asked for.

    ``models``: none for those that a test names itself. ``timeout``: seconds for reading a file, and for one test under
    one model. ``memory``: megabytes for each process, None: its share of the machine's.
    ``without``: what every model leaves out. ``stdin``: what standard input holds, where ``-`` is a file.
    ``printed``: as of ``Compiling``, while one file is worked on.
    """

    models: tuple[str, ...] = ()
    readings: tuple[tuple[str, str], ...] = ()
    isa: tuple[int, int] | None = None
    unroll: int = 3
    timeout: float = 60.0
    launch: str | None = None
    memory: int | None = None
    nvcc: tuple[str, ...] = ()
    printed: dict[tuple[str, str], str] = {}
    without: tuple[str, ...] = ()
    stdin: str | None = None


LONGEST = 10**8
"""Seconds that every clock of the operating system can count."""


def settings(tests: Tests, run: Run) -> Settings:
    """Check the options that can be wrong for every test alike. Warn of models that define something in vain.

    Raises ``PtxmmError`` (kinds ``usage``, ``model``), also for a reading that has no effect on any model named, or on
    one that names it itself, and for what no model has to leave out.
    """
    if not run.timeout <= LONGEST:  # nor is it nan
        raise PtxmmError(f"--timeout {run.timeout:g}: at most {LONGEST} seconds", kind="usage")
    pairs: dict[str, str] = {}
    for item in tests.reading or ():
        key, sign, value = item.partition("=")
        if not sign or not key or not value:
            raise PtxmmError(f"--reading {item}: expected KEY=VALUE", kind="usage", hint="e.g. --reading dep=syn")
        if pairs.setdefault(key, value) != value:
            raise PtxmmError(f"--reading {key} is given twice", kind="usage")
    names = tuple(dict.fromkeys(tests.model or ()))
    if names:
        # A wrong model is one error of the command line, not one of each test.
        _check_models(names, pairs)
    elif pairs:
        from ptxmm.cat import load

        load("ptx-8.5", pairs)  # which readings there are does not depend on the model
    if tests.without:
        _check_left_out(names, tests.without)
    launch = None if run.launch is None else str(run.launch)
    if launch == "-":
        hint = "write the launch into a file, or as `// ptxmm:` comments into the module"
        raise PtxmmError("--launch can't be standard input", kind="usage", hint=hint)
    return Settings(
        models=names,
        readings=tuple(sorted(pairs.items())),
        isa=version(run.isa),
        unroll=run.unroll,
        timeout=run.timeout,
        launch=launch,
        memory=run.memory,
        nvcc=tuple(run.nvcc_option or ()),
        without=tuple(tests.without or ()),
    )


def _check_models(names: tuple[str, ...], pairs: dict[str, str]) -> None:
    from ptxmm.analysis.readings import effective
    from ptxmm.cat import left_out_of, load, split_specification
    from ptxmm.cat.shipped import WITHOUT
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
