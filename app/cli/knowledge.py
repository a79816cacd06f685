"""`recado knowledge`: what customers may be told, read as the server reads it."""

import json
from dataclasses import asdict

from app.cli.output import table
from app.memory.knowledge import Found, Knowledge
from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.text import visible
from app.tools.documents import Documents


def knowledge_of(settings: Settings) -> Knowledge:
    """Return the knowledge of the folder that the settings name."""
    return Knowledge(settings.knowledge_dir, Documents(Sandbox(settings)))


def files_table(settings: Settings, *, as_json: bool) -> str:
    """Return a line for each file with its passages, or its fault."""
    files = knowledge_of(settings).files()
    if as_json:
        return json.dumps([asdict(one) for one in files], ensure_ascii=False, indent=2)
    if not files:
        return f"{settings.knowledge_dir} has no files: put Markdown, PDF, Word, Excel or CSV files there."
    rows = [(visible(one.name), str(one.passages), visible(one.fault)) for one in files]
    return table(("FILE", "PASSAGES", "FAULT"), rows)


def faults(settings: Settings) -> list[str]:
    """Return what is wrong with files of the folder."""
    return [f"{visible(one.name)}: {one.fault}" for one in knowledge_of(settings).files() if one.fault]


def answers_text(settings: Settings, question: str, *, as_json: bool) -> str:
    """Return the passages that a question finds, the best first."""
    found = knowledge_of(settings).search(question)
    if as_json:
        return json.dumps([_row(one) for one in found], ensure_ascii=False, indent=2)
    known = [one for one in found if one.is_enough]
    if not known:
        return "Nothing there answers this: a customer is told so, and offered a person."
    return "\n\n".join(
        f"{visible(one.source)} ({one.coverage:.0%})\n{visible(one.passage.text)}" for one in known
    )


def _row(one: Found) -> dict[str, object]:
    return {
        "source": one.source,
        "title": one.passage.title,
        "text": one.passage.text,
        "coverage": round(one.coverage, 3),
        "answers": one.is_enough,
    }
