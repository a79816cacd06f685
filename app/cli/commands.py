"""Names, options and exit statuses of the `recado` commands; each imports its work when it runs."""

import gc
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from app.cli.output import FAILED, MISUSED, command_settings, group, name_unreadable_lines, show
from app.errors import ConfigurationError, RecadoError

Phone = Annotated[str, typer.Argument(help="A number with its country code, or a WhatsApp user id.")]

Person = Annotated[
    str, typer.Argument(help="A number with its country code, a WhatsApp user id, or our own id of them.")
]

Question = Annotated[str, typer.Argument(metavar="ID", help="As `recado approvals list` shows it.")]


class _Group(TyperGroup):
    """Ends a command that cannot do its work with one clear line instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise
        except ConfigurationError as error:
            raise _ended(error, MISUSED) from error
        except RecadoError as error:
            raise _ended(error, FAILED) from error


app = group(cls=_Group, help="Recado: a self-hosted assistant that lives in WhatsApp.")
people_app = group(help="Who may talk, and who owns.")
approvals_app = group(help="Questions that wait for an answer.")
skills_app = group(help="The skills: folders with a SKILL.md.")
mcp_app = group(help="MCP servers: tools that other programs bring.")
eval_app = group(help="Quality on files of examples.")
app.add_typer(people_app, name="people")
app.add_typer(approvals_app, name="approvals")
app.add_typer(skills_app, name="skills")
app.add_typer(mcp_app, name="mcp")
app.add_typer(eval_app, name="eval")
knowledge_app = group(help="What customers may be told: files in KNOWLEDGE_DIR.")
app.add_typer(knowledge_app, name="knowledge")
templates_app = group(help="Messages that Meta approved: DATA_DIR/templates.yaml.")
app.add_typer(templates_app, name="templates")


def _show_version(wanted: bool) -> None:
    if wanted:
        from app import __version__

        typer.echo(f"recado {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options before any command."""


def main() -> None:
    """The entry point of `recado` and of `python -m app`."""
    os.umask(0o077)  # whatever we write holds people's messages: for the operator's account alone
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows no emoji shows the rest
    if sys.argv[1:2] == ["serve"]:
        _leave_when_told()
    app()


def _leave_when_told() -> None:
    """Until the server hears these itself it has begun nothing; SIGHUP is ignored as under nohup."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: os._exit(0))


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen at, in place of HOST.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port, in place of PORT.")] = None,
) -> None:
    """Run the server."""
    gc.disable()  # what loads now stays; the server collects once and enables it again: a tenth of the start
    from app.cli.settings import configure_logs, read_settings

    settings = read_settings(host=host, port=port)
    configure_logs(settings, settings.log_level)
    name_unreadable_lines()
    from app.cli.server import start

    raise typer.Exit(start(settings))


@app.command()
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
    settings = command_settings()
    from app.cli.chat import chat as talk

    raise typer.Exit(talk(settings, mode=mode, dry_run=dry_run))


@app.command()
def doctor(
    url: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Also try the webhook at this public address.")
    ] = "",
) -> None:
    """Check the set-up, and say the cure.

    A line for each part; status 1 if something is broken. Safe while the server runs.
    """
    from app.doctor import OK, Finding, examine, line
    from app.doctor.machine import check_names

    try:
        settings = command_settings("ERROR", names_faults=False)
    except ConfigurationError as error:
        for fault in str(error).splitlines():
            fact, _, cure = fault.partition("; ")
            show(line(Finding("FAIL", "configuration", fact, cure)))
        for finding in check_names(Path(".env")):
            show(line(finding))
        raise typer.Exit(FAILED) from error
    worst = OK
    for finding in examine(settings, url):
        show(line(finding))
        worst = max(worst, finding.level, key=("OK", "WARN", "FAIL").index)
    raise typer.Exit(FAILED if worst == "FAIL" else 0)


@people_app.command("list")
def people_list() -> None:
    """Show everybody known and those turned away."""
    settings = command_settings()
    from app.cli.people import people_table

    show(people_table(settings))


@people_app.command()
def allow(who: Phone) -> None:
    """Let somebody in, and confirm somebody who is frozen."""
    _change_person("allow", who)


@people_app.command()
def block(who: Phone) -> None:
    """Shut somebody out, whatever the configuration says."""
    _change_person("block", who)


@people_app.command()
def owner(who: Phone) -> None:
    """Make somebody an owner: who installs, approves and administers."""
    _change_person("owner", who)


@people_app.command()
def invite(
    role: Annotated[Literal["member", "owner"], typer.Option(help="The role that it gives.")] = "member",
    uses: Annotated[int, typer.Option(min=1, max=10_000, help="How many people may use it.")] = 1,
    hours: Annotated[float, typer.Option(min=0.1, max=24 * 366, help="How long it is valid.")] = 48,
) -> None:
    """Make an invitation code, as a link and a QR code where WhatsApp is connected."""
    settings = command_settings()
    from app.cli.people import invitation

    show(invitation(settings, role, uses, hours))


@approvals_app.command("list")
def approvals_list() -> None:
    """Show every open question with its whole card."""
    settings = command_settings()
    from app.cli.people import open_approvals

    show(open_approvals(settings))


@approvals_app.command()
def yes(question: Question) -> None:
    """Say yes in place of whoever was asked."""
    _answer(question, "yes")


@approvals_app.command()
def no(question: Question) -> None:
    """Say no in place of whoever was asked."""
    _answer(question, "no")


@app.command()
def token(
    renew: Annotated[bool, typer.Option("--renew", help="Put a new token in place of the old one.")] = False,
) -> None:
    """Show or renew the console's token."""
    settings = command_settings()
    from app.cli.server import admin_token

    show(admin_token(settings, renew=renew))


@app.command()
def simulator() -> None:
    """Print the link that opens the phone simulator of the running server."""
    settings = command_settings()
    from app.cli.server import simulator_link

    show(simulator_link(settings))


@app.command()
def usage(
    month: Annotated[str, typer.Option(help="YYYY-MM; else this month.", metavar="MONTH")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show what was sent, thought and billed in a month, by person and day."""
    settings = command_settings()
    from app.cli.trace import read_usage, usage_text

    month = month or time.strftime("%Y-%m", time.gmtime())
    if not re.fullmatch(r"\d{4}-\d{2}", month):
        raise typer.BadParameter("write the month as YYYY-MM, such as 2026-11")
    used = read_usage(settings, month)
    show(json.dumps(used, indent=2) if as_json else usage_text(used))


@app.command()
def catalog(
    as_json: Annotated[bool, typer.Option("--json", help="The whole catalogue with its schemas.")] = False,
) -> None:
    """Show the tool catalogue.

    It is read without running any tool code.
    """
    settings = command_settings()
    from app.cli.tools import catalog_text

    show(catalog_text(settings, as_json=as_json))


@app.command()
def route(message: Annotated[str, typer.Argument(help="What a person might write.")]) -> None:
    """Show the tools for a message, and why."""
    settings = command_settings()
    from app.cli.tools import route_text

    show(route_text(settings, message))


@app.command()
def trace(
    turn: Annotated[str, typer.Argument(metavar="[TURN]", help="A turn's id.")] = "",
) -> None:
    """Show the last turns, or one in full.

    With TURN: its journal, and each model call with its whole prompt and cost.
    """
    settings = command_settings()
    from app.cli.trace import turn_text, turns_table

    show(turn_text(settings, turn) if turn else turns_table(settings))


@skills_app.command("list")
def skills_list() -> None:
    """Show every skill, its tools and whether it can be used."""
    settings = command_settings("ERROR")
    from app.cli.skills import skills_table

    show(skills_table(settings))


@skills_app.command("check")
def skills_check(
    path: Annotated[Path | None, typer.Argument(help="A skill's folder, or a folder of such.")] = None,
) -> None:
    """Check skills: tools, left out, faults.

    Names the tools found, the functions left out and why, and every fault; status 1 if there is one.
    """
    settings = command_settings("ERROR")
    from app.cli.skills import check_skills

    report, sound = check_skills(settings, path)
    show(report)
    raise typer.Exit(0 if sound else FAILED)


@skills_app.command("new")
def skills_new(name: Annotated[str, typer.Argument(help="Such as tide-tables.")]) -> None:
    """Begin a skill: a folder that works.

    Made in SKILLS_DIR, with two tools, phrases and tests to change.
    """
    settings = command_settings("ERROR")
    from app.cli.skills import new_skill

    show(new_skill(settings, name))


@skills_app.command("add")
def skills_add(
    source: Annotated[
        str, typer.Argument(metavar="PATH_OR_URL", help="A skill's folder, or an https address.")
    ],
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in place of the one of that name.")
    ] = False,
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
    from app.cli.skills import add_skill

    show(add_skill(settings, source, replace=replace, asks=not yes))


@skills_app.command("remove")
def skills_remove(name: Annotated[str, typer.Argument(help="As `recado skills list` shows it.")]) -> None:
    """Take a skill of yours out.

    Its folder is kept in DATA_DIR/skills-removed, the last ten of them.
    """
    settings = command_settings("ERROR")
    from app.cli.skills import remove_skill

    show(remove_skill(settings, name))


@skills_app.command("stats")
def skills_stats(
    days: Annotated[int, typer.Option(min=1, max=90, help="How far back, today included.")] = 7,
    as_json: Annotated[bool, typer.Option("--json", help="Durations in seconds, every error.")] = False,
) -> None:
    """Show how the tools did.

    Calls, success, durations and errors of each tool that was called.
    """
    settings = command_settings()
    from app.cli.trace import tool_figures

    show(tool_figures(settings, days, as_json=as_json))


@eval_app.command("routing")
def eval_routing(
    catalog: Annotated[Path, typer.Option(help="The tools, a JSON object a line.")],
    queries: Annotated[Path, typer.Option(help="Messages with the tools that they need.")],
    examples: Annotated[Path | None, typer.Option(help="Example phrases of the tools.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The figures as JSON.")] = False,
) -> None:
    """Measure how well tools are found.

    Shares in percent, for each language. What the index finds for the message alone: no model is asked.
    """
    from app.cli.evaluation import routing_figures

    show(routing_figures(catalog, queries, examples, as_json=as_json))


@eval_app.command("recall")
def eval_recall(
    history: Annotated[Path, typer.Option(help="Messages of conversations, a JSON object a line.")],
    queries: Annotated[Path, typer.Option(help="Questions with the messages that answer them.")],
    as_json: Annotated[bool, typer.Option("--json", help="The figures as JSON.")] = False,
) -> None:
    """Measure how well past messages are found: shares of those wanted among the first ten, in percent."""
    from app.cli.evaluation import recall_figures

    show(recall_figures(history, queries, as_json=as_json))


@knowledge_app.command("list")
def knowledge_list(
    as_json: Annotated[bool, typer.Option("--json", help="The files as JSON.")] = False,
) -> None:
    """Show the files, and how many passages each has."""
    settings = command_settings("ERROR")
    from app.cli.knowledge import files_table

    show(files_table(settings, as_json=as_json))


@knowledge_app.command("check")
def knowledge_check() -> None:
    """Name every file that cannot be read; exit status 1 if there is one."""
    settings = command_settings("ERROR")
    from app.cli.knowledge import faults

    if found := faults(settings):
        raise RecadoError("\n".join(found))
    show("Every file can be read.")


@knowledge_app.command("ask")
def knowledge_ask(
    question: Annotated[str, typer.Argument(help="What a customer might ask.")],
    as_json: Annotated[bool, typer.Option("--json", help="All passages as JSON.")] = False,
) -> None:
    """Show the passages that a question finds."""
    settings = command_settings("ERROR")
    from app.cli.knowledge import answers_text

    show(answers_text(settings, question, as_json=as_json))


@templates_app.command("list")
def templates_list() -> None:
    """Show the templates."""
    settings = command_settings("ERROR")
    from app.cli.templates import templates_table

    show(templates_table(settings))


@templates_app.command("check")
def templates_check() -> None:
    """Compare the templates with Meta's list; exit status 1 if one differs."""
    settings = command_settings("ERROR")
    from app.cli.templates import checked_templates

    show(checked_templates(settings))


ServerName = Annotated[str, typer.Argument(metavar="NAME", help="As `recado mcp list` shows it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Everything that is known, as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@mcp_app.command("list")
def mcp_list(as_json: AsJson = False) -> None:
    """Show every server and how it does."""
    settings = command_settings("ERROR")
    from app.cli.mcp import servers_table

    show(servers_table(settings, as_json=as_json))


@mcp_app.command("search")
def mcp_search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS...", help="What it should be for.")],
    as_json: AsJson = False,
) -> None:
    """Search the registry.

    Works with the list as it came last while the registry is away. Status 1 where nothing fits.
    """
    settings = command_settings("ERROR")
    from app.cli.mcp import search_text

    show(search_text(settings, " ".join(words), as_json=as_json))


@mcp_app.command("add")
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
    trust: Annotated[
        bool, typer.Option("--trust", help="For --registry: its reading tools run without asking.")
    ] = False,
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
    for_registry = trust or yes or folder or values or no_network
    if (env and not command) or (header and not url) or (for_registry and not registry):
        raise typer.BadParameter(
            "-e goes with -- COMMAND, -H with --url; --trust, --folder, --set, --no-network and --yes with "
            "--registry"
        )
    settings = command_settings("ERROR")
    if registry:
        from app.cli.mcp import RegistryChoice, install_server

        network = False if no_network else None
        choice = RegistryChoice(registry, folder, tuple(values or ()), network, trusted=trust)
        show(install_server(settings, name, choice, asks=not yes))
        return
    from app.cli.mcp import add_entry, command_entry, file_entry, remote_entry

    if command:
        entry = command_entry(command, env or [])
    elif json_file is not None:
        entry = file_entry(json_file, name)
    else:
        entry = remote_entry(url, header or [])
    show(add_entry(settings, name, entry))


@mcp_app.command("remove")
def mcp_remove(name: ServerName) -> None:
    """Take a server out, with its secrets."""
    settings = command_settings("ERROR")
    from app.cli.mcp import remove_server

    show(remove_server(settings, name))


@mcp_app.command("secret")
def mcp_secret(
    name: ServerName,
    variable: Annotated[str, typer.Argument(metavar="VARIABLE", help="As its entry names it: ${VARIABLE}.")],
) -> None:
    """Give a server a secret.

    Its value is asked at the terminal, or read from the input: it is never an argument.
    """
    settings = command_settings("ERROR")
    from app.cli.mcp import keep_secret

    show(keep_secret(settings, name, variable))


@mcp_app.command("approve")
def mcp_approve(name: ServerName, yes: Yes = False) -> None:
    """Approve tools that are new or changed.

    Shows what differs from what was approved, and asks.
    """
    settings = command_settings("ERROR")
    from app.cli.mcp import approve_tools

    show(approve_tools(settings, name, asks=not yes))


def _change_person(action: str, who: str) -> None:
    settings = command_settings()
    from app.cli.people import change_person

    show(change_person(settings, action, who))


def _answer(question: str, choice: str) -> None:
    settings = command_settings()
    from app.cli.people import answer

    show(answer(settings, question, choice))


def _ended(error: RecadoError, status: int) -> typer.Exit:
    for line in str(error).splitlines():
        show(f"recado: {line}", err=True)
    return typer.Exit(status)


@app.command()
def export(
    person: Person,
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A zip file to make, for their files too.")
    ] = None,
) -> None:
    """Give out everything that is kept of somebody, as JSON."""
    settings = command_settings()
    from app.cli.people import export_person

    show(export_person(settings, person, to))


@app.command()
def erase(
    person: Person,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask first, in a terminal.")] = False,
) -> None:
    """Erase everything that is kept of somebody, for good."""
    settings = command_settings()
    if sys.stdin.isatty() and not yes:
        typer.confirm(f"Erase everything of {person}? It cannot be undone", abort=True)
    from app.cli.people import erase_person

    show(erase_person(settings, person))
