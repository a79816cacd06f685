"""Things on a list: cleaned as they are kept, compared by their core, found by what people call them."""

import re

from app.search.words import spaced, stem, words

_NOUNS = spaced(
    """
    cosa cosas item items producto productos articulo articulos coisa coisas produto produtos thing things
    numero number nro one
    """
)
_ALL = spaced("todo toda todos todas tudo all everything")
_DONE = spaced(
    """
    done checked tachado tachada tachados tachadas comprado comprada comprados compradas riscado riscada
    riscados riscadas
    """
)
_IT = spaced(
    """
    it them that this eso esa ese esto esta este esos esas isso isto esse essa ele ela eles elas lo la los las
    """
)
_NOTHING = spaced("nada nothing ningun ninguno ninguna nenhum nenhuma none mas mais else more anything")
_AGAIN = spaced("de nuevo otra vez volta novo again back too tambien also")
_PLACES = {
    **dict.fromkeys(("primero", "primer", "primera", "primeiro", "primeira", "first"), 0),
    **dict.fromkeys(("segundo", "segunda", "second"), 1),
    **dict.fromkeys(("tercero", "tercer", "tercera", "terceiro", "terceira", "third"), 2),
    **dict.fromkeys(("cuarto", "cuarta", "quarto", "quarta", "fourth"), 3),
    **dict.fromkeys(("quinto", "quinta", "fifth"), 4),
    **dict.fromkeys(("ultimo", "ultima", "last"), -1),
}
_SMALL = spaced(
    """
    a an as da das de del do dos el la las lo los mas of o os some the um uma umas una unas uno unos un uns
    my mi mis meu meus minha minhas x ya ja
    """
)
_AMOUNTS = spaced(
    """
    kg kgs kilo kilos quilo quilos g gr grs gramo gramos grama gramas l lt lts litro litros liter liters
    litre litres ml lb lbs libra libras pound pounds oz onza onzas galon galones galao gallon gallons docena
    docenas duzia duzias dozen par pares pair pairs medio media meio meia half cuarto quarto quarter
    paquete paquetes pacote pacotes pack packs package packages packet packets bolsa bolsas saco sacos
    sacola bag bags lata latas can cans tin tins botella botellas garrafa garrafas bottle bottles caja cajas
    caixa caixas box boxes pieza piezas unidad unidades unidade unit units frasco frascos pote potes jar
    jars rollo rollos rolo rolos roll rolls manojo manojos maco macos atado bunch loaf loaves carton cartones
    dos tres cuatro cinco seis siete ocho nueve diez doce dois duas quatro sete oito nove dez doze
    two three four five six seven eight nine ten twelve
    """
)
_BULLET = re.compile(r"^\s*(?:[-*•·–—☐☑✓]|\d{1,2}[.)](?=\s))\s*")
_LEADING = re.compile(
    r"(?:(?:y|e|and|tamb[ií][eé]n|tamb[eé]m|also|adem[aá]s|m[aá]s|some|the|el|la|los|las|unos|unas|os|uns|umas)"
    r"\s+)+",
    re.IGNORECASE,
)
_LEADING_PT = re.compile(r"(?:(?:e|o|a|as)\s+)+", re.IGNORECASE)
_TRAILING = re.compile(
    r"[\s,]+(?:tamb[ií][eé]n|tamb[eé]m|tbm|tbn|tb|too|as well|por ?favor|porfa|please|pls|pfv?)$",
    re.IGNORECASE,
)
# Characters of what is read; far more than anything on a list may have.
LONGEST = 1000
_AROUND = ' \t\n\r.,;:!?¿¡"“”«»'


def clean(text, language):
    """Return one thing on one line, without the article and the small words around it; its amount stays."""
    line = _BULLET.sub("", " ".join(text[:LONGEST].replace("\x00", "").split())).strip(_AROUND)
    line = _TRAILING.sub("", line)
    line = _without(_LEADING, line)
    return (_without(_LEADING_PT, line) if language == "pt" else line).strip(_AROUND)


def names_nothing(text):
    """Tell whether it names no thing: "them back", "de nuevo", "nothing else"."""
    return set(words(text)) <= _IT | _AGAIN | _NOTHING


def core(text):
    """Return a thing without amount, accents, case and endings: "2 kg de arroz" is "Arroz"."""
    said = words(text)
    telling = [word for word in said if word not in _SMALL]
    named = [word for word in telling if word not in _AMOUNTS and not word[0].isdigit()]
    return frozenset(stem(word) for word in named or telling or said)


def has_amount(text):
    """Tell whether it says how much of it: "2 kg de arroz"."""
    return any(word in _AMOUNTS or word[0].isdigit() for word in words(text))


def means_everything(wanted):
    """Tell whether everything on the list is meant."""
    said = _telling(wanted)
    return bool(said) and set(said) <= _ALL


def means_done(wanted):
    """Tell whether all that is checked off already is meant."""
    said = [word for word in _telling(wanted) if word not in _ALL]
    return bool(said) and set(said) <= _DONE


def means_place(wanted):
    """Tell whether a thing is named by its place: its number, "the second", "it"."""
    return _number(wanted) > 0 or _place(wanted) is not None or _is_it(wanted)


def found(entries, wanted, core=core):
    """The entries, in the order of the list, that somebody may mean; several where it is not clear which.

    `core` may be one that remembers, for a call that looks for many things.
    """
    if number := _number(wanted):
        return [entry for entry in entries if entry.number == number]
    if (place := _place(wanted)) is not None:
        return entries[place:][:1]
    if _is_it(wanted):
        return list(entries)
    asked = core(wanted)
    cores = [(entry, core(entry.text)) for entry in entries]
    same = [entry for entry, has in cores if has == asked]
    return same or [entry for entry, has in cores if asked and asked <= has]


def _without(leading, line):
    """Return the line without its leading small words, unless there are no others."""
    match = leading.match(line)
    return line[match.end() :] if match and line[match.end() :].strip(_AROUND) else line


def _telling(wanted):
    return [word for word in words(wanted) if word not in _SMALL and word not in _NOUNS]


def _number(wanted):
    said = _telling(wanted)
    return int(said[0]) if len(said) == 1 and said[0].isdecimal() and len(said[0]) <= 4 else 0


def _place(wanted):
    said = _telling(wanted)
    return _PLACES.get(said[0]) if len(said) == 1 else None


def _is_it(wanted):
    return set(words(wanted)) <= _IT
