"""`recado mcp`: names and options of its commands."""

from pathlib import Path
from typing import Annotated

import typer

from app.commands.shell import command_settings, group, show

Name = Annotated[str, typer.Argument(metavar="NAME", help="As `recado mcp list` shows it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Everything that is known, as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

mcp_app = group(help="MCP servers: tools that other programs bring.")


@mcp_app.command("list")
def mcp_list(as_json: AsJson = False) -> None:
    """Show every server and how it does."""
    settings = command_settings("ERROR")
    from app.commands.servers import servers_table

    show(servers_table(settings, as_json=as_json))


@mcp_app.command()
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS...", help="What it should be for.")],
    as_json: AsJson = False,
) -> None:
    """Search the registry.

    Works with the list as it came last while the registry is away. Status 1 where nothing fits.
    """
    settings = command_settings("ERROR")
    from app.commands.server_installs import search_text

    show(search_text(settings, " ".join(words), as_json=as_json))


@mcp_app.command()
def add(
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
    trust: Annotated[
        bool, typer.Option("--trust", help="For --registry: its reading tools run without asking.")
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
    if (env and not command) or (header and not url) or ((trust or yes) and not registry):
        raise typer.BadParameter("-e goes with -- COMMAND, -H with --url, --trust and --yes with --registry")
    settings = command_settings("ERROR")
    if registry:
        from app.commands.server_installs import install_server

        show(install_server(settings, name, registry, trusted=trust, asks=not yes))
        return
    from app.commands import servers

    if command:
        entry = servers.command_entry(command, env or [])
    elif json_file is not None:
        entry = servers.file_entry(json_file, name)
    else:
        entry = servers.remote_entry(url, header or [])
    show(servers.add(settings, name, entry))


@mcp_app.command()
def remove(name: Name) -> None:
    """Take a server out, with its secrets."""
    settings = command_settings("ERROR")
    from app.commands.server_installs import remove_server

    show(remove_server(settings, name))


@mcp_app.command()
def secret(
    name: Name,
    variable: Annotated[str, typer.Argument(metavar="VARIABLE", help="As its entry names it: ${VARIABLE}.")],
) -> None:
    """Give a server a secret.

    Its value is asked at the terminal, or read from the input: it is never an argument.
    """
    settings = command_settings("ERROR")
    from app.commands.servers import keep_secret

    show(keep_secret(settings, name, variable))


@mcp_app.command()
def approve(name: Name, yes: Yes = False) -> None:
    """Approve tools that are new or changed.

    Shows what differs from what was approved, and asks.
    """
    settings = command_settings("ERROR")
    from app.commands.server_tools import approve_tools

    show(approve_tools(settings, name, asks=not yes))
