"""Long conversations in three languages with planted facts, and questions in other words."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

DAY = 86_400.0
START = 1_740_000_000.0

# In each language: what is said every day, with its slots.
DAILY = {
    "es": (
        ["mañana", "el lunes", "el jueves", "esta tarde", "el fin de semana", "hoy"],
        ["la reunión", "la cita", "el partido", "la clase", "la fiesta", "el trámite", "la compra"],
        ["Marta", "Luis", "mi hermana", "el vecino", "mi jefe", "la profesora", "Tomás"],
        [
            "{who} me preguntó por {what} de {when}",
            "recuérdame {what} {when}",
            "qué opinas de {what} con {who}",
            "{when} tengo {what} y luego veo a {who}",
            "no me acuerdo si {what} es {when}",
            "¿hace frío {when}?",
            "anota leche, pan y huevos para {when}",
            "{who} dice que {what} cuesta demasiado",
        ],
        [
            "Listo, lo anoté.",
            "Claro, {what} queda para {when}.",
            "No lo sé con certeza.",
            "✓ Recordatorio {when}",
        ],
    ),
    "pt": (
        ["amanhã", "na segunda", "na quinta", "hoje à tarde", "no fim de semana", "hoje"],
        ["a reunião", "a consulta", "o jogo", "a aula", "a festa", "o documento", "a compra"],
        ["Marta", "Luís", "minha irmã", "o vizinho", "meu chefe", "a professora", "Tomás"],
        [
            "{who} me perguntou sobre {what} de {when}",
            "me lembra de {what} {when}",
            "o que você acha de {what} com {who}",
            "{when} tenho {what} e depois vejo {who}",
            "não lembro se {what} é {when}",
            "vai fazer frio {when}?",
            "anota leite, pão e ovos para {when}",
            "{who} disse que {what} custa caro demais",
        ],
        ["Pronto, anotei.", "Claro, {what} fica para {when}.", "Não sei com certeza.", "✓ Lembrete {when}"],
    ),
    "en": (
        ["tomorrow", "on Monday", "on Thursday", "this afternoon", "at the weekend", "today"],
        [
            "the meeting",
            "the appointment",
            "the match",
            "the class",
            "the party",
            "the paperwork",
            "the shopping",
        ],
        ["Martha", "Louis", "my sister", "the neighbour", "my boss", "the teacher", "Tom"],
        [
            "{who} asked me about {what} {when}",
            "remind me of {what} {when}",
            "what do you think of {what} with {who}",
            "{when} I have {what} and then I see {who}",
            "I do not remember whether {what} is {when}",
            "will it be cold {when}?",
            "note milk, bread and eggs for {when}",
            "{who} says that {what} costs too much",
        ],
        ["Done, I noted it.", "Sure, {what} is {when}.", "I do not know for certain.", "✓ Reminder {when}"],
    ),
}

# A fact, who says it, a question that shares a word with it, and one that shares none.
FACTS: dict[str, list[tuple[str, str, str, str]]] = {
    "es": [
        (
            "el plomero se llama Ernesto y cobra 400 pesos la visita",
            "in",
            "¿qué te dije del plomero?",
            "¿cuánto pide quien arregla las tuberías?",
        ),
        (
            "la alarma de la casa se apaga con el botón rojo del pasillo",
            "in",
            "¿cómo se apaga la alarma?",
            "¿con qué se desactiva la sirena del hogar?",
        ),
        (
            "Sofía es alérgica al maní desde chica",
            "in",
            "¿a qué es alérgica Sofía?",
            "¿qué cacahuate le hace daño a la niña?",
        ),
        (
            "dejé el pasaporte en el cajón azul del escritorio",
            "in",
            "¿dónde dejé mi pasaporte?",
            "¿dónde guardé el documento de viaje?",
        ),
        (
            "el seguro del auto vence el 14 de abril",
            "in",
            "¿cuándo vence el seguro?",
            "¿qué fecha caduca la póliza del coche?",
        ),
        (
            "quedamos en pagar la mitad del alquiler a don Julio",
            "in",
            "¿qué acordamos del alquiler?",
            "¿cuánto le damos al casero por la renta?",
        ),
        (
            "te recomiendo el restaurante La Parra, tiene mesas afuera",
            "out",
            "¿qué restaurante me recomendaste?",
            "¿qué lugar para cenar me sugeriste?",
        ),
        (
            "la talla de zapatos de Nico es 34",
            "in",
            "¿qué talla de zapatos usa Nico?",
            "¿qué número calza el niño?",
        ),
        (
            "el dentista me puso una corona en la muela izquierda",
            "in",
            "¿qué me hizo el dentista?",
            "¿qué arreglo me hicieron en la boca?",
        ),
        (
            "vendí la bicicleta vieja en 900 a un estudiante",
            "in",
            "¿en cuánto vendí la bicicleta?",
            "¿qué precio saqué por la bici usada?",
        ),
    ],
    "pt": [
        (
            "o encanador se chama Everton e cobra 150 reais a visita",
            "in",
            "o que eu disse do encanador?",
            "quanto pede quem conserta os canos?",
        ),
        (
            "a senha do portão da garagem está no caderno verde",
            "in",
            "onde está a senha do portão?",
            "onde anotei o código da entrada dos carros?",
        ),
        (
            "a Júlia é alérgica a camarão",
            "in",
            "a Júlia é alérgica a quê?",
            "que fruto do mar faz mal para a menina?",
        ),
        (
            "deixei a chave reserva com a dona Cida do 302",
            "in",
            "com quem deixei a chave reserva?",
            "quem guarda a cópia que abre a casa?",
        ),
        (
            "o IPVA do carro vence dia 20 de março",
            "in",
            "quando vence o IPVA?",
            "até que data pago o imposto do veículo?",
        ),
        (
            "combinamos de dividir o aluguel da praia em quatro",
            "in",
            "o que combinamos do aluguel da praia?",
            "em quantas partes repartimos a casa de veraneio?",
        ),
        (
            "recomendo a pousada Sol Nascente, aceita cachorro",
            "out",
            "que pousada você recomendou?",
            "que hospedagem você sugeriu para o cão?",
        ),
        (
            "o Davi calça 33 e gosta de tênis vermelho",
            "in",
            "quanto calça o Davi?",
            "que número de sapato o garoto usa?",
        ),
        (
            "o médico mudou meu remédio da pressão para losartana",
            "in",
            "que remédio o médico mudou?",
            "qual comprimido o doutor trocou?",
        ),
        (
            "vendi o sofá velho por 350 para a vizinha",
            "in",
            "por quanto vendi o sofá?",
            "que preço consegui pelo móvel da sala?",
        ),
    ],
    "en": [
        (
            "the plumber is called Owen and takes 80 dollars a visit",
            "in",
            "what did I tell you about the plumber?",
            "how much does the man who fixes pipes charge?",
        ),
        (
            "the code of the bike shed hangs behind the mirror",
            "in",
            "where is the code of the bike shed?",
            "where did I hide the combination for the bicycles?",
        ),
        (
            "Emma is allergic to walnuts since school",
            "in",
            "what is Emma allergic to?",
            "which nuts make the girl ill?",
        ),
        (
            "I put the passport into the green folder on the shelf",
            "in",
            "where did I put my passport?",
            "where is my travel document?",
        ),
        (
            "the car insurance runs out on the 3rd of June",
            "in",
            "when does the insurance run out?",
            "until what date is the vehicle covered?",
        ),
        (
            "we agreed to pay half of the rent to Mr Doyle",
            "in",
            "what did we agree about the rent?",
            "how much does the landlord get from us?",
        ),
        (
            "I recommend the hotel Blue Harbour, it has a pool",
            "out",
            "which hotel did you recommend?",
            "what place to stay did you suggest?",
        ),
        (
            "Noah wears shoes of size 34",
            "in",
            "what size of shoes does Noah wear?",
            "how big are the boy's feet?",
        ),
        (
            "the doctor changed my blood pressure pills to losartan",
            "in",
            "which pills did the doctor change?",
            "what medicine did the physician switch me to?",
        ),
        (
            "I sold the old sofa for 120 to a student",
            "in",
            "for how much did I sell the sofa?",
            "what price did I get for the couch?",
        ),
    ],
}


@dataclass(frozen=True, slots=True)
class Talk:
    """Messages and questions in the form that `recado eval recall` reads; `shares`: a word with the fact."""

    history: list[dict[str, Any]]
    questions: list[dict[str, Any]]


def talks(people: int, exchanges: int, seed: int = 1) -> Talk:
    """Return the conversations of so many people; each has all facts of one language at random places."""
    rng = random.Random(seed)
    talk = Talk([], [])
    for number in range(people):
        language = ("es", "pt", "en")[number % 3]
        _converse(talk, f"person{number}", language, exchanges, rng)
    return talk


def _converse(talk: Talk, person: str, language: str, exchanges: int, rng: random.Random) -> None:
    planted = dict(zip(rng.sample(range(exchanges), len(FACTS[language])), FACTS[language], strict=True))
    for number in range(exchanges):
        at = START + number * DAY / 4
        asked, answered = _daily(language, rng)
        if fact := planted.get(number):
            text, direction, shared, other = fact
            asked, answered = (text, answered) if direction == "in" else (asked, text)
            id = f"{person}:{number}:{direction}"
            for query, shares in ((shared, True), (other, False)):
                question = {"person": person, "query": query, "relevant": [id], "shares": shares}
                talk.questions.append(question)
        for who, text, direction in ((person, asked, "in"), ("assistant", answered, "out")):
            talk.history.append(
                {"person": person, "id": f"{person}:{number}:{direction}", "at": at, "who": who, "text": text}
            )


def _daily(language: str, rng: random.Random) -> Iterator[str]:
    whens, whats, people, said, answers = DAILY[language]
    slots = {"when": rng.choice(whens), "what": rng.choice(whats), "who": rng.choice(people)}
    return (rng.choice(forms).format(**slots) for forms in (said, answers))
