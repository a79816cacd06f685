"""The way of one tool call: found, checked, agreed to, run within its limits, recorded."""

import asyncio
import inspect
import math
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from app.messages import JSON, seconds_in
from app.tools.arguments import InvalidArguments
from app.tools.confirmation import ConfirmationPolicy, NoTTYError, TurnAborted
from app.tools.context import Recorder, ToolContext
from app.tools.masking import mask_arguments, mask_text, without_paths
from app.tools.plain import TooLarge, dumps
from app.tools.rates import Rates
from app.tools.registry import ToolRegistry, close_names
from app.tools.result import ToolResult, bounded, settled
from app.tools.threads import DaemonThreads
from app.tools.tool import Tool

log = structlog.get_logger(__name__)

OUTPUT_LIMIT = 1024 * 1024
"""Bytes of JSON that one call may return."""

OnCall = Callable[[str, str, float], None]
"""Told after each call: the tool's name ("unknown" for one that is not there), "ok" or a code, seconds.

A code that is none of the contract's form, as tools may choose their own, is told as OTHER."""

_RETRIED = frozenset({"UPSTREAM_RATE_LIMIT", "UPSTREAM_ERROR"})
_ATTEMPTS = 4
_FIRST_PAUSE = 0.5
_GRACE = 0.2
_LONGEST_MESSAGE = 500
_SMALL = 20_000
"""Characters and parts of a result that the loop looks at itself; larger ones are read in a thread."""
_CODE = re.compile(r"[A-Z][A-Z0-9_]{2,40}")

_Outcome = ToolResult | BaseException
"""How a run ended: with a result, or with what was raised."""


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
        self, name: str, args: dict[str, JSON] | str | None, context: ToolContext | None = None
    ) -> ToolResult:
        """What became of the call; never raises, but for the cancellation of whoever waits for it."""
        started = time.perf_counter()
        context = context or ToolContext()
        tool = self._find(name, context)
        result = await self._attempt(name, tool, args, context)
        result = await self._record_result(tool, result, context)
        seconds = time.perf_counter() - started
        self._count(tool, result, seconds)
        return result

    async def _attempt(
        self, name: str, tool: Tool | None, args: dict[str, JSON] | str | None, context: ToolContext
    ) -> ToolResult:
        if tool is None:
            return self._unknown(name, context)
        if context.offered is not None and tool.name not in context.offered:
            return ToolResult.failure(
                "NOT_OFFERED",
                f"{tool.name} was not offered in this turn",
                f"use one of: {', '.join(sorted(context.offered)) or 'none'}",
            )
        try:
            checked = tool.validate_args(args)
            tool.check(checked, context)
        except ValueError as error:
            return ToolResult.failure("BAD_REQUEST", _sentence(error), "mend the arguments and call it again")
        except BaseException as error:  # a check that calls exit() ends its call, not the server
            return _raised(tool, error, args)
        if self.dry_run and not tool.harmless:
            return ToolResult.success(f"[DRY-RUN] {call_text(tool.name, checked)}", dry_run=True)
        patience = tool.timeout if tool.idempotent or tool.harmless else 0.0
        wait = self._wait_for_turn(tool, context, patience)
        if wait > 0 and wait >= patience:
            return _too_often(tool, wait)
        refusal = await self._refusal(tool, checked, context)
        return refusal or await self._run_recorded(tool, checked, context, wait)

    def _find(self, name: str, context: ToolContext) -> Tool | None:
        if not isinstance(name, str) or not self.registry.has_tool(name):
            return None
        tool = self.registry.get(name)
        return tool if _may_know(tool, context) else None

    def _unknown(self, name: str, context: ToolContext) -> ToolResult:
        names = [tool.name for tool in self.registry.list_all() if _may_know(tool, context)]
        if context.offered is not None:
            names = [known for known in names if known in context.offered]
        close = close_names(name, names)
        hint = f"did you mean {' or '.join(close)}?" if close else "use only the tools that were offered"
        return ToolResult.failure("UNKNOWN_TOOL", f"no tool is named {str(name)[:100]!r}", hint)

    def _wait_for_turn(self, tool: Tool, context: ToolContext, patience: float) -> float:
        if not tool.calls_per_minute:
            return 0.0
        person = context.person.id if context.person is not None else ""
        return self._rates.reserve(tool.name, person, tool.calls_per_minute, patience)

    async def _refusal(self, tool: Tool, args: dict[str, JSON], context: ToolContext) -> ToolResult | None:
        """Why it may not run; `None` when it may."""
        if context.approved or tool.harmless:
            return None
        try:
            if not self.policy.should_confirm(tool):
                return None
            agreed = await self.policy.request_confirmation(tool.name, args)
        except NoTTYError as error:
            hint = "say what would have been done and that somebody must allow it first"
            return ToolResult.failure("NO_TTY", str(error), hint)
        except TurnAborted as error:
            return ToolResult.failure("DENIED", str(error), "stop here and answer briefly", aborted=True)
        except BaseException as error:
            if _ends_the_caller(error):
                raise
            log.warning("could not ask for confirmation", tool=tool.name, error=_sentence(error))
            return ToolResult.failure("DENIED", f"nobody could be asked about {tool.name}, so it did not run")
        if agreed:
            return None
        hint = "do not call it again with the same arguments; ask what to do instead"
        return ToolResult.failure("DENIED", f"the person refused {tool.name}", hint)

    async def _run_recorded(
        self, tool: Tool, args: dict[str, JSON], context: ToolContext, wait: float
    ) -> ToolResult:
        if wait:
            await self._pause(wait)
        recorder = context.recorder or self._recorder
        if recorder is not None:
            try:
                await recorder.intent(tool, args)
            except Exception as error:
                log.error("intent not recorded", tool=tool.name, error=_sentence(error))
                return ToolResult.failure(
                    "UNAVAILABLE",
                    f"{tool.name} did not run: its start could not be recorded",
                    "try again later",
                )
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
        """One attempt: in a task of its own, so that a tool that ignores its cancellation holds nobody."""
        mark = _Mark()
        task = asyncio.create_task(self._guarded(tool, args, context, mark), name=f"tool {tool.name}")
        try:
            await asyncio.wait({task}, timeout=max(0.0, deadline - time.monotonic()))
        except asyncio.CancelledError:
            await self._abandon(task)
            raise
        if not task.done():
            await self._abandon(task)
            return _timed_out(tool, mark.started)
        if task.cancelled():
            return _raised(tool, asyncio.CancelledError("the tool cancelled itself"), args)
        outcome = task.result()
        return outcome if isinstance(outcome, ToolResult) else _raised(tool, outcome, args)

    async def _guarded(
        self, tool: Tool, args: dict[str, JSON], context: ToolContext, mark: "_Mark"
    ) -> _Outcome:
        """The result, or what the function raised: a task that raises SystemExit itself ends the loop."""
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
        """The result of what a tool returned; what is large or of other classes is read in a thread."""
        try:
            result = settled(value, min(_SMALL, self._output_limit // 8))
            return result or await self._threads.run(lambda: bounded(value, self._output_limit))
        except TooLarge:
            return _too_large(tool, self._output_limit)
        except Exception as error:
            return ToolResult.failure(
                "INTERNAL", f"{tool.name} returned what is not JSON: {_sentence(error)}"
            )

    async def _record_result(self, tool: Tool | None, result: ToolResult, context: ToolContext) -> ToolResult:
        recorder = context.recorder or self._recorder
        if recorder is None:
            return result
        try:
            return await recorder.result(result)
        except Exception as error:
            log.error("result not recorded", tool=tool.name if tool else "unknown", error=_sentence(error))
            return ToolResult.failure(
                "OUTCOME_UNKNOWN",
                "the call ended but its result could not be recorded",
                "do not call it again",
            )

    def _count(self, tool: Tool | None, result: ToolResult, seconds: float) -> None:
        if self._on_call is None:
            return
        try:
            self._on_call(tool.name if tool else "unknown", _counted(result), seconds)
        except Exception as error:
            log.warning("tool statistics failed", error=_sentence(error))


class _Mark:
    """Whether a call really began: one that waited for a thread did not."""

    def __init__(self) -> None:
        self.started = False

    def before(self, call: Callable[[], Any]) -> Callable[[], Any]:
        def marked() -> Any:
            self.started = True
            return call()

        return marked


def call_text(name: str, args: dict[str, JSON]) -> str:
    """A call as `name(argument="value", …)`."""
    written = ", ".join(f"{key}={dumps(value).decode()}" for key, value in args.items())
    return f"{name}({written})"


def _may_know(tool: Tool, context: ToolContext) -> bool:
    """Tools that administer do not exist for those who do not own."""
    return tool.audience != "owners" or (context.person is not None and context.person.is_owner)


def _pause_before_next(result: ToolResult, attempt: int) -> float | None:
    """Seconds until a failure that may pass is worth another attempt; `None` for all other results."""
    if result.code not in _RETRIED or attempt >= _ATTEMPTS:
        return None
    asked = seconds_in(str(result.meta.get("retry_after", "")))
    return max(asked or 0.0, _FIRST_PAUSE * 2.0 ** (attempt - 1))


def _ends_the_caller(error: BaseException) -> bool:
    """Whether it is meant for whoever waits for the call: their cancellation, or the end of the coroutine."""
    task = asyncio.current_task()
    cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
    return cancelled or isinstance(error, GeneratorExit)


def _counted(result: ToolResult) -> str:
    code = result.code
    return code if code == "ok" or _CODE.fullmatch(str(code)) else "OTHER"


def _too_often(tool: Tool, wait: float) -> ToolResult:
    seconds = math.ceil(wait)
    return ToolResult.failure(
        "UPSTREAM_RATE_LIMIT",
        f"{tool.name} may be called {tool.calls_per_minute} times a minute, and that is used up",
        f"it did not run; call it again in {seconds} s, or answer without it",
        retry_after=seconds,
    )


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


def _too_large(tool: Tool, limit: int) -> ToolResult:
    return ToolResult.failure(
        "OUTPUT_TOO_LARGE",
        f"{tool.name} returned more than {limit} bytes",
        "ask for less: a narrower search, fewer items or a part of the file",
    )


def _raised(tool: Tool, error: BaseException, args: JSON) -> ToolResult:
    if isinstance(error, InvalidArguments):
        return ToolResult.failure("BAD_REQUEST", str(error), "mend the arguments and call it again")
    sentence = f"{type(error).__name__}: {_sentence(error)}"
    log.warning("tool raised", tool=tool.name, error=sentence, args=mask_arguments(args))
    return ToolResult.failure("INTERNAL", f"{tool.name} failed with {sentence}")


def _sentence(error: BaseException) -> str:
    """An exception's own words, without paths, secrets and later lines."""
    try:
        text = str(error)
    except BaseException:
        text = "(its message cannot be read)"
    line = " ".join(text[: _LONGEST_MESSAGE * 2].split())
    return mask_text(without_paths(line))[:_LONGEST_MESSAGE] or "no message"
