"""What a skill says, in the language of the person who asked; tools of skills may import it."""

from collections.abc import Mapping

from app.messages import JSON
from app.tools.context import ToolContext

Table = Mapping[str, Mapping[str, str]]
"""Language → name of a sentence → the sentence, with `{values}`."""


class Sentences:
    """A skill's sentences in one `language`; English where the table has none in the person's."""

    def __init__(self, table: Table, context: ToolContext | None) -> None:
        language = context.person.language if context is not None and context.person is not None else "en"
        self.language = language if language in table else "en"
        self._said = table[self.language]

    def __call__(self, name: str, /, **values: object) -> str:
        return self._said[name].format(**values)

    def failed(self, name: str, /, *, code: str = "", hint: str = "", **values: object) -> dict[str, JSON]:
        """A failed result: the sentence `name`, which is its code too, with the one named `hint_<name>`.

        `code`: another one than the name; `hint`: another one than the table's, in the person's language.
        """
        hint = hint or self._said.get(f"hint_{name}", "").format(**values)
        return {"ok": False, "error": {"code": code or name, "message": self(name, **values), "hint": hint}}


def cut(text: str, limit: int = 200) -> str:
    """A text on one line, of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
