"""Tell the time in a sentence from what it is about: "tomorrow at 9 to call Ana"."""

import re
import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches

from app.calendar.grammar import LONGEST_READ, MONTHS, PARTS, WEEKDAYS, Piece, pieces
from app.calendar.words import cut_end
from app.text import fold

_HOURS = frozenset({"clock", "noon", "midnight", "part", "every_part"})
_DAYS = frozenset({"iso", "date", "weekday", "today", "tomorrow", "day_of_month", "weekend"})
_DAYS |= {"workdays", "weekends", "every_weekday", "yearly"}
_DAY_NAMES = [name for name in (*WEEKDAYS, "tomorrow", "manana", "amanha") if len(name) >= 6]
# words of their own
_LIKE_DAYS = {"manzana", "manzanas", "campanha", "campanhas", "sabao", "frida", "mates", "manha"}
_ALIKE = 0.84  # so much of two words is the same


def _any(*groups: str) -> str:
    """Return a pattern for any of the words, which may be patterns themselves."""
    return f"(?:{'|'.join(word for group in groups for word in group.split())})"


# The patterns below are for folded text.
_MARKS = r"[\s,.;:!¡–—-]"
_ARTICLE = _any(
    "the my el la los las lo o a os as al ao del? d[ao]s? on in at en em n[ao]s? para pra pro of",
)
_COURTESY = (
    rf"(?:por\s+favor|{_any('please porfa(?:vor)? pls plis plz pf gracias obrigad[oa] thanks? thx valeu')})"
)
_NUMBER = _any(
    r"\d+ un[oa]? u[mn]a? dos dois duas tres cuatro quatro cinco seis siete sete ocho oito nueve nove",
    "diez dez once onze doce doze quin[cz]e veinte vinte treinta trinta medi[ao] mei[ao] one two",
    "three four five six seven eight nine ten eleven twelve fifteen twenty thirty half quarter",
)
_PART, _MONTH = _any(*PARTS), _any(*MONTHS)
_HOUR_UNIT = _any(r"horas? hours? hrs? hs h min\w* minutes?")
_DAY_UNIT = _any("dias? days? semanas? weeks? mes(?:es)? months?")
# between two parts of one time: "on Monday, the 5th", "at 8 and at 20"
_GAP = re.compile(rf"{_MARKS}*(?:(?:y|e|and|to|por|pela|{_ARTICLE}){_MARKS}+)*")
_OPENING = rf"{_COURTESY}|{_any('tbm? tambien tambem also for para pra pro de que q on el o to that of')}"
_OPENS = re.compile(rf"{_MARKS}*(?:(?:{_OPENING})\b{_MARKS}*)*")
_COURTESIES = re.compile(rf"^(?:{_MARKS}*{_COURTESY}\b)+", re.IGNORECASE)
_CLOSES = re.compile(rf"(?:{_MARKS}*\b{_COURTESY})*{_MARKS}*$")
# Right before a time these change it, or belong to it: "not before 10", "on alternate Fridays".
_LEADING = _any(
    f"{_NUMBER}(?:st|nd|rd|th|o|a)? before after until till by about around except but not only from",
    r"between start\w* beginning ending since bar skip\w* alternate other first last next every each",
    "and or past once twice than minus weeks? days? months? antes despues depois hasta ate desde",
    "entre menos salvo exc?ep?to pero mas no nao s[oi] solo cada otr[oa] outr[oa] y e o ou tipo casi",
    "quase cerca volta alrededor sobre lados partir empezando comecando vispera vesperas? quitando",
    "saltando sin sem con com contar incluir proxim[oa] ultim[oa] penultim[oa] primer[oa]?",
    "primeir[oa] segund[oa] tercer[oa]? cuart[oa] quart[oa] quint[oa] sext[oa] principios inicios?",
    "comienzos? mediados meados fines finais fin fim final meio medio util habil semanas? dias? mes",
    "meses veces vezes durante faltando todo toda todos todas is are es son e sao sera starts? begins?",
    "closes? opens? lands? empieza comienza comeca termina cierra abre llega sale",
)
_LEADS = re.compile(rf"(?:^|\W){_LEADING}(?:\W+(?:{_ARTICLE}|pr[ao]s))*\W*$")
# A repetition that no pattern reads, right before a time or with one word between: "toda bendita segunda".
_AGAIN = re.compile(
    r"\b(?:tod[oa]|td[ao]?s?|cada|sempre|siempre|qua(?:l|is)quer|cual(?:es)?quiera?|every|each|always)(?:\W+\w+)?\W*$"
)
# Right behind a time these go on with it: "… 20 to call", "… Tokyo time", "… or 8", "… of January".
_FURTHER = _any(
    "and or but not except before after until till by around between from starting only unless sharp",
    "local eastern pacific est pst gmt utc time o.?clock ish ago later every each on in at twice then",
    "of y e o u ou pero mas menos salvo exc?ep?to antes despues depois hasta ate entre desde solo so",
    r"no nao cada todo toda todos todas hor[ai]\w* hrs? hs min\w* tipo como cerca sobre en em por",
    "pelas? pras? com con del do util habil vem viene proxim[oa] s[ie]guiente seguinte subsiguiente",
    r"digo durante si se temprano cedo cedinho altern\w+",
)
_LINK = _any(
    r"at in on by as a a\s+las? en em por pelas? pr[ao]s? de da do del las? na no ate hasta until from",
    "desde antes depois despues to",
)
_GOES_ON = re.compile(
    rf"""{_MARKS}*(?: \d | {_NUMBER}\b | a\s+(?:tard|noit|noch|madrug|man)\w*
    | {_LINK}\s+(?:{_ARTICLE}\s+)*(?:{_NUMBER}|{_PART}|{_MONTH})\b | about\s+\d | la\s+pelas?\b
    | de\s+(?:la|cada|tod[ao]s?)\b | que\s+(?:viene|vem)\b | (?:{_FURTHER}|{_PART})\b
    | ao?l?\s+(?:\w+[aei]r|alba|ocaso|fin\w*|fim|rato|por\s+do\s+sol|(?:ultim|primer)\w+)\b | temprani\w+
    | \w{{3,}}[aei]ndo\s+(?:al?|del?|d[ao]s?|en|em|n[ao]|l[ao]|el|ao)\b | (?:[cq]uando|apenas|[ap]m)\b )""",
    re.VERBOSE,
)
_TO = re.compile(rf"{_MARKS}*[:–—-]|\s*,?\s*(?:to|that|about|for\s+(?:the|my|a|an)|of|i|we|my|the)\b")
_BEGINNING = _any(
    "on at in by every each before after until between from twice once not never en em cada tod[ao]s?",
    r"antes despues depois hasta ate entre desde pras? pelas? las?\s+\d+ as\s+\d+ nunca nao",
)
_BEGINS_WITH_TIME = re.compile(rf"\W*{_BEGINNING}\b")
# "at the end of the month pay the rent", "el día primero de enero …": a day that no pattern reads
_PART_OF_MONTH = re.compile(
    r"\W*(?:(?:me|el|la|a|al|o|no|on|at|by|the)\s+)*(?:dias?\s+(?:ultimo|primero|primeiro)\b"
    r"|(?:fin|fines|fim|final|finales|finais|end|start|inicio|inicios|comienzos?|principios?|mediados|meados)"
    r"\s+(?:del?|do|of)\s+(?:\w+\s+)?(?:mes|month|ano|year|semana|week|quincena|quinzena)\b)"
)
_CONDITIONS = _any(
    "except exc?ep?to salvo unless skip enquanto mientras while starting beginning empezando comecando hasta",
    "until till between horario anterior antes antecedencia anticipacion before earlier later luego prior",
    r"previo avis[ae]\w* quin[cz]enal\w* fortnight\w* seg qua qui sex lun mie jue vie",
)
# Anywhere beside a time: a condition, an exception, a further time, the clock of another place.
_CHANGES = re.compile(
    rf"""\b(?: {_CONDITIONS} | {_any(*WEEKDAYS)}
    | but\s+(?:not|only|on|in|if) | only\s+(?:on|in|if|this|today) | in\s+case | from\s+\d+ | time\s+zone
    | (?:pero|mas)\s+(?:no|nao|en|em|el|los|so|solo) | so\s+(?:hoje|hj|no|na|em|se)
    | solo\s+(?:hoy|en|el|los|si|por) | a\s+partir | desde\s+(?:el|las?|o|as|manana|hoy|amanha)
    | ate\s+(?:o|as|dia|sexta|\d+) | entre\s+las | hora\s+(?:de|da|do|local|espana|peruana)
    | (?:once|twice|{_NUMBER}\s+times|couple(?:\s+of)?\s+times)\s+(?:a|per|every)\s | quarterly
    | every\s+so\s+often
    | {_NUMBER}\s+ve[cz](?:es)?\s+(?:al?|por)\s | (?:entre|das?|de)\s+(?:las?\s+|as\s+)?\d+\s+(?:y|e|a|as)\s
    | (?:na|no|el|la|the)\s+(?:seguinte|siguiente|following) | (?:on|during|after|before)\s+(?:my\s+)?(?:way
      |break|lunch|work|school|dinner)
    | (?:mism|mesm)a\s+hora | same\s+time | {_NUMBER}\s*(?:{_HOUR_UNIT}|{_DAY_UNIT}|veces|vezes|times)
    | (?:de\s+la|da|in\s+the|at|por\s+la|a\s+la|en\s+la|pela|na)\s+{_PART}
    | \d+\s+(?:pras|para\s+l?as)\s+\d
    | \d{{1,2}}(?::|h)\d{{2}} | \d+\s?[ap]m | alas?\s*{_NUMBER} | (?:mas|mais)\s+(?:tarde|cedo|temprano)
    | (?:primer|ultim|quint|penultim|tercer|first|last)\w*\s+(?:dia|day)
    | (?:dia|semana|mes|manana|manha)\s+(?:s[ie]guiente|seguinte) | (?:next|following)\s+day
    | (?:y|e|and)\s+(?:el|no|on\s+the|dia)\s+\d{{1,2}} )\b""",
    re.VERBOSE,
)
# Days that no pattern reads: "on Boxing Day at noon".
_NAMED_DAY = re.compile(
    r"\b(?:\w+\s+(?:day|eve)|dia\s+(?:de|del|d[ao])s?\s+\w+|ano\s+n[ou]\w+|noche\s?vieja|semana\s+santa|"
    + _any(
        "christmas xmas thanksgiving easter halloween ramadan payday birthday anniversary carnival",
        r"holidays? navidad nochebuena nochevieja pascuas? reyes carnaval cumple\w* aniversario",
        r"quincena feriados? vispera vacaciones natal vespera reveillon aniver\w* niver pascoa",
        "pagamento ferias graduacion formatura parcial examen prova partido jogo",
    )
    + r")\b"
)
# Words before what is to be told, which belong to the time or to nothing: "certinho de ver …", "X, de ver …".
_INFINITIVE = r"\w+[aeio]r(?:[mts]e|nos|l[aeo]s?)*"
_OF_NO_VERB = _any(
    "alquiler aluguer azucar bar celular cancer dolar hogar lugar mar militar mujer mulher par"
)
_LED_IN = re.compile(
    rf"""\W*(?!{_INFINITIVE}\b|por\s)(?: [^,]{{1,40}},\s*(?:de|que|q|to|that)\s
    | (?:\w+\W+){{1,3}}de\s+(?!{_OF_NO_VERB}\b){_INFINITIVE}\b
    | (?!(?:t[ei][enm]\w*|hay|h[ae]|falta\w*)\b)\w+\s+(?:que|q)\s+{_INFINITIVE}\b
    | (?:s[ie][nm]\s+falta|(?:urgente|certinho|d?inovo|viu)(?!\W*$)|(?:kindly|urgently|again|please)\s+to)\b )
    | \W*por\s+\w+,\s*(?:de|que|q)\s""",
    re.VERBOSE,
)
_FOR = re.compile(r"(?:for|para|pra|pro|de|del|do|da|about|sobre)\b")
# "confirm the appointment of …", "the bill that is due …": the time is a thing's own
_OF_A_THING = re.compile(r"\b(?:de|del|d[ao]s?|of|from)\W*$|\b(?:que|that|which) \w+\W*$")
_ENDS_IN_FOR = re.compile(r"\b(?:for|para|pra|pro|about|sobre)\W*$")  # "tickets for Saturday"
# "buy a present for Friday": the time is the thing's, unless it may be due then
_DUE_AFTER = re.compile(r"\b(?:for|by|to|para|pr[ao]s?|a|las?|as)\W*$")
_DUE = re.compile(r"\W*(?:for|by|para|pr[ao]s?)\b")


def split_time(text: str, language: str, *, is_due: bool = False) -> tuple[str, str] | None:
    """Split a sentence into its words of time and what they are about.

    `is_due`: the time may be that by which it is to be done. None unless the time stands at its ends and
    nothing in the rest can change it: a reminder for half of what was said is worse than none.
    """
    text, end_of_all = cut_end(unicodedata.normalize("NFC", text), language)
    blocks = _blocks(text[:LONGEST_READ], language)
    if not blocks:
        return None
    start, end = blocks[0][0].start, blocks[0][-1].end
    before = text[:start] if _OPENS.sub("", text[:start], count=1) else ""
    after = _CLOSES.sub("", text[blocks[-1][-1].end :])
    if len(blocks) == 1:
        if before.strip() and after.strip():
            return None
        rest, words = _COURTESIES.sub("", before) or after, text[start:end]
        is_first = not before.strip()
    elif len(blocks) == 2 and not before.strip() and not after.strip() and _are_day_and_hour(blocks, text):
        rest = text[end : blocks[1][0].start]
        words = f"{text[start:end]} {text[blocks[1][0].start : blocks[1][-1].end]}"
        is_first = True
    else:
        return None
    folded = fold(rest)
    if is_first and (_GOES_ON.match(folded) or (language == "en" and rest.strip() and not _TO.match(folded))):
        return None
    if _PART_OF_MONTH.match(folded) or (not is_first and _BEGINS_WITH_TIME.match(folded)):
        return None
    if not (is_first or is_due) and (_DUE_AFTER.search(folded) or _DUE.match(fold(words))):
        return None
    if (not is_first or len(blocks) == 2) and (_LEADS.search(folded) or _OF_A_THING.search(folded)):
        return None
    if not is_first and _AGAIN.search(folded):
        return None
    if holds_time(rest, language, names_day=names_day(words, language)):
        return None
    return f"{words} {end_of_all}".strip(), rest.strip(" ,.;:")


def holds_time(text: str, language: str, *, names_day: bool) -> bool:
    """Return True if a text says anything of when, or on what condition.

    `names_day`: a day is named beside it, so that "birthday" is no time in it.
    """
    if len(text) > LONGEST_READ:
        ends = (text[:LONGEST_READ], text[-LONGEST_READ:])
        return any(holds_time(one, language, names_day=names_day) for one in ends)
    folded = fold(text)
    long_words = set(re.findall(r"[a-z]{5,}", folded)) - _LIKE_DAYS
    if any(get_close_matches(word, _DAY_NAMES, 1, _ALIKE) for word in long_words):
        return True  # "wensday"
    if pieces(text, language) or _CHANGES.search(folded) or _LED_IN.match(folded):
        return True
    return not names_day and _NAMED_DAY.search(folded) is not None


def names_day(text: str, language: str) -> bool:
    return any(piece.kind in _DAYS for piece in pieces(text, language))


def is_connective(text: str) -> bool:
    """Return True if a text is nothing but small words, such as stand between two parts of one time."""
    return _GAP.fullmatch(f"{fold(text)} ") is not None


def _blocks(text: str, language: str) -> list[list[Piece]]:
    """Return the pieces of time, those together that nothing but small words keeps apart."""
    blocks: list[list[Piece]] = []
    for piece in pieces(text, language):
        between = fold(text[blocks[-1][-1].end : piece.start]) if blocks else "-"
        if blocks and _GAP.fullmatch(between):
            blocks[-1].append(piece)
        else:
            blocks.append([piece])
    return blocks


def _are_day_and_hour(blocks: Sequence[Sequence[Piece]], text: str) -> bool:
    """Return True for a day at one end and an hour at the other: "tomorrow … at 9"."""
    with_hours = [[piece.kind in _HOURS for piece in block] for block in blocks]
    between = fold(text[blocks[0][-1].end : blocks[1][0].start])
    is_for = _FOR.match(fold(text[blocks[1][0].start :])) or _ENDS_IN_FOR.search(between)
    is_split = (all(with_hours[0]) and not any(with_hours[1])) or (
        all(with_hours[1]) and not any(with_hours[0])
    )
    return is_split and not is_for
