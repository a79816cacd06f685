"""What docs/skills.md says of files, schemas and types, tried."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.skills import load_skill
from app.skills.manifest import read_manifest
from app.skills.skill import SENTENCES_FILE
from app.tools import Tool, parse_docstring
from app.tools.source import find_tools

DOCS = Path(__file__).resolve().parents[1] / "docs" / "skills.md"
STANDARD_FIELDS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}


def documented(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCS.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("code", documented("python"))
def test_the_tools_files_of_the_documentation_are_sound(code: str, tmp_path: Path) -> None:
    folder = tmp_path / "documented"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: documented\ndescription: x\n---\n")
    (folder / "scripts" / "tools.py").write_text(code)
    skill = load_skill(folder)
    assert skill.tools
    assert skill.warnings == ()


def test_the_documented_schema_is_that_of_all_three_docstring_styles() -> None:
    (wanted,) = map(json.loads, documented("json"))
    styles = [block for block in documented("python") if "def create_issue" in block]
    assert len(styles) == 3
    for code in styles:
        (found,), _ = find_tools(code)
        module: dict[str, Any] = {}
        exec(code, module)
        tool, parsed = (
            Tool.from_function(module["create_issue"]),
            parse_docstring(module["create_issue"].__doc__),
        )
        assert found.definition() == tool.get_schema()["function"] == wanted
        schema = {"inputSchema": wanted["parameters"]}
        assert tool.mcp_definition() == {"name": "create_issue", "description": "Create an issue", **schema}
        assert parsed.description == "Create an issue"
        assert parsed.params.keys() == wanted["parameters"]["properties"].keys()
    assert parse_docstring(styles[0].split('"""')[1]).returns == "The issue"


TYPES = """
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Literal
from pydantic import Field

class Size(Enum):
    SMALL = "s"
    MEDIUM = "m"
"""


def test_the_documented_types_have_the_documented_schemas() -> None:
    rows = re.findall(r"^\| `(x[^`]*)`[^|]*\| `(\{.*?\})`(.*)\|$", DOCS.read_text(), re.MULTILINE)
    assert len(rows) >= 9
    for parameter, schema, remark in rows:
        code = f'{TYPES}\ndef tool({parameter.replace(chr(92), "")}):\n    """Does it."""\n'
        (tool,), _ = find_tools(code)
        assert tool.schema["properties"]["x"] == json.loads(schema), parameter
        is_required = "=" not in parameter.replace("ge=", "").replace("le=", "")
        assert tool.schema["required"] == (["x"] if is_required else [])
        assert ("not required" in remark) <= (not is_required)


def test_the_manifests_and_phrases_of_the_documentation_are_sound() -> None:
    manifests = [block for block in documented("markdown") if block.startswith("---")]
    assert manifests
    for text in manifests:
        manifest = read_manifest(text.encode(), yaml.safe_load(text.split("---")[1])["name"])
        assert manifest.warnings == ()
        assert set(manifest.fields) <= STANDARD_FIELDS
    sentences, *others = sorted(map(yaml.safe_load, documented("yaml")), key=lambda one: "tools" not in one)
    assert SENTENCES_FILE.validate_python(sentences).keys() == sentences["tools"].keys()
    for phrases in others:
        assert all(set(languages) <= {"es", "pt", "en"} for languages in phrases.values())
