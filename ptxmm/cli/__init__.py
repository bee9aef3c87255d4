"""The command line: ``ptxmm COMMAND ...``."""

from __future__ import annotations


def main() -> None:
    """Run the command line and exit (the console script; workers import this module, so nothing is loaded here)."""
    from ptxmm.cli.app import run

    run()
