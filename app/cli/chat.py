"""`recado chat`: the assistant in the terminal, in this process or beside a running server."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Literal, NamedTuple, TypeVar

import typer

from app.cli.database import make_data_folder, read_records
from app.cli.output import command_settings, group, show
from app.cli.server import ANSWER_SECONDS, RunningServer, check_database, find_server
from app.errors import RecadoError
from app.settings import Settings
from app.store import approvals
from app.store.database import Connection, scalar
from app.text import visible_lines

T = TypeVar("T")

EXTRA_SECONDS = 60.0
LISTEN_SECONDS = 0.5  # never cut off: a server would hand the next reply to a listener that has gone
INTERRUPTED = 130
_LEAVE = frozenset({"exit", "quit", "/exit", "/quit", "salir", "sair"})

commands = group()


class Talk(NamedTuple):
    """The assistant that a terminal talks to.

    `replies` gives those since its last call, waiting so many seconds for the first.
    """

    say: Callable[[str], Awaitable[object]]
    replies: Callable[[float], Awaitable[list[str]]]


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
    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    try:
        status = asyncio.run(_converse(settings, server, interactive=is_terminal))
    except KeyboardInterrupt:
        print()  # noqa: T201
        status = 0 if is_terminal else INTERRUPTED
    raise typer.Exit(status)


async def _converse(settings: Settings, server: RunningServer | None, *, interactive: bool) -> int:
    async with _in_process(settings) if server is None else _with_server(server) as talk:
        if interactive:
            show("Write a message; exit or Ctrl-D leaves.", err=True)
        return await Conversation(settings, talk, interactive=interactive).run()


@asynccontextmanager
async def _in_process(settings: Settings) -> AsyncIterator[Talk]:
    from app.assistant import Assistant

    await check_database(settings.database)
    make_data_folder(settings.data_dir)
    assistant = Assistant(settings.model_copy(update={"burst_quiet_seconds": 0.0}))
    try:
        await assistant.start()
        await assistant.listening()
        yield Talk(assistant.intake.take_line, assistant.terminal.replies)
    finally:
        await assistant.stop()


@asynccontextmanager
async def _with_server(server: RunningServer) -> AsyncIterator[Talk]:
    async def say(text: str) -> None:
        await asyncio.to_thread(server.ask, "terminal/type", {"text": text})

    async def replies(seconds: float) -> list[str]:
        asked, limit = {"seconds": seconds}, seconds + ANSWER_SECONDS
        answer = await asyncio.to_thread(server.ask, "terminal/replies", asked, seconds=limit)
        return [str(reply) for reply in answer["replies"]]

    show(f"Talking to the server at {server.url}.", err=True)
    yield Talk(say, replies)


class Conversation:
    """A loop of one line, its answer, the next line; what comes unasked is shown at the prompt."""

    def __init__(self, settings: Settings, talk: Talk, *, interactive: bool) -> None:
        self._database = settings.database
        self._patience = settings.llm_timeout + EXTRA_SECONDS
        self._talk = talk
        self._lines = read_lines()
        self._interactive = interactive
        self._heard = asyncio.Event()
        self._at_prompt = False
        self._is_over = False

    async def run(self) -> int:
        """Talk until the input ends; return 1 if a line got no answer, 130 if an "a" aborted a turn."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._show_replies())
                try:
                    return await self._ask_line_by_line()
                finally:
                    self._is_over = True
        except BaseExceptionGroup as errors:  # the server has gone away
            raise errors.exceptions[0] from None

    async def _ask_line_by_line(self) -> int:
        status = 0
        if await self._read(open_lines):  # what an earlier session left open
            await self._answered()
        while (line := await self._next_line()) is not None:
            self._heard.clear()
            is_a = line.strip().casefold() == "a" and not self._interactive
            aborts = is_a and await self._read(lambda conn: approvals.has_open_on(conn, "terminal"))
            await self._talk.say(line)
            if not await self._answered():
                status = 1
            if aborts:
                return INTERRUPTED
        return status

    async def _next_line(self) -> str | None:
        """Return the next line that is not empty; None at the end or on a word to leave."""
        while True:
            self._prompt()
            line = await self._lines.get()
            self._at_prompt = False
            if line is None and self._interactive:
                print()  # noqa: T201
            if line is None or line.strip().lower() in _LEAVE:
                return None
            if line.strip():
                return line

    async def _answered(self) -> bool:
        try:
            async with asyncio.timeout(self._patience):
                while True:
                    await self._heard.wait()
                    self._heard.clear()
                    if not await self._read(open_lines):
                        return True
        except TimeoutError:
            show(f"No answer within {self._patience:g} s; it will be shown when it comes.", err=True)
            return False

    async def _show_replies(self) -> None:
        while not self._is_over:
            for reply in await self._talk.replies(LISTEN_SECONDS):
                joined = map(visible_lines, reply.expandtabs().split("\u200d"))  # emoji keep their joiners
                shown = "\u200d".join(joined)
                print(f"\n{shown}" if self._at_prompt else shown, flush=True)  # noqa: T201
                self._heard.set()
                if self._at_prompt:
                    self._prompt()

    def _prompt(self) -> None:
        if self._interactive:
            self._at_prompt = True
            print("> ", end="", flush=True)  # noqa: T201

    async def _read(self, question: Callable[[Connection], T]) -> T:
        return await asyncio.to_thread(read_records, self._database, question)


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
            with open(0, encoding="utf-8", errors="replace", closefd=False) as stream:
                for line in stream:
                    put(line.rstrip("\r\n"))
        except OSError:  # the terminal went away, or there is no input
            pass
        put(None)

    threading.Thread(target=read, name="input", daemon=True).start()
    return lines


def open_lines(conn: Connection) -> int:
    """Count the typed lines that wait for an answer, without those whose turn asked a question."""
    waiting = scalar(
        conn,
        "SELECT count(*) FROM inbox i JOIN conversations c ON c.id = i.conversation_id"
        " LEFT JOIN turns t ON t.id = i.turn_id"
        " WHERE c.channel = 'terminal' AND i.done_at IS NULL AND coalesce(t.state, '') <> 'parked'",
    )
    return int(waiting)
