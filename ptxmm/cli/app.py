"""The typer application: its commands, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from importlib import import_module
from io import BufferedWriter, RawIOBase, TextIOWrapper
from types import FrameType
from typing import Annotated, Any

import typer

from ptxmm.analysis.words import Exit
from ptxmm.cli.console import complain
from ptxmm.cli.exits import Terminated, error_code
from ptxmm.cli.memory import is_shortage
from ptxmm.cli.options import spread
from ptxmm.errors import PtxmmError

COMMANDS = (
    "check", "outcomes", "explain", "races", "fences", "robust", "scopes", "progress", "compare", "convert", "models",
    "lint", "extract", "show", "new", "generate", "sweep", "emit", "run", "serve", "site",
)  # fmt: skip
"""Each is the function of that name in the module of that name beside this one."""


def application(arguments: Sequence[str] = ()) -> typer.Typer:
    """The commands, without rich's markup and tracebacks (they would cost a third of the start-up time).

    Of a command line that begins with a command, only that one is loaded.
    """
    app = typer.Typer(
        name="ptxmm",
        help="Which final states does the PTX memory model allow, and is the condition of a litmus test met?",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_main)
    named = arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS
    for name in named:
        app.command()(_guarded(spread(getattr(import_module(f"ptxmm.cli.{name}"), name))))
    return app


def run(arguments: list[str] | None = None) -> None:
    """Run the command line (of this process, or ``arguments``) and exit with ``SystemExit``, whatever happens."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before the start
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (for as long as the process lives)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, TextIOWrapper):
            if isinstance(stream.buffer, RawIOBase):  # python -u: what a write is interrupted in would be lost
                whole = BufferedWriter(stream.buffer)
                setattr(sys, name, stream := TextIOWrapper(whole, stream.encoding, line_buffering=True))
            stream.reconfigure(errors="backslashreplace")  # names of files need not be text
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, _terminate)
        sys.unraisablehook = _lost
    try:
        # typer itself turns a usage error into exit code 2, which is also ours.
        application(sys.argv[1:] if arguments is None else arguments)(arguments, prog_name="ptxmm")
    except SystemExit as end:
        # The help of a command is written by typer, for which a closed pipe is an exit code of 1.
        if isinstance(end.__context__, BrokenPipeError):
            sys.exit(_report(end.__context__))
        raise
    except (Exception, KeyboardInterrupt) as error:
        sys.exit(_report(error))


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


def _lost(found: sys.UnraisableHookArgs) -> None:
    """Called for an exception that nobody can catch: a signal that comes while an object is finalized is sent again."""
    if isinstance(found.exc_value, KeyboardInterrupt):
        number = signal.SIGTERM if isinstance(found.exc_value, Terminated) else signal.SIGINT
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), number))  # a thread would keep workers from forks
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(found)


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """``command`` with its errors told: typer would turn an interrupt or a closed pipe into exit code 1."""

    @wraps(command)
    def wrapper(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except typer.Exit as end:
            try:
                sys.stdout.flush()
            except OSError as error:
                raise typer.Exit(_report(error)) from end
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(_report(error)) from error

    return wrapper


def _report(error: BaseException) -> int:
    """Tell the user on stderr what ended the program; the exit code."""
    match error:
        case BrokenPipeError():
            _discard_output()
            return Exit.BROKEN_PIPE
        case Terminated():
            print("terminated", file=sys.stderr)
            return Exit.TERMINATED
        case KeyboardInterrupt():
            print("interrupted", file=sys.stderr)
            return Exit.INTERRUPTED
        case _ if is_shortage(error):
            print("error: there is not enough memory", file=sys.stderr)
            return Exit.INCONCLUSIVE
        case OSError():
            # Files of the input are read elsewhere: this is standard output on a full disk, or the like.
            with suppress(OSError):
                print(f"error: {error.strerror or type(error).__name__}", file=sys.stderr)
            _discard_output()
            return Exit.BAD_INPUT
        case PtxmmError():
            complain("\n".join(map(str, (error, *error.more))))
            return error_code(error.kind)
        case _:
            print(f"internal error: {type(error).__name__}: {error}", file=sys.stderr)
            print("this is a bug in ptxmm; please report it with the input that caused it", file=sys.stderr)
            return Exit.BUG


def _discard_output() -> None:
    """Nobody takes what is still to be written; without this, the interpreter would complain at its exit."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
            continue
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _version(value: bool) -> None:
    if value:
        import ptxmm

        typer.echo(f"ptxmm {ptxmm.__version__}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
