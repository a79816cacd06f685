"""`recado knowledge` and `recado templates`: what customers may be told, and the messages Meta approved."""

from typing import Annotated

import typer

from app.channels.templates import FILE, differences, read_templates
from app.cli.output import AsJson, command_settings, group, show, show_json, show_table
from app.doctor.whatsapp import Account
from app.errors import RecadoError
from app.memory.knowledge import Knowledge
from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.text import visible
from app.tools.documents import Documents

commands = group()
knowledge_commands = group(help="What customers may be told: files in KNOWLEDGE_DIR.")
templates_commands = group(help="Messages that Meta approved: DATA_DIR/templates.yaml.")
commands.add_typer(knowledge_commands, name="knowledge")
commands.add_typer(templates_commands, name="templates")


def _knowledge(settings: Settings) -> Knowledge:
    return Knowledge(settings.knowledge_dir, Documents(Sandbox(settings)))


@knowledge_commands.command("list")
def knowledge_list(as_json: AsJson = False) -> None:
    """Show the files, and how many passages each has."""
    settings = command_settings("ERROR")
    rows = [(one.name, len(one.passages), one.fault) for one in _knowledge(settings).files()]
    if as_json:
        show_json([dict(zip(("name", "passages", "fault"), row, strict=True)) for row in rows])
        return
    none = f"{settings.knowledge_dir} has no files: put Markdown, PDF, Word, Excel or CSV files there."
    show_table(("FILE", "PASSAGES", "FAULT"), rows, none)


@knowledge_commands.command("check")
def knowledge_check() -> None:
    """Name every file that cannot be read; exit status 1 if there is one."""
    files = _knowledge(command_settings("ERROR")).files()
    if faults := [f"{visible(one.name)}: {one.fault}" for one in files if one.fault]:
        raise RecadoError("\n".join(faults))
    show("Every file can be read.")


@knowledge_commands.command("ask")
def knowledge_ask(
    question: Annotated[str, typer.Argument(help="What a customer might ask.")], as_json: AsJson = False
) -> None:
    """Show the passages that a question finds, the best first."""
    found = _knowledge(command_settings("ERROR")).search(question)
    if as_json:
        rows = [
            {
                "source": one.source,
                "title": one.passage.title,
                "text": one.passage.text,
                "coverage": round(one.coverage, 3),
                "answers": one.is_enough,
            }
            for one in found
        ]
        show_json(rows)
        return
    known = [one for one in found if one.is_enough]
    if not known:
        show("Nothing there answers this: a customer is told so, and offered a person.")
    for one in known:
        show(f"{visible(one.source)} ({one.coverage:.0%})\n{visible(one.passage.text)}\n")


@templates_commands.command("list")
def templates_list() -> None:
    """Show the templates."""
    settings = command_settings("ERROR")
    listed = read_templates(settings.data_dir).listed
    rows = [(one.name, one.language, ", ".join(one.variables), one.text) for one in listed]
    none = f"There are no templates: {settings.data_dir / FILE} would list those that Meta approved."
    show_table(("NAME", "LANGUAGE", "VARIABLES", "TEXT"), rows, none)


@templates_commands.command("check")
def templates_check() -> None:
    """Compare the templates with Meta's list; exit status 1 if one differs."""
    settings = command_settings("ERROR")
    listed = read_templates(settings.data_dir).listed
    if not settings.is_connected:
        raise RecadoError("WhatsApp is not connected: there is no list of Meta's to compare with")
    approved = Account(settings).templates()
    found = [(one, differences(one, approved)) for one in listed]
    if wrong := [f"{one.name} ({one.language}): {fault}" for one, fault in found if fault]:
        raise RecadoError("\n".join(wrong))
    show(f"All {len(listed)} templates are as Meta approved them.")
