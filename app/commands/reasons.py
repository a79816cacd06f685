"""Why each tool was chosen, in words and figures."""

from collections.abc import Mapping, Sequence

from app.commands.tables import table
from app.messages import JSON

_WHY = {
    "few": "all are offered",
    "category": "best of a chosen category",
    "always": "in every call",
    "include": "a skill asks for it",
    "words": "its words fit",
    "sibling": "of a chosen category",
    "kept": "the conversation has it",
    "filling": "there was room",
    "reading": "reads the chosen skills",
}

EXPLAINED = (
    "SCORE (0 to 1) and COVERS (the share of telling words that it knows) are for the text that it fits",
    "best; BOOST is by how much its category, where that was chosen, raises the score.",
)


def reasons_table(reasons: Sequence[Mapping[str, JSON]], categories: Mapping[str, str] | None = None) -> str:
    """The tools in their order; their `categories` where they are known."""
    head = ["TOOL", "SCORE", "COVERS", "BOOST", "KEPT", "WHY", "BEST FOR"]
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
    return [one["name"], *figures, "yes" if one["kept"] else "-", _WHY.get(one["why"], one["why"]), phrase]
