import pytest

from tests.skills.tools import age_set_aside, functions

TOOLS = functions("memory")
remember, recall, forget, forget_everything = (
    TOOLS[name] for name in ("remember", "recall", "forget", "forget_everything")
)


def facts(here) -> list[str]:
    return [one["fact"] for one in recall(context=here)["facts"]]


def test_what_is_remembered_is_recalled(ana) -> None:
    assert remember("soy vegetariano", context=ana)["summary"] == "✓ Lo recordaré: soy vegetariano"
    remember("mi hija se llama Ana", context=ana)
    answer = recall(context=ana)
    assert answer["summary"] == "Lo que sé de ti (2):\n2. mi hija se llama Ana\n1. soy vegetariano"


def test_a_habit_of_a_weekday_is_kept(ana) -> None:
    for habit in ("eu não como carne na sexta", "no trabajo el viernes", "I never drink on Friday"):
        remember(habit, context=ana)
        assert facts(ana)[0] == habit
    for passing in ("tengo dentista el viernes", "o Enzo tem prova sexta", "eu tava doente semana passada"):
        assert remember(passing, context=ana)["error"]["code"] == "PASSES"


def test_the_same_fact_is_kept_once(ana) -> None:
    remember("soy vegetariano", context=ana)
    for again in ("Soy vegetariano.", "  soy   VEGETARIANO "):
        assert remember(again, context=ana)["summary"] == "Ya lo sabía: soy vegetariano"
    assert facts(ana) == ["soy vegetariano"]


@pytest.mark.parametrize(
    ("replaces", "fact", "kept"),
    [
        ("vivo en Rosario", "vivo en Córdoba", "vivo en Córdoba"),
        ("en Rosario,", "en Córdoba", "vivo en Córdoba"),
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
        ("a ana é vizinha da bia", "a bia"),
        ("a Sofia é canhota e o Jorge é diabético", "a Sofia é canhota"),
        ("mi hermana trabaja en el banco de Lima", "Lima"),
        ("my son is called David and his birthday is 12 March", "David's birthday"),
        ("minha neta Bia calça 34 e veste 12", "a Bia veste 12"),
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
        ("soy alérgico al maní", "lo del maní"),
        ("my daughter's name is Bia", "my daughter's name"),
        ("tengo 3 perros y 2 gatos", "el dato número 1"),
        ("tengo 3 perros y 2 gatos", "el último"),
    ],
)
def test_a_fact_is_forgotten_by_its_number_its_subject_or_half_of_its_words(ana, fact, what) -> None:
    remember(fact, context=ana)
    assert "Olvidado" in forget(what, context=ana)["summary"]


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


def test_there_is_a_highest_count(ana) -> None:
    ana.store.rows = {f"fact:{n:020d}:x": {"text": f"dato {n}", "created": n} for n in range(200)}
    assert remember("uno más", context=ana)["error"]["code"] == "TOO_MANY"
    assert "✓" in remember("uno en su lugar", "dato 7", context=ana)["summary"]
    assert len(str(recall(context=ana))) < 32 * 1024
