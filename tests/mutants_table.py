"""Which tests of ``litmus/`` notice each mutant: ``tests/mutants.toml``, two tests for each where there are two.

``python -m tests.mutants_table`` brings the file up to date: rows that still hold stay, the others are searched for.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from ptxmm.cat import index
from tests.emptiness import may_notice
from tests.mutants import LITMUS, Mutant, cases, mutants, notices, own_verdict, with_readings
from tests.mutants_exempt import exempt

FILE = Path(__file__).with_suffix("").with_name("mutants.toml")
WANTED = 2
Table = dict[str, dict[str, list[str]]]


def table() -> Table:
    """By model and mutant, the tests that notice it."""
    return tomllib.loads(FILE.read_text()) if FILE.is_file() else {}


def search(mutant: Mutant, first: Iterable[str] = (), wanted: int = WANTED) -> list[str]:
    """Up to ``wanted`` tests that notice the mutant, those of ``first`` before all others."""
    loaded = mutant.load()
    found: list[str] = []
    for name in dict.fromkeys([*first, *cases(mutant.model)]):
        if len(found) == wanted:
            break
        if (LITMUS / f"{name}.litmus").is_file() and may_notice(name, mutant) and notices(name, mutant, loaded):
            found.append(name)
    return found


def write(rows: Table) -> None:
    """Write ``mutants.toml``."""
    lines = ["# The tests of litmus/ that notice each mutant; `python -m tests.mutants_table` brings this up to date."]
    lines.append("")
    for model, found in rows.items():
        lines.append(f'["{model}"]')
        for name, tests in found.items():
            assert "'" not in name
            quoted = ", ".join(f'"{t}"' for t in tests)
            lines.append(f"'{name}' = [{quoted}]")
        lines.append("")
    FILE.write_text("\n".join(lines).rstrip() + "\n")


def main() -> None:
    old: Table = table()
    new: Table = {}
    for model in (*index().models, *with_readings()):
        rows: dict[str, list[str]] = {}
        for mutant in mutants(model):
            if exempt(mutant):
                continue
            known = old.get(model, {}).get(mutant.name, [])
            loaded = mutant.load()
            good = [t for t in known if own_verdict_of(t, model) and notices(t, mutant, loaded)]
            rows[mutant.name] = good if len(good) >= WANTED else search(mutant, known)
            if not rows[mutant.name]:
                print(f"no test notices: {model} {mutant.name}", flush=True)
                del rows[mutant.name]
        if rows:
            new[model] = rows
    write(new)


def own_verdict_of(name: str, model: str) -> bool:
    """Whether there is such a test, with a verdict."""
    return (LITMUS / f"{name}.litmus").is_file() and own_verdict(name, model) is not None


if __name__ == "__main__":
    main()
