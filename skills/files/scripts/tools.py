"""A person's files: read, list, write, delete. The service `files` confines and limits them."""

import asyncio
import difflib
from pathlib import PurePosixPath
from typing import Literal

from app.text import fold
from app.tools.authoring import Sentences, cut, read_said

MOST_SHOWN = 60
NEAR = 3
# Characters of a name by which one like it is looked for.
LONGEST = 100

SAID = read_said(__file__)


def read_file(path: str, page: int = 1, context=None) -> dict:
    """Reads one of the person's files: text or CSV, or the text of a PDF, Word or Excel file.

    Args:
        path: The file, such as "informe.txt" or "viajes/2026.md".
        page: Which part of a long text, counted from 1.

    Example: lee el archivo lista.txt
    Example: o que diz contrato.pdf
    """
    say, files = Sentences(SAID, context), _files(context)
    if files is None:
        return say.failed("NO_SERVICE")
    result = files.read_file(path=path, page=page, context=context)
    if result.code == "NOT_FOUND":
        near = _near(path, files, context)
        if len(near) != 1 or not _is_meant(path, near[0]):
            return _not_found(say, path, near)
        result = files.read_file(path=near[0], page=page, context=context)
    if not result.ok:
        return _failed(say, result, path)
    data = result.data
    told = say("file" if data["pages"] == 1 else "page", **data) if data["content"].strip() else ""
    last = data["page"] == data["pages"]
    after = "" if data["whole"] and last else say("cut") if last else say("next", next=data["page"] + 1)
    return {
        "summary": "\n\n".join(filter(None, (told or say("empty", **data), after))),
        **{key: data[key] for key in ("path", "page", "pages", "more")},
    }


async def list_files(
    path: str = ".", pattern: str = "*", recursive: bool = False, words: str = "", context=None
) -> dict:
    """Lists the person's files and folders, or finds what they sent by words of its text, name or caption.

    Args:
        path: The folder to look into; "." for all of the person's own.
        pattern: Only names like this, such as "*.pdf".
        recursive: Whether to look into the folders inside too.
        words: Finds files that the person sent and that hold these words, such as "factura luz".

    Example: qué archivos tengo
    Example: where is the electricity bill I sent you
    """
    say, files = Sentences(SAID, context), _files(context)
    if files is None:
        return say.failed("NO_SERVICE")
    if words.strip():
        return await _found_by_words(say, words, context)
    wanted = {"path": path, "pattern": pattern, "recursive": recursive}
    result = await asyncio.to_thread(lambda: files.list_files(**wanted, context=context))
    if not result.ok:
        return _failed(say, result, path)
    found = result.data["entries"]
    lines = [f"• {_entry(one)}" for one in found[:MOST_SHOWN]]
    if len(found) > MOST_SHOWN:
        lines.append(say("more", count=len(found) - MOST_SHOWN))
    sentence = "none" if not found else "list" if path in (".", "") else "list_of"
    return _listed(say(sentence, path=path, lines="\n".join(lines)), **result.data)


def _listed(summary, entries, **more):
    """Return a list of files; their names may be anybody's words."""
    data = {"summary": summary, "entries": entries, **more}
    return {"ok": True, "data": data, "meta": {"outside": bool(entries)}}


def look_at_picture(path: str, context=None) -> dict:
    """Looks again at a photo or a scanned page.

    Args:
        path: The picture, such as "recibidos/2026-11-25 foto 12.jpg".

    Example: qué decía el ticket de la foto
    Example: look at the picture I sent yesterday again
    """
    say, files = Sentences(SAID, context), _files(context)
    if files is None:
        return say.failed("NO_SERVICE")
    names = [path, *_near(path, files, context)]
    found = next((name for name in names if _is_picture(name, files, context)), "")
    if not found:
        return _not_found(say, path, names[1:])
    return {
        "ok": True,
        "data": {"path": found, "summary": say("looked", path=cut(found))},
        "meta": {"pictures": [found]},
    }


def write_file(
    path: str, content: str, mode: Literal["overwrite", "append"] = "overwrite", context=None
) -> dict:
    """Writes a text into one of the person's files, and makes the file where there is none.

    Args:
        path: The file, such as "informe.txt" or "viajes/2026.md".
        content: The text, whole.
        mode: Whether the text replaces what is in the file or is added at its end.

    Example: guarda esto en informe.txt: leche y pan
    Example: adiciona ovos em informe.txt
    """
    say, files = Sentences(SAID, context), _files(context)
    if files is None:
        return say.failed("NO_SERVICE")
    text = content if content.endswith("\n") else f"{content}\n"
    result = files.write_file(path=path, content=text, mode=mode, context=context)
    if not result.ok:
        return _failed(say, result, path)
    done = "added" if mode == "append" else "replaced" if result.data["replaced"] else "written"
    kept = say("kept", path=cut(result.data["kept"])) if "kept" in result.data else ""
    return {"summary": say(done, path=cut(path)) + kept, **result.data}


def delete_file(path: str, context=None) -> dict:
    """Deletes one of the person's files; it stays as NAME.bak until that is deleted, too.

    Args:
        path: The file, such as "informe.txt".

    Example: borra el archivo viejo.txt
    """
    say, files = Sentences(SAID, context), _files(context)
    if files is None:
        return say.failed("NO_SERVICE")
    result = files.delete_file(path=path, context=context)
    if result.code == "NOT_FOUND":
        return _not_found(say, path, _near(path, files, context))
    if not result.ok:
        return _failed(say, result, path)
    kept = say("kept", path=cut(result.data["kept"])) if "kept" in result.data else ""
    return {"summary": say("deleted", path=cut(path)) + kept, **result.data}


async def _refuse_outside(args, context):
    """Refuse a path outside of the person's folder before anybody is asked about it."""
    files = _files(context)
    try:
        await asyncio.to_thread(files.check, args, context)
    except ValueError:
        return Sentences(SAID, context).failed("BAD_REQUEST", path=cut(str(args.get("path", ".")), 80))
    return None


async def _refuse_deleting(args, context):
    """Refuse to delete where that is not allowed, before anybody is asked about it."""
    if not _files(context).allow_delete:
        return Sentences(SAID, context).failed("DELETE_NOT_ALLOWED")
    return await _refuse_outside(args, context)


read_file.guard = list_files.guard = write_file.guard = look_at_picture.guard = _refuse_outside
delete_file.guard = _refuse_deleting


def _files(context):
    return context.services.get("files") if context is not None else None


async def _found_by_words(say, words, context):
    if (history := context.services.get("history")) is None:
        return say.failed("NO_SERVICE")
    found = await history.files(context.person, words[:LONGEST])
    lines = "\n".join(f"• {path}: {cut(begins, 100)}".rstrip(": ") for path, begins in found.items())
    summary = say("list", lines=lines) if found else say("none")
    return _listed(summary, [{"path": path, "begins": begins} for path, begins in found.items()])


def _is_picture(path, files, context):
    try:
        return files.read_bytes(context.person, path).startswith(b"\xff\xd8\xff")
    except (OSError, ValueError):
        return False


def _failed(say, result, path):
    known = result.code if result.code in SAID["en"] else "FILE_ERROR"
    return {**say.failed(known, path=cut(path, 80)), "meta": dict(result.meta)}


def _not_found(say, path, near):
    if not near:
        return say.failed("NOT_FOUND", path=cut(path, 80))
    answer = say.failed("NOT_FOUND", hint=say("near", names=say("or").join(near[:NEAR])), path=cut(path, 80))
    return {**answer, "meta": {"outside": True}}  # a file's name may be anybody's words


def _near(path, files, context):
    """Return files of this name but for accents, case, folder and ending, else those that are alike."""
    listed = files.list_files(path=".", pattern="*", recursive=True, context=context)
    entries = listed.data["entries"] if listed.ok else []
    names = [one["path"] for one in entries if one["kind"] == "file"]
    same = [name for name in names if _is_meant(path, name)]
    return same or difflib.get_close_matches(path[-LONGEST:], names, n=NEAR)


def _is_meant(said, name):
    wanted, real = fold(PurePosixPath(said).name), PurePosixPath(name)
    return wanted in {fold(real.name), fold(real.stem)}


def _entry(one):
    if one["kind"] == "folder":
        return f"{one['path']}/"
    return f"{one['path']} ({_size(one['size'])})" if one["kind"] == "file" else one["path"]


def _size(size):
    for unit in ("B", "kB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.0f} MB"
