"""How projects and tasks are written in a chat."""

from datetime import date, datetime

from app.tools.authoring import cut

from .days import spoken, today, zone_of


def in_order(tasks):
    """Sort by due date, then by age."""
    return sorted(tasks, key=lambda task: (task.fields.get("due") or "9999", task.number))


def progress(say, tasks):
    if not tasks:
        return say("no_progress")
    done = sum(1 for task in tasks if task.fields.get("done"))
    return say("progress", done=done, count=len(tasks), percent=done * 100 // len(tasks))


def section(say, title, lines, most):
    if not lines:
        return []
    more = [say("more", count=len(lines) - most)] if len(lines) > most else []
    return ["", say(title), *lines[:most], *more]


def task_line(say, task, context):
    mark = "✓ " if task.fields.get("done") else ""
    return f"{mark}{task.number}. {cut(task.text)}{due_words(say, task, context)}"


def due_words(say, task, context):
    if not task.fields.get("due") or task.fields.get("done"):
        return ""
    day = date.fromisoformat(task.fields["due"])
    return say("overdue" if day < today(context) else "due", day=spoken(day, context))


def event_line(say, event, context):
    day = datetime.fromtimestamp(event.fields["created"], zone_of(context)).date()
    return f"{spoken(day, context)}: {say('did_' + event.fields['what'], about=event.fields['about'])}"
