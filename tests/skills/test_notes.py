import pytest

from tests.skills.tools import functions

TOOLS = functions("notes")
save, listing, search, edit, delete, undo = (
    TOOLS[name]
    for name in ("save_note", "list_notes", "search_notes", "edit_note", "delete_note", "undo_note")
)


def texts(answer):
    return [note["text"] for note in answer["notes"]]


def test_a_saved_note_is_listed_with_a_receipt(ana) -> None:
    assert save("  comprar pan ", context=ana)["summary"] == "✓ Nota guardada: comprar pan"
    save("llamar al banco", context=ana)
    answer = listing(context=ana)
    assert answer["summary"] == "Tus notas (2 de 2):\n1. comprar pan\n2. llamar al banco"
    assert [note["number"] for note in answer["notes"]] == [1, 2]


def test_what_is_no_text_or_only_names_one_is_no_note(ana) -> None:
    for text in (
        *("", " \n\x00", "o telefone da Ivone", "a receita que te mandei", "it right this time"),
        "Ana's phone number",
    ):
        assert save(text, context=ana)["error"]["code"] == "EMPTY_NOTE"
    assert save("x" * 10_001, context=ana)["error"]["code"] == "TOO_LONG"
    for text in ("o telefone da Ivone 99812-3344", "o endereço é rua das Flores", "endereço rua das Flores"):
        assert save(text, context=ana)["saved"]


def test_notes_and_lists_of_them_are_bounded(ana) -> None:
    ana.store.rows = {f"note:{n:020d}:x": {"text": str(n), "created": n} for n in range(2000)}
    assert save("una más", context=ana)["error"]["code"] == "TOO_MANY"
    ana.store.rows = {}
    for n in range(60):
        save(f"{n} " + "x" * 9000, context=ana)
    answer = listing(1000, context=ana)
    assert len(answer["notes"]) == 50
    assert len(str(answer)) < 32 * 1024


@pytest.mark.parametrize("wanted", ["todas", "tudo"])
def test_all_notes_at_once_are_never_deleted(ana, wanted: str) -> None:
    save("comprar pan", context=ana)
    error = delete(wanted, context=ana)["error"]
    assert error["code"] == "ONE_AT_A_TIME"
    assert "de a una" in error["message"]
    assert listing(context=ana)["count"] == 1


def test_a_changed_note_keeps_its_number(ana) -> None:
    for text in ("pan", "leche"):
        save(text, context=ana)
    assert edit("pan", "pan integral", context=ana)["summary"] == "✓ Nota 1 cambiada: pan → pan integral"
    assert edit("1", "y manteca", append=True, context=ana)["number"] == 1
    assert texts(listing(context=ana)) == ["pan integral\ny manteca", "leche"]


@pytest.mark.parametrize(
    ("note", "text", "code"),
    [
        ("7", "x", "NOTE_NOT_FOUND"),
        ("pan", "x", "AMBIGUOUS"),
        ("1", " ", "EMPTY_NOTE"),
        ("1", "x" * 10_001, "TOO_LONG"),
    ],
)
def test_a_change_that_cannot_be_made_changes_nothing(ana, note: str, text: str, code: str) -> None:
    save("pan negro", context=ana)
    save("pan blanco", context=ana)
    assert edit(note, text, context=ana)["error"]["code"] == code
    assert texts(listing(context=ana)) == ["pan negro", "pan blanco"]


def test_a_note_is_meant_by_its_number_its_place_or_whole_words_of_it(ana) -> None:
    for text in ("pan", "pan integral", "pan de centeno", "las compras", "la clave es mole2024"):
        save(text, context=ana)
    for wanted, number in [
        *(("2", 2), ("la nota número 2", 2), ("la última", 5), ("pan", 1), ("integral", 2)),
        *(("la del pan de centeno", 3), ("compras", 4)),
    ]:
        assert edit(wanted, "y más", append=True, context=ana)["number"] == number
    for wanted in ("perro", "", "1" * 400, "del mole", "mole"):
        assert edit(wanted, "x", context=ana)["error"]["code"] == "NOTE_NOT_FOUND"
    assert delete("mole", context=ana)["error"]["code"] == "NOTE_NOT_FOUND"


def test_what_was_done_last_is_undone_first(ana) -> None:
    save("uno", context=ana)
    save("dos", context=ana)
    delete("1", context=ana)
    edit("2", "otra cosa", context=ana)
    undo(context=ana)
    assert texts(listing(context=ana)) == ["dos"]
    undo(context=ana)
    assert texts(listing(context=ana)) == ["uno", "dos"]
    delete("2", context=ana)
    assert undo("1", context=ana)["summary"] == "Nota 1: uno"


def test_a_deletion_of_last_week_is_forgotten_at_the_next_change(ana) -> None:
    save("secreto", context=ana)
    delete("1", context=ana)
    row = next(iter(ana.store.rows.values()))
    row["undo"]["at"] -= 8 * 24 * 3600 * 10**9
    save("otra", context=ana)
    assert "secreto" not in str(ana.store.rows)
    assert undo(context=ana)["error"]["code"] == "NOTHING_TO_UNDO"
    assert [note["number"] for note in listing(context=ana)["notes"]] == [2]


@pytest.mark.parametrize(
    ("query", "found"), [("cafe ana", ["Café con Ana el martes"]), ("nota de pan", ["comprar pan"]), ("", [])]
)
def test_search_finds_all_words_without_accents(ana, query: str, found: list[str]) -> None:
    save("comprar pan", context=ana)
    save("Café con Ana el martes", context=ana)
    assert texts(search(query, context=ana)) == found
