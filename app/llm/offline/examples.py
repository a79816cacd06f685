"""What a person could write for a tool, to show by example."""

import re
from collections.abc import Sequence

from app.i18n import detect_language
from app.llm.offline.answers import sample
from app.llm.offline.offers import Offer
from app.llm.offline.templates import IT, SAME
from app.search.words import fold, without_given

_TAKES_AWAY = re.compile(
    r"\b(?:borr|elimin|cancel|quit|sac|olvid|apag|exclu|delet|tir|esquec|remov|eras|clear|forget|stop|desinstal"
    r"|uninstall|limp|vacia|zera|wipe|empty|desfa|desha|undo|pospon|adia|snooze|nada|nothing)\w*\b"
)


def example_of(offer: Offer, listed: Sequence[str], language: str) -> str:
    """A phrase in the language as a whole message: without slots, or with each filled by a sample."""
    filled = {one.name: sample(one, language) for one in offer.parameters}
    wanted = any(filled[one.name] for one in offer.required)
    whole = (phrase for phrase in listed if not any(f"={one}}}" in phrase for one in (IT, SAME)))
    for phrase in map(without_given, whole):
        slots = re.findall(r"\{(\w+)\}", phrase)
        spoken = detect_language(re.sub(r"\{\w+\}", "", phrase)) == language
        if _TAKES_AWAY.search(fold(phrase)):
            continue  # nobody tries that first
        if spoken and bool(slots) == wanted and all(filled.get(slot) for slot in slots):
            return re.sub(r"\{(\w+)\}", lambda slot: filled[slot[1]], phrase)
    return ""
