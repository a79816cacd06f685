"""Which words answer a question."""

from app.turns.inbound import read_answer


def test_a_whole_message_answers() -> None:
    for text, choice in [
        ("sí", "yes"),
        ("Sí.", "yes"),
        ("¡SIII!", "yes"),
        ("dale 👍", "yes"),
        ("va", "yes"),
        ("claro que sí", "yes"),
        ("ok", "yes"),
        ("sim, por favor", "yes"),
        ("Yes, please", "yes"),
        ("👍🏽", "yes"),
        ("👍👍", "yes"),
        ("✔️", "yes"),
        ("no", "no"),
        ("sip", "yes"),
        ("nel", "no"),
        ("oye mejor no", "no"),
        ("cancelar", "no"),
        ("Não", "no"),
        ("don't", "no"),
        ("no la vayas a borrar", "no"),
        ("no, no la borres por favor", "no"),
        ("não apaga não", "no"),
        ("I don't want that", "no"),
        ("déjalo", "no"),
        ("nooo pará era joda", "no"),
        ("no señor", "no"),
        ("naaao para era brincadeira", "no"),
        ("👎", "no"),
        ("Siempre aquí", "always"),
        ("Install+trust", "trust"),
    ]:
        assert read_answer(text) == choice


def test_what_says_more_answers_nothing() -> None:
    for text in [
        "sí, y además mándale un correo a Ana",
        "sí pero mañana",
        "no sé",
        "no lo sé",
        "no entiendo",
        "no hay problema",
        "no va a llover",
        "no compré nada",
        "nunca pagaste",
        "no la borres, sino la otra",
        "não quero essa mas a outra",
        "si llueve avísame",
        "sí 👎",
        "👍👎",
        "👍 y otra cosa",
        "yes?no",
        "🎉",
        "¿y?",
        "ok?",
        "¿instalar?",
        "👍?",
        "👍😡",
        "",
        "  ",
        "no problem",
        "claro " * 20,
    ]:
        assert read_answer(text) is None
