import pytest

from tests.skills.tools import Rows, age_set_aside, context, functions

TOOLS = functions("memory")
remember, recall, forget, forget_everything = (
    TOOLS[name] for name in ("remember", "recall", "forget", "forget_everything")
)


@pytest.fixture
def ana():
    return context("es", store=Rows())


def facts(here) -> list[str]:
    return [one["fact"] for one in recall(context=here)["facts"]]


def test_what_is_remembered_is_recalled(ana) -> None:
    assert remember("soy vegetariano", context=ana)["summary"] == "✓ Lo recordaré: soy vegetariano"
    remember("mi hija se llama Ana", context=ana)
    answer = recall(context=ana)
    assert answer["summary"] == "Lo que sé de ti (2):\n2. mi hija se llama Ana\n1. soy vegetariano"


@pytest.mark.parametrize("again", ["Soy vegetariano.", "  soy   VEGETARIANO ", "soy vegetariano"])
def test_the_same_fact_is_kept_once(ana, again: str) -> None:
    remember("soy vegetariano", context=ana)
    assert remember(again, context=ana)["summary"] == "Ya lo sabía: soy vegetariano"
    assert facts(ana) == ["soy vegetariano"]


@pytest.mark.parametrize(
    ("replaces", "fact", "kept"),
    [
        ("vivo en Rosario", "vivo en Córdoba", "vivo en Córdoba"),
        ("en Rosario,", "en Córdoba", "vivo en Córdoba"),
        ("rosario", "me mudé a Córdoba", "me mudé a Córdoba"),
        ("1", "vivo en Córdoba", "vivo en Córdoba"),
        ("en Rosario", "nómade", "vivo nómade"),
    ],
)
def test_a_newer_fact_takes_the_place_of_the_older(ana, replaces: str, fact: str, kept: str) -> None:
    remember("vivo en Rosario", context=ana)
    remember("soy vegetariano", context=ana)
    assert "Ya no: vivo en Rosario" in remember(fact, replaces, context=ana)["summary"]
    assert facts(ana) == [kept, "soy vegetariano"]
    assert "Rosario" not in str(ana.store.rows)


def test_a_newer_fact_is_kept_where_there_was_no_older(ana) -> None:
    assert remember("vivo en Córdoba", "vivo en Rosario", context=ana)["fact"] == "vivo en Córdoba"
    assert remember("en Lima", "trabajo en Quito", context=ana)["fact"] == "trabajo en Lima"
    assert remember("en Lima", "Quito", context=ana)["error"]["code"] == "PART_OF_A_FACT"


def test_what_only_points_at_a_fact_is_no_new_one(ana) -> None:
    assert remember("lo del maní", context=ana)["error"]["code"] == "PART_OF_A_FACT"
    remember("soy alérgico al maní", context=ana)
    assert "soy alérgico al maní" in remember("lo del maní", context=ana)["summary"]
    assert facts(ana) == ["soy alérgico al maní"]


def test_of_several_older_facts_one_has_to_be_named(ana) -> None:
    remember("mi hermana vive en Rosario", context=ana)
    remember("mi hermano vive en Rosario", context=ana)
    error = remember("viven en Lima", "Rosario", context=ana)["error"]
    assert error["code"] == "AMBIGUOUS"
    assert "1. mi hermana vive en Rosario" in error["message"]
    assert len(facts(ana)) == 2


def test_what_is_forgotten_is_gone_and_the_numbers_stay(ana) -> None:
    remember("mi dirección es Calle 5", context=ana)
    remember("soy vegetariano", context=ana)
    assert forget("lo de mi direccion", context=ana)["summary"] == (
        "✓ Olvidado: mi dirección es Calle 5. Deshacer: “recuerda que mi dirección es Calle 5”"
    )
    assert recall(context=ana)["facts"] == [{"number": 2, "fact": "soy vegetariano"}]
    assert "Calle" not in str(ana.store.rows)


@pytest.mark.parametrize(
    ("fact", "what"),
    [
        ("o ze toma cafe com leite", "o leite"),
        ("a senha do portao do ze é 4433", "o portao"),
        ("a ana é vizinha da bia", "a bia"),
        ("o Jorge gosta de bolo de cenoura", "o bolo"),
        ("a Sofia é canhota e o Jorge é diabético", "a Sofia é canhota"),
        ("Sofía es zurda y Jorge es diabético", "Sofía es zurda"),
        ("Sofia is left-handed and Jorge is diabetic", "Jorge is diabetic"),
        ("my sister works at the old bank in Leeds", "the bank"),
        ("mi hermana trabaja en el banco de Lima", "Lima"),
    ],
)
def test_a_fact_that_says_more_is_shown_with_its_number(ana, fact: str, what: str) -> None:
    remember(fact, context=ana)
    answer = forget(what, context=ana)
    assert answer["error"]["code"] == "AMBIGUOUS"
    assert answer["error"]["message"] == f"Lo que sé dice más que eso:\n1. {fact}"
    assert answer["meta"]["numbers"] == [1]
    assert facts(ana) == [fact]
    assert "Olvidado" in forget("1", context=ana)["summary"]


@pytest.mark.parametrize(
    ("fact", "what"),
    [
        ("a senha do portao do ze é 4433", "a senha do portao do ze"),
        ("mi hija menor se llama Ana Clara", "mi hija menor"),
        ("soy alérgico al maní", "lo del maní"),
        ("a Sofia é canhota e o Jorge é diabético", "a Sofia é canhota e o Jorge é diabético"),
        ("my daughter's name is Bia", "my daughter's name"),
        ("tengo 3 perros y 2 gatos", "el dato número 1"),
        ("tengo 3 perros y 2 gatos", "el último"),
    ],
)
def test_a_fact_is_forgotten_by_its_number_its_subject_or_half_of_its_words(ana, fact, what) -> None:
    remember(fact, context=ana)
    assert "Olvidado" in forget(what, context=ana)["summary"]


def test_a_place_that_is_no_fact_is_changed_elsewhere(ana) -> None:
    assert "zona horaria se guardan aparte" in forget("dónde vivo", context=ana)["error"]["message"]


def test_everything_is_forgotten_at_once(ana) -> None:
    remember("soy vegetariano", context=ana)
    remember("vivo en Lima", context=ana)
    assert forget_everything(context=ana)["count"] == 2
    assert facts(ana) == []
    remember("soy de Puebla", context=ana)
    assert "Lima" in str(ana.store.rows)  # for a week it can be remembered again
    age_set_aside(ana)
    remember("tengo un perro", context=ana)
    assert "Lima" not in str(ana.store.rows)


@pytest.mark.parametrize(
    ("fact", "code"), [("", "EMPTY_FACT"), (" \x00.", "EMPTY_FACT"), ("x" * 301, "TOO_LONG")]
)
def test_texts_that_cannot_be_facts(ana, fact: str, code: str) -> None:
    assert remember(fact, context=ana)["error"]["code"] == code


def test_there_is_a_highest_count(ana) -> None:
    ana.store.rows = {f"fact:{n:020d}:x": {"text": f"dato {n}", "created": n} for n in range(200)}
    assert remember("uno más", context=ana)["error"]["code"] == "TOO_MANY"
    assert "✓" in remember("uno en su lugar", "dato 7", context=ana)["summary"]
    assert len(str(recall(context=ana))) < 32 * 1024
