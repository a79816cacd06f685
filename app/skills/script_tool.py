"""The tool that runs a skill's scripts: in the sandbox, in the person's own folder."""

import asyncio
import hashlib
import mimetypes
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import yaml

from app.messages import JSON
from app.processes.host import Command, HostedProcess
from app.processes.sandbox import Grants, Sandbox
from app.skills.disclosure import SkillFinder, require_chosen
from app.skills.folder import read_regular
from app.skills.manifest import may_use_network
from app.skills.scripts import Script, interpreter_place, packages_folder, scripts_of
from app.skills.skill import SENTENCES_FILE, Skill, ToolSentences
from app.tools import Tool, ToolContext, ToolResult
from app.tools.files import Files
from app.tools.paths import PathTraversalError, open_parent, open_to_read
from app.tools.result import ReturnedFile

RUN_SKILL_SCRIPT = "run_skill_script"
SCRIPT_SECONDS = 120.0
AT_ONCE = 2
OUTPUT_BYTES = 16 * 1024
MOST_ARGUMENTS = 64
LONGEST_ARGUMENT = 4096
MOST_RETURNED = 3
LARGEST_RETURNED = 16 * 1024 * 1024
_TICK_NS = 20_000_000  # by which the time of a file may be behind the clock
_PIECE = 64 * 1024

SENTENCES: ToolSentences = SENTENCES_FILE.validate_python(
    yaml.safe_load(Path(__file__).with_name("sentences.yaml").read_text("utf-8"))
)[RUN_SKILL_SCRIPT]


class ScriptRunner:
    """Runs scripts of skills for a model, never without a working sandbox."""

    def __init__(self, skills: SkillFinder, sandbox: Sandbox, files: Files, data_dir: Path) -> None:
        self._skills = skills
        self._sandbox = sandbox
        self._files = files
        self._data_dir = data_dir
        self._free = asyncio.Semaphore(AT_ONCE)

    def tool(self) -> Tool:
        made = Tool.from_function(
            self.run_skill_script, sensitive=True, timeout=SCRIPT_SECONDS + 30, check=self._check
        )
        made.consent_about = self._consent_about
        return made

    async def run_skill_script(
        self, skill: str, script: str, args: list[str] | None = None, stdin: str = "", *, context: ToolContext
    ) -> ToolResult:
        """Runs a program from the scripts folder of a skill, in the person's folder of files. Files that it
        writes there are sent to the person.

        Args:
            skill: The skill.
            script: The program as the skill names it, such as scripts/convert.py.
            args: Its arguments, one by one; no shell reads them. Paths are those in the person's folder.
            stdin: Text for its input.
        """
        found = await asyncio.to_thread(self._find, skill, script)
        home = self._files.home(context)
        await asyncio.to_thread(home.mkdir, 0o700, True, True)
        started = time.time_ns() - _TICK_NS
        try:
            command = await asyncio.to_thread(self._command, *found, args or [], home)
            async with self._free:
                status, output, errors = await _run(command, stdin.encode())
        except (OSError, ValueError) as error:
            return ToolResult.failure("UNAVAILABLE", f"{script} cannot be run: {error}")
        if status is None:
            return ToolResult.failure(
                "TIMEOUT", f"{script} was ended after {SCRIPT_SECONDS:g} s", _last(output, errors)
            )
        written = await asyncio.to_thread(_written, home, started)
        if not await asyncio.to_thread(self._files.fits, context):
            await asyncio.to_thread(_remove, home, written)
            return ToolResult.failure(
                "TOO_LARGE", f"{script} wrote more than there is room for; its files are removed"
            )
        if status:
            return ToolResult.failure(
                "SCRIPT_FAILED", f"{script} ended with status {status}: {_last(output, errors)}"
            )
        said: dict[str, JSON] = {"status": status, "output": output}
        said |= {"errors": errors} if errors else {}
        said |= {"files": written} if written else {}
        attachments = await asyncio.to_thread(lambda: tuple(_returned(home, written, self._files.is_closed)))
        return ToolResult(True, said, attachments=attachments)

    def _check(self, args: dict[str, JSON], context: ToolContext) -> None:
        """Refuse before anybody is asked. Raises ValueError."""
        require_chosen("skill", args, context)
        self._find(str(args["skill"]), str(args["script"]))
        given = args.get("args") or []
        if len(given) > MOST_ARGUMENTS or any(len(one) > LONGEST_ARGUMENT or "\0" in one for one in given):
            raise ValueError(
                f"args: at most {MOST_ARGUMENTS} of {LONGEST_ARGUMENT} characters each, none with a NUL"
            )
        if fault := self._sandbox.probe():
            raise ValueError(f"scripts of skills run in the sandbox alone, and {fault}")

    def _find(self, skill: str, script: str) -> tuple[Skill, Script]:
        found = self._skills.skill(skill)
        if found is None:
            raise ValueError(f"skill: {skill!r} is gone")
        known = {one.path: one for one in scripts_of(found.folder, self._data_dir)}
        meant = known.get(os.path.normpath(script)) or known.get(f"scripts/{script}")
        if meant is None:
            listed = ", ".join(known) or "none"
            raise ValueError(f"script: {script[:200]!r} is no program of {skill}; there are: {listed}")
        if meant.lacks:
            raise ValueError(f"script: {meant.path} cannot run here: it {meant.lacks}")
        return found, meant

    def _consent_about(self, args: Mapping[str, JSON]) -> str:
        """Return what a yes holds for: this program as it is now, of this skill."""
        try:
            skill, script = self._find(str(args["skill"]), str(args["script"]))
            content = read_regular(skill.folder / script.path)
        except (OSError, ValueError):
            return "gone"
        return f"{skill.name}/{script.path}:{hashlib.sha256(content).hexdigest()}"

    def _command(self, skill: Skill, script: Script, args: list[str], home: Path) -> Command:
        shown = [skill.folder.resolve()]
        if script.packages:
            shown.append(packages_folder(self._data_dir, script.packages).resolve())
        program = interpreter_place(script, self._data_dir)
        grants = Grants(network=may_use_network(skill.manifest), programs=True, folders_write=(home,))
        prefix, environment = self._sandbox.script_command(home, shown, grants)
        place = str(skill.folder.resolve() / script.path)
        return Command([*prefix, program, place, *args], environment, None, "sandbox", piped=True)


async def _run(command: Command, given: bytes) -> tuple[int | None, str, str]:
    """Return a program's status, None after the time limit, and the ends of what it wrote and complained."""
    process = await HostedProcess.start(command)
    output = bytearray()
    writing = asyncio.create_task(_write(process, given))
    status: int | None = None
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(SCRIPT_SECONDS):
                while piece := await process.output.read(_PIECE):
                    output += piece
                    del output[:-OUTPUT_BYTES]
                await process.wait(SCRIPT_SECONDS)
                status = process.status
    finally:
        writing.cancel()
        await process.end()
    return status, output.decode("utf-8", "replace"), str(process.printed)


async def _write(process: HostedProcess, given: bytes) -> None:
    with suppress(ConnectionError):
        process.input.write(given)
        await process.input.drain()
        process.input.close()


def _last(output: str, errors: str) -> str:
    return (errors.strip() or output.strip())[-2000:]


def _written(home: Path, since: int) -> list[str]:
    """Return the files changed since then (ns), by path; members' folders in an owner's are left out."""
    found: list[str] = []
    for place, folders, names in os.walk(home):
        folders[:] = [one for one in folders if not (place == str(home) and one == "people")]
        for name in names:
            with suppress(OSError):
                if os.lstat(f"{place}/{name}").st_ctime_ns >= since:
                    found.append(os.path.relpath(f"{place}/{name}", home))
    return sorted(found)


# Another script may put a link in the place of a folder meanwhile: no link is followed on the way to a file.


def _remove(home: Path, written: list[str]) -> None:
    for path in written:
        with (
            suppress(OSError, PathTraversalError),
            open_parent(home, path, link_itself=True) as (parent, name),
        ):
            os.unlink(name, dir_fd=parent)


def _returned(home: Path, written: list[str], is_closed: Callable[[Path], bool]) -> Iterator[ReturnedFile]:
    for path in written[:MOST_RETURNED]:
        with (
            suppress(OSError, PathTraversalError),
            open_parent(home, path, is_closed=is_closed) as (parent, name),
        ):
            with os.fdopen(open_to_read(name, parent), "rb") as file:
                content = file.read(LARGEST_RETURNED + 1)
            if len(content) <= LARGEST_RETURNED:
                kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
                yield ReturnedFile(content, kind, name)
