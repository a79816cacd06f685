"""Paths that cannot leave the workspace, and the four tools that work in it."""

import asyncio
import itertools
import os
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from app.people import Person
from app.settings import Settings
from app.tools import PathTraversalError, ToolContext, ToolResult, file_tools, validate_path
from app.tools.files import BLOCK, PAGE, Files, NoRoom
from tests.tools.engines import engine_of

MEMBER = ToolContext(person=Person("p1", "simulator"))
OTHER = ToolContext(person=Person("p2", "simulator"))
OWNER = ToolContext(person=Person("p3", "simulator", role="owner"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with links in it, and neighbours that it must not reach."""
    root = tmp_path / "work"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "kept.txt").write_text("kept")
    (tmp_path / "work-secret").mkdir()
    (tmp_path / "work-secret" / "s.txt").write_text("secret")
    (root / "out_file").symlink_to(tmp_path / "work-secret" / "s.txt")
    (root / "out_folder").symlink_to(tmp_path / "work-secret")
    (root / "in_link").symlink_to(root / "inner")
    (root / "loop").symlink_to(root / "loop")
    return root


def test_paths_that_lead_out_are_refused(root: Path) -> None:
    for path in (
        *("..", "../work-secret/s.txt", "..\\work-secret", "/etc/passwd", "out_file", "out_folder/s.txt"),
        *("C:\\Windows", "\\\\host\\share", "a\0b", "ñ" * 200, "loop/x", f"{root}-secret/s.txt"),
    ):
        with pytest.raises(PathTraversalError):
            validate_path(path, root)


def test_paths_inside_are_real_paths(root: Path) -> None:
    for path in ("inner/kept.txt", "in_link/kept.txt", "./inner//kept.txt", "año/día 日本.txt", "."):
        real = validate_path(path, root)
        assert real.is_relative_to(root.resolve())
        assert validate_path(str(real), root) == real
        if "kept" in path:
            assert real == root.resolve() / "inner" / "kept.txt"


class Bench:
    """The four tools behind an engine that asks nobody."""

    def __init__(self, root: Path, allow_delete: bool = False, dry_run: bool = False, **limits: int) -> None:
        self.engine = engine_of(*file_tools(root, allow_delete, **limits), dry_run=dry_run)

    async def __call__(self, name: str, context: ToolContext | None = None, **args: Any) -> ToolResult:
        return await self.engine.execute_tool_call(name, args, context)


async def test_write_append_read_list(root: Path) -> None:
    run = Bench(root)
    assert (await run("write_file", path="nuevo/año.txt", content="uno ñ\n")).ok
    assert (await run("write_file", path="nuevo/año.txt", content="dos\n", mode="append")).ok
    read = await run("read_file", path="nuevo/año.txt")
    assert read.data == {
        **{"path": "nuevo/año.txt", "content": "uno ñ\ndos\n", "size": 11, "more": False},
        **{"page": 1, "pages": 1, "whole": True},
    }
    assert (await run("write_file", path="nuevo/año.txt", content="tres")).ok
    assert (await run("read_file", path="nuevo/año.txt")).data["content"] == "tres"
    listed = await run("list_files", pattern="*.txt", recursive=True)
    assert [entry["path"] for entry in listed.data["entries"]] == ["inner/kept.txt", "nuevo/año.txt"]
    assert sorted(os.listdir(root / "nuevo")) == ["año.txt"]


async def test_failures_have_codes(root: Path) -> None:
    (root / "binary").write_bytes(b"\xff\x00\x01")
    os.mkfifo(root / "pipe")
    for name, args, code in [
        ("read_file", {"path": "../work-secret/s.txt"}, "BAD_REQUEST"),
        ("write_file", {"path": "out_folder/new.txt", "content": "x"}, "BAD_REQUEST"),
        ("read_file", {"path": "missing.txt"}, "NOT_FOUND"),
        ("read_file", {"path": "inner"}, "NOT_A_FILE"),
        ("read_file", {"path": "binary"}, "NOT_TEXT"),
        ("read_file", {"path": "pipe"}, "NOT_A_FILE"),
        ("write_file", {"path": "inner/kept.txt/x", "content": "x"}, "NOT_A_FILE"),
        ("write_file", {"path": "big", "content": "x" * 1_100_000}, "TOO_LARGE"),
        ("list_files", {"path": "inner/kept.txt"}, "NOT_A_FOLDER"),
        ("list_files", {"pattern": "[" * 30_000}, "BAD_REQUEST"),
        ("delete_file", {"path": "inner/kept.txt"}, "DELETE_NOT_ALLOWED"),
    ]:
        assert (await Bench(root)(name, **args)).code == code, args


async def test_a_long_text_comes_in_pages_that_end_with_a_line(root: Path) -> None:
    run = Bench(root)
    lines = [f"{n} {'x' * 90}\n" for n in range(1000)]
    (root / "long.txt").write_text("".join(lines) + "y" * 60_000)
    first = (await run("read_file", path="long.txt")).data
    assert first["content"].endswith("x\n")
    assert (first["page"], first["more"], first["whole"]) == (1, True, True)
    pages = [(await run("read_file", path="long.txt", page=n + 1)).data for n in range(first["pages"])]
    assert "".join(page["content"] for page in pages) == (root / "long.txt").read_text()
    assert max(len(page["content"]) for page in pages) <= PAGE
    assert [page["more"] for page in pages] == [True] * (len(pages) - 1) + [False]
    for page in (0, -1, first["pages"] + 1, 10**30):
        assert (await run("read_file", path="long.txt", page=page)).code == "NO_SUCH_PAGE"


async def test_deleting_where_it_is_allowed_and_a_link_leaves_what_it_leads_to(root: Path) -> None:
    (root / "shortcut").symlink_to(root / "inner" / "kept.txt")
    (root / "inner" / "back").symlink_to(root / "inner")
    run = Bench(root, allow_delete=True)
    for path in ("shortcut", "in_link/back", "in_link"):
        assert (await run("delete_file", path=path)).ok, path
        assert not (root / path).is_symlink()
    assert (root / "inner" / "kept.txt").exists()
    assert (await run("delete_file", path="out_file")).code == "BAD_REQUEST"
    assert (await run("delete_file", path="inner")).code == "NOT_A_FILE"
    assert (await run("delete_file", path="inner/kept.txt")).ok
    assert not (root / "inner" / "kept.txt").exists()


async def test_dry_run_checks_paths_and_changes_nothing(root: Path) -> None:
    run = Bench(root, dry_run=True)
    described = await run("write_file", path="x.txt", content="y")
    assert described.ok
    assert described.data == '[DRY-RUN] write_file(path="x.txt", content="y")'
    assert not (root / "x.txt").exists()
    assert (await run("write_file", path="../x.txt", content="y")).code == "BAD_REQUEST"


async def test_members_have_a_folder_of_their_own_and_owners_the_whole(root: Path) -> None:
    run = Bench(root)
    assert (await run("list_files", MEMBER)).data["entries"] == []
    assert (await run("write_file", MEMBER, path="mine.txt", content="m")).ok
    assert (root / "people" / "p1" / "mine.txt").read_text() == "m"
    assert (await run("read_file", MEMBER, path="inner/kept.txt")).code == "NOT_FOUND"
    assert (await run("read_file", MEMBER, path=str(root / "inner" / "kept.txt"))).code == "BAD_REQUEST"
    assert (await run("read_file", OWNER, path="people/p1/mine.txt")).data["content"] == "m"


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A folder in which a server lives."""
    for name in (
        *(".env", "data/admin_token", "data/mine.txt"),
        *("data/workspace/mine.txt", "skills/x/tools.py", "mine.txt"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "way_in").symlink_to(tmp_path / "data")
    return tmp_path


@pytest.mark.parametrize(
    ("workspace", "path", "opens"),
    [
        (".", "mine.txt", True),
        (".", ".env", False),
        (".", "data/admin_token", False),
        (".", "way_in/admin_token", False),
        (".", "skills/x/tools.py", False),
        ("data", "admin_token", False),
        ("data", "mine.txt", False),
        ("data/workspace", "mine.txt", True),
    ],
)
async def test_what_the_server_lives_on_is_closed_wherever_the_workspace_is(
    house: Path, workspace: str, path: str, opens: bool
) -> None:
    files = Files(house / workspace, allow_delete=True, closed=own_places(house, workspace))
    arguments = {"path": path}
    read = files.read_file(path, context=OWNER)
    assert (read.ok, read.code) == ((True, "ok") if opens else (False, "BAD_REQUEST"))
    with nullcontext() if opens else pytest.raises(PathTraversalError):
        files.check(arguments, OWNER)
    assert files.write_file(path, "new", context=OWNER).ok == opens
    assert files.delete_file(path, context=OWNER).ok == opens
    assert (house / workspace / path).exists() != opens


def test_a_link_that_leads_elsewhere_from_one_moment_to_the_next_opens_nothing_that_is_closed(
    house: Path,
) -> None:
    """A server that was granted a folder of the workspace may turn one around at any time."""
    files = Files(house, closed=own_places(house, "."))
    link, ended = house / "way", threading.Event()

    def turn_around() -> None:
        for target in itertools.cycle(("mine.txt", "data/admin_token")):
            if ended.is_set():
                return
            house.joinpath("other").symlink_to(target)
            house.joinpath("other").replace(link)

    link.symlink_to("mine.txt")
    turning = threading.Thread(target=turn_around)
    turning.start()
    try:
        read = [files.read_file("way", context=OWNER) for _ in range(500)]
    finally:
        ended.set()
        turning.join()
    assert {one.data["content"] for one in read if one.ok} == {"mine.txt"}


async def test_what_is_closed_is_not_listed_and_members_keep_their_folders(house: Path) -> None:
    files = Files(house, closed=own_places(house, "."))
    listed = files.list_files(recursive=True, context=OWNER).data["entries"]
    assert [one["path"] for one in listed] == ["mine.txt", "way_in"]
    assert files.list_files("data", context=OWNER).code == "BAD_REQUEST"
    inside = Files(house / "data", closed=own_places(house, "data"))
    assert inside.write_file("a.txt", "mine", context=MEMBER).ok


def own_places(house: Path, workspace: str) -> tuple[Path, ...]:
    settings = Settings(
        _env_file=None,
        WORKSPACE_DIR=house / workspace,
        DATA_DIR=house / "data",
        database_url=f"sqlite:///{house}/data/recado.db",
        skills_dir=house / "skills",
        mcp_config_path=house / "data" / "mcp_servers.json",
    )
    return (*settings.own_places, house / ".env")


async def test_a_members_files_have_a_quota_and_what_is_replaced_gives_its_bytes_back(root: Path) -> None:
    run = Bench(root, allow_delete=True, quota=10 * BLOCK)
    assert (await run("write_file", MEMBER, path="a/one.txt", content="x" * 6 * BLOCK)).ok
    full = await run("write_file", MEMBER, path="two.txt", content="x" * 5 * BLOCK)
    assert (full.code, (root / "people" / "p1" / "two.txt").exists()) == ("QUOTA_EXCEEDED", False)
    assert full.error is not None
    assert "0.0390625 MB" in full.error.message
    appended = await run("write_file", MEMBER, path="a/one.txt", content="x" * 5 * BLOCK, mode="append")
    assert appended.code == "QUOTA_EXCEEDED"
    assert (await run("write_file", MEMBER, path="a/one.txt", content="x" * 9 * BLOCK)).ok
    assert (await run("write_file", OTHER, path="one.txt", content="x" * 9 * BLOCK)).ok
    assert (await run("write_file", OWNER, path="one.txt", content="x" * 20 * BLOCK)).ok
    guest = ToolContext(person=Person("p9", "whatsapp", role="guest"))  # has a small part of it
    with pytest.raises(NoRoom):
        Files(root, quota=10 * BLOCK).receive("sent.pdf", b"x", guest)
    assert (await run("delete_file", MEMBER, path="a/one.txt")).ok
    assert (await run("write_file", MEMBER, path="two.txt", content="x" * 5 * BLOCK)).ok


async def test_writes_at_once_do_not_both_get_the_last_bytes(root: Path) -> None:
    run = Bench(root, quota=10 * BLOCK)
    writes = [run("write_file", MEMBER, path=f"{n}.txt", content="x" * 6 * BLOCK) for n in range(8)]
    results = await asyncio.gather(*writes)
    assert sorted(result.code for result in results) == ["QUOTA_EXCEEDED"] * 7 + ["ok"]


async def test_nothing_is_written_on_a_disk_nearly_full(root: Path) -> None:
    run = Bench(root, least_free=10**18)
    for context in (MEMBER, OWNER):
        assert (await run("write_file", context, path="one.txt", content="x")).code == "NO_SPACE"
        assert (await run("list_files", context)).ok


def test_what_writes_is_sensitive(root: Path) -> None:
    assert {tool.name: tool.sensitive for tool in file_tools(root)} == {
        "read_file": False,
        "list_files": False,
        "write_file": True,
        "delete_file": True,
    }


async def test_of_a_huge_text_only_the_beginning_is_read(root: Path) -> None:
    with (root / "huge.csv").open("wb") as file:
        file.write(b"a;b\n" * 1000)
        file.seek(10**10)
        file.write(b"end")
    (root / "large.txt").write_text("ñ" * 600_000)
    assert (await Bench(root)("read_file", path="huge.csv")).code == "NOT_TEXT"
    read = (await Bench(root)("read_file", path="large.txt")).data
    last = (await Bench(root)("read_file", path="large.txt", page=read["pages"])).data
    assert (last["whole"], last["more"], set(last["content"])) == (False, True, {"ñ"})


async def test_texts_of_other_programs_are_read(root: Path) -> None:
    for encoding in ("utf-8-sig", "cp1252", "utf-16"):
        (root / "gastos.csv").write_bytes("año;pan\r\n2026;«12,50»\r\n".encode(encoding))
        read = await Bench(root)("read_file", path="gastos.csv")
        assert read.data["content"].startswith("año;pan")
