"""A dental clinic and its shop: 300 questions with answers and 500 prices, in Spanish and Portuguese.

`python -m tests.knowledge.business FOLDER` writes them as a business would. Each question comes with other
words for it, which share at most half of their words with it.
"""

import csv
import random
import sys
from dataclasses import dataclass
from pathlib import Path

SERVICES = {
    "es": [
        ("limpieza dental", "higiene de los dientes"),
        ("ortodoncia", "aparato de ortodoncia"),
        ("blanqueamiento", "blanquear los dientes"),
        ("extracción de muelas", "sacar una muela"),
        ("implantes", "un implante"),
        ("tratamiento de conducto", "el conducto"),
        ("empaste", "un empaste en una caries"),
        ("prótesis removible", "una prótesis"),
        ("carillas de porcelana", "carillas"),
        ("sellado de fisuras", "el sellado a mi hija"),
        ("férula de descarga", "la férula para el bruxismo"),
        ("radiografía panorámica", "una radiografía"),
        ("cirugía de encías", "operar las encías"),
        ("revisión infantil", "la revisión de un niño"),
        ("urgencia por dolor", "una urgencia"),
    ],
    "pt": [
        ("limpeza dental", "a higiene dos dentes"),
        ("aparelho ortodôntico", "usar aparelho"),
        ("clareamento", "clarear os dentes"),
        ("extração de siso", "tirar o siso"),
        ("implantes", "um implante"),
        ("tratamento de canal", "o canal"),
        ("restauração", "restaurar um dente"),
        ("prótese removível", "uma prótese"),
        ("facetas de porcelana", "facetas"),
        ("selante infantil", "o selante no meu filho"),
        ("placa de bruxismo", "a placa para ranger"),
        ("radiografia panorâmica", "uma radiografia"),
        ("cirurgia de gengiva", "operar a gengiva"),
        ("consulta infantil", "a consulta de uma criança"),
        ("urgência por dor", "uma urgência"),
    ],
}
# a question, other words for it, and its answer
ASPECTS = {
    "es": [
        (
            "¿Cuánto cuesta {0}?",
            "qué precio tiene {0}",
            "Cuesta $ {n}00 pesos, con los materiales incluidos.",
        ),
        ("¿Cuánto tiempo dura {0}?", "cuántos minutos tarda {0}", "Tarda unos {n} minutos en el sillón."),
        ("¿Duele {0}?", "voy a sentir dolor con {0}", "Se pone anestesia local; solo se nota una presión."),
        ("¿Desde qué edad se hace {0}?", "a partir de cuántos años es {0}", "Se hace desde los {n} años."),
        (
            "¿Cómo me preparo para {0}?",
            "qué preparación necesita {0}",
            "No comas en las {n} horas anteriores.",
        ),
        (
            "¿Qué garantía tiene {0}?",
            "está garantizado {0}",
            "La garantía es de {n} meses si vienes a los controles.",
        ),
        (
            "¿Puedo pagar en cuotas {0}?",
            "aceptan pago a plazos por {0}",
            "Hasta {n} cuotas sin interés con tarjeta.",
        ),
        ("¿Lo cubre el seguro? {0}", "mi seguro paga {0}", "El seguro cubre el {n} % con orden médica."),
        ("¿Qué cuidados hay después de {0}?", "cómo me cuido tras {0}", "Comida blanda durante {n} días."),
        (
            "¿Qué doctor hace {0}?",
            "quién es el doctor de {0}",
            "Lo hace la doctora Ruiz los martes a las {n}.",
        ),
    ],
    "pt": [
        ("Quanto custa {0}?", "qual é o preço de {0}", "Custa R$ {n}0,00 com os materiais."),
        ("Quanto tempo dura {0}?", "quantos minutos demora {0}", "Demora uns {n} minutos na cadeira."),
        ("{0} dói?", "vou sentir dor com {0}", "Usamos anestesia local; só se sente uma pressão."),
        ("Desde que idade se faz {0}?", "a partir de quantos anos é {0}", "É feito a partir dos {n} anos."),
        ("Como me preparo para {0}?", "que preparo precisa {0}", "Não coma nas {n} horas anteriores."),
        ("Que garantia tem {0}?", "é garantido fazer {0}", "A garantia é de {n} meses com as revisões."),
        ("Posso parcelar {0}?", "aceitam parcelas para {0}", "Em até {n} parcelas sem juros no cartão."),
        ("O plano cobre {0}?", "meu plano paga {0}", "O plano cobre {n} % com pedido médico."),
        ("Que cuidados depois de {0}?", "como me cuido após {0}", "Comida macia por {n} dias."),
        ("Que doutor faz {0}?", "quem é a doutora de {0}", "Quem faz é a doutora Lima às terças às {n}."),
    ],
}
PRODUCTS = {
    "es": [
        "cepillo",
        "pasta dental",
        "hilo dental",
        "enjuague",
        "irrigador",
        "cera",
        "gel",
        "limpiador",
        "estuche",
        "kit",
    ],
    "pt": [
        "escova",
        "creme dental",
        "fio dental",
        "enxaguante",
        "irrigador",
        "cera",
        "gel",
        "limpador",
        "estojo",
        "kit",
    ],
}
BRANDS = ["Alba", "Brisa", "Cima", "Duna", "Ébano"]
KINDS = {
    "es": ["suave", "infantil", "eléctrico", "menta", "viaje"],
    "pt": ["macio", "infantil", "elétrico", "menta", "viagem"],
}
_UNKNOWN = """
        ¿venden pizza? | ¿dónde compro neumáticos? | necesito un abogado laboral | ¿cambian dólares? |
        ¿reparan computadoras? | ¿hay vuelos a Cancún? | ¿quién ganó el partido? |
        quiero alquilar un departamento | ¿arreglan bicicletas? | ¿tienen cachorros en adopción? |
        quiero reservar una mesa para cenar | ¿venden vino? | ¿enseñan guitarra? |
        ¿cuál es la capital de Francia? | ¿hacen mudanzas? | ¿venden flores? | vocês vendem carros? |
        preciso de um encanador | onde fica o aeroporto? | vocês fazem bolos de casamento? |
        quero comprar uma geladeira | quem é o presidente? | vocês dão aula de inglês? |
        consertam celular? | quero alugar uma casa na praia | vocês têm ração para gato? |
        como está o trânsito? | vendem ingressos? | quero cortar o cabelo | vocês fazem tatuagem?
    """
UNKNOWN = [one.strip() for one in _UNKNOWN.split("|")]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in other words, and a part of the text that answers it."""

    words: str
    expected: str


def questions(language: str) -> list[tuple[str, str, Asked]]:
    """Return each question with its answer, and other words for it."""
    found = []
    for number, (service, synonym) in enumerate(SERVICES[language]):
        for place, (question, other, answer) in enumerate(ASPECTS[language]):
            said = question.format(service)
            reply = f"{answer.format(n=10 + number * 3 + place)} ({service})"
            found.append((said, reply, Asked(other.format(synonym), said)))
    return found


def prices(language: str) -> list[tuple[str, str, str]]:
    """Return 250 rows: product, code and price."""
    rows = []
    for product in PRODUCTS[language]:
        for brand in BRANDS:
            for kind in KINDS[language]:
                name = f"{product} {brand} {kind}"
                value = 1_000 + len(rows) * 37
                price = (
                    f"$ {value / 10:,.2f}" if language == "es" else f"R$ {value / 100:.2f}".replace(".", ",")
                )
                rows.append((name, f"{brand[:2].upper()}-{len(rows):03}", price))
    return rows


def asked_prices(language: str) -> list[Asked]:
    """Return questions about every fifth price."""
    form = "quanto está o {}?" if language == "pt" else "¿a cuánto está el {}?"
    return [Asked(form.format(name), price) for name, _, price in prices(language)[::5]]


def write(folder: Path) -> None:
    """Write the business's files."""
    folder.mkdir(parents=True, exist_ok=True)
    spanish = [f"## {question}\n\n{answer}\n" for question, answer, _ in questions("es")]
    (folder / "preguntas.md").write_text("# Preguntas frecuentes\n\n" + "\n".join(spanish), "utf-8")
    portuguese = [f"P: {question}\nR: {answer}\n" for question, answer, _ in questions("pt")]
    (folder / "perguntas.txt").write_text("\n".join(portuguese), "utf-8")
    for language, name, head in (
        ("es", "precios.csv", ("Producto", "Código", "Precio")),
        ("pt", "precos.csv", ("Produto", "Código", "Preço")),
    ):
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            rows = prices(language)
            random.Random(3).shuffle(rows)
            csv.writer(file, delimiter=";" if language == "es" else ",").writerows([head, *rows])


if __name__ == "__main__":
    write(Path(sys.argv[1]))
