"""Read what a skill's author wrote for people about its tools: `assets/sentences.yaml`."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from app.messages import JSON

FILE = "assets/sentences.yaml"
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


Sentences = Mapping[str, ToolSentences]


def read_sentences(value: JSON, tools: Collection[str]) -> tuple[Sentences, list[str]]:
    """Return the sentences of these tools, and warnings about what cannot be used."""
    try:
        file = _File.model_validate(value)
    except ValidationError as error:
        return {}, [f"{FILE} is left out: {describe_fault(error)}"]
    unknown = [name for name in file.tools if name not in tools]
    sentences = {
        name: one.model_copy(update={"arguments": {**file.arguments, **one.arguments}})
        for name, one in file.tools.items()
    }
    return sentences, [f"{FILE} names the tool {name!r}, which there is not" for name in unknown]


def describe_fault(error: ValidationError) -> str:
    """Say where a file of an author has its first fault, and which."""
    fault = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"


def in_language(written: Mapping[str, str], language: str) -> str:
    """Return the text in a language, else in English, else in any; "" when there is none."""
    return written.get(language) or written.get("en") or next(iter(written.values()), "")
