"""A person's projects: create, list, show, change, delete; their tasks and notes."""

import re
import time
from typing import Literal

from app.search.words import terms
from app.tools.authoring import Sentences, cut, folded, holds_more, matching, meant, read_said, rehearsed

from .board import TASK, Board
from .days import means_no_day, read_day
from .lines import due_words, event_line, in_order, progress, section, task_line

MAX_PROJECTS, MAX_TASKS, MAX_NOTES = 100, 2000, 1000
MAX_NAME, MAX_TEXT = 80, 500
SAID = read_said(
    __file__,
    MAX_NAME=MAX_NAME,
    MAX_TEXT=MAX_TEXT,
    MAX_PROJECTS=MAX_PROJECTS,
    MAX_TASKS=MAX_TASKS,
    MAX_NOTES=MAX_NOTES,
)
MOST_SHOWN = 50
# A task's project where its text begins with the project's name.
NAMED_FIRST = "named first"
_SAYS_WHERE = re.compile(
    r"(?:to|for|in|on|al|ao|a|en|em|no|na|do|da|para|pra)\s[^:]{1,60}(?::|\bpro(?:ject|yecto|jeto)\b)",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r",.*\s(?:y|e|and)\s")


def create_project(name: str, context=None) -> dict:
    """Creates a project.

    Args:
        name: What it is called, in a few words; "House: paint, move" names its first tasks, too.

    Example: crea el proyecto Casa nueva
    Example: novo projeto Viagem
    """
    say, board = _opened(context)
    if board is None:
        return say.failed("NO_PERSON")
    name, tasks = _with_tasks(_clean(name))
    name = "" if re.match(r"(?:for|para|pra)\b", name, re.IGNORECASE) else name  # whom it is for is no name
    same = board.called(name)
    if code := _fault(name, MAX_NAME, len(board.projects.entries) - bool(same), MAX_PROJECTS):
        return say.failed(code)
    if same is not None:
        return {"summary": say("exists", number=same.number, name=same.text), "project": same.number}
    if (back := board.bring_back(name)) is not None:
        return {"summary": say("project_back", number=back.number, name=back.text), "project": back.number}
    for number, text in enumerate(tasks, start=len(board.tasks.entries)):
        if code := _fault(text, MAX_TEXT, number, MAX_TASKS):
            return say.failed(code)
    project = _created(board, name)
    lines = [say("created", number=project.number, name=name)]
    for text in tasks:
        added = board.tasks.add(text=text, project=project.key)
        lines.append(f"{added.number}. {cut(text)}")
    return {"summary": "\n".join(lines), "project": project.number}


def list_projects(status: Literal["active", "archived"] = "active", context=None) -> dict:
    """Lists the person's projects with their numbers and progress.

    Args:
        status: Those in work, or those laid aside.

    Example: mis proyectos
    Example: quais são meus projetos
    """
    say, board = _opened(context)
    if board is None:
        return say.failed("NO_PERSON")
    active = status == "active"
    shown = [one for one in board.projects.entries if bool(one.fields.get("archived")) != active]
    if not shown:
        return {"summary": say("no_projects" if active else "no_archived"), "projects": []}
    rows = [
        {"number": one.number, "name": one.text, "progress": progress(say, board.tasks_of(one))}
        for one in shown
    ]
    lines = "\n".join("{number}. {name}: {progress}".format(**row) for row in rows)
    return {"summary": say("projects" if active else "archived_projects", lines=lines), "projects": rows}


def show_project(project: str = "", context=None) -> dict:
    """Shows a project: its progress, tasks, notes and what happened last.

    Args:
        project: Its number or words of its name; empty for the only one.

    Example: ¿cómo va el proyecto Casa?
    Example: how is the project Trip going
    """
    say, board = _opened(context)
    one, failure = _project(say, board, project)
    if one is None:
        return failure
    tasks, notes = in_order(board.tasks_of(one)), board.notes_of(one)
    done = [task for task in tasks if task.fields.get("done")]
    still_open = [task for task in tasks if not task.fields.get("done")]
    parts = [say("shown", name=one.text, progress=progress(say, tasks))]
    parts += section(say, "open_tasks", [task_line(say, task, context) for task in still_open], MOST_SHOWN)
    parts += section(say, "done_tasks", [task_line(say, task, context) for task in done], 10)
    parts += section(say, "notes", [f"• {cut(note.text)}" for note in notes], 10)
    events = [event_line(say, event, context) for event in board.activity(one).entries[:5]]
    parts += section(say, "activity", events, 5)
    return {
        "summary": "\n".join(parts),
        "project": one.number,
        "done": len(done),
        "tasks": len(tasks),
        "notes": [note.text for note in notes[:10]],
    }


def update_project(
    project: str, name: str = "", status: Literal["active", "archived"] | None = None, context=None
) -> dict:
    """Gives a project another name, archives it, or takes it back into work.

    Args:
        project: Its number or words of its name.
        name: The new name; empty leaves it.
        status: What becomes of it; left out, it stays.

    Example: archiva el proyecto Casa
    Example: rename the project Trip to Summer trip
    """
    say, board = _opened(context)
    one, failure = _project(say, board, project or "?", archived=status == "active")
    if one is None:
        return failure
    name = _clean(name)
    if not name and status is None:
        return say.failed("NOTHING_TO_CHANGE")
    summary = []
    if name:
        same = board.called(name)
        if same is not None and same.key != one.key:
            return say.failed("NAME_TAKEN", name=same.text)
        if code := _fault(name, MAX_NAME):
            return say.failed(code)
        one = board.projects.change(one, text=name)
        board.log(one, "renamed", name)
        summary.append(say("renamed", number=one.number, name=name))
    if status is not None:
        one = board.projects.change(one, archived=True if status == "archived" else None)
        board.log(one, status)
        summary.append(say(status, name=one.text))
        still_open = [task for task in board.tasks_of(one) if not task.fields.get("done")]
        if status == "archived" and still_open:
            summary.append(say("still_open", count=len(still_open)))
    return {"summary": "\n".join(summary), "project": one.number}


def delete_project(project: str, context=None) -> dict:
    """Deletes a project with its tasks, notes and log. For a week creating it again brings it back.

    Args:
        project: Its number or words of its name.

    Example: borra el proyecto Casa
    Example: apaga o projeto Viagem
    """
    say, board = _opened(context)
    one, failure = _project(say, board, project or "?")
    if one is None:
        return failure
    board.set_aside(one)
    undo = say("undo_delete", name=one.text)
    summary = say("project_deleted", name=one.text, undo=undo)
    return {"summary": summary, "project": one.number, "undo": undo}


delete_project.guard = rehearsed(delete_project)


def add_task(task: str, project: str = "", due: str = "", context=None) -> dict:
    """Adds a task to a project.

    Args:
        task: What is to be done.
        project: Its number or words of its name; empty for the only one, "named first" where the task's text
            begins with its name.
        due: By which day, in the person's own words; empty for none.

    Example: agrega comprar pintura al proyecto Casa para el viernes
    Example: add call the bank to the project House
    """
    say, board = _opened(context)
    if board is None:
        return say.failed("NO_PERSON")
    text = _clean(task)
    if project.strip() == NAMED_FIRST:
        project, text = _named_first(board, text)
    if code := _fault(text, MAX_TEXT, len(board.tasks.entries), MAX_TASKS):
        return say.failed(code)
    if _SAYS_WHERE.match(text):
        return say.failed("WHICH_PROJECT", lines=_lines(board.active()[:20]))
    if project.strip() and _SEVERAL.search(text):
        return say.failed("SEVERAL_TASKS")
    day = read_day(due, context)
    if due.strip() and day is None:
        return say.failed("INVALID_DATE", text=cut(due, 80))
    if not project.strip() and not board.projects.entries:
        one = _created(board, say("default"))
    else:
        one, failure = _project(say, board, project)
        if one is None:
            return failure
    added = board.tasks.add(text=text, project=one.key, **({"due": day.isoformat()} if day else {}))
    board.log(one, "added", cut(text, 80))
    return _receipt(say, board, "added", added, one, context)


def list_tasks(project: str = "", status: Literal["open", "done", "all"] = "open", context=None) -> dict:
    """Lists tasks with their numbers, those due first on top.

    Args:
        project: Only of this project: its number or words of its name; empty for all active ones.
        status: Which of them.

    Example: ¿qué tareas tengo pendientes?
    Example: quais são minhas tarefas
    """
    say, board = _opened(context)
    projects, failure = _projects(say, board, project)
    if failure is not None:
        return failure
    names = {one.key: one.text for one in projects}
    everything = in_order(board.tasks.entries)
    if status != "all":
        everything = [task for task in everything if bool(task.fields.get("done")) == (status == "done")]
    tasks = [task for task in everything if task.fields["project"] in names]
    title = f"tasks_{status}"
    if not tasks and not project.strip():
        tasks, title = everything, "tasks_archived"
        names = {one.key: one.text for one in board.projects.entries}
    if not tasks:
        return {"summary": say(f"none_{status}"), "count": 0, "tasks": []}
    shown = tasks[:MOST_SHOWN]
    where = {task.key: f" · {names[task.fields['project']]}" if len(names) > 1 else "" for task in shown}
    lines = [f"{task_line(say, task, context)}{where[task.key]}" for task in shown]
    if len(tasks) > len(shown):
        lines.append(say("more", count=len(tasks) - len(shown)))
    return {
        "summary": say(title, lines="\n".join(lines)),
        "count": len(tasks),
        "tasks": [_fields(task, names) for task in shown],
    }


def update_task(
    task: str,
    project: str = "",
    status: Literal["open", "done", "deleted"] | None = None,
    text: str = "",
    due: str = "",
    context=None,
) -> dict:
    """Completes a task, reopens it, deletes it, or changes its text or due date.

    Args:
        task: The task's number or words of it.
        project: Its project, where several tasks are alike; may be empty.
        status: What becomes of it; left out, it stays.
        text: The new text; empty leaves it.
        due: The new due date in the person's own words, "none" for none; empty leaves it.

    Example: completa la tarea 3
    Example: marca comprar tinta como feita
    """
    say, board = _opened(context)
    projects, failure = _projects(say, board, project)
    if failure is not None:
        return failure
    found = _tasks_meant(board, projects, task, status)
    if not found and not project.strip():  # it may be of a project that is laid aside
        found = _tasks_meant(board, board.projects.entries, task, status)
    if len(found) != 1 or (status != "open" and holds_more(found[0].text, task)):
        return _not_one(say, "TASK", found, task)
    if status == "deleted" and not _is_named(found[0], task):
        return say.failed("WHOLE_NAME", code="AMBIGUOUS", lines=_lines(found), numbers=[found[0].number])
    text, day = _clean(text), read_day(due, context)
    if due.strip() and day is None and not means_no_day(due):
        return say.failed("INVALID_DATE", text=cut(due, 80))
    is_done = bool(found[0].fields.get("done"))
    is_already = status is None or (status != "deleted" and is_done == (status == "done"))
    if is_already and not text and not due.strip():
        return say.failed("NOTHING_TO_CHANGE")
    if text and (code := _fault(text, MAX_TEXT)):
        return say.failed(code)
    return _updated(say, board, found[0], status, text, day, bool(due.strip()), context)


def add_project_note(note: str, project: str = "", context=None) -> dict:
    """Keeps a note with a project.

    Args:
        note: What is worth keeping about it, in the person's own words.
        project: The project's number or words of its name; empty for the only one.

    Example: anota en el proyecto Casa: el pintor se llama Luis
    """
    say, board = _opened(context)
    one, failure = _project(say, board, project)
    if one is None:
        return failure
    text = _clean(note)
    if code := _fault(text, MAX_TEXT, len(board.notes.entries), MAX_NOTES):
        return say.failed(code)
    board.notes.add(text=text, project=one.key)
    board.log(one, "noted", cut(text, 80))
    return {"summary": say("noted", name=one.text, text=cut(text)), "project": one.number}


def _opened(context):
    store = getattr(context, "store", None)
    return Sentences(SAID, context), None if store is None else Board(store)


def _with_tasks(name):
    """Split "the party: cake, balloons" into the name and the tasks."""
    begins, colon, rest = name.partition(":")
    tasks = [text for one in rest.split(",") if (text := _clean(one))]
    return (begins.strip(), tasks) if colon and len(tasks) > 1 else (name, [])


def _created(board, name):
    project = board.projects.add(text=name)
    board.log(project, "created")
    return project


def _project(say, board, wanted, archived=False):
    """Return (the one project that is meant, None), or (None, why there is not one)."""
    if board is None:
        return None, say.failed("NO_PERSON")
    active = board.active()
    found = board.named(wanted, archived) if wanted.strip() else active
    if len(found) == 1:
        return found[0], None
    if not wanted.strip() and not found:
        return None, say.failed("NO_PROJECTS")
    if not wanted.strip():
        return None, say.failed("WHICH_PROJECT", lines=_lines(found[:20]))
    if found:
        return None, say.failed("AMBIGUOUS", lines=_lines(found[:10]))
    names = ", ".join(cut(one.text, 40) for one in active[:10])
    code = "PROJECT_NOT_FOUND" if names else "NO_PROJECTS"
    return None, say.failed(code, wanted=cut(wanted, 80), names=names)


def _named_first(board, text):
    """Return (the number of the project that a text begins with, the rest); all of it as the name of none."""
    for one in sorted(board.active(), key=lambda one: -len(one.text)):
        begin = text[: len(one.text)]
        if folded(begin) == folded(one.text) and not text[len(begin) : len(begin) + 1].isalnum():
            return str(one.number), text[len(begin) :].strip(" ,:;-–—")
    return text, text


def _projects(say, board, wanted):
    """Return (the project that is named, or all active ones, None), or ([], why there is none)."""
    if board is not None and not wanted.strip():
        return board.active(), None
    one, failure = _project(say, board, wanted)
    return [one] if one is not None else [], failure


def _tasks_meant(board, projects, wanted, status):
    """Find the tasks; of two alike, the one for which the change makes a difference."""
    keys = {one.key for one in projects}
    tasks = [task for task in board.tasks.entries if task.fields["project"] in keys]
    first = [task for task in tasks if bool(task.fields.get("done")) == (status == "open")]
    return meant(first, wanted, TASK) or meant(tasks, wanted, TASK)


def _is_named(task, wanted):
    """Tell whether words name a task by its number, or as the last one, or by all that it says."""
    return not matching([task], wanted, TASK) or terms_of(wanted) >= terms_of(task.text)


def terms_of(text):
    return {one for one in terms(text) if one not in TASK}


def _updated(say, board, task, status, text, day, redated, context):
    one = board.project_of(task)
    if status == "deleted":
        board.tasks.remove(task)
        board.log(one, "deleted", cut(task.text, 80))
        return _receipt(say, board, "deleted", task, one, context)
    changes = {"text": text} if text else {}
    if redated:
        changes["due"] = day.isoformat() if day else None
    if changes:
        task = board.tasks.change(task, **changes)
        board.log(one, "changed", cut(task.text, 80))
    if status is None:
        return _receipt(say, board, "changed", task, one, context)
    if bool(task.fields.get("done")) != (status == "done"):
        task = board.tasks.change(task, done=int(time.time()) if status == "done" else None)
        board.log(one, status, cut(task.text, 80))
    return _receipt(say, board, status, task, one, context)


def _receipt(say, board, what, task, one, context):
    tasks = board.tasks_of(one)
    summary = say(
        what,
        number=task.number,
        text=cut(task.text),
        due=due_words(say, task, context),
        name=one.text,
        progress=progress(say, tasks),
    )
    return {"summary": summary, **_fields(task, {one.key: one.text})}


def _clean(text):
    return " ".join(text.replace("\x00", "").split())


def _fault(text, longest, count=0, most=1):
    """Say why a text cannot be kept, "" where it can."""
    if not text:
        return "EMPTY"
    if len(text) > longest:
        return "TOO_LONG"
    return "TOO_MANY" if count >= most else ""


def _not_one(say, kind, found, wanted):
    if found:
        return say.failed("AMBIGUOUS", lines=_lines(found[:10]), numbers=[one.number for one in found[:10]])
    return say.failed(f"{kind}_NOT_FOUND", wanted=cut(wanted, 80))


def _lines(entries):
    return "\n".join(f"{entry.number}. {cut(entry.text, 120)}" for entry in entries)


def _fields(task, names):
    return {
        "number": task.number,
        "task": task.text,
        "project": names[task.fields["project"]],
        "due": task.fields.get("due", ""),
        "done": bool(task.fields.get("done")),
    }
