"""Tests that can be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ptxmm.analysis.result import Listed, Outcome
from ptxmm.analysis.told import Asked, analysed, streamed, verdict
from ptxmm.api.asking import expected, limits_of, placed, property_named, tell_if_cut
from ptxmm.api.model import ModelName, named
from ptxmm.engines.result import Limits
from ptxmm.errors import PtxmmError
from ptxmm.program import test as program
from ptxmm.render.document import taken
from ptxmm.words import number_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from ptxmm.analysis.result import Analysed, Status
    from ptxmm.analysis.words import Property
    from ptxmm.api.check import Result
    from ptxmm.api.compare import CompareResult
    from ptxmm.api.execution import Execution
    from ptxmm.api.explain import ExplainResult
    from ptxmm.api.fences import FencesResult
    from ptxmm.api.listing import Listing
    from ptxmm.api.progress import ProgressResult
    from ptxmm.api.races import RacesResult
    from ptxmm.api.robust import RobustResult
    from ptxmm.api.scopes import ScopesResult
    from ptxmm.cat import Model
    from ptxmm.engines.fairness import Fairness


R = TypeVar("R", bound=Struct)
T = TypeVar("T", bound="Analysed")

EngineName = Literal["auto", "z3", "enumerate", "both"]
UNROLL, SECONDS = 3, 60.0
"""What the commands take too, if nothing else is said."""


class Test(program.Test, frozen=True):
    """A litmus test, or a launched kernel, that can be asked what the commands are asked.

    Everywhere ``model`` is a name (``ptx-8.5``, ``ptx-8.5[dep=syn]``, a file ``.cat``) or a ``Model``; None: the
    default of the test. ``unroll``: each backward branch is taken at most so many times. ``timeout``: in seconds, None:
    no limit. A search that the limit ends says so in its status, or raises ``Timeout`` if it has nothing to say.

    Errors are ``PtxmmError``: kind ``unsupported`` where a model does not cover the test, ``usage`` for what can't be
    asked, ``internal`` for a bug of ptxmm.
    """

    def check(
        self,
        model: ModelName | None = None,
        *,
        condition: str | None = None,
        engine: EngineName = "auto",
        all_state: bool = False,
        graphs: bool = False,
        unroll: int = UNROLL,
        timeout: float | None = SECONDS,
    ) -> Result:
        """Decide the condition, compare with ``Expect=``, and list all final states.

        ``condition``: another one, such as ``exists (P1:r0 == 1)``; nothing is expected of it. ``all_state``: final
        states have every register written and every location. ``graphs``: each has an execution, and there is a
        picture of the one that decides.
        """
        from ptxmm.api.check import Result

        test = self if condition is None else self.asking(condition)
        name, found = self._under(model)
        limits = limits_of(self, unroll, timeout)
        with placed(self):
            expectation = None if condition is not None else expected(self, name)
            return taken(
                Result,
                verdict(test, name, found, limits, Asked(engine, all_state, graphs=graphs), expectation=expectation),
            )

    def states(
        self,
        model: ModelName | None = None,
        *,
        engine: EngineName = "auto",
        all_state: bool = False,
        unroll: int = UNROLL,
        timeout: float | None = SECONDS,
    ) -> Iterator[Outcome]:
        """The final states that ``check`` lists, each as soon as it is found, in that order; none is kept. ``str`` of
        one is what ``explain`` takes. Warns where there may be others; raises ``Timeout`` where the time, which runs
        from the call on, is over before all are found."""
        name, found = self._under(model)
        with placed(self):
            limits = limits_of(self, unroll, timeout)
            verdict, coming = streamed(self, name, found, limits, Asked(engine, all_state))
        tell_if_cut(verdict.status)
        return self._coming(coming, verdict.status)

    def _coming(self, coming: Iterator[Outcome | Listed], status: Status) -> Iterator[Outcome]:
        """The final states among ``coming``, which ``told.streamed`` gives with a verdict of this ``status``."""
        with placed(self):
            for item in coming:
                if isinstance(item, Outcome):
                    yield item
                elif not item.listed and status != "bounded":
                    tell_if_cut("timeout")

    def executions(
        self,
        model: ModelName | None = None,
        *,
        state: str | None = None,
        all_state: bool = False,
        unroll: int = UNROLL,
        timeout: float | None = SECONDS,
    ) -> tuple[Execution, ...]:
        """An execution for each final state, or for each that ``state`` (``P1:r0=1 x=2``) holds in. Warns and raises as
        ``states``."""
        from ptxmm.analysis.examples import examples
        from ptxmm.api.execution import shown
        from ptxmm.formats.questions import states

        name, found = self._under(model)
        wanted = None if state is None else states(self, state, "state")
        with placed(self):
            limits = limits_of(self, unroll, timeout)
            made = examples(self, found, state=wanted, limits=limits, all_state=all_state)
        tell_if_cut(made.status)
        return tuple(shown(example, name) for example in made.found)

    def explain(
        self,
        model: ModelName | None = None,
        *,
        state: str | None = None,
        misses: bool = True,
        graphs: bool = True,
        unroll: int = UNROLL,
        timeout: float | None = SECONDS,
    ) -> ExplainResult:
        """Why the test may end in ``state`` (``P1:r0=1 x=2``; None: as its condition says), or why not; ``misses``:
        look for the nearest misses, or for repairs; ``graphs``: with a picture."""
        from ptxmm.analysis.explain import explain
        from ptxmm.api.explain import ExplainResult
        from ptxmm.formats.questions import states

        wanted = None if state is None else states(self, state, "state")
        return self._asked(
            ExplainResult, model, unroll, timeout,
            lambda test, model, limits: explain(test, model, limits=limits, state=wanted, misses=misses, graphs=graphs),
        )  # fmt: skip

    def fences(
        self,
        model: ModelName | None = None,
        *,
        wanted: Property | str | None = None,
        most: int | None = 10,
        cost: Collection[str] = (),
        graphs: bool = True,
        unroll: int = UNROLL,
        timeout: float | None = SECONDS,
    ) -> FencesResult:
        """Judge each fence, order and scope, or find the smallest repairs.

        ``wanted``: what must hold, ``never`` (the condition), ``races`` or ``robust``; None: what the launch of a
        kernel claims, else ``never``. ``most``: so many changes are listed, None: all. ``cost``: what a step costs,
        ``fence=4``; ``graphs``: with a picture of what must not be.
        """
        from ptxmm.analysis.fences import fences
        from ptxmm.analysis.strength.changes import costs
        from ptxmm.api.fences import FencesResult

        required, chosen = property_named(wanted), costs(cost)
        return self._asked(
            FencesResult, model, unroll, timeout,
            lambda test, model, limits: fences(
                test, model, wanted=required, costs=chosen, most=most, limits=limits, graphs=graphs
            ),
            lambda test, model, limits: fences(test, model, wanted=required, costs=chosen, most=1, limits=limits),
        )  # fmt: skip

    def races(
        self,
        model: ModelName = "ptx-8.5",
        *,
        most: int = 100,
        graphs: bool = True,
        unroll: int = UNROLL,
        timeout: float | None = SECONDS,
    ) -> RacesResult:
        """The data races, at most so many: which instructions, why they race, and an execution that shows it;
        ``graphs``: with a picture."""
        from ptxmm.analysis.races import races
        from ptxmm.api.races import RacesResult

        return self._asked(
            RacesResult, model, unroll, timeout,
            lambda test, model, limits: races(test, model, limits=limits, most=most, graphs=graphs),
            lambda test, model, limits: races(test, model, limits=limits, most=1),
        )  # fmt: skip

    def scopes(
        self,
        model: ModelName | None = None,
        *,
        wanted: Property | str | None = None,
        most: int = 10,
        unroll: int = UNROLL,
        timeout: float | None = SECONDS,
    ) -> ScopesResult:
        """Where the threads may run, and how narrow scopes may be, so that a property holds; ``wanted``: as of
        ``fences``."""
        from ptxmm.analysis.scopes import scopes
        from ptxmm.api.scopes import ScopesResult

        required = property_named(wanted)
        return self._asked(
            ScopesResult, model, unroll, timeout,
            lambda test, model, limits: scopes(test, model, wanted=required, limits=limits, most=most),
        )  # fmt: skip

    def progress(
        self,
        model: ModelName | None = None,
        *,
        fairness: Fairness = "fair",
        visibility: Literal["strong", "all"] = "strong",
        engine: Literal["enumerate", "both"] = "enumerate",
        unroll: int = UNROLL,
        timeout: float | None = SECONDS,
    ) -> ProgressResult:
        """Can a loop spin, or a barrier wait, for ever? ``fairness``: of the scheduler; ``visibility``: which writes a
        thread that reads for ever sees in the end."""
        from ptxmm.analysis.progress import progress
        from ptxmm.api.progress import ProgressResult

        return self._asked(
            ProgressResult, model, unroll, timeout,
            lambda test, model, limits: progress(
                test, model, limits=limits, fairness=fairness, visibility=visibility, engine=engine
            ),
        )  # fmt: skip

    def robust(
        self,
        model: ModelName | None = None,
        *,
        most: int = 20,
        unroll: int = UNROLL,
        timeout: float | None = SECONDS,
    ) -> RobustResult:
        """Compare the final states with those under ``sc``; at most so many executions are shown."""
        from ptxmm.analysis.robust import robust
        from ptxmm.api.robust import RobustResult

        return self._asked(
            RobustResult, model, unroll, timeout,
            lambda test, model, limits: robust(test, model, limits=limits, most=most),
        )  # fmt: skip

    def compare(
        self,
        other: program.Test | ModelName,
        model: ModelName | None = None,
        *,
        most: int = 3,
        all_state: bool = False,
        unroll: int = UNROLL,
        timeout: float | None = SECONDS,
    ) -> CompareResult:
        """The final states under ``model``, compared with those of ``other``: another model on this test, or a newer
        version of the test under the same model.

        ``most``: so many executions of each side are shown; ``all_state``: of versions, compare every register and
        location that both have.
        """
        from ptxmm.analysis.compare import compare, compare_versions
        from ptxmm.api.compare import CompareResult

        own, _ = self._under(model)
        if isinstance(other, program.Test):
            return self._asked(
                CompareResult, own, unroll, timeout,
                lambda test, model, limits: compare_versions(
                    test, other, model, limits=limits, most=most, all_state=all_state
                ),
            )  # fmt: skip
        name, second = named(other)
        return self._asked(
            CompareResult, own, unroll, timeout,
            lambda test, model, limits: compare(test, model, second, limits=limits, most=most, names=(own, name)),
        )  # fmt: skip

    def show(self) -> Listing:
        """The test as it is understood, with the labels by which results name its instructions."""
        from ptxmm.api.listing import Listing
        from ptxmm.render.listing import listing

        return taken(Listing, listing(self))

    def convert(self, to: Literal["litmus", "dialect", "nvlitmus"] = "litmus") -> str:
        """The test as a file of another format. Raises ``PtxmmError`` (kind ``unsupported``) for what it can't say."""
        from ptxmm.formats.convert import convert

        return convert(self, to)

    def extract(self) -> str:
        """Of a launched kernel, what its threads do to memory as a litmus file. Raises ``PtxmmError`` (kind ``usage``)
        for a litmus test."""
        from ptxmm.formats.modules.extract import skeleton

        if self.claims is None:
            message = "this is a litmus test already"
            raise PtxmmError(message, kind="usage", file=self.file, hint="convert() writes it in another format")
        with placed(self):
            return skeleton(self)

    def asking(self, condition: str) -> Test:
        """The same test with another condition, such as ``exists (P1:r0 == 1)``."""
        from ptxmm.formats.questions import condition as parsed

        return replace(self, condition=parsed(self, condition, "condition"))

    def __str__(self) -> str:
        """The test as a litmus file, which reads back as the same test; of a kernel what ``extract`` gives, or its
        source where that can't be said."""
        from ptxmm.formats.litmus import write

        try:
            return write(self) if self.claims is None else self.extract()
        except PtxmmError:
            return self.text

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()

    def __repr__(self) -> str:
        threads = len(self.threads)
        return f"<Test {self.name}: {number_of(threads, 'thread')}>"

    def _under(self, model: ModelName | None) -> tuple[str, Model]:
        """What results call ``model``, None for that of the test, and the model; one that is named, with the readings
        that the launch of a kernel assumes."""
        return named(self.default_model if model is None else model, self)

    def _asked(
        self,
        kind: type[R],
        model: ModelName | None,
        unroll: int,
        timeout: float | None,
        analysis: Callable[[program.Test, Model, Limits], T],
        brief: Callable[[program.Test, Model, Limits], T] | None = None,
    ) -> R:
        """What ``analysis`` says, as the command of its name tells it (see ``told.analysed``)."""
        name, found = self._under(model)
        with placed(self):
            return taken(kind, analysed(self, name, found, limits_of(self, unroll, timeout), analysis, brief))
