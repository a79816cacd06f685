"""What a skill says, in the language of the person who asked; tools of skills may import it."""

from collections.abc import Mapping

from app.messages import JSON
from app.tools.context import ToolContext

Table = Mapping[str, Mapping[str, str]]
"""Language → name of a sentence → the sentence, with `{values}`."""


class Sentences:
    """A skill's sentences in one language; English where the table has none in the person's."""

    def __init__(self, table: Table, context: ToolContext | None) -> None:
        language = context.person.language if context is not None and context.person is not None else "en"
        self._said = table.get(language, table["en"])

    def __call__(self, name: str, /, **values: object) -> str:
        return self._said[name].format(**values)

    def failed(self, code: str, /, **values: object) -> dict[str, JSON]:
        """A failed result: the sentence named by the code, and as a hint the one named `hint_<code>`."""
        hint = self._said.get(f"hint_{code}", "").format(**values)
        return {"ok": False, "error": {"code": code, "message": self(code, **values), "hint": hint}}


def cut(text: str, limit: int = 200) -> str:
    """A text on one line, of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
