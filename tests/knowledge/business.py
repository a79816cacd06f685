"""A dental clinic and its shop: 300 questions with answers and 500 prices, in Spanish and Portuguese.

Each question comes with other words for it, which share at most half of their words with it.
"""

import csv
import random
from dataclasses import dataclass
from pathlib import Path

import yaml

WORDS = yaml.safe_load(Path(__file__).with_name("business.yaml").read_text("utf-8"))
UNKNOWN: list[str] = WORDS["unknown"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in other words, and a part of the text that answers it."""

    words: str
    expected: str


def questions(language: str) -> list[tuple[str, str, Asked]]:
    """Return each question with its answer, and other words for it."""
    found = []
    for number, (service, synonym) in enumerate(WORDS["services"][language]):
        for place, (question, other, answer) in enumerate(WORDS["aspects"][language]):
            said = question.format(service)
            reply = f"{answer.format(n=10 + number * 3 + place)} ({service})"
            found.append((said, reply, Asked(other.format(synonym), said)))
    return found


def prices(language: str) -> list[tuple[str, str, str]]:
    """Return 250 rows: product, code and price."""
    rows = []
    for product in WORDS["products"][language]:
        for brand in WORDS["brands"]:
            for kind in WORDS["kinds"][language]:
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
