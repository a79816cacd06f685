"""Message templates that Meta approved, as the operator lists them in DATA_DIR/templates.yaml.

    templates:
      - name: appointment
        language: es
        variables: [name, day, time]
        text: "Hola {name}, te esperamos el {day} a las {time}."

`text` is the body as Meta approved it, the variables by name in the order of {{1}}, {{2}}, …
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.channels.whatsapp.values import objects
from app.errors import RecadoError
from app.messages import Outgoing, Template

FILE = "templates.yaml"
LONGEST_VALUE = 900
_VARIABLE = re.compile(r"\{(\w+)\}")


class ListedTemplate(BaseModel):
    """One template of the file."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9_]{1,512}$")
    language: str = Field(pattern=r"^[a-z]{2,3}(_[A-Z]{2})?$")
    variables: list[str] = []
    text: str = Field(max_length=1024)

    @model_validator(mode="after")
    def _names_its_variables(self) -> "ListedTemplate":
        if set(_VARIABLE.findall(self.text)) != set(self.variables):
            raise ValueError(f"{self.name}: the text has other variables in braces than the list")
        return self

    def filled(self, values: Mapping[str, str]) -> Outgoing:
        """Return the message with these values. Raises RecadoError where one is missing or not known."""
        if set(values) != set(self.variables):
            raise RecadoError(
                f"the template {self.name} takes these values: {', '.join(self.variables) or 'none'}"
            )
        bare = {name: " ".join(str(value).split())[:LONGEST_VALUE] for name, value in values.items()}
        if empty := [name for name, value in bare.items() if not value]:
            raise RecadoError(f"the template {self.name} needs a value for {', '.join(empty)}")
        text = _VARIABLE.sub(lambda found: bare[found[1]], self.text)
        parameters = tuple(bare[name] for name in self.variables)
        return Outgoing(text, template=Template(self.name, self.language, parameters, is_filled=True))


class Templates(BaseModel):
    """The templates of a file."""

    model_config = ConfigDict(extra="forbid")

    listed: list[ListedTemplate] = Field([], alias="templates")

    def find(self, name: str, language: str = "") -> ListedTemplate:
        """Return a template, in a language if there are several. Raises RecadoError for none."""
        named = [one for one in self.listed if one.name == name]
        found = [one for one in named if one.language.split("_")[0] == language.split("_")[0]] or named[:1]
        if not found:
            known = ", ".join(sorted({one.name for one in self.listed})) or "none"
            raise RecadoError(f"there is no template {name!r}; templates.yaml has: {known}")
        return found[0]


def read_templates(data_dir: Path) -> Templates:
    """Read the file; without one there are none. Raises RecadoError for one that cannot be read."""
    file = data_dir / FILE
    try:
        written = yaml.safe_load(file.read_text("utf-8")) if file.is_file() else {}
        return Templates.model_validate(written or {})
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RecadoError(f"{file} is no list of templates: {error}") from error


def differences(listed: ListedTemplate, approved: Sequence[Mapping[str, object]]) -> str:
    """Say how a template differs from Meta's list, "" if it does not.

    `approved`: `data` of GET /{business account}/message_templates.
    """
    wanted = (listed.name, listed.language)
    same = [one for one in approved if (one.get("name"), one.get("language")) == wanted]
    if not same:
        return "Meta does not know it in this language"
    if (status := str(same[0].get("status"))) != "APPROVED":
        return f"Meta says {status}"
    components = objects(same[0].get("components"))
    bodies = [str(one.get("text")) for one in components if one.get("type") == "BODY"]
    numbered = listed.text
    for number, name in enumerate(listed.variables, 1):
        numbered = numbered.replace(f"{{{name}}}", f"{{{{{number}}}}}")
    return "" if not bodies or bodies[0] == numbered else f"Meta has another text: {bodies[0]}"
