"""`recado mcp`: servers in the configuration, in the registry, and their secrets."""

import asyncio
import getpass
import json
import shutil
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.output import AsJson, Yes, command_settings, group, need_yes, show, show_json, table
from app.cli.server import find_server
from app.cli.skills import check_public, read_skills
from app.errors import RecadoError
from app.http.transport import Transport
from app.i18n import lazy, program
from app.installs.card_text import CardWriter
from app.installs.directory import FIRST_SECONDS, Directory, RegistryError, nearest_topics
from app.installs.pipeline import Approval, InstallError
from app.installs.sentences import reason_said
from app.installs.servers import ServerInstaller
from app.mcp import approved, definitions
from app.mcp.configuration import Configuration, add_server, remove_server
from app.mcp.definitions import ServerDefinition, ServerState, is_server_name, state_at_rest
from app.messages import JSON
from app.processes.sandbox import Sandbox
from app.settings import Settings, skill_environment
from app.skills.installed import remove_tree

commands = group()
mcp_commands = group(help="MCP servers: tools that other programs bring.")
commands.add_typer(mcp_commands, name="mcp")

ServerName = Annotated[str, typer.Argument(metavar="NAME", help="As `recado mcp list` shows it.")]

_ORIGINS = {"operator": "you", "installed": "registry", "skill": "a skill"}


@mcp_commands.command("list")
def mcp_list(as_json: AsJson = False) -> None:
    """Show every server and how it does; without a running server, what is configured."""
    settings = command_settings("ERROR")
    server = find_server(settings.data_dir)
    if server is not None:
        known = server.ask("servers")
    else:
        written = configuration(settings)
        known = written.report(
            [state_at_rest(one) or ServerState(one.name, "stopped", definition=one) for one in written.look()]
        )
    if as_json:
        show_json(known)
        return
    rows = []
    for one in known["servers"]:
        tools, version = len(one["tools"]) if one["phase"] == "ready" else "-", one["version"] or "-"
        rows.append((one["name"], _state(one), tools, _ORIGINS[one["origin"]], version, one["audience"]))
    if rows:
        show(table(("SERVER", "STATE", "TOOLS", "FROM", "VERSION", "FOR"), rows))
    for line in known["faults"]:
        show(line)
    if not rows:
        show(f"There are no MCP servers. Find one with: {program()} mcp search WORDS")
        show(f"Or write it into {settings.mcp_config_path}: docs/mcp.md")


@mcp_commands.command("search")
def mcp_search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS...", help="What it should be for.")],
) -> None:
    """Search the registry.

    Works with the list as it came last while the registry is away. Status 1 where nothing fits.
    """
    asyncio.run(_search(command_settings("ERROR"), " ".join(words)))


async def _search(settings: Settings, words: str) -> None:
    async with _directory(settings) as directory:
        with suppress(RegistryError, TimeoutError):  # the list as it came last is searched
            async with asyncio.timeout(FIRST_SECONDS):
                await directory.refresh()
        found = await directory.search(words)
        if not found:
            topics = ", ".join(nearest_topics(words, "en"))
            raise RecadoError(f"no server of the registry fits {words!r}; there are some for: {topics}")
    for one in found:
        show(f"{one.name}  {one.version}\n    {one.description}")
        if one.reason is not None:
            show(f"    not here: {reason_said('en', one.reason)}")
    show(f"\nInstall one: {program()} mcp add NAME --registry ID")


@mcp_commands.command("add")
def mcp_add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called here.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND", help="What starts it, after --.", show_default=False),
    ] = None,
    registry: Annotated[str, typer.Option(metavar="ID", help="A server of the registry.")] = "",
    url: Annotated[str, typer.Option(metavar="URL", help="The https address of a server.")] = "",
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Its entry as other hosts write it; - reads it."),
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option("-e", "--env", metavar="K=V", help="For COMMAND: K='${VARIABLE}'.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("-H", "--header", metavar="K=V", help="For --url, as -e.")
    ] = None,
    folder: Annotated[
        str, typer.Option(metavar="F", help="For --registry: the folder in the workspace that it may use.")
    ] = "",
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="K=V", help="For --registry: a value it asks for.")
    ] = None,
    no_network: Annotated[
        bool, typer.Option("--no-network", help="For --registry: it gets no internet.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Add a server: NAME, and what it is.

    A server of the registry is shown first, and installed after a yes. Secrets are written as '${VARIABLE}'
    and given with `recado mcp secret`.
    """
    ways = [bool(registry), bool(url), json_file is not None, bool(command)]
    if sum(ways) != 1:
        raise typer.BadParameter("give one of --registry ID, --url URL, --json FILE and -- COMMAND")
    for_registry = yes or folder or values or no_network
    if (env and not command) or (header and not url) or (for_registry and not registry):
        raise typer.BadParameter(
            "-e goes with -- COMMAND, -H with --url; --folder, --set, --no-network and --yes with --registry"
        )
    settings = command_settings("ERROR")
    if registry:
        given, network = _pairs(values or [], "--set", "VALUE"), False if no_network else None
        wanted = {"name": name, "values": given, "folder": folder, "network": network}
        asyncio.run(_install(settings, registry, wanted, asks=not yes))
    elif command:
        variables = _pairs(env or [], "-e")
        _add_entry(settings, name, {"command": command[0], "args": command[1:], "env": variables})
    elif json_file is not None:
        _add_entry(settings, name, file_entry(json_file, name))
    else:
        check_public(url)
        _add_entry(settings, name, {"url": url, "headers": _pairs(header or [], "-H")})


def configuration(settings: Settings) -> Configuration:
    """Read the configuration as a server does."""
    return Configuration(settings, skill_environment(), read_skills(settings))


def definition_of(written: Configuration, name: str) -> ServerDefinition:
    """Return the server of that name. Raise RecadoError with the known names if there is none."""
    found = {one.name: one for one in written.look()}
    if name in found:
        return found[name]
    names = f"there are: {', '.join(found)}" if found else "there is none yet"
    raise RecadoError("\n".join([*written.faults, f"there is no server {name!r}; {names}"]))


def file_entry(path: Path, name: str) -> JSON:
    """Return the entry of a file, alone or in an `mcpServers` mapping. Raise RecadoError if it has none."""
    try:
        whole: JSON = json.loads(sys.stdin.read() if str(path) == "-" else path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RecadoError(f"{path} cannot be read as JSON: {error}") from error
    servers = whole.get("mcpServers", whole.get("servers")) if isinstance(whole, dict) else None
    if not isinstance(servers, dict):
        return whole
    if name not in servers and len(servers) != 1:
        raise RecadoError(f"{path} has no server {name!r}, but: {', '.join(servers) or 'none'}")
    return servers.get(name) or next(iter(servers.values()))


def _add_entry(settings: Settings, name: str, entry: JSON) -> None:
    trial = definitions.parse_entry(name, entry, {})
    if trial.fault:
        raise RecadoError(f"{name}: {trial.fault}")
    written = configuration(settings)
    if name in {one.name for one in written.look()}:
        raise RecadoError(f"there is a server {name} already; remove it first, or choose another name")
    add_server(settings.mcp_config_path, name, entry)
    definition = definition_of(written, name)
    show(f"Added {name} to {settings.mcp_config_path}. It is started at the next message, without a restart.")
    if definition.command and shutil.which(definition.command) is None:
        show(f"The program {definition.command} is not found here: install it, or give its whole path.")
    for variable in definition.missing:
        show(f"It needs {variable}: {program()} mcp secret {name} {variable}")
    if definition.exposed:
        show(": ".join(exposed(definition)))


@mcp_commands.command("secret")
def mcp_secret(
    name: ServerName,
    variable: Annotated[str, typer.Argument(metavar="VARIABLE", help="As its entry names it: ${VARIABLE}.")],
) -> None:
    """Give a server a secret.

    Its value is asked at the terminal, or read from the input: it is never an argument.
    """
    written = configuration(command_settings("ERROR"))
    kept_as = definition_of(written, name).kept_as
    if sys.stdin.isatty():
        value = getpass.getpass(f"{variable} of {name} (it is not shown): ").strip()
    else:
        value = sys.stdin.read().rstrip("\r\n")
    written.secrets.put(kept_as or name, variable, value)
    show(f"{variable} is kept for {name}. It counts from the next message on.")
    for other in definition_of(written, name).missing:
        show(f"It still needs {other}: {program()} mcp secret {name} {other}")


def exposed(definition: ServerDefinition) -> tuple[str, str]:
    """Say that an entry holds a secret in plain text, and how to move it out of the entry."""
    return (
        lazy("its entry holds a secret as it is"),
        lazy(
            "write ${{NAME}} in its place, and give it with: {recado} mcp secret {name} NAME",
            name=definition.name,
        ),
    )


def _state(one: Mapping[str, JSON]) -> str:
    if one["missing"] and one["phase"] == "broken":
        return f"needs {', '.join(one['missing'])}: {program()} mcp secret {one['name']} {one['missing'][0]}"
    if one["phase"] == "stopped":
        return "no server runs that would start it"
    held = len(one["held_back"])
    if held:
        return f"{one['phase']}; {held} held back until it is approved in the console"
    return f"{one['phase']}: {one['reason']}" if one["reason"] else str(one["phase"])


def _pairs(texts: Iterable[str], option: str, value: str = "'${VARIABLE}'") -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise RecadoError(f"{option} {name!r}: write {option} NAME={value}")
    return {name: value for name, _, value in pairs}


@mcp_commands.command("remove")
def mcp_remove(name: ServerName) -> None:
    """Take a server out, with its secrets."""
    settings = command_settings("ERROR")
    written = configuration(settings)
    is_installed = is_server_name(name) and approved.read_record(settings.data_dir, name) is not None
    if is_installed:  # also where its entry was taken out of the file by hand
        asyncio.run(ServerInstaller(settings, Sandbox(settings)).remove(name))
        show(f"Removed {name}, which came from the registry, with its files and secrets.")
        return
    if definition_of(written, name).origin == "skill":
        raise RecadoError(f"{name} comes with a skill; remove that one: {program()} skills list")
    remove_server(settings.mcp_config_path, name)
    if is_server_name(name):
        written.secrets.forget(name)
        remove_tree(approved.home_of(settings.data_dir, name))
    show(f"Removed {name} from {settings.mcp_config_path}, with its secrets. It is gone at the next message.")


async def _install(settings: Settings, registry_id: str, wanted: dict[str, Any], *, asks: bool) -> None:
    """Show what an entry would install, ask, and install it; `wanted` are arguments of `propose`."""
    async with _directory(settings) as directory:
        entry = await directory.get(registry_id)
    if entry is None:
        raise RecadoError(
            f"the registry has no server {registry_id!r}; find one: {program()} mcp search WORDS"
        )
    if entry.reason is not None:
        raise RecadoError(f"{entry.name} cannot be installed: {reason_said('en', entry.reason)}")
    installer = ServerInstaller(settings, Sandbox(settings), read_skills(settings))
    try:
        plan = await installer.propose(entry, **wanted)
    except InstallError as error:
        if error.code == "NEEDS_FOLDER":
            raise RecadoError(f"{error}: name one of the workspace with --folder, . for all of it") from error
        raise
    if plan.name != wanted["name"]:
        raise RecadoError(f"{entry.name} is installed already, as {plan.name}; remove that one first")
    text = CardWriter(settings).whole("en", plan)
    show(text.text)
    if asks:
        need_yes(text.question, "nothing was installed")
    show("Downloading it and what it needs …")
    record = await installer.commit(Approval(plan.subject, "shell"))
    show(f"Installed {record.name} {record.version}. It is started at the next message.")
    for variable in definition_of(configuration(settings), record.name).missing:
        show(f"It needs {variable}: {program()} mcp secret {record.name} {variable}")


@asynccontextmanager
async def _directory(settings: Settings) -> AsyncIterator[Directory]:
    transport = Transport()
    directory = Directory(settings, transport)
    try:
        yield directory
    finally:
        await directory.close()
        await transport.close()
