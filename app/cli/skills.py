"""`recado skills`: check, begin, add and remove folders with a SKILL.md."""

import asyncio
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

import typer

from app.cli.database import read_records
from app.cli.output import FAILED, command_settings, group, need_yes, show, show_table
from app.errors import RecadoError
from app.http.address import Address, FetchError, is_public
from app.http.transport import Transport
from app.i18n import program
from app.installs.card_text import CardWriter
from app.installs.packages import install_script_packages, packages_wanted
from app.installs.pipeline import Approval
from app.installs.skills import SkillInstaller, remove_skill
from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.skills import Skill, SkillLoader, load_skill
from app.skills.authoring import AuthoringError, OwnSkills
from app.skills.folder import is_skill
from app.skills.loader import InstalledSkills
from app.skills.manifest import is_standard_name, may_use_network
from app.skills.scripts import Script, scripts_of
from app.store.alerts import ABOUT_SKILLS, Alert, open_alerts
from app.store.disk_space import MEGABYTE, Disk
from app.text import visible

commands = group()
skills_commands = group(help="The skills: folders with a SKILL.md.")
commands.add_typer(skills_commands, name="skills")

_NEAR = (".localhost", ".local", ".internal", ".lan", ".home.arpa")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|git@")


def read_skills(settings: Settings) -> SkillLoader:
    """Load all skills as a server does, without running their code."""
    loader = SkillLoader(settings.skills_dir, installed=InstalledSkills(settings), runs_code=False)
    loader.refresh()
    return loader


@skills_commands.command("list")
def skills_list() -> None:
    """Show every skill, its tools and whether it can be used."""
    settings, rows = command_settings("ERROR"), []
    loader = read_skills(settings)
    opened: list[Alert] = read_records(settings.database, open_alerts, none=[])
    about = [alert for alert in opened if alert.code.startswith(ABOUT_SKILLS)]
    aside = {alert.code.removeprefix(ABOUT_SKILLS).removesuffix(":"): alert.text for alert in about}
    for skill in loader.skills:
        tools = ", ".join(tool.name for tool in skill.tools) or "-"
        rows.append((skill.name, _place(skill), tools, _state(skill, aside, settings)))
    none = f"There are no skills in {settings.skills_dir}; a skill is a folder with a SKILL.md."
    show_table(("SKILL", "RUNS", "TOOLS", "STATE"), rows, none)
    for clash in loader.clashes:
        show(visible(clash))


@skills_commands.command("check")
def skills_check(
    path: Annotated[Path | None, typer.Argument(help="A skill's folder, or a folder of such.")] = None,
) -> None:
    """Check skills: tools, left out, faults.

    Names the tools found, the functions left out and why, and every fault; status 1 if there is one.
    """
    settings = command_settings("ERROR")
    loader = read_skills(settings)
    skills: Sequence[Skill] = loader.skills
    clashes: Sequence[str] = loader.clashes
    if path is not None:
        with _on_disk():
            folders = _skill_folders(_folder_meant(path))
        skills = [load_skill(folder, runs_code=False) for folder in folders]
        own = tuple(start for skill in skills for start in (f"{skill.name}: ", f"{skill.folder} "))
        clashes = [clash for clash in loader.clashes if clash.startswith(own)]
    faulty = [skill for skill in skills if skill.faults]
    lines = [line for skill in skills for line in _report(skill, settings)]
    lines += [f"clash: {visible(clash)}" for clash in clashes]
    show("\n".join([*lines, f"{len(skills)} checked, {len(faulty)} with faults"]))
    raise typer.Exit(FAILED if faulty else 0)


@skills_commands.command("new")
def skills_new(name: Annotated[str, typer.Argument(help="Such as tide-tables.")]) -> None:
    """Begin a skill: a folder that works.

    Made in SKILLS_DIR, with two tools, phrases and tests to change.
    """
    settings = command_settings("ERROR")
    with _on_disk():
        _own(settings).new(name)
    folder = settings.skills_dir / name
    show(f"Made {folder}: it works from the next message on, without a restart.")
    called = name.replace("-", " ")
    show(f'Write to the assistant: "add milk to {called}". Then change scripts/tools.py.')
    show(f"Look at it: {program()} skills check {folder}")
    show(f"Test it alone: cd {folder} && pytest")


@skills_commands.command("add")
def skills_add(
    source: Annotated[
        str, typer.Argument(metavar="PATH_OR_URL", help="A skill's folder, or an https address.")
    ],
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="For a folder: install what its scripts need unasked.")
    ] = False,
) -> None:
    """Bring a skill in: a folder, or an address.

    A folder is checked and copied into SKILLS_DIR; packages that its scripts need are installed after a yes,
    also for a folder that is there already. What is at an https address is shown, and installed
    after a yes at the terminal; without a terminal nothing is fetched.
    """
    settings = command_settings("ERROR")
    if _ADDRESS.match(source) and not os.path.lexists(source):
        check_public(source)
        show(asyncio.run(install_skill(settings, source, Transport())))
        return
    meant = _folder_meant(Path(source))
    lines: list[str] = []
    if meant.absolute().parent == settings.skills_dir.absolute():
        skill = load_skill(meant, runs_code=False)
    else:
        with _on_disk():
            skill = _own(settings).add(meant)
        lines.append(f"Added {visible(skill.name)} to {settings.skills_dir / skill.folder.name}.")
        lines.append("It is seen at the next message, without a restart.")
    lines += _add_packages(settings, skill, asks=not yes)
    show("\n".join([*lines, *_report(skill, settings)]))


def _add_packages(settings: Settings, skill: Skill, *, asks: bool) -> list[str]:
    wanted = packages_wanted(skill.scripts, settings.data_dir)
    if not wanted:
        return []
    named = visible("; ".join(", ".join(packages) for packages in wanted))
    if asks and not sys.stdin.isatty():
        return [f"Its scripts need packages: {named}. To install them: {program()} skills add FOLDER --yes"]
    if asks and not typer.confirm(
        f"Its scripts need packages of the Python Package Index: {named}. Install?"
    ):
        return ["No package was installed: scripts that need one do not run."]
    disk = Disk(settings.data_dir, settings.free_space_mb * MEGABYTE)
    for packages in wanted:
        asyncio.run(install_script_packages(packages, settings.data_dir, disk))
    return [f"Installed for its scripts, with hashes: {named}"]


@skills_commands.command("remove")
def skills_remove(name: Annotated[str, typer.Argument(help="As `recado skills list` shows it.")]) -> None:
    """Take a skill of yours out.

    A folder of your own is kept in DATA_DIR/skills-removed.
    """
    settings = command_settings("ERROR")
    with _on_disk():
        if is_standard_name(name) and remove_skill(settings.data_dir, name):
            show(f"Removed {name}, which came from an address; it is gone at the next message.")
            return
        place = _own(settings).remove(name)
    show(f"Removed {name}; it is gone at the next message. The folder is kept in {place}")


def _own(settings: Settings) -> OwnSkills:
    return OwnSkills(settings.skills_dir, settings.data_dir / "skills-removed")


@contextmanager
def _on_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = error.filename or "the folder of the skills"
        raise AuthoringError(
            f"{place} cannot be read or written: {error.strerror or error}; give this account the folder, or "
            "change it by hand (with Docker Compose it is ./skills beside docker-compose.yml)"
        ) from error


def check_public(text: str) -> None:
    """Raise RecadoError unless an address is https and on the internet."""
    try:
        address = Address.parse(text)
    except FetchError as error:
        raise RecadoError(f"that address is not taken: {error}") from error
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError:  # no network: the connection checks it again
        found = []
    ips = [ip_address(str(place[4][0]).partition("%")[0]) for place in found]
    if address.host.endswith(_NEAR) or not all(map(is_public, ips)):
        raise RecadoError(f"{address.host} is this machine or its own network: only public ones are taken")
    if address.scheme != "https":
        raise RecadoError("only https addresses are taken: over http anybody on the way reads and changes it")


def _folder_meant(path: Path) -> Path:
    return path.absolute().parent if path.name == "SKILL.md" and path.is_file() else path


def _skill_folders(path: Path) -> list[Path]:
    if is_skill(path):
        return [path]
    shown = [folder for folder in path.iterdir() if not folder.name.startswith(".")] if path.is_dir() else []
    found = sorted(filter(is_skill, shown))
    if not found:
        raise RecadoError(
            f"{path}: no SKILL.md here or one folder below; a skill is a folder with a SKILL.md"
        )
    return found


def _place(skill: Skill) -> str:
    if not skill.tools:
        return "-"
    if skill.installed:
        return "sandbox"
    return "in process" if skill.bundled else "own process"


def _state(skill: Skill, aside: Mapping[str, str], settings: Settings) -> str:
    if skill.faults:
        return f"faulty: {'; '.join(skill.faults)}"
    if skill.bundled:
        return skill.reason or "ready, shipped"
    if reason := skill.reason or aside.get(skill.name if skill.installed else skill.folder.name):
        return reason
    told = [f"ready, from {skill.installed.source}" if skill.installed else "ready"]
    scripts = _scripts(skill, settings)
    if not scripts and not skill.tools:
        told.append("instructions only")
    if running := sorted({one.interpreter for one in scripts if not one.lacks}):
        told.append(f"scripts with {', '.join(running)}")
    if lacking := sorted({one.lacks for one in scripts if one.lacks}):
        told.append(f"scripts that do not run: {'; '.join(lacking)}")
    return ", ".join(told)


def _report(skill: Skill, settings: Settings) -> list[str]:
    lines = [f"{skill.name} ({skill.folder})"]
    lines += [f"  tool: {tool.name}" for tool in skill.tools]
    lines += [f"  left out: {line}" for line in skill.left_out]
    for one in _scripts(skill, settings):
        needs = f"; packages: {', '.join(one.packages)}" if one.packages else ""
        state = f"does not run here: it {one.lacks}" if one.lacks else "runs in the sandbox, after a yes"
        lines.append(f"  script: {one.path} ({one.interpreter}{needs}) {state}")
    if skill.scripts and may_use_network(skill.manifest):
        lines.append("  its scripts may use the internet (script-network)")
    lines += [f"  warning: {line}" for line in skill.warnings]
    if skill.reason and skill.reason not in skill.faults:
        lines.append(f"  not in use: {skill.reason}")
    lines += [f"  FAULT: {line}" for line in skill.faults]
    return list(map(visible, lines))


def _scripts(skill: Skill, settings: Settings) -> Sequence[Script]:
    return () if skill.bundled else scripts_of(skill.folder, settings.data_dir)


async def install_skill(settings: Settings, address: str, transport: Transport) -> str:
    """Show what is at an address, ask, install it, and return what to tell.

    Raises `RecadoError` if it cannot be installed, if the answer is no, and without a terminal.
    """
    if not sys.stdin.isatty():
        raise RecadoError("a skill from an address is installed after a yes; run this in a terminal")
    installer = SkillInstaller(settings, transport)
    try:
        candidate = await installer.propose(address)
    finally:
        await transport.close()
    text = CardWriter(settings).whole("en", candidate)
    show(text.text)
    need_yes(text.question, "nothing was installed")
    installed = await installer.commit(Approval(candidate.subject, "shell", address=address))
    lines = [f"Installed {installed.name} in {installed.folder}. It is seen at the next message."]
    if candidate.tools and (refusal := Sandbox(settings).refusal()):
        lines.append(f"Its tools do not run here: {refusal} ({program()} doctor has the cure)")
    return "\n".join(lines)
