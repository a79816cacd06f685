import pytest

from tests.skills.tools import code, functions

TOOLS = functions("lists")
add, check, take, show, delete = (
    TOOLS[name] for name in ("add_to_list", "check_off", "take_off_list", "show_list", "delete_list")
)


@pytest.fixture
def trip(ana):
    """Ana with a shopping list and one for a trip, which is in use."""
    add(["leche entera", "leche de coco", "pan"], "del súper", context=ana)
    add(["cargador", "pasaporte", "pan dulce"], "viaje", context=ana)
    return ana


def test_things_are_put_on_shown_checked_off_and_taken_off(ana) -> None:
    put = add(["leche", "los huevos", "2 kg de arroz"], "la lista del súper", context=ana)
    assert put["summary"] == "✓ En la lista Súper: leche, huevos, 2 kg de arroz"
    bought = check(["la leche"], context=ana)
    assert bought["summary"] == "✓ Tachado de la lista Súper: leche\nFalta: huevos, 2 kg de arroz"
    assert take(["ARROZ"], context=ana)["summary"] == (
        "✓ Quitado de la lista Súper: 2 kg de arroz. Deshacer: “agrega 2 kg de arroz a la lista de Súper”"
    )
    shown = show(context=ana)
    assert shown["summary"] == "Súper (falta 1):\n1. huevos\n\n✓ leche"
    assert (shown["open"], shown["done"]) == (["huevos"], ["leche"])
    assert check(["todo"], context=ana)["summary"] == "✓ Tachado de la lista Súper: huevos\nYa está todo."


@pytest.mark.parametrize(
    ("had", "said", "kept", "summary"),
    [
        ("leche", "Léche ", "leche", "Ya estaba en la lista Compras: leche"),
        ("2 kg de arroz", "arroz", "2 kg de arroz", "Ya estaba en la lista Compras: 2 kg de arroz"),
        ("arroz", "2 kg de arroz", "2 kg de arroz", "✓ En la lista Compras: 2 kg de arroz\nAntes: arroz"),
    ],
)
def test_the_same_thing_is_on_a_list_once_with_the_amount_said_last(had, said, kept, summary, ana) -> None:
    add([had], context=ana)
    told = add([said], context=ana)
    assert (told["summary"], told["open"]) == (summary, [kept])


def test_a_part_of_an_amount_changes_nothing(ana) -> None:
    for had, said in (("3 jabones", "1 jabón"), ("2 kg de papa", "1 kg de papa")):
        add([had, "pan"], context=ana)
        for act in (check, take):
            told = act([said], context=ana)["error"]
            assert (told["code"], had in told["hint"]) == ("NOT_FOUND", True)
        assert had in check([had], context=ana)["done"]


def test_a_list_is_found_by_what_is_on_it_or_by_being_in_use(trip) -> None:
    assert add(["suéter"], context=trip)["list"] == "Viaje"
    assert check(["leche de coco"], context=trip)["list"] == "Súper"
    assert check(["pan"], context=trip)["done"] == ["leche de coco", "pan"], "the list used last"
    assert check(["cargador"], context=trip)["summary"].startswith("✓ Tachado de la lista Viaje: cargador")
    assert check(["leche entera"], "viaje", context=trip)["error"]["code"] == "NOT_FOUND"


def test_things_are_meant_by_place_and_what_is_unclear_is_asked(trip) -> None:
    assert check(["el segundo", "1"], "súper", context=trip)["open"] == ["pan"]
    assert take(["el último"], "viaje", context=trip)["open"] == ["cargador", "pasaporte"]
    check(["leche entera", "leche de coco"], "súper", done=False, context=trip)
    assert code(check(["leche"], "súper", context=trip)) == "AMBIGUOUS"
    assert code(check(["it"], "súper", context=trip)) == "AMBIGUOUS"
    only = check(["entera"], "súper", context=trip)["error"]["message"]
    assert only == "Encontré:\n1. leche entera", "one is not several"
    assert add(["banana"], "lista da feira", context=trip)["list"] == "Feira", "a market of its own"
    told = check(["pan", "leche", "caviar"], "súper", context=trip)["summary"].splitlines()
    assert told[2:] == ["No encontré: caviar", "¿Cuál? «leche»: leche entera, leche de coco"]
    add(["sal"], "súper", context=trip)
    add(["sal"], "viaje", context=trip)
    add(["globos"], "fiesta", context=trip)
    assert "• Súper: sal\n• Viaje: sal" in check(["sal"], context=trip)["error"]["message"]


@pytest.mark.parametrize("said", ["platos a la fiesta", "pratos na festa", "plates to the party"])
def test_a_thing_may_end_with_the_name_of_a_list_that_exists(said: str, trip) -> None:
    first, last = said.split()[0], said.split()[-1]
    kept = add([said], "súper", context=trip)
    assert kept["open"][-1] == said  # there is no such list
    add(["hielo"], last, context=trip)
    assert add([said], "súper", context=trip)["open"] == ["hielo", first]
    assert add(["té", said], context=trip)["open"] == ["hielo", first, "té"]


def test_a_whole_list_goes_only_by_its_name(trip) -> None:
    assert code(take(["todo"], "viaje", context=trip)) == "ALL_AT_ONCE"
    check(["cargador"], "viaje", context=trip)
    assert take(["done"], "viaje", context=trip)["open"] == ["pasaporte", "pan dulce"]
    assert code(delete("la lista", context=trip)) == "EMPTY_NAME"
    check(["pasaporte"], "viaje", context=trip)
    assert delete("el mandado", context=trip)["error"]["message"] == "No tienes ninguna lista «mandado»."
    told = delete("la lista de viaje", context=trip)["summary"]
    assert told.startswith("✓ Lista borrada con todo")
    assert told.endswith("(lo tachado vuelve sin tachar)")
    assert show("todas mis listas", context=trip)["summary"] == "Tus listas:\n• Súper: 3 por tachar"
    assert code(show("viaje", context=trip)) == "LIST_NOT_FOUND"
    assert add(["llaves"], "viaje", context=trip)["open"] == ["llaves"]


def test_what_does_not_fit_is_refused(ana) -> None:
    assert code(add([], context=ana)) == "EMPTY"
    assert code(add([" ", "¡!"], context=ana)) == "EMPTY"
    assert code(add(["x" * 201], context=ana)) == "TOO_LONG"
    assert code(add(["x"], "y" * 61, context=ana)) == "TOO_LONG"
    assert len(add([f"cosa{n}" for n in range(200)], context=ana)["open"]) == 200
    assert code(add(["una más"], context=ana)) == "TOO_MANY"
    assert add(["cosa7"], context=ana)["summary"].startswith("Ya estaba")
    for number in range(49):
        add([], f"lista número {number}", context=ana)
    assert code(add(["x"], "otra", context=ana)) == "TOO_MANY"


def test_a_number_means_what_it_stood_at_when_the_list_was_last_shown(ana) -> None:
    add(["uno", "dos", "tres", "cuatro"], "cosas", context=ana)
    assert show("cosas", context=ana)["numbers"] == [1, 2, 3, 4]
    take(["2"], "cosas", context=ana)
    take(["3"], "cosas", context=ana)
    add(["cinco"], "cosas", context=ana)
    check(["5"], "cosas", context=ana)
    assert show("cosas", context=ana)["summary"].splitlines()[1:] == ["1. uno", "2. cuatro", "", "✓ cinco"]
    assert show("cosas", context=ana)["numbers"] == [1, 2]


def test_two_things_are_found_although_an_and_is_within_one(ana) -> None:
    add(["salt and vinegar chips", "paper towels", "milk"], context=ana)
    assert take(["salt and vinegar chips and paper towels"], context=ana)["open"] == ["milk"]


def test_laughter_is_left_out_and_a_word_that_looks_like_it_is_not(ana) -> None:
    put = add(["jam jars", "pan jajaja"], context=ana)
    assert put["summary"] == "✓ En la lista Compras: jam jars, pan"
