"""What an owner gives the assistant to answer customers with."""

from app.tools.authoring import Sentences, cut

MOST_BYTES = 32 * 1024**2

SAID = {
    "es": {
        "published": "✓ {name} es ahora parte de lo que digo a los clientes ({count} pasajes)",
        "withdrawn": "✓ {name} ya no es parte de lo que digo a los clientes",
        "undo_publish": "retira {name} de lo publicado",
        "list": "Esto puedo decir a los clientes:\n{lines}",
        "line": "• {name} ({count} pasajes)",
        "none": "Todavía no hay nada que pueda decir a los clientes.",
        "NOT_FOUND": "No encuentro el archivo «{name}».",
        "hint_NOT_FOUND": "Envíamelo, o dime su nombre como está en tus archivos.",
        "UNREADABLE": "De «{name}» no puedo sacar ningún texto, así que no lo publiqué.",
        "NO_SERVICE": "Eso solo está en el servidor.",
    },
    "pt": {
        "published": "✓ {name} agora faz parte do que digo aos clientes ({count} trechos)",
        "withdrawn": "✓ {name} não faz mais parte do que digo aos clientes",
        "undo_publish": "retira {name} do que está publicado",
        "list": "Isto eu posso dizer aos clientes:\n{lines}",
        "line": "• {name} ({count} trechos)",
        "none": "Ainda não há nada que eu possa dizer aos clientes.",
        "NOT_FOUND": "Não encontro o arquivo “{name}”.",
        "hint_NOT_FOUND": "Envie-o para mim, ou diga o nome como está nos seus arquivos.",
        "UNREADABLE": "De “{name}” não consigo tirar nenhum texto, então não publiquei.",
        "NO_SERVICE": "Isso só existe no servidor.",
    },
    "en": {
        "published": "✓ {name} is part of what I tell customers now ({count} passages)",
        "withdrawn": "✓ {name} is no longer part of what I tell customers",
        "undo_publish": "withdraw {name} from what is published",
        "list": "This is what I may tell customers:\n{lines}",
        "line": "• {name} ({count} passages)",
        "none": "There is nothing yet that I may tell customers.",
        "NOT_FOUND": "I cannot find the file “{name}”.",
        "hint_NOT_FOUND": "Send it to me, or tell me its name as it stands among your files.",
        "UNREADABLE": "I can get no text out of “{name}”, so I did not publish it.",
        "NO_SERVICE": "That is in the server alone.",
    },
}


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
    summary = say("published", name=kept.name, count=kept.passages)
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
    lines = "\n".join(say("line", name=one.name, count=one.passages) for one in files)
    summary = say("list", lines=lines) if files else say("none")
    return {"summary": summary, "files": [one.name for one in files]}


def _parts(context):
    services = context.services if context is not None else {}
    return Sentences(SAID, context), services.get("knowledge"), services.get("files")
