"""The command line: ``ptxmm COMMAND ...``."""

# Nothing is imported that Python has not loaded itself (`signal` would take a while): an interrupt is no traceback.
import _signal as signal  # type: ignore[import-not-found]
import gc
import os
import sys

from ptxmm import __version__


def main() -> None:
    """Run the command line and exit (the console script; workers import this module, so nothing is loaded here)."""
    signal.signal(signal.SIGINT, _interrupted)  # until the commands are loaded, which take care of it themselves
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        try:
            os.write(1, f"ptxmm {__version__}\n".encode())
            os._exit(0)
        except OSError:
            pass  # it is told as for every other command
    gc.set_threshold(ALLOCATIONS)
    try:
        from ptxmm.cli.app import run
    except (MemoryError, ImportError, OSError) as error:
        if isinstance(error, ModuleNotFoundError):
            raise
        os.write(2, f"error: ptxmm can't be loaded: {error or 'there is not enough memory'}\n".encode())
        os._exit(3)
    try:
        run()
    except SystemExit as end:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _leave(end.code)
    except KeyboardInterrupt:  # while another end was being told
        _interrupted(signal.SIGINT, None)


ALLOCATIONS = 100_000
"""So many new objects before a search for cycles among them. With Python's 700, a tenth of a short run is searching."""


def _interrupted(number: int, frame: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)


def _leave(code: object) -> None:
    """Exit at once: taking the interpreter to pieces takes a while, in which an interrupt would be a traceback."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 2
    if (processes := sys.modules.get("multiprocessing")) is not None:
        for child in processes.active_children():
            child.kill()  # an error elsewhere has kept its owner from doing that
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)
