"""``ptxmm show``: tests with their instructions numbered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxmm.cli.analyses import Asking
from ptxmm.cli.frame import answer
from ptxmm.cli.options import Bundled, Files, Format, Isa, Jobs, Json, Launch, Memory, NvccOptions, Run, Tests, Timeout

if TYPE_CHECKING:
    from ptxmm.analysis.result import Expired
    from ptxmm.cat import Model
    from ptxmm.cli.inputs import Job
    from ptxmm.engines.result import Limits
    from ptxmm.render.listing import Listing


def show(
    files: Files = None,
    *,
    bundled: Bundled = False,
    launch: Launch = None,
    timeout: Timeout = 60.0,
    jobs: Jobs = None,
    memory: Memory = None,
    format: Format = "text",
    json: Json = False,
    isa: Isa = None,
    nvcc_option: NvccOptions = None,
) -> None:
    """Print tests as they are understood: memory, threads and where they run, and each instruction with the label by
    which results name it, such as P0:36 (thread and line, and column where that is needed).

    Exit code: 0 shown, 2 bad input.
    """
    run = Run(
        timeout=timeout, jobs=jobs, memory=memory, format=format, json=json, isa=isa, launch=launch,
        nvcc_option=nvcc_option,
    )  # fmt: skip
    work: Asking[Listing | Expired] = Asking(_shown)
    answer(work, "show", Tests(files=files, bundled=bundled), run)


def _shown(job: Job, model: Model, limits: Limits) -> Listing:
    from ptxmm.render.listing import listing

    return listing(job.test)
