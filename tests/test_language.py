import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from babel.messages import Catalog
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po
from hypothesis import given, settings
from hypothesis import strategies as st

import app
from app.i18n import LANGUAGES, detect_language, say, say_plural

ROOT = Path(app.__file__).parent
KEYWORDS = {"say": [1], "say_plural": [1, 2], "lazy": [0]}  # where each has its sentence

SPANISH = """
hola|hola, ¿cómo estás?|buenas|buen día|buenas noches|gracias|muchas gracias!!|sí|si claro|dale|ya
¿qué hora es?|que hora es|qué hora es en Tokio?|cuánto es 2+2|cuanto es 15% de 340
anota: comprar pan|anotá que mañana voy al médico|guardá esto|guarda esto porfa
decime qué notas tengo|mostrame mis notas|borra la última nota|ponme un recordatorio
recuérdame llamar a mi mamá|recordame pagar la luz el lunes|avísame a las 5|no entiendo|quién eres?
cómo te llamas|qué puedes hacer?|qué podés hacer|tenés mis listas?|no me acuerdo|jajaja
hace frío hoy|va a llover mañana?|el clima en Bogotá|cuántos días faltan para navidad|qué día es hoy
necesito ayuda|ayúdame con algo|muéstrame la lista|lista de compras: leche, huevos
agrega queso a la lista|ya compré el pan|mañana tengo reunión|te quiero|perdón|eso no|cancela todo
olvidalo|listo, gracias|buenísimo|está bien|cuál es la capital de Perú|traduce esto al inglés
dónde queda Quito|feliz cumpleaños|estoy cansado|quiero saber el precio del dólar|che, estás ahí?
fijate si hay algo nuevo|hasta mañana|nos vemos|me llamo Juan|soy de Chile|vivo en Lima
divide 10 entre 4|la raíz cuadrada de 81|y el martes?|que tengo pendiente|haceme una lista
mandame el archivo|órale pues|cuánto cuesta|apunta que debo 200 pesos a Luis
"""
PORTUGUESE = """
oi|olá, tudo bem?|bom dia|boa noite|boa tarde!|obrigado|obrigada viu|valeu|sim|não|nao|que horas são
que horas sao|que horas são em Tóquio?|quanto é 2+2|quanto é 15% de 340|anota: comprar pão
anota aí que amanhã vou ao médico|guarda isso|salva essa nota|quais são minhas notas
mostra minhas anotações|apaga a última nota|me lembra amanhã|me lembra de ligar pra minha mãe
coloca um lembrete|cria um lembrete pra segunda|me avisa às 5|não entendi|quem é você?
qual o seu nome|o que você faz?|vc consegue me ajudar?|tem alguma lista?|não lembro|kkkkk
tá frio hoje|vai chover amanhã?|o tempo em Lisboa|quantos dias faltam pro natal|que dia é hoje
preciso de ajuda|me ajuda com uma coisa|ver a lista|lista de compras: leite, ovos
adiciona queijo na lista|já comprei o pão|amanhã tenho reunião|te amo|desculpa|isso não|cancela tudo
esquece|beleza, valeu|ótimo|tudo certo|qual é a capital do Peru|traduz isso pro inglês
onde fica Quito|feliz aniversário|estou cansado|quero saber o preço do dólar|cadê você?
tem algo novo?|até amanhã|a gente se fala|meu nome é João|sou do Brasil|moro em Recife
divide 10 por 4|a raiz quadrada de 81|e na terça?|o que falta fazer|faz uma lista|me manda o arquivo
blz|quanto custa|anota que devo 200 reais ao Luís
"""
ENGLISH = """
hi|hello there|hey, how are you?|good morning|good night|thanks|thank you so much!!|yes|yeah sure
what time is it?|what time is it in Tokyo|what's 2+2|how much is 15% of 340|note: buy bread
write down that I see the doctor tomorrow|save this|save this please|show me my notes
what notes do I have|delete the last note|set a reminder|remind me to call my mom
remind me to pay the bill on Monday|tell me at 5|I don't understand|who are you?|what is your name
what can you do?|do you have my lists?|I can't remember|lol that's funny|it's cold today
will it rain tomorrow?|the weather in Boston|how many days until Christmas|what day is today
I need help|help me with something|show the list|shopping list: milk, eggs|add cheese to the list
I already bought the bread|I have a meeting tomorrow|I love you|sorry|not that|cancel everything
forget it|done, thanks|great|that's fine|what is the capital of Peru|translate this into Spanish
where is Quito|happy birthday|I'm tired|I want to know the price of gold|are you there?
anything new?|see you tomorrow|bye|my name is John|I'm from Texas|I live in Denver|divide 10 by 4
the square root of 81|and on Tuesday?|what's left to do|make a list|send me the file
how much does it cost|note that I owe Luis 200 dollars
"""
UNKNOWN = """
ok|OK!|👍|😂😂😂|2+2|1.234,50|5|...|???|Ana|Carlos|no|\x00||María José|Tokio|hmm…|/help|日本語
https://example.com/the-best-way|ana@example.com
"""


def messages(table: str) -> list[str]:
    return [message for line in table.strip().split("\n") for message in line.split("|")]


def test_short_messages_are_told_apart() -> None:
    for language, table in [("es", SPANISH), ("pt", PORTUGUESE), ("en", ENGLISH)]:
        said = messages(table)
        wrong = {message: guess for message in said if (guess := detect_language(message)) != language}
        assert len(said) >= 60
        assert len(wrong) <= 0.05 * len(said), wrong
        assert not [guess for guess in wrong.values() if guess is not None], wrong


def test_it_says_nothing_where_nothing_can_be_told() -> None:
    assert {detect_language(message) for message in [*messages(UNKNOWN), " "]} == {None}


def test_the_english_name_of_a_server_does_not_turn_what_is_asked_about_it() -> None:
    for language, said in [
        ("pt", "instala o servidor time|remove o servidor time|instala o server github"),
        ("pt", "aprova as ferramentas do time|atualiza o servidor filesystem|desfaz"),
        ("es", "instala el server time|activa el server filesystem|quita el server git"),
        ("en", "install the time server|turn off the server time|approve the tools of memory"),
    ]:
        assert [one for one in messages(said) if detect_language(one) != language] == []


def test_a_name_a_loan_word_or_a_missing_accent_does_not_turn_a_message() -> None:
    assert detect_language("1200 mas iva 16%") is None
    assert detect_language("cancela o do agua") == "pt"
    assert detect_language("recuérdame la reunión con John Smith sobre el password") == "es"
    assert detect_language("me lembra da reunião com a María José no shopping") == "pt"
    assert {detect_language(one, "es") for one in ("hii", "heyyy", "stop", "ok google")} == {None}
    assert detect_language("fecha o projeto", "pt") == "pt"
    assert detect_language("remind me to call José María in São Paulo") == "en"


@pytest.mark.parametrize(("usual", "said", "found"), [
    ("pt", "ta errado", "pt"), ("pt", "ta bom", "pt"), ("pt", "que pena", None), ("pt", "esta mal", None),
    ("pt", "pronto", None), ("pt", "nada", None), ("en", "roll a die", None), ("en", "mañana", None),
    ("es", "não", None), ("es", "que horas são", "pt"), ("es", "I'm tired", "en"),
    ("pt", "what time is it", "en"), ("pt", "recuérdame pagar mañana", "es"), ("en", "¿cómo estás?", "es"),
    ("es", "show my lists", "en"),
])  # fmt: skip
def test_a_person_keeps_their_language_unless_two_words_are_only_of_another(usual, said, found):
    assert detect_language(said, usual) == found


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_text_gets_one_of_our_languages_or_none(text: str) -> None:
    assert detect_language(text) in {*LANGUAGES, None}


def test_our_sentences_are_said_in_the_person_s_language() -> None:
    assert say("es", "Done.") == "Listo."
    assert say("pt-BR", "Done.") == "Pronto."
    assert say("en", "Hello, {name}!", name="Ana {x}") == "Hello, Ana {x}!"
    assert say("es", "Hello, {name}!", name="Ana") == "¡Hola, Ana!"


def test_what_is_not_translated_is_said_in_english() -> None:
    for language in ["en", "fr", "", "../../etc", "es"]:
        assert say(language, "There is no such sentence: {value}", value=5) == "There is no such sentence: 5"
        forms = [say_plural(language, "{n} odd thing", "{n} odd things", n) for n in (1, 2)]
        assert forms == ["1 odd thing", "2 odd things"]


@cache
def sentences() -> frozenset[str | tuple[str, ...]]:
    """Read from the syntax tree, as Babel does not see a call within an f-string."""
    found = set()
    nodes = [node for path in ROOT.rglob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        arguments = [call.args[place] for place in KEYWORDS.get(getattr(call.func, "id", ""), [])]
        texts = tuple(argument.value for argument in arguments if isinstance(argument, ast.Constant))
        if texts:
            found.add(texts if len(texts) > 1 else texts[0])
    return frozenset(found)


def catalogue(language: str) -> tuple[Catalog, dict[Any, Any]]:
    """The catalogue, and what its compiled form says."""
    folder = ROOT / "locale" / language / "LC_MESSAGES"
    with (folder / "recado.po").open("rb") as po, (folder / "recado.mo").open("rb") as mo:
        return read_po(po, locale=language), _said(read_mo(mo))


def _said(read: Catalog) -> dict[Any, Any]:
    """What is said for each sentence; of plurals, each form."""
    pairs = [(message.id, message.string) for message in read if message.id and message.string]
    return {one if isinstance(one, str) else tuple(one): other if isinstance(other, str) else tuple(other)
            for one, other in pairs}  # fmt: skip


def test_catalogues_are_complete_and_compiled() -> None:
    """Every sentence of ours is translated, with the same values; `make translations` mends the rest."""
    for language in ["es", "pt"]:
        read, compiled = catalogue(language)
        wanted = sentences()
        known = {message.id for message in read if message.id}
        assert not wanted - known, "in no catalogue: take it out of an f-string, then run `make translations`"
        for message in read:
            if message.id in wanted:
                _check(message.id, message.string, message.fuzzy)
        assert compiled == _said(read), "a .po file is newer than its .mo: run `make translations`"


def _check(sentence: object, translation: object, fuzzy: bool) -> None:
    originals = sentence if isinstance(sentence, tuple | list) else [sentence]
    forms = translation if isinstance(translation, tuple | list) else [translation]
    assert all(forms), f"not translated: {sentence!r}"
    assert not fuzzy, f"to be looked over, then without its `fuzzy` mark: {sentence!r}"
    values, *others = (sorted(re.findall(r"{\w+}", str(form))) for form in (originals[-1], *forms))
    assert all(other == values for other in others), f"other values: {forms!r}"
