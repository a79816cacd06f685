"""Tools by which an owner publishes what customers are told."""

from app.tools.authoring import Sentences, cut, read_said

MOST_BYTES = 32 * 1024**2

SAID = read_said(__file__)


def publish_file(path: str, context=None) -> dict:
    """Makes one of the owner's files part of what all customers may be told.

    Args:
        path: The file among the owner's, such as "precios.xlsx".

    Ejemplo: esto es para los clientes
    Exemplo: publica o arquivo precos.csv para os clientes
    """
    say, knowledge, files = _parts(context)
    if knowledge is None or files is None:
        return say.failed("NO_SERVICE")
    try:
        data = files.read_bytes(context.person, path, MOST_BYTES)
    except (OSError, ValueError):
        return say.failed("NOT_FOUND", name=cut(path, 80))
    kept = knowledge.add(path, data)
    if kept is None or kept.fault:
        return say.failed("UNREADABLE", name=cut(path, 80))
    summary = say("published", name=kept.name, count=len(kept.passages))
    return {"summary": summary, "name": kept.name, "undo": say("undo_publish", name=kept.name)}


def withdraw_file(name: str, context=None) -> dict:
    """Takes a file out of what customers may be told.

    Args:
        name: The file, as `list_published` shows it.

    Ejemplo: retira precios.csv de lo publicado
    Exemplo: tira o arquivo precos.csv do que está publicado
    """
    say, knowledge, _ = _parts(context)
    if knowledge is None:
        return say.failed("NO_SERVICE")
    if not knowledge.remove(name):
        return say.failed("NOT_FOUND", name=cut(name, 80))
    return {"summary": say("withdrawn", name=name)}


def list_published(context=None) -> dict:
    """Lists what customers may be told.

    Ejemplo: ¿qué pueden saber los clientes?
    Example: what do you tell customers?
    """
    say, knowledge, _ = _parts(context)
    if knowledge is None:
        return say.failed("NO_SERVICE")
    files = knowledge.files()
    lines = "\n".join(say("line", name=one.name, count=len(one.passages)) for one in files)
    summary = say("list", lines=lines) if files else say("none")
    return {"summary": summary, "files": [one.name for one in files]}


def _parts(context):
    services = context.services if context is not None else {}
    return Sentences(SAID, context), services.get("knowledge"), services.get("files")
