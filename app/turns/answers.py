"""The words that answer a question, in three languages: only where they are the whole message."""

import re
import unicodedata

from app.store.approvals import Choice

_PHRASES: dict[Choice, str] = {
    "yes": """
        y, yes, yes please, yep, yeah, yup, sure, ok, okay, okey, alright, go ahead, do it, please do,
        of course, fine, confirm, confirmed, approve, approved, accept, install, install it,
        s, si, si por favor, si claro, si dale, si hazlo, claro, claro que si, simon, dale, ok dale, va,
        vale, va que va, sale, orale, andale, por supuesto, hazlo, adelante, de acuerdo, bueno, perfecto,
        listo, sip, obvio, si obvio, confirmo, confirmar, confirmado, acepto, aceptar, apruebo, instalar,
        instala, instalalo,
        sim, sim por favor, claro que sim, pode, pode sim, pode ser, pode instalar, isso, beleza, blz,
        com certeza, faca, por favor, ta, ta bom, tudo bem, certo, fechado, confirma, aceito, aceitar,
        aprovo, bora
    """,
    "no": """
        n, no, nope, nah, no thanks, no thank you, dont, do not, dont do it, do not do it, cancel,
        cancelled, reject, decline, never,
        nel, nel pastel, no gracias, mejor no, para nada, ni hablar, nunca, cancela, cancelar, cancelalo,
        cancelado, rechazo, rechazar, no lo hagas, todavia no, ahora no, nop, no mejor no, oye mejor no,
        mejor ya no, ya no,
        nao, nem, nao obrigado, nao obrigada, de jeito nenhum, melhor nao, cancele, rejeito, rejeitar,
        recuso, nao faca, agora nao, ainda nao
    """,
    "always": "always, always here, siempre, siempre aqui, sempre, sempre aqui",
    "trust": "install trust, install and trust, instalar confiar, instalar y confiar, instalar e confiar",
}
_SIGNS: dict[str, Choice] = {
    **dict.fromkeys("👍👌✅✔☑🆗🙆🫡", "yes"),
    **dict.fromkeys("👎❌✖🚫🛑🙅⛔", "no"),
}
_LONGEST = 40


def read_answer(text: str) -> Choice | None:
    """The choice that a whole message stands for, None where it says anything else or more."""
    if len(text) > _LONGEST or "?" in text or (not text.isascii() and any(map(_says_else, text))):
        return None
    words = _plain(text)
    said = {_SIGNS[c] for c in text if c in _SIGNS} | ({_CHOICES.get(words)} if words else set())
    return said.pop() if len(said) == 1 else None


def _says_else(sign: str) -> bool:
    """A question mark, or a picture that is neither a yes nor a no: 👍 beside 😡 is no answer."""
    return sign == "¿" or (unicodedata.category(sign) == "So" and sign not in _SIGNS)


def _plain(text: str) -> str:
    """Lower case, without accents and punctuation, one space between words; "siii" is "si"."""
    bare = text.casefold()
    if not bare.isascii():
        bare = "".join(c for c in unicodedata.normalize("NFD", bare) if not unicodedata.combining(c))
    return re.sub(r"([a-z])\1{2,}", r"\1", " ".join(re.findall(r"[^\W_]+", bare.replace("'", ""))))


_CHOICES: dict[str, Choice] = {
    _plain(phrase): choice for choice, phrases in _PHRASES.items() for phrase in phrases.split(",")
}
