"""Words for moments and repetitions in three languages, as patterns over folded text.

Each pattern stands for one kind of piece; `pieces` finds them, each word in one piece only.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from app.text import fold

_NUMBERS = (
    "cero zero",
    "un uno una um uma a an one",
    "dos dois duas two",
    "tres three",
    "cuatro quatro four",
    "cinco five",
    "seis six",
    "siete sete seven",
    "ocho oito eight",
    "nueve nove nine",
    "diez dez ten",
    "once onze eleven",
    "doce doze twelve",
)
NUMBERS: Mapping[str, int] = {
    **{word: number for number, words in enumerate(_NUMBERS) for word in words.split()},
    **dict.fromkeys(("quince", "quinze", "fifteen"), 15),
    **dict.fromkeys(("veinte", "vinte", "twenty"), 20),
    **dict.fromkeys(("treinta", "trinta", "thirty"), 30),
    **dict.fromkeys(("cuarenta", "quarenta", "forty"), 40),
    **dict.fromkeys(("cincuenta", "cinquenta", "fifty"), 50),
}
UNITS: Mapping[str, str] = {
    **dict.fromkeys(
        ("minuto", "minutos", "minute", "minutes", "min", "mins", "minutito", "minutitos"), "minute"
    ),
    **dict.fromkeys(("hora", "horas", "hour", "hours", "h", "hs", "hrs", "horita"), "hour"),
    **dict.fromkeys(("dia", "dias", "day", "days"), "day"),
    **dict.fromkeys(("semana", "semanas", "week", "weeks"), "week"),
    **dict.fromkeys(("mes", "meses", "month", "months"), "month"),
    **dict.fromkeys(("ano", "anos", "year", "years"), "year"),
}
SECONDS = ("segundos", "seconds", "secs", "segs", "seg")
"""Never one: "every second" and "segundo" are the one after the first."""
WEEKDAYS: Mapping[str, int] = {
    name: day
    for day, names in enumerate(
        (
            "lunes monday mon segunda-feira",
            "martes tuesday tue tues terca-feira",
            "miercoles wednesday wed quarta-feira",
            "jueves thursday thu thur thurs quinta-feira",
            "viernes friday fri sexta-feira",
            "sabado sabados saturday sat",
            "domingo domingos sunday sun",
        )
    )
    for name in names.split()
}
_SHORT_ENGLISH = frozenset({"mon", "tue", "tues", "wed", "thu", "thur", "thurs", "fri", "sat", "sun"})
"""Words of their own in other languages: "ir al SAT"."""
_SHORT_WEEKDAYS = {"segunda": 0, "terca": 1, "quarta": 2, "quinta": 3, "sexta": 4}
SHORT_DAYS = ("seg", "ter", "qua", "qui", "sex", "sab", "dom", "lun", "mie", "jue", "vie")
"""Short weekdays of Spanish and Portuguese: no time is read from them, for "ter" and "dom" are words too."""
MONTHS: Mapping[str, int] = {
    name: month
    for month, names in enumerate(
        (
            "enero janeiro january jan ene",
            "febrero fevereiro february feb",
            "marzo marco march mar",
            "abril april apr abr",
            "mayo maio may",
            "junio junho june jun",
            "julio julho july jul",
            "agosto august aug ago",
            "septiembre setiembre setembro september sep sept set",
            "octubre outubro october oct out",
            "noviembre novembro november nov",
            "diciembre dezembro december dec dic dez",
        ),
        start=1,
    )
    for name in names.split()
}
PARTS: Mapping[str, str] = {
    **dict.fromkeys(("manana", "mananas", "manha", "manhas", "morning", "temprano", "cedo"), "morning"),
    **dict.fromkeys(("tarde", "tardes", "afternoon"), "afternoon"),
    **dict.fromkeys(("noche", "noches", "noite", "noites", "evening", "night", "nights"), "night"),
    **dict.fromkeys(("madrugada",), "dawn"),
}

LONGEST_READ = 300  # characters of a text in which a time is looked for


@dataclass(frozen=True, slots=True)
class Piece:
    """Words that name a time: their place in the text, their kind, and the pattern's groups."""

    kind: str
    start: int
    end: int
    said: Mapping[str, str]


def pieces(text: str, language: str) -> list[Piece]:
    """Return the pieces of a text in order; kinds that say more take their words first."""
    folded = fold(unicodedata.normalize("NFC", text))
    found: list[Piece] = []
    for kind, pattern in _patterns(language):
        for match in pattern.finditer(folded):
            start, end = match.span()
            if all(end <= one.start or start >= one.end for one in found):
                groups = {name: value for name, value in match.groupdict().items() if value is not None}
                found.append(Piece(kind, start, end, groups))
    return sorted(found, key=lambda one: one.start)


def weekdays(words: str) -> list[int]:
    """Return the weekdays that words name, Monday as 0."""
    names = {**WEEKDAYS, **_SHORT_WEEKDAYS}
    known = (
        names.get(word) if word in names else names.get(word.removesuffix("s")) for word in _names(words)
    )
    return sorted({day for day in known if day is not None})


def number(word: str) -> int:
    """Return a number written in digits or words."""
    return int(word) if word.isdigit() else NUMBERS[word]


def _names(words: str) -> Iterator[str]:
    for found in re.finditer(r"[a-z]+(?:-feiras?)?", words):
        yield found[0].replace("-feiras", "-feira")


def _any(words: Sequence[str] | Mapping[str, object]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


@cache
def _patterns(language: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the kinds in the order in which they take their words.

    Weekdays that are ordinals elsewhere ("segunda") and "às" are read in Portuguese only, "Sat" and the
    like in English.
    """
    in_portuguese = language == "pt"
    named = WEEKDAYS.keys() if language == "en" else WEEKDAYS.keys() - _SHORT_ENGLISH
    day = _any([*named, *(_SHORT_WEEKDAYS if in_portuguese else ())])
    day = rf"(?:{day})"
    more_days = rf"(?:(?:\s*,\s*|\s+)(?:(?:y|e|and|a|o|os|as|el|los|on)\s+)*{day}s?(?:-feiras)?)*"
    days = rf"{day}s?(?:-feiras)?{more_days}"
    month, part, unit, seconds = _any(MONTHS), _any(PARTS), _any(UNITS), _any(SECONDS)
    count = rf"\d{{1,4}}|{_any([word for word, n in NUMBERS.items() if n])}"
    clock_words = [word for word, n in NUMBERS.items() if 1 <= n <= 12 and word not in ("a", "an")]
    hour = rf"\d{{1,2}}|(?:{_any(clock_words)})\b"
    each = r"(?:a\s+cada|cada|todos\s+(?:los|os)|todas\s+(?:las|as)|todo|toda|every|each)"
    at = r"a\s+partir\s+das?|(?:cuando\s+sean?|quando\s+forem|a|para)\s+las?|quando\s+(?:for|der)|las|at|@"
    at = rf"(?:{at}|a?as|a(?=\s+(?:uma|1)\b))" if in_portuguese else rf"(?:{at})"
    of_day = rf"(?:\s*,?\s*(?:de\s+la|da|de|in\s+the|por\s+la|a\s+la|at|a)\s+(?P<part>{part})\b)?"
    half = r"[ap]\.?\s?m\b\.?"
    amount = rf"""
        (?: (?P<half> half\s+an? | media | meia )
          | (?P<quarter> (?:un\s+cuarto|um\s+quarto|a\s+quarter)\s+(?:de|of\s+an?) )
          | (?P<count> {count} ) )
        \s* (?P<unit> {unit} | {seconds} )\b
        (?: \s+(?:y|e|and)\s+
            (?: (?P<more_half> half | a\s+half | medi[ao] | mei[ao] )
              | (?P<more_seconds> {count} )\s*(?:{seconds})
              | (?P<more> {count} )(?: \s*(?P<more_unit> {unit} ) )? )\b )?
    """
    of_each_month = r"""
        (?: de\s+cada\s+mes | de\s+todos?\s+(?:los\s+|os\s+)?mes(?:es)? | do\s+mes | del\s+mes
          | of\s+(?:every|each|the)\s+month )
    """
    en_span = "|for|by" if language == "en" else ""
    at_half = r"(?:at\s+)?" if language == "en" else r"at\s+"
    dd, th = r"\d{1,2}", r"(?:st|nd|rd|th)?"
    listed = (
        (
            "iso",
            r"""(?<!\d)(?P<date> \d{4}-\d{2}-\d{2} )
            (?: [t\s]\s*(?P<time> \d{2}:\d{2}(?::\d{2})? )(?:\.\d+)?\s*(?P<offset> z | [+-]\d{2}:?\d{2} )? )?
            (?!\d)""",
        ),
        (
            "cron",
            r"""(?:\bcron\s*:?\s*)?
            (?P<cron> (?<!\S)(?:[\d*][\d*/,-]*\s+){4}
                (?:[\d*][\d*/,-]*|(?:mon|tue|wed|thu|fri|sat|sun)\S*) )(?!\S)""",
        ),
        ("rrule", r"(?:\brrule:)?(?P<rrule> freq=[a-z]+(?:;[a-z]+=[\w,+-]+)* )"),
        (
            "nth_weekday",
            rf"""\b(?:primer[oa]?|segund[oa]|tercer[oa]?|cuart[oa]|ultim[oa]|primeir[oa]|terceir[oa]|quart[oa]
                |first|second|third|fourth|last)\s+{day}\s+(?:{of_each_month}|de\s+mes)""",
        ),
        (
            "month_day",
            rf"""(?P<last> \b(?:(?:todo|cada|every|el|no|o|the|on\s+the)\s+)*(?:ultimo\s+dia|last\s+day)\s+
                (?:{of_each_month}|de\s+mes) )
            | \b(?:(?:el|no|on\s+the|the|o|los|os|todo|cada)\s+)*(?:dias?\s+)?
                (?P<each_day> {dd} ){th}\s+{of_each_month}
            | \b(?:(?:el|no|on\s+the|the|o|todo|cada)\s+)*(?:dia\s+)?
                (?:primero|primer\s+dia|primeiro(?:\s+dia)?|first(?:\s+day)?)\s+(?:{of_each_month}|de\s+mes)
            | (?:cada|todo|every)\s+(?:mes|month),?\s+(?:(?:el|no|on\s+the|on|the)\s+)?(?:dia\s+)?
                (?P<each_day2> {dd} ){th}\b(?!\s*[:h])
            | (?:todos\s+los|todo|cada)\s+dias?\s+(?P<each_day3> {dd} )\b
                (?!\s*(?:h|:|de\s+(?:{month})))""",
        ),
        (
            "yearly",
            rf"""(?:cada|every|todo)\s+(?:(?:ano|year),?\s+(?:(?:el|no|on)\s+)?)?(?:dia\s+)?
            (?: (?P<day> {dd} )\s+(?:de\s+|of\s+)?(?P<month> {month} )
              | (?P<month2> {month} )\s+(?P<day2> {dd} ){th} )\b""",
        ),
        (
            "workdays",
            rf"""(?:(?:{each}|los|nos|os|on|de)\s+)?
                (?:dias?\s+(?:habiles|habil|laborables?|uteis|util|de\s+semana)|weekdays?|working\s+days?)\b
            | \bentre\s+semana\b | \bdurante\s+a\s+semana\b
            | \b(?:de\s+)?lun(?:es)?\s+a\s+vie(?:rnes)?\b
            | \b(?:de\s+)?seg(?:unda)?(?:-feira)?\s+a\s+sex(?:ta)?(?:-feira)?\b
            | \b(?:from\s+)?mon(?:day)?\s*(?:to|through|-)\s*fri(?:day)?\b""",
        ),
        (
            "weekends",
            r"""\b(?:(?:todos\s+(?:los|os)|los|nos|cada|todo|every|on)\s+)?
                (?:fines\s+de\s+semana|fins\s+de\s+semana|weekends)\b
            | \b(?:cada|todo|every)\s+(?:fin\s+de\s+semana|fim\s+de\s+semana|weekend)\b""",
        ),
        (
            "every_other",
            rf"""\bevery\s+(?:other|second)\s+(?P<other> day | week | month | {day} )\b
            | \b(?P<other_day> dia\s+por\s+medio | un\s+dia\s+si\s+y\s+otro\s+no | dia\s+sim,?\s+dia\s+nao )\b
            | \b(?:semana\s+por\s+medio|semana\s+sim,?\s+semana\s+nao)\b""",
        ),
        (
            "every_part",
            rf"""\b{each}\s+
            (?: dia\s+(?:a\s+la|por\s+la|de|a)\s+ | dias\s+(?:por\s+la|a\s+la|de)\s+
              | day\s+(?:in\s+the|at)\s+ | dia\s+ )?
            (?P<part> {part} )\b""",
        ),
        (
            "every",
            rf"""\b(?: {each}\s+(?:(?P<count> {count} )\s+)?(?P<unit> {unit} )
              | (?P<day> diariamente | a\s+diario | diario | daily ) | (?P<week> semanalmente | weekly )
              | (?P<month> mensualmente | mensalmente | monthly ) | (?P<hour> hourly )
              | (?P<year> anualmente | yearly ) )\b""",
        ),
        ("every", rf"\b(?:de\s+)?(?P<count> {count} )\s+em\s+(?P=count)\s*(?P<unit> {unit} )\b"),
        (
            "every_weekday",
            rf"""\b(?:{each}|los|nos|nas|as|aos)\s+(?:(?:dias?|los|as|os)\s+)*(?P<days> {days} )\b
            | \b(?:on\s+)?(?P<days2> (?:mon|tues|wednes|thurs|fri|satur|sun)days
                (?:(?:\s*,\s*|\s+and\s+|\s+)(?:mon|tues|wednes|thurs|fri|satur|sun)days)* )\b""",
        ),
        (
            "span",
            rf"""\b(?:en|dentro\s+de|de\s+aqui\s+a|in|em|daqui\s+a|daqui|within
              |(?P<lasting> por{en_span} ))\s+(?:unos\s+|uns\s+|about\s+)?{amount}
              (?:\s+(?:mas|mais|more|from\s+now|de\s+tiempo))?""",
        ),
        (
            "shift",
            rf"""\b{amount}\s+(?:(?P<back> antes|before|earlier|mas\s+temprano|mais\s+cedo )
              | despues|depois|(?:mas|mais)\s+tarde|later)\b(?!\s+(?:del?|d[aoe]s?|que|the|my|i)\b)""",
        ),
        ("span", rf"\b{amount}\s+(?:mas|mais|more|from\s+now)\b"),
        (
            "yesterday",
            r"""\b(?: anteayer | antier | ayer | anteontem | ontem
              | (?:the\s+)?day\s+before\s+yesterday | yesterday )\b""",
        ),
        (
            "next_week",
            r"""\b(?:de\s+|en\s+|da\s+|na\s+)?(?:la\s+|a\s+)?
                (?:proxima\s+semana|semana\s+(?:q(?:ue)?\s+(?:viene|vem)|proxima))\b
            | \bnext\s+week\b""",
        ),
        (
            "next_month",
            r"""\b(?:en\s+|no\s+)?(?:el\s+|o\s+)?(?:proximo\s+mes|mes\s+(?:q(?:ue)?\s+(?:viene|vem)|proximo))\b
            | \bnext\s+month\b""",
        ),
        (
            "date",
            rf"""\b(?:(?:el|no|on|the|em|o|en|para\s+el)\s+)*(?:dia\s+)?(?P<day> {dd} )(?:st|nd|rd|th|o)?\s+
                (?:de\s+|of\s+)?(?P<month> {month} )\b(?:,?\s+(?:de\s+|del\s+)?(?P<year> 20\d\d ))?
            | \b(?:on\s+)?(?P<month2> {month} )\s+(?:the\s+)?(?P<day2> {dd} ){th}\b(?!\s*:)
                (?:,?\s+(?P<year2> 20\d\d ))?
            | (?<![\d/.])(?:\b(?:el|no|on|em|dia|para\s+el)\s+)*
                (?P<first> {dd} )/(?P<second> {dd} )(?:/(?P<year3> \d{{4}} | \d{{2}} ))?(?![\d/])""",
        ),
        (
            "tomorrow",
            r"""\b(?P<after> pasado\s+manana | depois\s+de\s+amanha | (?:the\s+)?day\s+after\s+tomorrow )\b
            | \b(?:tomorrow|tmrw|tmw|amanha)\b
            | (?<!la\s)(?<!las\s)(?<!de\s)(?<!cada\s)\bmanana\b""",
        ),
        (
            "day_of_month",
            rf"""\b(?:el\s+dia|no\s+dia|para\s+el\s+dia|dia|on\s+the)\s+(?P<day> {dd} ){th}\b
                (?!\s*(?::|h\b|hs\b|de\s+la|[ap]m))""",
        ),
        (
            "day_of_month",
            rf"""\b(?:el|the)\s+(?P<day> {dd} ){th}\b
                (?=\s*(?:$|[,.;]|a\s+las?\s|por\s+la\s|at\s))""",
        ),
        ("clock", rf"\b{at_half}(?P<past> half )\s+(?P<hour2> {hour} )\b"),
        (
            "clock",
            rf"""\b(?:at\s+)?
                (?: (?P<minus> five | ten | twenty ) \s+to | (?P<plus> five | ten | twenty ) \s+past )
                \s+(?P<hour> {hour} )(?:\s*(?P<ampm> {half} ))?{of_day}""",
        ),
        (
            "clock",
            rf"""\b(?:(?:a\s+las?|as|un|um)\s+)?
                (?P<minus> cuarto | quinze | cinco | diez | dez | veinte | vinte )
                \s+para\s+(?:las?|as|a)\s+(?P<hour> {hour} )(?:\s*(?P<ampm> {half} ))?{of_day}""",
        ),
        (
            "clock",
            rf"""(?:\b|(?<!\S)(?=@)){at}\s*(?P<hour> {hour} )(?:\s*[:h]\s*(?P<minute> \d{{2}} )(?!\d))?(?!\d)
                (?:\s*(?:hs|hrs|horas|h|o'?clock|en\s+punto|em\s+ponto)\b)?
                (?: \s+(?:y|e)\s+(?P<plus> media | meia | cuarto | quinze | quince | {dd} )\b
                  | \s+menos\s+(?P<minus> cuarto | {dd} )\b )?
                (?:\s*(?P<ampm> {half} ))?{of_day}
            | \b(?:at\s+)?(?P<past> half | quarter )\s+(?P<side> past | to )\s+(?P<hour2> {hour} )
                (?:\s*(?P<ampm2> {half} ))?""",
        ),
        (
            "clock",
            rf"""(?<![\d:.,/-])(?P<hour> {dd} )
            (?: (?: :(?P<minute> \d{{2}} )(?!\d)(?:\s*h(?:s|rs)?\b)?
                  | \s?h(?P<minute2> \d{{2}} )?\b | \s?hs\b )
                (?:\s*(?P<ampm> {half} ))?{of_day}
              | \s*(?P<ampm2> [ap]\.?m\b\.? ) )""",
        ),
        ("clock", rf"(?<![\d:.,/-])\b(?P<hour> {dd} )\s+(?:de\s+la|da|in\s+the)\s+(?P<part> {part} )\b"),
        ("noon", r"\b(?:(?:al|ao|at|a)\s+)?(?:mediodia|medio\s+dia|meio[\s-]dia|noon|mid[\s-]?day)\b"),
        ("midnight", r"\b(?:(?:a\s+la|a|at)\s+)?(?:medianoche|media\s+noche|meia[\s-]noite|midnight)\b"),
        (
            "part",
            rf"""\b
            (?: (?:por|en|a|de|esta|pela|nesta|hoje\s+a|hoy\s+a|na|in|this|during)\s+(?:la\s+|the\s+)?
              | (?<=amanha\s) | (?<=manana\s) | (?<=tomorrow\s) | (?<=tmrw\s) | (?<=tmw\s)
              | (?<=(?:fri|mon|sun)day\s) | (?<=[sr]day\s) )
            (?P<part> {part} )\b
            | \b(?P<tonight> tonight )\b""",
        ),
        ("today", r"\b(?:hoy(?:\s+mismo)?|hoje|hj|today)\b"),
        (
            "weekday",
            rf"""\b(?:(?:el|este|esta|o|a|na|no|on|this|para|nesta|neste)\s+)*
            (?P<next> proxim[oa]s?\s+ | next\s+ )?
            (?P<day> {day} )\b(?P<coming> \s+(?:q(?:ue)?\s+(?:viene|vem)|proxim[oa]) )?
            (?: ,?\s+(?:the\s+)? (?P<number> {dd} ){th}\b
              (?! [:.,/]\d | \s*(?: h\b | hs\b | hrs?\b | hora | {half} | de\s+la\b | da\b | in\s+the\b
                | o.?clock | [%x×] | (?:de\s+|of\s+)?(?:{month})\b ) ) )?""",
        ),
        (
            "weekend",
            r"\b(?:(?:el|este|o|no|neste|this|on\s+the)\s+)?(?:fin\s+de\s+semana|finde|fim\s+de\s+semana|weekend)\b",
        ),
    )
    return tuple((kind, re.compile(pattern, re.VERBOSE)) for kind, pattern in listed)


_UNIT = r"(?:minut\w*|min|mins|hor[ai]\w*|hours?|dias?|days?|semanas?|weeks?|mes(?:es)?|months?)"
_COUNT = r"(?:\d{1,3}|una?|uma?|an?|one|two|three|dos|tres|dois|duas|medi[ao]|meia|half\s an|the|el|la|o)"
_HOURS_IN_WORDS = r"\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
# Words of time in folded text which no pattern reads: what was read is not the whole of it.
_UNREAD = re.compile(
    rf"""\b(?:
      {_COUNT} \s? {_UNIT} \s (?:antes|before|earlier|ahead|prior|previo)   # "2 hours before the flight"
    | (?:despues|depois|antes)\s (?:del?|do|da|das|dos)\s (?:trabajo|trabalho|almuerzo|almoco)
    | antes\s de\s (?:dormir|cenar|jantar|acostarme)
    | (?:before|after)\s (?:bed|work|school|lunch|dinner) | end\s of\s (?:the\s|my\s)?day | first\s thing
    | (?:lunch|tea|dinner|bed)\s?-?time | (?:a\sla|na|a)\s hora\s d\w+ | assim\sque | en\scuanto
    | (?:{_HOURS_IN_WORDS}) \s?-? ish | around\s \d+ | \d{{1,2}}\s (?:to|past)\s \d{{1,2}}
    | (?:half|quarter)\s (?:past|to) | half\s (?:{_HOURS_IN_WORDS})
    | (?:durante|during|por|for|by)\s (?:{_COUNT}|l[oa]s?)\s {_UNIT} | (?:proxim[oa]s|next)\s \d+
    | (?:so|solo|only)\s (?:ess?[ea]|est[ea]|this)\s (?:semana|mes|week|month)
    | (?:ess?a|esta|this)\s (?:semana|week)
    | (?:si|sim),?\s (?:e\s|y\s)?(?:um|otro|outro)\b.*\b(?:no|nao)
    | (?:menos|salvo|exc?ep?to|except|sem\sser|sin\sser|but\snot|other\sthan)\s (?:el\s|o\s|os\s|los\s|on\s)?
      (?:{"|".join([*WEEKDAYS, *SHORT_DAYS])})
    | s[ei][nm]\sser | (?:so|solo|only)\s (?:se|si|if) | (?:se|si)\s (?:no|nao|eu|yo)\s | unless
    | (?:at|for|las|as|@)\s \d{{1,2}}\.[0-5]\d | [ey]\s (?:un\s|um\s)?(?:cuarto|quarto|quartinho)
    | (?:mism|mesm)a\s hora | same\s time
    | fortnight(?:ly)? | quin[cz]enal\w* | (?:tarde|noche)cita | tempranito | tardezinha | noitinha | cedinho
    | \d{{1,2}}\s em\s \d{{1,2}} | [2-6]a\s e\s [2-6]a
    | (?:um|el|o|the)\s (?:dia|day)\s (?:antes|before)
    )\b
    | ^\W*(?:n[ao]s?\s|el\s)? (?:{"|".join(SHORT_DAYS)}) (?= \W*$ | \s*,|\s e\s|\s y\s|\s d[aeo]s?\s|\s a\s )
    | ^\W* (?:me\s)?(?:a\s)?(?:week|fortnight)\b
    | ^\W* (?:manana|manha|madrugada|noche|noite|tarde|morning|evening|afternoon|midnight)\b
    """,
    re.VERBOSE,
)


def leaves_unread(rest: str) -> bool:
    """Return True if the words beside a time say more of when: "tomorrow" of "2 hours before, tomorrow"."""
    return _UNREAD.search(fold(rest[:LONGEST_READ])) is not None
