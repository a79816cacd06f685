"""The assistant's own version, source, skills, configuration, health and logs, for its owner."""

from typing import Literal

from app.tools.authoring import Sentences, cut, read_said

from .source import PROJECT, Refused, check, files, matching, outline, read, real_path, search, write

MOST_LISTED = 300
MOST_LINES = 400
MOST_LOGGED = 100
# Characters of a line of a patch.
LONGEST_LINE = 2000

SAID = read_said(__file__)


async def assistant_version(context=None) -> dict:
    """Tells which version of the assistant runs.

    Ejemplo: qué versión eres
    Example: which version are you
    """
    found = context.services.admin.version()
    return {"summary": Sentences(SAID, context)("version", **found), **found}


async def show_configuration(context=None) -> dict:
    """Shows the assistant's settings; of secrets only whether they are set.

    Ejemplo: muéstrame tu configuración
    """
    found = context.services.admin.configuration()
    return {"summary": "\n".join(f"{name}={value}" for name, value in found.items()), **found}


async def show_health(context=None) -> dict:
    """Shows whether everything works, and what is away.

    Ejemplo: estás funcionando bien
    """
    found = await context.services.admin.health()
    summary = Sentences(SAID, context)(f"health_{found['status']}", reason=found.get("reason", ""))
    return {"summary": summary, **found}


async def skill_details(name: str = "", context=None) -> dict:
    """Shows what is known of a skill: its tools, faults and origin. Without a name it lists all skills.

    Args:
        name: The skill's name, such as reminders.
    """
    admin = context.services.admin
    if not name.strip():
        return {"skills": admin.skills()}
    found = admin.skill(name.strip())
    return found or Sentences(SAID, context).failed("SKILL_NOT_FOUND", name=cut(name, 60))


async def recent_logs(
    lines: int = 30, level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO", context=None
) -> dict:
    """Shows the newest lines of the assistant's log.

    Args:
        lines: How many, up to 100.
        level: The least level of a line.

    Ejemplo: muéstrame los últimos errores del registro
    """
    found = list(context.services.admin.logs(max(1, min(lines, MOST_LOGGED)), level))
    return {"summary": "\n".join(found[-10:]), "count": len(found), "lines": found}


def list_source_files(folder: str = "", pattern: str = "*", context=None) -> dict:
    """Lists files of the assistant's source.

    Args:
        folder: From the project's folder on, such as app/turns; all of it without one.
        pattern: Which files, such as *.py.
    """
    try:
        found = _files(folder, context)
    except Refused as refused:
        return _refused(context, folder, refused)
    found = matching(found, pattern)
    return {"count": len(found), "files": found[:MOST_LISTED]}


def read_source_file(path: str, start: int = 1, lines: int = 200, context=None) -> dict:
    """Reads lines of a file of the assistant's source.

    Args:
        path: From the project's folder on, such as app/main.py.
        start: The first line.
        lines: How many lines, up to 400.

    Ejemplo: lee tu archivo app/main.py
    """
    try:
        text = read(_path(path, context))
    except Refused as refused:
        return _refused(context, path, refused)
    all_lines = text.splitlines()
    first = max(1, start)
    shown = all_lines[first - 1 : first - 1 + max(1, min(lines, MOST_LINES))]
    return {"path": path, "first": first, "of": len(all_lines), "text": "\n".join(shown)}


def search_source(words: str, folder: str = "", context=None) -> dict:
    """Finds lines of the assistant's source that hold these words just so.

    Args:
        words: What stands in the line.
        folder: Where to look, such as app; all of it without one.

    Ejemplo: busca en tu código dónde se lee RATE_LIMIT_MAX
    """
    if not words.strip():
        return {"count": 0, "hits": []}
    try:
        found = search(words.strip(), _files(folder, context), PROJECT)
    except Refused as refused:
        return _refused(context, folder, refused)
    return {"count": len(found), "hits": found}


def outline_source_file(path: str, context=None) -> dict:
    """Shows the classes and functions of a Python file, or the headings of a Markdown file, with their lines.

    Args:
        path: From the project's folder on, such as app/turns/turn.py.
    """
    try:
        real = _path(path, context)
        return {"path": path, "outline": outline(read(real), real.suffix)}
    except Refused as refused:
        return _refused(context, path, refused)


def write_source_file(path: str, content: str, context=None) -> dict:
    """Writes a whole file of the assistant's own source; what stood there is gone.

    Args:
        path: From the project's folder on, such as skills/notes/SKILL.md.
        content: The whole new text.
    """
    say = Sentences(SAID, context)
    if not context.services.admin.may_write:
        return say.failed("READ_ONLY")
    try:
        write(_path(path, context), content)
    except Refused as refused:
        return _refused(context, path, refused)
    receipt = say("written", path=cut(path, 120), lines=len(content.splitlines()))
    return {"summary": f"{receipt}\n{say(_counts_from([path]))}", "path": path}


def apply_patch(patch: str, context=None) -> dict:
    """Changes files of the assistant's own source by a unified diff; all of it or nothing.

    Args:
        patch: The diff, with --- and +++ lines and paths from the project's folder on.
    """
    say = Sentences(SAID, context)
    if not context.services.admin.may_write:
        return say.failed("READ_ONLY")
    try:
        changed = _patched(patch, context)
        for path, text in changed.items():
            check(_path(path, context), text)
        for path, text in changed.items():
            write(_path(path, context), text)
    except Refused as refused:
        return say.failed("BAD_PATCH", reason=str(refused))
    receipt = say("patched", paths=cut(", ".join(changed)))
    return {"summary": f"{receipt}\n{say(_counts_from(list(changed)))}", "paths": list(changed)}


def _patched(patch, context):
    """Return the new text of each file that a diff changes, by path. Raises Refused where it does not fit."""
    import whatthepatch

    if max(map(len, patch.splitlines()), default=0) > LONGEST_LINE:  # the library's time is its square
        raise Refused(f"a line of it has more than {LONGEST_LINE} characters")
    changed = {}
    try:
        for diff in whatthepatch.parse_patch(patch):
            old, new = (_without_side(path) for path in (diff.header.old_path, diff.header.new_path))
            if new == "/dev/null":
                raise Refused("it deletes a file, which I do not do")
            if old == "/dev/null" and _path(new, context).exists():
                raise Refused(f"{cut(new, 120)} is there already")
            text = "" if old == "/dev/null" else changed.get(new) or read(_path(old, context))
            if old not in ("/dev/null", new):
                raise Refused("it renames a file, which I do not do")
            lines = whatthepatch.apply_diff(diff, text.splitlines())
            changed[new] = "\n".join(lines) + "\n"
    except Refused:
        raise
    except Exception as error:  # the library's own errors have no common class
        raise Refused(cut(str(error) or type(error).__name__)) from None
    if not changed:
        raise Refused("no unified diff is in it")
    return changed


def _without_side(path):
    return path[2:] if path.startswith(("a/", "b/")) else path


def _counts_from(paths):
    return "next_message" if all(path.startswith("skills/") for path in paths) else "restart"


def _files(folder, context):
    return files(_path(folder or ".", context), PROJECT, context.services.admin.closed)


def _path(path, context):
    return real_path(path, PROJECT, context.services.admin.closed)


def _is_safe_path(path: str, root=PROJECT, closed=()) -> bool:
    """Tell whether a path is the project's own source, and no secret, database, key or person's data."""
    try:
        real_path(path, root, tuple(closed))
    except Refused:
        return False
    return True


def _refused(context, path, refused):
    return Sentences(SAID, context).failed("REFUSED", hint=str(refused), path=cut(path or ".", 120))
