"""Lists with numbers that stay, as tools of skills keep them."""

from app.tools.authoring import Ledger, meant
from tests.limits import limited
from tests.skills.tools import Rows

NOUNS = {"nota", "notas"}


def ledger(rows: Rows, *texts: str) -> Ledger:
    made = Ledger(rows, "thing:", most_rows=5)
    for text in texts:
        made.add(text=text)
    return made


def test_one_is_meant_by_number_place_or_words() -> None:
    for wanted, found in [
        ("2", [2]),
        ("la nota número 2", [2]),
        ("la última", [4]),
        ("pan", [1]),
        ("integral", [2]),
        ("la del pan de centeno", [3]),
        ("compras", [4]),
        ("perro", []),
        ("", []),
        ("1" * 400, []),
    ]:
        things = ledger(Rows(), "pan", "pan integral", "pan de centeno", "las compras")
        assert [entry.number for entry in meant(things.entries, wanted, NOUNS)] == found


def test_what_is_looked_for_is_read_up_to_a_limit() -> None:
    entries = ledger(Rows(), *(f"1 {number}" for number in range(200))).entries
    with limited():
        assert meant(entries, "1+1 " * 8_000 + "x") == entries
