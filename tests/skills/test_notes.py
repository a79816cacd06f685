from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.skills.tools import Rows, context, functions

TOOLS = functions("notes")
save, listing, search, delete = (
    TOOLS[name] for name in ("save_note", "list_notes", "search_notes", "delete_note")
)


@pytest.fixture
def ana():
    return context("es", store=Rows())


def texts(answer):
    return [note["text"] for note in answer["notes"]]


def test_a_saved_note_is_listed_with_a_receipt(ana) -> None:
    assert save("  comprar pan ", context=ana)["summary"] == "✓ Nota guardada: comprar pan"
    save("llamar al banco", context=ana)
    answer = listing(context=ana)
    assert answer["summary"] == "Tus notas (2 de 2):\n2. llamar al banco\n1. comprar pan"
    assert [note["number"] for note in answer["notes"]] == [2, 1]


@pytest.mark.parametrize(
    ("language", "receipt", "empty"),
    [
        ("es", "✓ Nota guardada: x", "No tienes notas todavía."),
        ("pt", "✓ Nota salva: x", "Você ainda não tem notas."),
        ("en", "✓ Note saved: x", "You have no notes yet."),
        ("fr", "✓ Note saved: x", "You have no notes yet."),
    ],
)
def test_answers_are_in_the_persons_language(language: str, receipt: str, empty: str) -> None:
    here = context(language, store=Rows())
    assert listing(context=here)["summary"] == empty
    assert save("x", context=here)["summary"] == receipt


def test_one_person_never_sees_anothers_notes(ana) -> None:
    save("secreto", context=ana)
    assert listing(context=context(store=Rows()))["count"] == 0


def test_numbers_stay_when_another_note_is_deleted(ana) -> None:
    for text in ("uno", "dos", "tres"):
        save(text, context=ana)
    assert delete("2", context=ana)["summary"] == "✓ Nota 2 borrada: dos"
    save("cuatro", context=ana)
    assert [(note["number"], note["text"]) for note in listing(context=ana)["notes"]] == [
        (4, "cuatro"),
        (3, "tres"),
        (1, "uno"),
    ]
    assert "dos" not in str(ana.store.rows)


def test_notes_saved_at_the_same_moment_are_all_kept(ana) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: save(f"nota {n}", context=ana), range(40)))
    answer = listing(50, context=ana)
    assert answer["count"] == 40
    assert len({note["number"] for note in answer["notes"]}) == 40


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("pan", ["comprar pan"]),
        ("CAFÉ", ["Café con Ana el martes"]),
        ("cafe ana", ["Café con Ana el martes"]),
        ("nota de pan", ["comprar pan"]),
        ("an", ["Café con Ana el martes", "comprar pan"]),
        ("perro", []),
        ("", []),
    ],
)
def test_search_finds_all_words_without_accents(ana, query: str, found: list[str]) -> None:
    save("comprar pan", context=ana)
    save("Café con Ana el martes", context=ana)
    assert texts(search(query, context=ana)) == found


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        ("1", ["leche", "pan integral"]),
        ("#1", ["leche", "pan integral"]),
        ("la nota 2", ["leche", "pan"]),
        ("nota 3", ["pan integral", "pan"]),
        ("leche", ["pan integral", "pan"]),
        ("la última", ["pan integral", "pan"]),
        ("last", ["pan integral", "pan"]),
        ("integral", ["leche", "pan"]),
        ("pan", ["leche", "pan integral"]),
    ],
)
def test_a_note_is_deleted_by_number_words_or_last(ana, wanted: str, left: list[str]) -> None:
    for text in ("pan", "pan integral", "leche"):
        save(text, context=ana)
    assert "✓" in delete(wanted, context=ana)["summary"]
    assert texts(listing(context=ana)) == left


def test_an_ambiguous_deletion_asks_and_deletes_nothing(ana) -> None:
    save("pan negro", context=ana)
    save("pan blanco", context=ana)
    error = delete("pan", context=ana)["error"]
    assert error["code"] == "AMBIGUOUS"
    assert "1. pan negro" in error["message"]
    assert "2. pan blanco" in error["message"]
    assert listing(context=ana)["count"] == 2


@pytest.mark.parametrize("wanted", ["7", "nada", "0", "1" * 500])
def test_an_unknown_note_is_named(ana, wanted: str) -> None:
    save("pan", context=ana)
    assert delete(wanted, context=ana)["error"]["code"] == "NOTE_NOT_FOUND"


@pytest.mark.parametrize(
    ("text", "code"), [("", "EMPTY_NOTE"), (" \n\x00", "EMPTY_NOTE"), ("x" * 10_001, "TOO_LONG")]
)
def test_texts_that_cannot_be_notes(ana, text: str, code: str) -> None:
    assert save(text, context=ana)["error"]["code"] == code


def test_there_is_a_highest_count(ana) -> None:
    ana.store.rows = {f"note:{n:020d}:x": {"text": str(n), "created": n} for n in range(2000)}
    assert save("una más", context=ana)["error"]["code"] == "TOO_MANY"
    delete("5", context=ana)
    assert "✓" in save("una más", context=ana)["summary"]


def test_thousands_of_deleted_notes_make_room(ana) -> None:
    ana.store.rows = {f"note:{n:020d}:x": {"deleted": True} for n in range(4000)}
    save("primera", context=ana)
    assert [note["number"] for note in listing(context=ana)["notes"]] == [1]


def test_a_long_list_is_bounded(ana) -> None:
    for n in range(60):
        save(f"{n} " + "x" * 9000, context=ana)
    answer = listing(1000, context=ana)
    assert len(answer["notes"]) == 50
    assert len(str(answer)) < 32 * 1024


def test_without_a_person_there_are_no_notes() -> None:
    for answer in (save("x"), listing(), search("x"), delete("1")):
        assert answer["error"]["code"] == "NO_PERSON"


@pytest.mark.parametrize("wanted", ["", "todas", "tudo", "all my notes"])
def test_all_notes_at_once_are_never_deleted(ana, wanted: str) -> None:
    save("comprar pan", context=ana)
    error = delete(wanted, context=ana)["error"]
    assert error["code"] == "ONE_AT_A_TIME"
    assert "de a una" in error["message"]
    assert listing(context=ana)["count"] == 1
