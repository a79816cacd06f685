"""The way of one tool call: found, checked, agreed to, run within its limits, recorded."""

import asyncio
import difflib
import inspect
import os
import sys
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

import structlog

from app.errors import RecadoError
from app.messages import JSON, seconds_in
from app.people import may_use
from app.store.statistics import UNKNOWN_TOOL
from app.tasks import DaemonThreads
from app.text import Private, escape_text, mask_text, visible
from app.tools.plain import TooLarge, dumps
from app.tools.result import ToolResult, bounded, own_words, raised
from app.tools.tool import Tool, ToolContext, ToolRegistry
from app.tools.validation import InvalidArguments

log = structlog.get_logger(__name__)

# Told after each call: the tool's name ("unknown" for one that is not there), "ok" or a code, as the tool
# chose it, and the seconds from the intent to the result: None where it was refused before it ran.
OnCall = Callable[[str, str, float | None], None]

_RETRIED = frozenset({"UPSTREAM_RATE_LIMIT", "UPSTREAM_ERROR"})
_ATTEMPTS = 4
_FIRST_PAUSE = 0.5
_GRACE = 0.2
_LOGGED = 1000  # characters of the arguments that the private log keeps of a call whose tool raised

MODES = ("yolo", "confirm-sensitive", "confirm-all")

# Puts one call to a person: its name and arguments; true means run it.
Ask = Callable[[str, dict[str, JSON]], "bool | Awaitable[bool]"]


class NoTTYError(RecadoError):
    """Raised when nobody can be asked: there is no terminal and no other way."""


class TurnAborted(RecadoError):
    """The person at the terminal ended the whole turn; the command line ends with status 130."""


class ConfirmationPolicy:
    """Says which tools need a yes, and asks for it: through `ask`, else at the terminal."""

    def __init__(self, mode: str, ask: Ask | None = None) -> None:
        if mode not in MODES:
            raise ValueError(f"confirmation mode: expected one of {', '.join(MODES)}, got {mode!r}")
        self.mode = mode
        self._ask = ask
        self._one_at_a_time = asyncio.Lock()

    def should_confirm(self, tool: Tool) -> bool:
        """Return True if this tool needs a yes; a harmless one never does."""
        if tool.harmless or self.mode == "yolo":
            return False
        return self.mode == "confirm-all" or tool.sensitive

    async def request_confirmation(self, name: str, args: dict[str, JSON]) -> bool:
        """Return the person's answer to one call.

        Raises NoTTYError where nobody can be asked, TurnAborted when the person ends the turn.
        """
        if self._ask is not None:
            answer = self._ask(name, args)
            return bool(await answer if inspect.isawaitable(answer) else answer)
        if sys.stdin is None or sys.stdin.closed or not sys.stdin.isatty():
            raise NoTTYError(
                f"{name} needs a yes and there is no terminal to ask at; "
                "run in a terminal, or set CONFIRMATION_MODE=yolo if every tool may run unasked"
            )
        async with self._one_at_a_time:
            return await _ask_at_terminal(name, args)


class Recorder(Protocol):
    """Keeps what a turn did. The engine awaits both; what they raise stops the call or marks it unknown."""

    async def intent(self, tool: Tool, args: dict[str, JSON]) -> None:
        """Commit that the call is about to run, before it does."""

    async def result(self, result: ToolResult, tool: str, seconds: float | None) -> ToolResult:
        """Record the result of a call; a call that was refused before an intent has one too.

        `tool`: its name, "unknown" where there is none for the caller; `seconds`: from the intent on, None
        without one.
        Gives what was written: another result where what the tool stored could not be kept.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class CallTerms:
    """The engine's terms of one call, which the tool need not know."""

    offered: Collection[str] | None = None  # names of the tools offered in the turn; None: no limit
    approved: Tool | None = None  # the very tool of which the person already said yes to this call
    must_ask: bool = False  # it needs a yes whatever the policy says
    recorder: Recorder | None = None  # keeps intent and result


@dataclass(slots=True)
class _Call:
    """One call on its way. `tool` is None for a name that no tool has for the caller."""

    tool: Tool | None
    context: ToolContext
    terms: CallTerms
    intent_at: float | None = None
    is_running: bool = False  # one that waits for a thread is not yet


class ExecutionEngine:
    """Runs tool calls for a model.

    `retry_clock` waits that many seconds before another attempt of an idempotent tool.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        policy: ConfirmationPolicy,
        dry_run: bool = False,
        *,
        retry_clock: Callable[[float], Awaitable[object]] = asyncio.sleep,
        on_call: OnCall | None = None,
    ) -> None:
        self.registry = registry
        self.policy = policy
        self.dry_run = dry_run
        self._pause = retry_clock
        self._on_call = on_call
        self._threads = DaemonThreads()
        self._left_behind: set[asyncio.Task[ToolResult]] = set()

    async def execute_tool_call(
        self,
        name: str,
        args: dict[str, JSON] | str | None,
        context: ToolContext | None = None,
        terms: CallTerms | None = None,
    ) -> ToolResult:
        """Run the call and return its result; raise nothing but the cancellation of the caller."""
        context = context or ToolContext()
        call = _Call(self._find(name, context), context, terms or CallTerms())
        if call.tool is None:
            return await self._settle(call, self._unknown(name, call))
        return await self._settle(call, await self._attempt(call, call.tool, args))

    async def refuse(
        self, name: str, result: ToolResult, context: ToolContext, terms: CallTerms | None = None
    ) -> ToolResult:
        """Record and count a call that was refused before; return what was recorded."""
        return await self._settle(_Call(self._find(name, context), context, terms or CallTerms()), result)

    def _find(self, name: str, context: ToolContext) -> Tool | None:
        """Return the tool; those that administer do not exist for those who do not own."""
        tool = self.registry.find(name) if isinstance(name, str) else None
        return tool if tool is not None and may_use(context.person, tool.audience) else None

    def _unknown(self, name: str, call: _Call) -> ToolResult:
        tools = [tool for tool in self.registry.list_all() if may_use(call.context.person, tool.audience)]
        offered = call.terms.offered
        known = [tool.name for tool in tools if offered is None or tool.name in offered]
        close = difflib.get_close_matches(str(name)[:100], known)
        hint = f"did you mean {' or '.join(close)}?" if close else "use only the tools that were offered"
        return ToolResult.failure("UNKNOWN_TOOL", f"no tool is named {str(name)[:100]!r}", hint)

    async def _attempt(self, call: _Call, tool: Tool, args: dict[str, JSON] | str | None) -> ToolResult:
        context, terms = call.context, call.terms
        if terms.offered is not None and tool.name not in terms.offered:
            hint = f"use one of: {', '.join(sorted(terms.offered)) or 'none'}"
            return ToolResult.failure("NOT_OFFERED", f"{tool.name} was not offered in this turn", hint)
        try:
            checked = tool.validate_args(args)
            tool.check(checked, context)
        except InvalidArguments as error:
            return raised(tool.name, error).with_meta(invalid_arguments=True)
        except ValueError as error:
            return ToolResult.failure("BAD_REQUEST", own_words(error), "mend the arguments and call it again")
        except BaseException as error:  # a check that calls exit() ends its call, not the server
            return _raised(tool, error, args)
        if self.dry_run and not tool.harmless:
            written = ", ".join(f"{key}={dumps(value).decode()}" for key, value in checked.items())
            return ToolResult.success(f"[DRY-RUN] {tool.name}({written})", dry_run=True)
        refusal = await self._refusal(tool, checked, terms)
        if refusal is not None:
            return refusal
        if terms.recorder is not None:
            try:
                await terms.recorder.intent(tool, checked)
            except Exception as error:
                log.error("intent not recorded", tool=tool.name, error=own_words(error))
                message = f"{tool.name} did not run: its start could not be recorded"
                return ToolResult.failure("UNAVAILABLE", message, "try again later")
        call.intent_at = time.perf_counter()
        return await self._run_with_retries(call, tool, checked, time.monotonic() + tool.timeout)

    async def _refusal(self, tool: Tool, args: dict[str, JSON], terms: CallTerms) -> ToolResult | None:
        if terms.approved is tool or tool.harmless:
            return None
        must_ask = terms.must_ask or terms.approved is not None  # that yes was to another tool
        try:
            if not (must_ask or self.policy.should_confirm(tool)):
                return None
            agreed = await self.policy.request_confirmation(tool.name, args)
        except NoTTYError as error:
            hint = "say what would have been done and that somebody must allow it first"
            return ToolResult.failure("NO_TTY", str(error), hint)
        except TurnAborted as error:
            return ToolResult.failure("DENIED", str(error), "stop here and answer briefly", aborted=True)
        except BaseException as error:
            task = asyncio.current_task()
            cancelled = isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling()
            if cancelled or isinstance(error, GeneratorExit):  # it is meant for the caller
                raise
            log.warning("could not ask for confirmation", tool=tool.name, error=own_words(error))
            return ToolResult.failure("DENIED", f"nobody could be asked about {tool.name}, so it did not run")
        if agreed:
            return None
        hint = "do not call it again with the same arguments; ask what to do instead"
        return ToolResult.failure("DENIED", f"the person refused {tool.name}", hint)

    async def _run_with_retries(
        self, call: _Call, tool: Tool, args: dict[str, JSON], deadline: float
    ) -> ToolResult:
        for attempt in range(1, _ATTEMPTS + 1):
            result = await self._run(call, tool, args, deadline)
            asked = seconds_in(str(result.meta.get("retry_after", "")))
            pause = max(asked or 0.0, _FIRST_PAUSE * 2.0 ** (attempt - 1))
            may_pass = tool.idempotent and result.code in _RETRIED and attempt < _ATTEMPTS
            if not may_pass or time.monotonic() + pause >= deadline:
                break
            await self._pause(pause)
        return result.with_meta(attempts=attempt) if attempt > 1 else result

    async def _run(self, call: _Call, tool: Tool, args: dict[str, JSON], deadline: float) -> ToolResult:
        """Make one attempt in a task of its own: a tool that ignores its cancellation holds nobody."""
        call.is_running = False
        task = asyncio.create_task(self._outcome(call, tool, args), name=f"tool {tool.name}")
        try:
            done, _ = await asyncio.wait({task}, timeout=max(0.0, deadline - time.monotonic()))
        finally:
            if not task.done():  # it has a moment for its clean-up, and is kept hold of if it goes on
                task.cancel()
                self._left_behind.add(task)
                task.add_done_callback(self._left_behind.discard)
                await asyncio.wait({task}, timeout=_GRACE)
        if not done:
            return _timed_out(tool, call.is_running)
        if task.cancelled():
            return _raised(tool, asyncio.CancelledError("the tool cancelled itself"), args)
        return task.result()

    async def _outcome(self, call: _Call, tool: Tool, args: dict[str, JSON]) -> ToolResult:
        """Return the result, also of what was raised: a task that raises SystemExit itself ends the loop."""

        def run() -> Any:
            call.is_running = True
            return bound()

        try:
            bound = tool.bind(args, call.context)
            value = await (run() if tool.is_async else self._threads.run(run))
            value = await value if inspect.isawaitable(value) else value
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            return _raised(tool, error, args)
        try:  # in a thread, for the classes of the value may run code of their own
            result: ToolResult = await self._threads.run(lambda: bounded(value))
            return result
        except TooLarge as error:
            return raised(tool.name, error)
        except Exception as error:
            message = f"{tool.name} returned what is not JSON: {own_words(error)}"
            return ToolResult.failure("INTERNAL", message)

    async def _settle(self, call: _Call, result: ToolResult) -> ToolResult:
        """Record what a call came to and count it, both under the same name and with the same duration."""
        name = call.tool.name if call.tool else UNKNOWN_TOOL
        seconds = None if call.intent_at is None else time.perf_counter() - call.intent_at
        if call.terms.recorder is not None:
            try:
                result = await call.terms.recorder.result(result, name, seconds)
            except Exception as error:
                log.error("result not recorded", tool=name, error=own_words(error))
                message = "the call ended but its result could not be recorded"
                result = ToolResult.failure("OUTCOME_UNKNOWN", message, "do not call it again")
        if self._on_call is not None:
            try:
                self._on_call(name, result.code, seconds)
            except Exception as error:
                log.warning("tool statistics failed", error=own_words(error))
        return result


def _timed_out(tool: Tool, started: bool) -> ToolResult:
    limit = f"{tool.timeout:g} s"
    if not started:
        message = f"{tool.name} did not run: nothing was free to run it within {limit}"
        return ToolResult.failure("UNAVAILABLE", message, "try again later")
    if tool.idempotent or tool.harmless:
        return ToolResult.failure("TIMEOUT", f"{tool.name} took more than {limit}", "it may be called again")
    return ToolResult.unknown(f"{tool.name} took more than {limit} and was given up", "TIMEOUT")


def _raised(tool: Tool, error: BaseException, args: JSON) -> ToolResult:
    result = raised(tool.name, error)
    if result.code == "INTERNAL" and result.error is not None:
        said, given = Private(result.error.message), Private(mask_text(dumps(args).decode()[:_LOGGED]))
        log.warning("tool raised", tool=tool.name, error=type(error).__name__, said=said, args=given)
    return result


def call_in_words(name: str, args: dict[str, JSON]) -> str:
    """Write a call on a few lines, each value whole on one of them and nothing in it invisible."""
    return "\n".join([visible(name), *(f"  {_shown(key)}: {_shown(value)}" for key, value in args.items())])


def _shown(value: JSON) -> str:
    return escape_text(value if isinstance(value, str) else str(value))


async def _ask_at_terminal(name: str, args: dict[str, JSON]) -> bool:
    _say(f"\n{call_in_words(name, args)}\n")
    while True:
        _say("Run it? [y/n/a] ")
        line: bytes = await DaemonThreads().run(lambda: os.read(sys.stdin.fileno(), 4096))
        if not line:
            _say("\n")
            return False
        answer = line.decode("utf-8", "replace").strip().lower()
        if answer == "a":
            raise TurnAborted(f"the turn was ended at the question about {name}")
        if answer in ("y", "n"):
            return answer == "y"


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
