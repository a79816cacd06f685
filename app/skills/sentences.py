"""Read what a skill's author wrote for people about its tools: `assets/sentences.yaml`."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from app.messages import JSON

Text = Annotated[str, StringConstraints(min_length=1, max_length=300)]
InLanguages = dict[str, Text]


class ToolSentences(BaseModel):
    """Sentences about one tool, by language.

    `ask` is the question on a card before a call, with `{argument}` for its values. When the argument `by`
    has another value than `usual`, the question is that of `cases` for this value. `source` names the text
    of others in its results. `arguments` are words for the arguments that the question leaves out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ask: InLanguages = Field(default_factory=dict)
    by: str = ""
    usual: Any = None
    cases: dict[str, InLanguages] = Field(default_factory=dict)
    source: InLanguages = Field(default_factory=dict)
    arguments: dict[str, InLanguages] = Field(default_factory=dict)

    def question(self, language: str, arguments: Mapping[str, JSON]) -> str:
        """Return the question about a call, "" when there are no words for it."""
        value = arguments.get(self.by, self.usual) if self.by else self.usual
        written = self.ask if value == self.usual else self.cases.get(str(value).lower(), {})
        return in_language(written, language)


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    tools: dict[str, ToolSentences] = Field(default_factory=dict)
    arguments: dict[str, InLanguages] = Field(default_factory=dict)  # shared by all tools

    def of_tools(self) -> dict[str, ToolSentences]:
        """Return the sentences by tool, each with the shared words for arguments."""
        return {
            name: one.model_copy(update={"arguments": {**self.arguments, **one.arguments}})
            for name, one in self.tools.items()
        }


# Reads a file as the sentences of each tool.
SENTENCES_FILE: TypeAdapter[Any] = TypeAdapter(Annotated[_File, AfterValidator(_File.of_tools)])


def in_language(written: Mapping[str, str], language: str) -> str:
    """Return the text in a language, else in English, else in any; "" when there is none."""
    return written.get(language) or written.get("en") or next(iter(written.values()), "")
