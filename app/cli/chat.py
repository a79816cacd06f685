"""`recado chat`: the assistant in the terminal, in this process or beside a running server."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from sqlite3 import Connection
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TextIO, TypeVar

import typer

from app.cli.database import make_data_folder, read_records
from app.cli.output import command_settings, group
from app.cli.server import ANSWER_SECONDS, RunningServer, check_database, find_server
from app.cli.settings import check_model_address
from app.errors import RecadoError
from app.settings import Settings
from app.store import approvals
from app.text import visible_lines

if TYPE_CHECKING:
    from app.assistant import Assistant

T = TypeVar("T")

LONGEST_LINE = 1024 * 1024
EXTRA_SECONDS = 60.0
LISTEN_SECONDS = 0.5
"""Short, and never cut off: a server would hand the next reply to a listener that has gone."""
INTERRUPTED = 130
_LEAVE = frozenset({"exit", "quit", "/exit", "/quit", "salir", "sair"})

commands = group()


class Talk(Protocol):
    """The assistant that a terminal talks to."""

    async def say(self, text: str) -> None:
        """Send what was typed. Raise RecadoError if it was not taken."""

    async def replies(self, seconds: float) -> list[str]:
        """Return the replies since the last call, waiting up to `seconds` for the first."""


@commands.command()
def chat(
    mode: Annotated[
        Literal["yolo", "confirm-sensitive", "confirm-all"] | None,
        typer.Option(help="Which tools ask first, in place of CONFIRMATION_MODE."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Describe tools instead of running them.")
    ] = False,
) -> None:
    """Talk to the assistant in the terminal.

    Beside a running server it talks to that one.
    """
    settings = command_settings(confirmation_mode=mode, dry_run=dry_run or None)
    server = find_server(settings.data_dir)
    if server is not None and (mode is not None or dry_run):
        raise RecadoError(
            f"a server runs at {server.url}, and its own CONFIRMATION_MODE and DRY_RUN count: "
            "leave out --mode and --dry-run, or stop it first"
        )
    if server is None:
        check_model_address(settings)
    talk = _with_server(server) if server is not None else _in_process(settings)
    try:
        status = asyncio.run(_converse(settings, talk))
    except KeyboardInterrupt:
        print()  # noqa: T201
        status = 0 if _is_terminal(sys.stdin) else INTERRUPTED
    raise typer.Exit(status)


class Conversation:
    """A loop of one line, its answer, the next line."""

    def __init__(self, settings: Settings, talk: Talk, *, interactive: bool) -> None:
        self._database = settings.database_path
        self._patience = settings.llm_timeout + EXTRA_SECONDS
        self._talk = talk
        self._lines = read_lines()
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
            if await self._waits():  # what an earlier session left open
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

    async def _waits(self) -> int:
        return await asyncio.to_thread(read_records, self._database, open_lines)

    async def _aborts(self, line: str) -> bool:
        """Return True for the "a" of [y/n/a] in input that is no terminal."""
        if line.strip().casefold() != "a" or self._interactive:
            return False
        return await asyncio.to_thread(
            read_records, self._database, lambda conn: approvals.has_open_on(conn, "terminal")
        )

    async def _next_line(self) -> str | None:
        """Return the next line that is not empty; None at the end or on a word to leave."""
        while True:
            self._prompt()
            line = await self._beside_listening(self._lines.get())
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
                    if not await self._waits():
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


def read_lines() -> "asyncio.Queue[str | None]":
    """Return a queue of the lines of standard input, with None at its end; a thread fills it."""
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def put(line: str | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lines.put_nowait, line)

    def read() -> None:
        try:
            # A file of its own: at exit Python would wait for the lock of sys.stdin, which a read holds.
            with open(0, "rb", closefd=False) as stream:
                while line := stream.readline(LONGEST_LINE):
                    put(line.decode("utf-8", "replace").rstrip("\r\n"))
        except OSError:  # the terminal went away
            pass
        put(None)

    if sys.stdin is None:
        put(None)
    else:
        threading.Thread(target=read, name="input", daemon=True).start()
    return lines


async def _converse(settings: Settings, talk: AbstractAsyncContextManager[Talk]) -> int:
    interactive = _is_terminal(sys.stdin)
    async with talk as other_end:
        if interactive:
            _note("Write a message; exit or Ctrl-D leaves.")
        return await Conversation(settings, other_end, interactive=interactive).run()


@asynccontextmanager
async def _in_process(settings: Settings) -> AsyncIterator[Talk]:
    """Start an assistant in this process."""
    from app.assistant import Assistant

    await check_database(settings.database_path)
    make_data_folder(settings.data_dir)
    assistant = Assistant(settings.model_copy(update={"burst_quiet_seconds": 0.0}))
    try:
        await assistant.start()
        await assistant.listening()
        yield _Inside(assistant)
    finally:
        await assistant.stop()


@asynccontextmanager
async def _with_server(server: RunningServer) -> AsyncIterator[Talk]:
    _note(f"Talking to the server at {server.url}.")
    yield _Outside(server)


class _Inside:
    """A `Talk` with an assistant of this process."""

    def __init__(self, assistant: "Assistant") -> None:
        self.say = assistant.intake.take_line
        self.replies = assistant.terminal.replies


class _Outside:
    """A `Talk` with a running server."""

    def __init__(self, server: RunningServer) -> None:
        self._server = server

    async def say(self, text: str) -> None:
        await asyncio.to_thread(self._server.ask, "terminal/type", {"text": text})

    async def replies(self, seconds: float) -> list[str]:
        wait = {"seconds": seconds}
        answer = await asyncio.to_thread(
            self._server.ask, "terminal/replies", wait, seconds=seconds + ANSWER_SECONDS
        )
        return [str(reply) for reply in answer["replies"]]


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
