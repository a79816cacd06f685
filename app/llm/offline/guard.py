"""Guards of the built-in model: no order is one that asks, denies or doubts, or whose words name nothing."""

import re
from collections.abc import Sequence
from itertools import pairwise

from app.search.phrases import Fit, tells_deed, without_courtesies
from app.search.words import ALL_STOP_WORDS, WORDS, Word, spans, words
from app.text import fold

_MOST_OF_THING = 7  # words: "a card for mam and dad"
_FEW = 4  # words of a label or a place
_MANY = 8  # words of a name or a remark
_NO_DOUBT = (("no", "pt"), ("n", "en"))  # a Portuguese "no" says where, an English "n" joins
_UNDO = re.compile(
    r"\W*(?:(?:por favor|please|uy|ops|oops)\W+(?:no )?)?(?:deshac\w*|deshaz\w*|desfaz\w*|desfac\w*|undo)"
    r"(?: (?:eso|esto|isso|isto|it|that|(?:la|a|the) (?:instalacion|instalacao|install(?:ation)?)|delete"
    r"|borrado|(?:(?:el|a|the) )?(?:ultim[oa]|last) (?:cambio|mudanca|change)))?\W*"
)
_TAKES_BACK = re.compile(
    r"[,;:.…!?-]\W*(?:(?:ah|ay|oh|bom|bueno) )?(?:no?|nao|nop|nope|not|don|forget)\b"
    r"|\W(?:no?|nao|not|don ?['’]?t|no se|nao sei|i think)\W*$"
)
_OF_ANOTHER = re.compile(
    r"^mim\b|\b(?:y|e|and) (?:(?:\w+ )?(?:vive|mora|lives) (?:en|em|in)|ou?tra (?:\w+[aei]r|l?a d[ae])"
    r"|(?:an?|u[mn]a?|ou?tra|another) (?:tarefa|tarea|task|reminder)|another (?:one|to)\b"
    r"|(?:(?:en|on|el|la|the|n?[ao]) )*(?:ou?tr[oa]|next|one after)(?: (?:tam\w+|tbm?|too|also)|\W*$))"
    r"|\w (?:viu|entonces|then|ok|(?<!de )(?<!a )(?<!la )(?<!na )(?<!da )(?<!su )(?<!segunda )mano)\W*$"
)
_STORES = "|".join(WORDS["stores"])
_IN_A_PLACE = re.compile(  # "no tcc: …", "note 3 is wrong"
    r"\d{1,3}(?:\W*$|: | (?:is|was|should|says?|due|now|also|es|esta|debe\w*|dice|e|deve\w*|diz|ta)\b)|"
    r"por (?:favor|gentileza)\b|"
    r"(?:a (?:la )?nota|a la tarea|(?:to )?the (?:note|\w+ task)|de que|called \w+ with|ou?tra co(?:is|s)a)\b"
    r"|(?:esto|eso|isto|isso|this|that)\b.*: |(?:llam|titul|cham)ad[oa] (?!(?:co[nm]|a|d[eoa]|para|pra)\b)|"
    r"(?:uma?|una?|an?) (?:\w+ )?lista?\b|(?:\w+ ){0,2}lista?\b.*:|(?:algo|something) (?:e[nm]|in|on|no)\b|"
    rf"de \w+( \w+)?: |horas? (?:eu|sa[il])|fiscal\b|no (?:(?:meu|nosso|teu|seu) )?(?:\w+: |(?:{_STORES})\b)"
    r"|.*\b(?:a(?:l| las?| mis?| esa)|(?:en|to|in|on|nas?)(?: las?| mis?| the| my| minhas?)?)"
    r" (?:notas?|notes?|listas?|lists?|tareas?|tarefas?|tasks?|pendientes|reminders?|compras|mandado)\W*$"
)
_SEVERAL = re.compile(
    r"^(?:t[uo]d[ao]s?|everything|all|both|d(?:oi|ua|o)s d\w+)\b|[?!;:…]|, "
    r"|\b(?:y|e|and) (?:el|l?[ao]s?|the|\w+ \d+\W*$)\b|\b(?:reminders|recordatorios|lembretes|ones)\W*$"
)
_UNPLACED = re.compile(
    r"[!?:;…()]| - |\d{5,}|% \w+ \d|\.\.|\w(?<!half) a (?:(?:l[ao]s|mis?)\b|\w+$)"  # "pala a herramientas"
    r"|^a (?:\w+[aeo]s|\w+(?= \d)) \w"  # "a materiales 2 rollos"
    r"|(?:one|un[ao]?|uma?) (?:about|sobre|for|para|pra|pro|that|que|with|con|com)\b"
)
_SEVERAL_TASKS = re.compile(
    r"^(?:(?:mas|mais|more)\b|(?:pra|para|for|by|ate)\b.{1,20}:|(?:to )?(?:the|my) (?:\w+ ){0,3}project\W*$)|"
    r"\b(?:[an]o|al|en el|(?:in|to) the)(?: meu| mi)? (?:projeto|proyecto|project)\b|"
    r"[;\n]|^(\w+)\b.*, \1\b|, (?:\w{2,}[aei]r|call|buy|pay|send|go|clean|fix|renew|book|take)\b"
)
_TECHNICAL = re.compile(r"(?!.*(?:\s(?:y|e|and)|,)\s)(?:\S+\s+){0,6}\S*(?:\w_|[/@])\w\S*(?:\s+\S+)?")
_AT_ANOTHER = re.compile(r"\b(?:y|e|and) (?:en|em|in|a las?|as|at) \d|^(?:el|dia|the) \d{1,2} (?!es\b|is\b)")
_CLOCK_OFFSET = re.compile(r"\W*(?:utc|gmt)[+-]\d{1,2}(?::\d\d)?\W*")
_SOMEBODY = re.compile(r"\W*(?:a|o|la|el) [A-ZÁÉÍÓÚÂÊÔÃÕÑ]")  # a name with an article: "a Carla"
_LIKE_A_VERB = re.compile(r"^\w{3,}(?:ou|ieron|[ai]ram)\b|\w{2,}(?:[^e]ed|ou|[ai]e?ron|[ae]ram|ando|iendo)$")
ENDS_OPEN = re.compile(
    r"\b(?:de|del|do|da|dos|das|of|for|para|pra|pro|con|com|with|y|e|and|the|el|la|los|an?"
    r"|pelas?|pelos?|por|around|about|eso|tipo|como|umas|unas|uns|unos)$"
)


def is_undo(said: str) -> bool:
    """Tell whether a message asks to undo what was done last, and nothing else."""
    return _UNDO.fullmatch(fold(without_courtesies(said))) is not None


def asks(text: str) -> bool:
    """Tell whether a sentence is marked as a question."""
    return "?" in text or "¿" in text


def takes_back(text: str) -> bool:
    """Tell whether a text holds a second thought."""
    return not WORDS["second_thoughts"].isdisjoint(words(text)) or _TAKES_BACK.search(fold(text)) is not None


def forbids(fit: Fit, text: str, kept: Sequence[str], language: str) -> bool:
    """Tell whether a text only looks like an order: it asks, denies or doubts; what is `kept` may deny."""
    if asks(text):
        return True
    for slot in fit.slots:
        if any(name in kept for name in slot.names):
            if takes_back(slot.text):
                return True
        elif holds_doubt(text, [one for one in slot.words if (one.text, language) not in _NO_DOUBT]):
            return True
    return False


def holds_doubt(text: str, found: Sequence[Word]) -> bool:
    """Tell whether some words of a text ask, deny, doubt or set a condition; accents count."""
    known = WORDS["unsure"] | WORDS["second_thoughts"]
    pairs = {f"{one.text} {after.text}": one for one, after in pairwise(found)}
    calls = {one for pair, one in pairs.items() if pair.startswith(("se llam", "se cham"))}
    return not WORDS["unsure"].isdisjoint(pair.replace(" ", "") for pair in pairs) or any(
        word not in calls and (word.text in known or text[word.start : word.end].lower() in known)
        for word in found
    )


def is_thing(item: str) -> bool:
    """Tell whether a text can only be a thing for a list: a few words that are no clause or remark."""
    said = fold(item).strip(" .,")
    found = [word.text for word in spans(said)]
    named = [word for word in found if not word[0].isdigit() and word not in WORDS["no_names"]]
    return (
        0 < len(found) <= _MOST_OF_THING
        and bool(named)
        and found[0] not in WORDS["describing"]
        and not _SOMEBODY.match(item)
        and not ALL_STOP_WORDS.issuperset(found)
        and not _UNPLACED.search(said)
        and not ENDS_OPEN.search(said)
        and WORDS["no_names"].issuperset(re.findall(r"[a-z] \d+ ([a-z]+)", said))  # no "leche 2 panes"
        and not _LIKE_A_VERB.search(said)
        and WORDS["no_thing"].isdisjoint(found)
        and not holds_doubt(said, spans(said))
    )


def are_tasks(text: str) -> bool:
    """Tell whether a text is several things to do ("call Ana, call Luis"), or still speaks of the task."""
    return _SEVERAL_TASKS.search(fold(text)) is not None


def is_name(text: str) -> bool:
    """Tell whether a text can be what something is called, or be known by."""
    found = words(text)
    tells = any(word not in ALL_STOP_WORDS | WORDS["no_name"] or word.isdigit() for word in found)
    return tells and len(found) <= _MANY and not _SEVERAL.search(fold(text))


def is_label(text: str, *, is_last: bool) -> bool:
    """Tell whether a text can name a list or the like; at the end "festa balao" may be a list and a thing."""
    found = words(text)
    telling = sum(word not in ALL_STOP_WORDS | WORDS["no_label"] for word in found)
    if is_last and telling > 1 + sum(word in WORDS["of"] for word in found):
        return False
    joined = {"y", "e", "and", *(WORDS["no_label"].intersection(found[:1]))}
    is_short = telling and len(text.split()) <= _FEW and joined.isdisjoint(found)
    return (is_short and is_thing(text) and is_name(text)) or _TECHNICAL.fullmatch(text) is not None


def is_place(text: str) -> bool:
    found = [word.text for word in spans(text)]
    inner = frozenset(found[1:-1]) & {"de", "del", "la", "las", "los", "el", "do", "da", "dos", "of"}
    return _CLOCK_OFFSET.fullmatch(fold(text)) is not None or (
        0 < len(found) <= _FEW
        and (ALL_STOP_WORDS - WORDS["place_articles"] - inner).isdisjoint(found)
        and WORDS["outside"].isdisjoint(found)
        and not re.search(r"[?!;:\n]|(?<![-+\d])\d", text)
    )


def may_be_place(text: str) -> bool:
    """Tell whether a question may be about a place of this name."""
    found = words(text)
    is_led = not (ALL_STOP_WORDS - WORDS["place_articles"]).isdisjoint(found[:1]) and not text[0].isupper()
    is_time = not {"tomorrow", "manana", "amanha"}.isdisjoint(found)
    return 0 < len(found) < _MOST_OF_THING and not (is_led or is_time) and "\n" not in text


def is_text(text: str, *, is_alone: bool = True) -> bool:
    """Tell whether a text says something by itself: it does not ask, nor point at or place what to keep."""
    found = words(text)
    if asks(text) or not found or found[0] in WORDS["asking"] - {"o"} or _OF_ANOTHER.search(fold(text)):
        return False
    is_placed = found[0] in WORDS["places_text"] | {"of"} or _IN_A_PLACE.match(fold(text))
    pointing = ALL_STOP_WORDS | WORDS["no_text"] | WORDS["of_order"]
    head, before = (words(text.partition(mark)[0]) if mark in text else [] for mark in ":,")
    head = head or (before if not WORDS["one_more"].isdisjoint(before) else [])  # "one more, call Ana"
    if (is_alone and is_placed) or (head and pointing.issuperset(head)):
        return False
    says = any(word not in pointing or word.isdigit() for word in found)
    is_about_all = set(found[:1]) < WORDS["all"] and not WORDS["what"].isdisjoint(found[1:3])
    return says and not is_about_all and WORDS["told_orders"].isdisjoint(found)


def tells_when(text: str) -> bool:
    """Tell whether a text without a moment may hold one that was not understood: "12ish", "mediados de"."""
    return not WORDS["of_time"].isdisjoint(words(text)) or any(word[0].isdigit() for word in words(text))


def tells_more(text: str) -> bool:
    """Tell whether a text is of the past ("hablé con"), has a second clause, or is the rest of a time."""
    first, *rest = words(text) or [""]
    was = (rest and tells_deed(text)) or not WORDS["was_said"].isdisjoint([first, *rest[:3]])
    is_led = _AT_ANOTHER.search(fold(text)) or first in WORDS["past"]
    return bool(was or is_led) or not WORDS["second_clause"].isdisjoint(rest)


def is_remark(text: str) -> bool:
    """Tell whether words complete "my name is …" and say no more."""
    found = spans(text)
    is_short = 0 < len(found) <= _MANY and not re.search(r"[?!;:…\n]|, ", text)
    joins = {"y", "e", "and", "que", "q", "mas"} | WORDS["places_text"] | WORDS["told_orders"]
    return is_short and joins.isdisjoint(word.text for word in found) and not holds_doubt(text, found)
