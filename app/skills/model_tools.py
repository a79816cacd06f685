"""The tools by which a model uses skills: they read texts and run scripts. And the texts that a prompt holds.

Scripts run in the sandbox alone, in the person's own folder.
"""

import asyncio
import hashlib
import mimetypes
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import yaml

from app.messages import JSON
from app.processes.host import Command, HostedProcess
from app.processes.sandbox import Grants, Sandbox
from app.skills.folder import read_regular
from app.skills.manifest import may_use_network
from app.skills.scripts import Script, interpreter_place, packages_folder, scripts_of
from app.skills.skill import SENTENCES_FILE, Skill, ToolSentences
from app.text import on_one_line
from app.tools import PathTraversalError, Tool, ToolContext, ToolResult, validate_path
from app.tools.files import PAGE, Files, pages, plain_text
from app.tools.paths import open_parent, open_to_read
from app.tools.result import ReturnedFile

LOAD_SKILL = "load_skill"
READ_SKILL_FILE = "read_skill_file"
RUN_SKILL_SCRIPT = "run_skill_script"

NEW_CHARACTERS = 16_000  # of skill texts that enter a prompt in one turn without having been asked for
ALL_CHARACTERS = 40_000  # of skill texts in one prompt
LONGEST_PATH = 1024  # characters of a path that a model names
LARGEST_FILE = 1024 * 1024
_LONGEST_DESCRIPTION = 160

SCRIPT_SECONDS = 120.0
AT_ONCE = 2
OUTPUT_BYTES = 16 * 1024
MOST_ARGUMENTS = 64
LONGEST_ARGUMENT = 4096
MOST_RETURNED = 3
LARGEST_RETURNED = 16 * 1024 * 1024
_TICK_NS = 20_000_000  # by which the time of a file may be behind the clock
_PIECE = 64 * 1024

SCRIPT_SENTENCES: ToolSentences = SENTENCES_FILE.validate_python(
    yaml.safe_load(Path(__file__).with_name("sentences.yaml").read_text("utf-8"))
)[RUN_SKILL_SCRIPT]


class SkillFinder(Protocol):
    """Finds a skill that is in use by its name."""

    def skill(self, name: str) -> Skill | None: ...


def place(active: Sequence[str], chosen: Sequence[str], sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Choose the skills whose texts the prompt holds, in the order in which they came.

    The beginning of the prompt stays the same. `active` are there already; of the `chosen` those enter that
    fit. Where it becomes too much the oldest leave, whole, those first that are not chosen now. `sizes`:
    characters of every text that may be shown.
    """
    shown = [name for name in active if sizes.get(name, ALL_CHARACTERS + 1) <= ALL_CHARACTERS]
    left = NEW_CHARACTERS
    for name in chosen:
        if name not in shown and name in sizes and sizes[name] <= left:
            shown.append(name)
            left -= sizes[name]
    surplus = sum(sizes[name] for name in shown) - ALL_CHARACTERS
    for name in sorted(shown, key=lambda one: one in chosen):
        if surplus <= 0:
            break
        shown.remove(name)
        surplus -= sizes[name]
    return tuple(shown)


def reading_tools(skills: SkillFinder) -> tuple[Tool, Tool]:
    """Make `load_skill` and `read_skill_file`, for the skills that a call's context names as chosen."""
    reader = _Reader(skills)
    options: dict[str, Any] = {"idempotent": True, "harmless": True, "outside": False}
    return (
        Tool.from_function(reader.load_skill, check=partial(require_chosen, "name"), **options),
        Tool.from_function(reader.read_skill_file, check=partial(require_chosen, "skill"), **options),
    )


def narrowed(tool: Tool, parameter: str, skills: Collection[Skill]) -> Tool:
    """Return the tool with just these skills to choose from."""
    properties = dict(tool.input_schema["properties"])
    listed = "; ".join(f"{one.name}: {on_one_line(one.description, _LONGEST_DESCRIPTION)}" for one in skills)
    properties[parameter] = {"type": "string", "enum": [one.name for one in skills], "description": listed}
    return tool.replace(input_schema={**tool.input_schema, "properties": properties})


class _Reader:
    """Reads skills for a model; blocks, and so is called in threads."""

    def __init__(self, skills: SkillFinder) -> None:
        self._skills = skills

    def load_skill(self, name: str, page: int = 1) -> ToolResult:
        """Gives the instructions of a skill that fits this message. Call it before you use the skill.

        Args:
            name: The skill.
            page: Which part of very long instructions, counted from 1.
        """
        skill = self._skills.skill(name)
        if skill is None:
            return _gone(name)
        form = {"skill": name, "files": list(skill.files)}
        return _page(form, "instructions", skill.instructions, page)

    def read_skill_file(self, skill: str, path: str, page: int = 1) -> ToolResult:
        """Reads a text file of a skill that is in use: a reference, a template, a script.

        Args:
            skill: The skill.
            path: The file, as the skill names it, such as references/guide.md.
            page: Which part of a long file, counted from 1.
        """
        found = self._skills.skill(skill)
        if found is None:
            return _gone(skill)
        if len(path) > LONGEST_PATH:
            return _refused(path, f"has more than {LONGEST_PATH} characters")
        try:
            real = validate_path(path, found.folder)
        except PathTraversalError:
            return _refused(path, "leads out of the skill's folder")
        if any(part.startswith(".") for part in real.relative_to(os.path.realpath(found.folder)).parts):
            return _refused(path, "is hidden")
        try:
            if not real.is_file():
                listed = ", ".join(found.files) or "none"
                return ToolResult.failure("NOT_A_FILE", f"{path} is no file of {skill}", f"files: {listed}")
            if real.stat().st_size > LARGEST_FILE:
                return _refused(path, f"has more than {LARGEST_FILE // 1024} KiB")
            document = plain_text(read_regular(real))
        except OSError as error:
            return ToolResult.failure("UNAVAILABLE", f"{path} cannot be read: {error.strerror}")
        if document is None:
            return ToolResult.failure("NOT_TEXT", f"{path} is not a text file")
        return _page({"skill": skill, "path": os.path.normpath(path)}, "text", document.text, page)


def require_chosen(parameter: str, args: Mapping[str, JSON], context: ToolContext) -> None:
    """Refuse a skill that was not chosen for the turn. Raises ValueError."""
    if args[parameter] not in context.chosen:
        listed = ", ".join(sorted(context.chosen)) or "none"
        raise ValueError(f"{parameter}: {args[parameter]!r} was not chosen here; chosen are: {listed}")


def _gone(name: str) -> ToolResult:
    return ToolResult.failure("UNAVAILABLE", f"the skill {name} is gone", "go on without it")


def _refused(path: str, why: str) -> ToolResult:
    return ToolResult.failure(
        "BAD_REQUEST", f"{path[:200]!r} {why}", "name a file of the skill by its path in it"
    )


def _page(form: dict[str, JSON], name: str, text: str, page: int) -> ToolResult:
    """Return the form with one page of the text, which ends with a line where one is near."""
    found = pages(text, PAGE)
    if not 1 <= page <= len(found):
        return ToolResult.failure("BAD_REQUEST", f"page is {page}, and there are {len(found)}")
    more: dict[str, JSON] = {"page": page, "pages": len(found)} if len(found) > 1 else {}
    return ToolResult.success({**form, name: found[page - 1], **more})


class ScriptRunner:
    """Runs scripts of skills for a model, never without a working sandbox."""

    def __init__(self, skills: SkillFinder, sandbox: Sandbox, files: Files, data_dir: Path) -> None:
        self._skills = skills
        self._sandbox = sandbox
        self._files = files
        self._data_dir = data_dir
        self._free = asyncio.Semaphore(AT_ONCE)

    def tool(self) -> Tool:
        return Tool.from_function(
            self.run_skill_script,
            sensitive=True,
            timeout=SCRIPT_SECONDS + 30,
            check=self._check,
            consent_about=self._consent_about,
        )

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
        home, started = self._files.home(context), time.time_ns() - _TICK_NS
        try:
            command = await asyncio.to_thread(self._command, skill, script, args or [], home)
            async with self._free:
                status, output, errors = await _run(command, stdin.encode())
        except (OSError, ValueError) as error:
            return ToolResult.failure("UNAVAILABLE", f"{script} cannot be run: {error}")
        last = (errors.strip() or output.strip())[-2000:]
        if status is None:
            return ToolResult.failure("TIMEOUT", f"{script} was ended after {SCRIPT_SECONDS:g} s", last)
        written = await asyncio.to_thread(_written, home, started)
        if not await asyncio.to_thread(self._files.fits, context):
            await asyncio.to_thread(_remove, home, written)
            message = f"{script} wrote more than there is room for; its files are removed"
            return ToolResult.failure("TOO_LARGE", message)
        if status:
            return ToolResult.failure("SCRIPT_FAILED", f"{script} ended with status {status}: {last}")
        said: dict[str, JSON] = {"output": output, "errors": errors, "files": written}
        attachments = await asyncio.to_thread(lambda: tuple(_returned(home, written, self._files.is_closed)))
        return ToolResult(True, said, attachments=attachments)

    def _check(self, args: dict[str, JSON], context: ToolContext) -> None:
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

    def _command(self, skill_name: str, script_name: str, args: list[str], home: Path) -> Command:
        skill, script = self._find(skill_name, script_name)
        home.mkdir(0o700, parents=True, exist_ok=True)
        shown = [skill.folder.resolve()]
        if script.packages:
            shown.append(packages_folder(self._data_dir, script.packages).resolve())
        program = interpreter_place(script, self._data_dir)
        grants = Grants(network=may_use_network(skill.manifest), programs=True, folders_write=(home,))
        prefix, environment = self._sandbox.script_command(home, shown, grants)
        place = str(shown[0] / script.path)
        return Command([*prefix, program, place, *args], environment, confined=True, piped=True)


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
            with open_to_read(name, parent) as file:
                content = file.read(LARGEST_RETURNED + 1)
            if len(content) <= LARGEST_RETURNED:
                kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
                yield ReturnedFile(content, kind, name)
