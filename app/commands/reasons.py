"""The reasons why tools were chosen, in words and figures."""

from collections.abc import Mapping, Sequence

from app.commands.tables import table
from app.messages import JSON

_WHY = {
    "few": "all are offered",
    "category": "best of a chosen category",
    "always": "in every call",
    "include": "a skill asks for it",
    "words": "its words fit",
    "sibling": "of the same category",
    "kept": "the conversation has it",
    "reading": "reads the chosen skills",
}

_PARTS = {"words": "words", "meanings": "meanings", "grams": "4-grams"}

_LEAST_SHOWN = 0.005

EXPLAINED = (
    "SCORE (0 to 1) and COVERS (the share of telling words that it knows) are for the text that it fits",
    "best; BOOST is by how much its category, where that was chosen, raises the score. MADE OF: words that",
    "it knows, what others mean by the lexicon, groups of four characters, what it was called for before,",
    "less what better tools answer too.",
)


def reasons_table(reasons: Sequence[Mapping[str, JSON]], categories: Mapping[str, str] | None = None) -> str:
    """Return a table of the tools in their order, with their categories where known."""
    head = ["TOOL", "SCORE", "COVERS", "BOOST", "KEPT", "WHY", "BEST FOR", "MADE OF"]
    rows = [_row(one) for one in reasons]
    if categories is not None:
        head.insert(1, "CATEGORY")
        for row in rows:
            row.insert(1, categories.get(row[0], "-"))
    return table(head, rows)


def _row(one: Mapping[str, JSON]) -> list[str]:
    fits = one["score"] > 0
    figures = [f"{one['score']:.2f}", f"{one['coverage']:.0%}", f"{one['boost']:.2f}"] if fits else ["-"] * 3
    phrase = (one["phrase"] or "the message") if fits else "-"
    why = str(_WHY.get(one["why"], one["why"]))
    return [one["name"], *figures, "yes" if one["kept"] else "-", why, phrase, _made_of(one)]


def _made_of(one: Mapping[str, JSON]) -> str:
    """Return the parts of a score as a sum; "" for rows of earlier versions."""
    parts = {name: one["parts"][key] for key, name in _PARTS.items()} if one.get("parts") else {}
    if one.get("learned"):
        parts["learned"] = one["learned"]
    said = " + ".join(f"{name} {part:.2f}" for name, part in parts.items() if part >= _LEAST_SHOWN)
    less = sum(parts.values()) - one["score"]
    return f"{said} - {less:.2f}" if said and less >= _LEAST_SHOWN else said or "-"
