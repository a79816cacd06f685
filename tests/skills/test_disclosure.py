"""Whose texts a prompt holds, and reading the rest of a skill through tools."""

import os
from pathlib import Path
from typing import Any

import pytest

from app.skills import load_skill
from app.skills.model_tools import ALL_CHARACTERS, LARGEST_FILE, NEW_CHARACTERS, place, reading_tools
from app.skills.skill import Skill
from app.tools import ToolContext, ToolResult
from app.tools.result import MODEL_LIMIT
from tests.skills.folders import write
from tests.tools.engines import engine_of

SIZES = {"small": 100, "other": 200, "half": NEW_CHARACTERS // 2 + 1, "half2": NEW_CHARACTERS // 2 + 1}
SIZES |= {"long": ALL_CHARACTERS - 2 * SIZES["half"], "full": ALL_CHARACTERS, "huge": ALL_CHARACTERS + 1}


def test_the_texts_in_a_prompt() -> None:
    for active, chosen, shown in [
        ([], ["small", "other"], ["small", "other"]),
        ([], ["half", "half2", "small"], ["half", "small"]),
        (["half"], ["half2"], ["half", "half2"]),
        ([], ["long"], []),
        (["long"], [], ["long"]),
        (["full"], ["small"], ["small"]),
        (["small", "long", "half", "half2"], [], ["long", "half", "half2"]),
        (["small", "long", "half", "half2"], ["small"], ["small", "half", "half2"]),
        (["small", "huge"], ["huge"], ["small"]),
    ]:
        assert place(active, chosen, SIZES) == tuple(shown)


def test_files_are_listed_but_for_hidden_ones_and_those_that_we_read(tmp_path: Path) -> None:
    names = ["references/guide.md", "assets/form.txt", "scripts/run.sh", "LICENSE", "assets/phrases.yaml"]
    hidden = [".env", ".git/config", "node_modules/x.js", "scripts/__pycache__/x.pyc", "mcp.json"]
    skill = load_skill(write(tmp_path / "prose", files=dict.fromkeys([*names, *hidden], "{}")))
    for odd in (b"line\nbreak.md", b"not \xff text.md"):
        Path(os.fsdecode(os.fsencode(skill.folder) + b"/" + odd)).write_text("")
    assert skill.files == ("LICENSE", "assets/form.txt", "references/guide.md", "scripts/run.sh")


class Desk:
    """Two skills, of which one is chosen, behind an engine that asks about everything and runs nothing."""

    def __init__(self, folder: Path) -> None:
        files = {"references/guide.md": "The guide.", "references/ñandú 🐦.md": "bird", ".hidden": "secret"}
        self.skills = {
            "roses": load_skill(write(folder / "roses", body="Prune.", files=files)),
            "tea": load_skill(write(folder / "tea", body="Steep.")),
        }
        self._engine = engine_of(*reading_tools(self), mode="confirm-all", dry_run=True)

    def skill(self, name: str) -> Skill | None:
        return self.skills.get(name)

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        return await self._engine.execute_tool_call(tool, arguments, ToolContext(chosen=("roses",)))

    async def read(self, path: str, page: int = 1) -> ToolResult:
        return await self.call("read_skill_file", skill="roses", path=path, page=page)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_a_chosen_skill_is_loaded_without_a_question_and_in_a_dry_run(desk: Desk) -> None:
    result = await desk.call("load_skill", name="roses")
    files = ["references/guide.md", "references/ñandú 🐦.md"]
    assert result.data == {"skill": "roses", "instructions": "Prune.", "files": files}
    for tool, arguments in [
        ("load_skill", {"name": "tea"}),
        ("read_skill_file", {"skill": "tea", "path": "x"}),
    ]:
        assert "was not chosen" in (await desk.call(tool, **arguments)).to_json()


async def test_files_are_read_inside_the_folder_only(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "roses"
    sibling = tmp_path / "roses2"
    sibling.mkdir()
    (sibling / "x.md").write_text("not yours")
    (folder / "inner.md").symlink_to("references/guide.md")
    (folder / "to_hidden.md").symlink_to(".hidden")
    (folder / "outside.md").symlink_to(sibling / "x.md")
    (folder / "away").symlink_to(tmp_path / "tea")
    (folder / "big.md").write_text("x" * (LARGEST_FILE + 1))
    (folder / "picture.png").write_bytes(b"\x89PNG\0")
    os.mkfifo(folder / "pipe")
    refused = [
        *("../tea/SKILL.md", "/etc/passwd", str(sibling / "x.md"), "outside.md", "away/SKILL.md"),
        *("to_hidden.md", ".hidden", "references/guide.md\0.txt", "big.md"),
    ]
    for code, paths in {
        "ok": ["references/guide.md", "references/ñandú 🐦.md", "SKILL.md", "inner.md"],
        "BAD_REQUEST": refused,
        "NOT_A_FILE": ["", "references", "pipe"],
        "NOT_TEXT": ["picture.png"],
    }.items():
        for path in paths:
            result = await desk.read(path)
            assert result.code == code, path
            assert "not yours" not in result.to_json()
            assert "secret" not in result.to_json()


LINES = "".join(f"Line {number} — “quoted” ñ.\n" for number in range(4_000))


async def test_a_long_file_is_read_page_by_page(desk: Desk) -> None:
    (desk.skills["roses"].folder / "long.md").write_text(LINES, "utf-8")
    count = (await desk.read("long.md")).data["pages"]
    results = [await desk.read("long.md", page) for page in range(1, count + 1)]
    assert all(len(result.to_json(None).encode()) <= MODEL_LIMIT for result in results)
    pages = [result.data["text"] for result in results]
    assert "".join(pages) == LINES
    assert all(page.endswith("\n") for page in pages)
    assert len(pages) > 3
    assert (await desk.read("long.md", count + 1)).code == "BAD_REQUEST"
