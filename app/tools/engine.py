"""The way of one tool call: found, checked, agreed to, run within its limits, recorded."""

import asyncio
import inspect
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from app.messages import JSON, seconds_in
from app.people import may_use
from app.store.tool_statistics import UNKNOWN_TOOL
from app.text import Private
from app.tools.confirmation import ConfirmationPolicy, NoTTYError, TurnAborted
from app.tools.context import CallTerms, Recorder, ToolContext
from app.tools.limits import DaemonThreads, Rates
from app.tools.masking import mask_arguments
from app.tools.plain import TooLarge, dumps
from app.tools.registry import ToolRegistry, close_names
from app.tools.result import OUTPUT_LIMIT, ToolResult, bounded, own_words, raised, settled, too_large
from app.tools.tool import Tool
from app.tools.validation import InvalidArguments

log = structlog.get_logger(__name__)

OnCall = Callable[[str, str, float | None], None]
"""Told after each call: the tool's name ("unknown" for one that is not there), "ok" or a code, as the tool
chose it, and the seconds from the intent to the result: None where it was refused before it ran."""

_RETRIED = frozenset({"UPSTREAM_RATE_LIMIT", "UPSTREAM_ERROR"})
_ATTEMPTS = 4
_FIRST_PAUSE = 0.5
_GRACE = 0.2
_SMALL = 20_000
"""Characters and parts of a result that the loop looks at itself; larger ones are read in a thread."""

_Outcome = ToolResult | BaseException
"""The end of a run: a result, or the exception that was raised."""


class ExecutionEngine:
    """Runs tool calls for a model.

    `recorder` keeps intents and results where the context brings none of its own. `retry_clock` waits
    that many seconds before another attempt of an idempotent tool, or for its turn under `rates`.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        policy: ConfirmationPolicy,
        dry_run: bool = False,
        *,
        recorder: Recorder | None = None,
        retry_clock: Callable[[float], Awaitable[object]] = asyncio.sleep,
        on_call: OnCall | None = None,
        output_limit: int = OUTPUT_LIMIT,
        threads: DaemonThreads | None = None,
        rates: Rates | None = None,
    ) -> None:
        self.registry = registry
        self.policy = policy
        self.dry_run = dry_run
        self._recorder = recorder
        self._pause = retry_clock
        self._on_call = on_call
        self._output_limit = output_limit
        self._threads = threads or DaemonThreads()
        self._rates = rates or Rates()
        self._left_behind: set[asyncio.Task[_Outcome]] = set()

    async def execute_tool_call(
        self,
        name: str,
        args: dict[str, JSON] | str | None,
        context: ToolContext | None = None,
        terms: CallTerms | None = None,
    ) -> ToolResult:
        """Run the call and return its result; raise nothing but the cancellation of the caller."""
        context, terms, duration = context or ToolContext(), terms or CallTerms(), _Duration()
        tool = self._find(name, context)
        result = await self._attempt(name, tool, args, context, terms, duration)
        return await self._settle(tool, result, terms, duration.seconds)

    async def refuse(
        self, name: str, result: ToolResult, context: ToolContext, terms: CallTerms | None = None
    ) -> ToolResult:
        """Record and count a call that was refused before; return what was recorded."""
        return await self._settle(self._find(name, context), result, terms or CallTerms(), None)

    def too_often(self, tool: Tool, context: ToolContext) -> ToolResult | None:
        """Return the refusal of a call that would have to wait longer than it can, else None."""
        if not tool.calls_per_minute:
            return None
        wait = self._rates.wait(tool.name, _caller(context), tool.calls_per_minute)
        return _too_often(tool, wait) if wait > 0 and wait >= _patience(tool) else None

    async def _attempt(
        self,
        name: str,
        tool: Tool | None,
        args: dict[str, JSON] | str | None,
        context: ToolContext,
        terms: CallTerms,
        duration: "_Duration",
    ) -> ToolResult:
        if tool is None:
            return self._unknown(name, context, terms)
        if terms.offered is not None and tool.name not in terms.offered:
            return ToolResult.failure(
                "NOT_OFFERED",
                f"{tool.name} was not offered in this turn",
                f"use one of: {', '.join(sorted(terms.offered)) or 'none'}",
            )
        try:
            checked = tool.validate_args(args)
            tool.check(checked, context)
        except InvalidArguments as error:
            return ToolResult.failure(
                "BAD_REQUEST", str(error), "mend the arguments and call it again", invalid_arguments=True
            )
        except ValueError as error:
            return ToolResult.failure("BAD_REQUEST", own_words(error), "mend the arguments and call it again")
        except BaseException as error:  # a check that calls exit() ends its call, not the server
            return _raised(tool, error, args)
        if self.dry_run and not tool.harmless:
            return ToolResult.success(f"[DRY-RUN] {call_text(tool.name, checked)}", dry_run=True)
        refusal = self.too_often(tool, context) or await self._refusal(tool, checked, terms)
        if refusal is not None:
            return refusal
        wait = self._wait_for_turn(tool, context)
        if wait > 0 and wait >= _patience(tool):  # others were quicker while somebody was asked
            return _too_often(tool, wait)
        return await self._run_recorded(tool, checked, context, terms, wait, duration)

    def _find(self, name: str, context: ToolContext) -> Tool | None:
        tool = self.registry.find(name) if isinstance(name, str) else None
        return tool if tool is not None and _may_know(tool, context) else None

    def _unknown(self, name: str, context: ToolContext, terms: CallTerms) -> ToolResult:
        names = [tool.name for tool in self.registry.list_all() if _may_know(tool, context)]
        if terms.offered is not None:
            names = [known for known in names if known in terms.offered]
        close = close_names(name, names)
        hint = f"did you mean {' or '.join(close)}?" if close else "use only the tools that were offered"
        return ToolResult.failure("UNKNOWN_TOOL", f"no tool is named {str(name)[:100]!r}", hint)

    def _wait_for_turn(self, tool: Tool, context: ToolContext) -> float:
        if not tool.calls_per_minute:
            return 0.0
        return self._rates.reserve(tool.name, _caller(context), tool.calls_per_minute, _patience(tool))

    async def _refusal(self, tool: Tool, args: dict[str, JSON], terms: CallTerms) -> ToolResult | None:
        """Return the result of a call that may not run; `None` when it may."""
        if terms.approved is tool or tool.harmless:
            return None
        must_ask = terms.must_ask or terms.approved is not None  # that yes was to another tool
        try:
            if not (must_ask or self.policy.should_confirm(tool)):
                return None
            agreed = await self.policy.request_confirmation(tool.name, args, terms.note)
        except NoTTYError as error:
            hint = "say what would have been done and that somebody must allow it first"
            return ToolResult.failure("NO_TTY", str(error), hint)
        except TurnAborted as error:
            return ToolResult.failure("DENIED", str(error), "stop here and answer briefly", aborted=True)
        except BaseException as error:
            if _ends_the_caller(error):
                raise
            log.warning("could not ask for confirmation", tool=tool.name, error=own_words(error))
            return ToolResult.failure("DENIED", f"nobody could be asked about {tool.name}, so it did not run")
        if agreed:
            return None
        hint = "do not call it again with the same arguments; ask what to do instead"
        return ToolResult.failure("DENIED", f"the person refused {tool.name}", hint)

    async def _run_recorded(
        self,
        tool: Tool,
        args: dict[str, JSON],
        context: ToolContext,
        terms: CallTerms,
        wait: float,
        duration: "_Duration",
    ) -> ToolResult:
        if wait:
            await self._pause(wait)
        recorder = terms.recorder or self._recorder
        if recorder is not None:
            try:
                await recorder.intent(tool, args)
            except Exception as error:
                log.error("intent not recorded", tool=tool.name, error=own_words(error))
                return ToolResult.failure(
                    "UNAVAILABLE",
                    f"{tool.name} did not run: its start could not be recorded",
                    "try again later",
                )
        duration.begin()
        return await self._run_with_retries(tool, args, context, time.monotonic() + tool.timeout - wait)

    async def _run_with_retries(
        self, tool: Tool, args: dict[str, JSON], context: ToolContext, deadline: float
    ) -> ToolResult:
        for attempt in range(1, _ATTEMPTS + 1):
            result = await self._run(tool, args, context, deadline)
            pause = _pause_before_next(result, attempt)
            if not tool.idempotent or pause is None or time.monotonic() + pause >= deadline:
                return result.with_meta(attempts=attempt) if attempt > 1 else result
            await self._pause(pause)
        return result.with_meta(attempts=_ATTEMPTS)

    async def _run(
        self, tool: Tool, args: dict[str, JSON], context: ToolContext, deadline: float
    ) -> ToolResult:
        """Make one attempt in a task of its own: a tool that ignores its cancellation holds nobody."""
        mark = _Mark()
        task = asyncio.create_task(self._guarded(tool, args, context, mark), name=f"tool {tool.name}")
        try:
            await asyncio.wait({task}, timeout=max(0.0, deadline - time.monotonic()))
        except asyncio.CancelledError:
            await self._abandon(task)
            raise
        if not task.done():
            await self._abandon(task)
            return _not_run(task) or _timed_out(tool, mark.started)
        if task.cancelled():
            return _raised(tool, asyncio.CancelledError("the tool cancelled itself"), args)
        outcome = task.result()
        return outcome if isinstance(outcome, ToolResult) else _raised(tool, outcome, args)

    async def _guarded(
        self, tool: Tool, args: dict[str, JSON], context: ToolContext, mark: "_Mark"
    ) -> _Outcome:
        """Return the result, or the exception: a task that raises SystemExit itself ends the loop."""
        try:
            call = mark.before(tool.bind(args, context))
            value = await (call() if tool.is_async else self._threads.run(call))
            return await self._bounded(tool, await value if inspect.isawaitable(value) else value)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            return error

    async def _abandon(self, task: "asyncio.Task[_Outcome]") -> None:
        """Cancels a run, waits a moment for its clean-up, and keeps hold of it if it goes on."""
        task.cancel()
        self._left_behind.add(task)
        task.add_done_callback(self._left_behind.discard)
        await asyncio.wait({task}, timeout=_GRACE)

    async def _bounded(self, tool: Tool, value: object) -> ToolResult:
        """Return the result of what a tool returned; large values and other classes are read in a thread."""
        try:
            result = settled(value, min(_SMALL, self._output_limit // 8))
            return result or await self._threads.run(lambda: bounded(value, self._output_limit))
        except TooLarge:
            return too_large(tool.name, self._output_limit)
        except Exception as error:
            return ToolResult.failure(
                "INTERNAL", f"{tool.name} returned what is not JSON: {own_words(error)}"
            )

    async def _settle(
        self, tool: Tool | None, result: ToolResult, terms: CallTerms, seconds: float | None
    ) -> ToolResult:
        """Records what a call came to and counts it, both under the same name and with the same duration."""
        name = tool.name if tool else UNKNOWN_TOOL
        result = await self._record_result(name, result, terms, seconds)
        self._count(name, result, seconds)
        return result

    async def _record_result(
        self, name: str, result: ToolResult, terms: CallTerms, seconds: float | None
    ) -> ToolResult:
        recorder = terms.recorder or self._recorder
        if recorder is None:
            return result
        try:
            return await recorder.result(result, name, seconds)
        except Exception as error:
            log.error("result not recorded", tool=name, error=own_words(error))
            return ToolResult.failure(
                "OUTCOME_UNKNOWN",
                "the call ended but its result could not be recorded",
                "do not call it again",
            )

    def _count(self, name: str, result: ToolResult, seconds: float | None) -> None:
        if self._on_call is None:
            return
        try:
            self._on_call(name, result.code, seconds)
        except Exception as error:
            log.warning("tool statistics failed", error=own_words(error))


class _Duration:
    """The duration of one call, from its intent on."""

    def __init__(self) -> None:
        self._began: float | None = None

    def begin(self) -> None:
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float | None:
        """Return the seconds since the call began, None if it never did."""
        return None if self._began is None else time.perf_counter() - self._began


class _Mark:
    """A mark that a call really began: one that waited for a thread did not."""

    def __init__(self) -> None:
        self.started = False

    def before(self, call: Callable[[], Any]) -> Callable[[], Any]:
        def marked() -> Any:
            self.started = True
            return call()

        return marked


def call_text(name: str, args: dict[str, JSON]) -> str:
    """Write a call as `name(argument="value", …)`."""
    written = ", ".join(f"{key}={dumps(value).decode()}" for key, value in args.items())
    return f"{name}({written})"


def _may_know(tool: Tool, context: ToolContext) -> bool:
    """Tools that administer do not exist for those who do not own."""
    return may_use(context.person, tool.audience)


def _pause_before_next(result: ToolResult, attempt: int) -> float | None:
    """Return the seconds until a failure that may pass is worth another attempt, else `None`."""
    if result.code not in _RETRIED or attempt >= _ATTEMPTS:
        return None
    asked = seconds_in(str(result.meta.get("retry_after", "")))
    return max(asked or 0.0, _FIRST_PAUSE * 2.0 ** (attempt - 1))


def _ends_the_caller(error: BaseException) -> bool:
    """Return True for an exception meant for the caller: its cancellation, or the end of the coroutine."""
    task = asyncio.current_task()
    cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
    return cancelled or isinstance(error, GeneratorExit)


def _caller(context: ToolContext) -> str:
    return context.person.id if context.person is not None else ""


def _patience(tool: Tool) -> float:
    """Return the seconds that a call may wait for its turn: none where a late one could be unwanted."""
    return tool.timeout if tool.idempotent or tool.harmless else 0.0


def _too_often(tool: Tool, wait: float) -> ToolResult:
    seconds = math.ceil(wait)
    return ToolResult.failure(
        "UPSTREAM_RATE_LIMIT",
        f"{tool.name} may be called {tool.calls_per_minute} times a minute, and that is used up",
        f"it did not run; call it again in {seconds} s, or answer without it",
        retry_after=seconds,
    )


def _not_run(task: "asyncio.Task[_Outcome]") -> ToolResult | None:
    """Return the result of a call that was given up and certainly did not run."""
    outcome = task.result() if task.done() and not task.cancelled() else None
    return outcome if isinstance(outcome, ToolResult) and outcome.code == "UNAVAILABLE" else None


def _timed_out(tool: Tool, started: bool) -> ToolResult:
    limit = f"{tool.timeout:g} s"
    if not started:
        return ToolResult.failure(
            "UNAVAILABLE",
            f"{tool.name} did not run: nothing was free to run it within {limit}",
            "try again later",
        )
    if tool.idempotent or tool.harmless:
        return ToolResult.failure("TIMEOUT", f"{tool.name} took more than {limit}", "it may be called again")
    return ToolResult.failure(
        "TIMEOUT",
        f"{tool.name} took more than {limit} and was given up",
        "it may have happened all the same: do not call it again without asking",
        outcome="unknown",
    )


def _raised(tool: Tool, error: BaseException, args: JSON) -> ToolResult:
    result = raised(tool.name, error)
    if result.code == "INTERNAL" and result.error is not None:
        said, given = Private(result.error.message), Private(mask_arguments(args))
        log.warning("tool raised", tool=tool.name, error=type(error).__name__, said=said, args=given)
    return result
