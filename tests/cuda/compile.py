"""Print the PTX of every CUDA source of this folder and those in it with nvcc and keep it beside the source.

``python tests/cuda/compile.py`` writes ``X.ptx`` for every ``X.cu``; ``--check`` writes nothing and fails if a file
that is checked in is not what nvcc prints now; names (``mp_fence``, ``mp_fence.cu``) limit either to some sources. The
architecture is sm_90 unless the first line of the source says another: ``// nvcc: -arch=sm_90a``.

nvcc puts its own installation and the place of the checkout into the PTX. Both are taken out, so that the files are
the same wherever they are printed: paths of ``.file`` become relative, and the hash of the path in the names that nvcc
makes for internal functions becomes zeros.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
FLAGS = re.compile(r"// nvcc:(?P<flags>.*)")
FILE = re.compile(r'^(?P<head>\s*\.file\s+\d+\s+")(?P<path>[^"]*)"(?:,\s*\d+,\s*\d+)?', re.MULTILINE)
STRING = re.compile(r"(?P<head>^\$L__info_string\d+:\n)(?P<bytes>(?:\.b8 [\d,]+\n)+)", re.MULTILINE)
INTERNAL = re.compile(r"(?:(?<=_INTERNAL_)|(?<=_GLOBAL__N__))[0-9a-f]{8}(?=_)")


def flags(source: Path) -> list[str]:
    """The options of nvcc for one source: those of its first line, else the default architecture."""
    with source.open(encoding="utf-8") as lines:
        match = FLAGS.match(lines.readline())
    return match["flags"].split() if match else ["-arch=sm_90"]


def portable(ptx: str) -> str:
    """PTX without what depends on the machine that printed it."""

    def file(match: re.Match[str]) -> str:
        path = match["path"]
        _, include, inside = path.rpartition("/include/")
        return f'{match["head"]}{inside if include else Path(path).name}"'

    def string(match: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", match["bytes"].replace(".b8", ""))]
        text = INTERNAL.sub("0" * 8, bytes(numbers).decode("latin-1")).encode("latin-1")
        rows = [text[start : start + 40] for start in range(0, len(text), 40)]
        return match["head"] + "".join(".b8 " + ",".join(map(str, row)) + "\n" for row in rows)

    return STRING.sub(string, INTERNAL.sub("0" * 8, FILE.sub(file, ptx)))


def compiled(source: Path, nvcc: str) -> str:
    """What nvcc prints for one source. Raises RuntimeError with the messages of nvcc if it refuses the source."""
    command = [nvcc, *flags(source), "-lineinfo", "-ptx", source.name, "-o", "-"]
    result = subprocess.run(command, cwd=source.parent, capture_output=True, text=True, check=False)
    if result.returncode or result.stderr:
        raise RuntimeError(f"{source.name}:\n{result.stderr}")
    return portable(result.stdout)


def main(arguments: list[str] | None = None) -> int:
    """Print or check the PTX of the sources that are named, or of all; 0 if all went well."""
    parser = argparse.ArgumentParser(description="Print the PTX of the CUDA sources of this folder.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a checked-in file differs")
    parser.add_argument("names", nargs="*", help="sources to do (default: all)")
    options = parser.parse_args(arguments)
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        print("nvcc was not found", file=sys.stderr)
        return 2
    names = {name.removesuffix(".cu").rpartition("/")[2] + ".cu" for name in options.names}
    sources = sorted(path for path in FOLDER.rglob("*.cu") if not names or path.name in names)
    for missing in sorted(names - {source.name for source in sources}):
        print(f"{missing}: no such source", file=sys.stderr)
        return 2

    def one(source: Path) -> str | None:
        try:
            text = compiled(source, nvcc)
        except RuntimeError as refusal:
            return str(refusal)
        target = source.with_suffix(".ptx")
        if options.check:
            same = target.is_file() and target.read_text(encoding="utf-8") == text
            return None if same else f"{target.name}: is not what nvcc prints now"
        target.write_text(text, encoding="utf-8")
        return None

    with ThreadPoolExecutor(2) as pool:
        faults = [fault for fault in pool.map(one, sources) if fault]
    print("\n".join(faults) or f"{len(sources)} sources", file=sys.stderr if faults else sys.stdout)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
