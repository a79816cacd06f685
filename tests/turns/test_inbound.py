"""Which words answer a question."""

from app.turns.inbound import read_answer

ANSWERS = {
    "yes": "sí|Sí.|¡SIII!|dale 👍|va|claro que sí|ok|sim, por favor|Yes, please|👍🏽|👍👍|✔️|sip",
    "no": "no|nel|oye mejor no|cancelar|Não|don't|no la vayas a borrar|no, no la borres por favor|"
    "não apaga não|I don't want that|déjalo|nooo pará era joda|no señor|naaao para era brincadeira|👎",
    "always": "Siempre aquí",
    "trust": "Install+trust",
}
SAYS_MORE = (
    "sí, y además mándale un correo a Ana|sí pero mañana|no sé|no lo sé|no entiendo|no hay problema|"
    "no va a llover|no compré nada|nunca pagaste|no la borres, sino la otra|não quero essa mas a outra|"
    "si llueve avísame|sí 👎|👍👎|👍 y otra cosa|yes?no|🎉|¿y?|ok?|¿instalar?|👍?|👍😡||  |no problem|"
    "I don't need the lunch reminder|no quiero el recordatorio"
)


def test_a_whole_message_answers() -> None:
    for choice, texts in ANSWERS.items():
        assert {text: read_answer(text) for text in texts.split("|")} == dict.fromkeys(
            texts.split("|"), choice
        )


def test_what_says_more_answers_nothing() -> None:
    assert [text for text in (*SAYS_MORE.split("|"), "claro " * 20) if read_answer(text) is not None] == []
