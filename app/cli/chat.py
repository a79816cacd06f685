"""Lines of standard input, read without blocking the event loop."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeVar

from app.cli.database import make_data_folder, read_records
from app.cli.server import ANSWER_SECONDS, RunningServer, ServerGone, check_database, find_server, read_answer
from app.cli.settings import check_model_address
from app.errors import RecadoError
from app.messages import JSON
from app.settings import Settings
from app.store import approvals
from app.text import visible_lines

if TYPE_CHECKING:
    from httpx2 import AsyncClient

    from app.assistant import Assistant

CHUNK = 65536
LONGEST_LINE = 1024 * 1024


class Lines:
    """An async reader of lines from a terminal, a pipe or a file."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = -1 if descriptor is None else descriptor
        self._rest = b""
        self._ended = descriptor is None
        self._wake = asyncio.Event()
        self._ours = asyncio.Event()
        self._ours.set()

    async def next(self) -> str | None:
        """Return the next line without its end; None once the input has ended."""
        while b"\n" not in self._rest and not self._ended and len(self._rest) < LONGEST_LINE:
            await self._readable()
            chunk = _read(self._descriptor)
            self._rest += chunk
            self._ended = not chunk
        if self._ended and not self._rest:
            return None
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let other code read the terminal for a while, for a question that must be answered first."""
        self._ours.clear()
        self._wake.set()
        try:
            yield
        finally:
            self._ours.set()

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._ours.wait()
            self._wake.clear()
            try:
                loop.add_reader(self._descriptor, self._wake.set)
            except OSError:  # a regular file: always readable, and epoll does not take it
                return
            try:
                await self._wake.wait()
            finally:
                if self._ours.is_set():  # else it was taken over with the loan
                    loop.remove_reader(self._descriptor)
            if self._ours.is_set():
                return


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError:  # the terminal went away
        return b""


T = TypeVar("T")

EXTRA_SECONDS = 60.0
LISTEN_SECONDS = 0.5
"""Short, and never cut off: a server would hand the next reply to a listener that has gone."""
INTERRUPTED = 130
_LEAVE = frozenset({"exit", "quit", "/exit", "/quit", "salir", "sair"})


class Talk(Protocol):
    """The assistant that a terminal talks to."""

    async def say(self, text: str) -> None:
        """Send what was typed. Raise RecadoError if it was not taken."""

    async def replies(self, seconds: float) -> list[str]:
        """Return the replies since the last call, waiting up to `seconds` for the first."""


def chat(settings: Settings, *, mode: str | None, dry_run: bool) -> int:
    """Read lines and print replies until the input ends; return the exit status.

    Raise RecadoError for options that a running server would not obey.
    """
    server = find_server(settings.data_dir)
    if server is not None and (mode is not None or dry_run):
        raise RecadoError(
            f"a server runs at {server.url}, and its own CONFIRMATION_MODE and DRY_RUN count: "
            "leave out --mode and --dry-run, or stop it first"
        )
    if mode is not None or dry_run:
        chosen = {"confirmation_mode": mode or settings.confirmation_mode}
        settings = settings.model_copy(update={**chosen, "dry_run": dry_run or settings.dry_run})
    if server is None:
        check_model_address(settings)
    lines = Lines(sys.stdin.fileno() if sys.stdin else None)
    talk = _with_server(server) if server is not None else _in_process(settings, lines)
    try:
        return asyncio.run(_converse(settings, talk, lines))
    except KeyboardInterrupt:
        print()  # noqa: T201
        return 0 if _is_terminal(sys.stdin) else INTERRUPTED


class Conversation:
    """A loop of one line, its answer, the next line."""

    def __init__(
        self,
        talk: Talk,
        lines: Lines,
        waiting: Callable[[], int],
        asked: Callable[[], bool],
        *,
        patience: float,
        interactive: bool,
    ) -> None:
        self._talk = talk
        self._lines = lines
        self._waiting = waiting
        self._asked = asked
        self._patience = patience
        self._interactive = interactive
        self._heard = asyncio.Event()
        self._at_prompt = False
        self._leaving = False
        self._listening: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Talk until the input ends; return 1 if a line got no answer, 130 if an "a" aborted a turn."""
        self._listening = asyncio.create_task(self._listen(), name="listen")
        status = 0
        try:
            if await asyncio.to_thread(self._waiting):  # what an earlier session left open
                await self._answered()
            while (line := await self._next_line()) is not None:
                self._heard.clear()
                aborts = await self._aborts(line)
                await self._talk.say(line)
                if not await self._answered():
                    status = 1
                if aborts:
                    return INTERRUPTED
        finally:
            self._leaving = True
            await asyncio.gather(self._listening, return_exceptions=True)
        return status

    async def _aborts(self, line: str) -> bool:
        """Return True for the "a" of [y/n/a] in input that is no terminal."""
        is_a = line.strip().casefold() == "a"
        return is_a and not self._interactive and await asyncio.to_thread(self._asked)

    async def _next_line(self) -> str | None:
        """Return the next line that is not empty; None at the end or on a word to leave."""
        while True:
            self._prompt()
            line = await self._beside_listening(self._lines.next())
            self._at_prompt = False
            if line is None and self._interactive:
                print()  # noqa: T201
            if line is None or line.strip().lower() in _LEAVE:
                return None
            if line.strip():
                return line

    async def _answered(self) -> bool:
        """Wait until no typed line is open any more, at most `patience` seconds."""
        try:
            async with asyncio.timeout(self._patience):
                while True:
                    await self._beside_listening(self._heard.wait())
                    self._heard.clear()
                    if not await asyncio.to_thread(self._waiting):
                        return True
        except TimeoutError:
            _note(f"No answer within {self._patience:g} s; it will be shown when it comes.")
            return False

    async def _listen(self) -> None:
        while not self._leaving:
            for reply in await self._talk.replies(LISTEN_SECONDS):
                shown = _harmless(reply)
                print(f"\n{shown}" if self._at_prompt else shown, flush=True)  # noqa: T201
                self._heard.set()
                if self._at_prompt:
                    self._prompt()

    async def _beside_listening(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for `work`, but end with the error of the listener if the server goes away."""
        assert self._listening is not None
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task, self._listening}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await self._listening
            return await task
        finally:
            task.cancel()

    def _prompt(self) -> None:
        if self._interactive:
            self._at_prompt = True
            print("> ", end="", flush=True)  # noqa: T201


async def _converse(settings: Settings, talk: AbstractAsyncContextManager[Talk], lines: Lines) -> int:
    interactive = _is_terminal(sys.stdin)
    async with talk as other_end:
        if interactive:
            _note("Write a message; exit or Ctrl-D leaves.")
        conversation = Conversation(
            other_end,
            lines,
            lambda: read_records(settings.database_path, open_lines),
            lambda: read_records(
                settings.database_path, lambda conn: approvals.has_open_on(conn, "terminal")
            ),
            patience=settings.llm_timeout + EXTRA_SECONDS,
            interactive=interactive,
        )
        return await conversation.run()


@asynccontextmanager
async def _in_process(settings: Settings, lines: Lines) -> AsyncIterator[Talk]:
    """Start an assistant in this process, which asks at the terminal before a tool that needs a yes."""
    from app.assistant import Assistant
    from app.tools.confirmation import ConfirmationPolicy, TurnAborted

    one_at_a_time = asyncio.Lock()

    class AtTheTerminal(ConfirmationPolicy):
        async def request_confirmation(self, name: str, args: dict[str, JSON], note: str = "") -> bool:
            async with one_at_a_time:
                try:
                    with lines.lent():
                        return await super().request_confirmation(name, args, note)
                except TurnAborted:
                    await assistant.intake.take_line("/stop")
                    raise

    await check_database(settings.database_path)
    make_data_folder(settings.data_dir)
    assistant = Assistant(
        settings.model_copy(update={"burst_quiet_seconds": 0.0}),
        policy=AtTheTerminal(settings.confirmation_mode),
    )
    try:
        await assistant.start()
        await assistant.listening()
        yield _Inside(assistant)
    finally:
        await assistant.stop()


@asynccontextmanager
async def _with_server(server: RunningServer) -> AsyncIterator[Talk]:
    """Connect to the assistant of a running server."""
    import httpx2

    _note(f"Talking to the server at {server.url}.")
    async with httpx2.AsyncClient(headers=server.headers, trust_env=False) as http:
        yield _Outside(server, http)


class _Inside:
    """A `Talk` with an assistant of this process."""

    def __init__(self, assistant: "Assistant") -> None:
        self.say = assistant.intake.take_line
        self.replies = assistant.terminal.replies


class _Outside:
    """A `Talk` with a running server."""

    def __init__(self, server: RunningServer, http: "AsyncClient") -> None:
        self._server = server
        self._http = http

    async def say(self, text: str) -> None:
        await self._ask("terminal/type", {"text": text}, ANSWER_SECONDS)

    async def replies(self, seconds: float) -> list[str]:
        answer = await self._ask("terminal/replies", {"seconds": seconds}, seconds + ANSWER_SECONDS)
        return [str(reply) for reply in answer["replies"]]

    async def _ask(self, action: str, body: dict[str, JSON], limit: float) -> JSON:
        import httpx2

        try:
            response = await self._http.post(self._server.address(action), json=body, timeout=limit)
        except httpx2.TransportError as error:
            raise ServerGone(f"the server at {self._server.url} went away; start it and try again") from error
        return read_answer(response.status_code, response.content)


def open_lines(conn: Connection) -> int:
    """Count the typed lines that wait for an answer, without those whose turn asked a question."""
    row = conn.execute(
        "SELECT count(*) FROM inbox i JOIN conversations c ON c.id = i.conversation_id"
        " LEFT JOIN turns t ON t.id = i.turn_id"
        " WHERE c.channel = 'terminal' AND i.done_at IS NULL AND coalesce(t.state, '') <> 'parked'"
    ).fetchone()
    return int(row[0])


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it was closed
        return False


def _harmless(reply: str) -> str:
    """Escape everything in a reply that a terminal would obey; emoji keep their joiners."""
    return "\u200d".join(map(visible_lines, reply.expandtabs().split("\u200d")))


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201
