"""An author's first steps, as a person takes them: in a shell and in a chat."""

import json
import re
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.skills.folders import write
from tests.test_authoring import lamps
from tests.test_cli import House

pytestmark = pytest.mark.slow


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path, {"SKILLS_DIR": "mine"})


def test_from_nothing_to_a_tool_that_answers(house: House) -> None:
    made = house.call("skills", "new", "groceries").stdout
    assert "works from the next message on" in made
    assert "0 with faults" in house.call("skills", "check", "mine/groceries").stdout
    assert re.search(
        r"^groceries +own process +add_to_groceries, show_groceries +ready$", _listed(house), re.M
    )
    assert re.search(
        r"^add_to_groceries +groceries", house.call("route", "add milk to groceries").stdout, re.M
    )
    typed = ["add milk to groceries", "put bread on the list groceries", "what is on groceries?"]
    typed += ["¿qué hay en groceries?", ""]
    answers = house.run("chat", typed="\n".join(typed)).stdout
    assert "✓ On the list: milk" in answers
    assert "On the list: milk, bread." in answers
    assert "En la lista: milk, bread." in answers
    with sqlite3.connect(house.folder / "data" / "recado.db") as database:
        traced = database.execute("SELECT DISTINCT catalog FROM model_calls").fetchall()
    assert traced == [(json.loads(house.call("catalog", "--json").stdout)["hash"],)]
    assert "read_skill_file" not in house.call("route", "add milk to groceries").stdout
    assert "is kept in" in house.call("skills", "remove", "groceries").stdout
    assert "groceries" not in _listed(house)


def test_adding_and_removing_say_what_came_of_it(house: House) -> None:
    lamps(house.folder / "elsewhere")
    manifest = "elsewhere/lamps/SKILL.md"  # as a shell completes it: its folder is meant
    assert "1 checked, 0 with faults" in house.call("skills", "check", manifest).stdout
    added = house.call("skills", "add", manifest).stdout
    assert "Added lamps to " in added
    assert "tool: switch_lamp" in added
    assert "take that one out first" in house.call("skills", "add", "elsewhere/lamps", status=1).stderr
    for place in ("elsewhere", "mine"):
        assert "SKILL.md cannot be read" in house.call("skills", "add", place, status=1).stderr
    for name, refused in (
        ("notes", "no skill of yours"),
        ("nothing", "no skill of yours is named 'nothing'; there are: lamps"),
        (".", "no skill of yours"),
    ):
        assert refused in house.call("skills", "remove", name, status=1).stderr
    (house.folder / "mine" / "lights").symlink_to(lamps(house.folder / "elsewhere", "lights"))
    house.call("skills", "remove", "lights")
    assert (house.folder / "elsewhere" / "lights" / "SKILL.md").exists()  # of a link only the link goes
    house.call("skills", "remove", "lamps")
    assert not list((house.folder / "mine").iterdir())
    assert len(list((house.folder / "data" / "skills-removed").iterdir())) == 2
    own_notes = str(lamps(house.folder / "elsewhere", "notes"))
    assert "there is a skill 'notes' already" in house.call("skills", "add", own_notes, status=1).stderr


def test_an_address_is_refused_in_its_own_words(house: House) -> None:
    for address, words in (
        ("https://example.org/skill", "run this in a terminal"),
        ("http://localhost/skill", "this machine or its own network"),
        ("http://[::1]/skill", "this machine or its own network"),
        ("http://2130706433/", "this machine or its own network"),
        ("https://10.1.2.3/skill", "this machine or its own network"),
        ("http://169.254.169.254/latest/", "this machine or its own network"),
        ("file:///etc", "only http and https"),
        ("git@example.org:some/skill", "only http and https"),
    ):
        assert words in house.call("skills", "add", address, status=1).stderr


def breaks_down(house: House, code: str) -> Path:
    """Drop a skill whose tool runs unasked, also after it died; return its file."""
    front = "metadata:\n  idempotent-tools: break_down\n  read-only-tools: break_down\n"
    phrases = {"assets/phrases.yaml": "break_down:\n  en: [break down]\n"}
    return write(house.folder / "mine" / "lamps", code, front=front, files=phrases) / "scripts" / "tools.py"


def test_a_skill_that_the_server_set_aside_is_listed_so_until_it_is_mended(house: House) -> None:
    code = 'def break_down():\n    """Breaks down."""\n    __import__("os")._exit(3)\n'
    tools = breaks_down(house, code)
    house.run("chat", typed="break down\n" * 3)
    assert re.search(r"^lamps .*set aside after 3 failures in a row", _listed(house), re.MULTILINE)
    tools.write_text(code.replace('__import__("os")._exit(3)', "return 'mended'"))
    house.run("chat", typed="break down\n")
    assert re.search(r"^lamps .*ready$", _listed(house), re.MULTILINE)


def test_a_folder_that_cannot_be_written_or_is_mounted_read_only_is_named(house: House) -> None:
    place = house.folder / "mine"
    place.write_text("no folder")
    (line,) = house.call("skills", "new", "groceries", status=1).stderr.splitlines()
    assert "mine" in line
    place.unlink()
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "recado-test", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a disk")
    try:
        (line,) = house.call("skills", "new", "groceries", status=1).stderr.splitlines()
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
    assert "Read-only file system; give this account the folder" in line


def test_the_check_names_what_is_permissive_what_is_lacking_and_what_runs_a_script(house: House) -> None:
    folder = lamps(house.folder / "elsewhere", "pdf")
    (folder / "scripts" / "tools.py").rename(folder / "scripts" / "fill_form.py")
    report = house.call("skills", "check", str(folder)).stdout
    assert "script: scripts/fill_form.py (python3) runs in the sandbox, after a yes" in report
    folder = lamps(house.folder / "mine", "lamps")
    (folder / "scripts" / "tools.py").write_text(
        "import surely_not_installed\n\n"
        'def switch_lamp(room):\n    """Switches."""\n\n'
        "def bare():\n    pass\n"
    )
    report = house.call("skills", "check").stdout
    assert "warning: switch_lamp: room: " in report
    assert "left out: bare has no docstring" in report
    assert "surely_not_installed" in report
    assert "surely_not_installed" in _listed(house)


def test_the_check_of_one_folder_says_under_which_names_its_tools_are_offered(house: House) -> None:
    for name in ("lamps", "lights"):
        folder = lamps(house.folder / "mine", name)
    clash = "clash: lights: the tool switch_lamp is offered as lights_switch_lamp"
    assert clash in house.call("skills", "check", "mine/lights").stdout
    assert "clash" not in house.call("skills", "check", "mine/lamps").stdout
    shutil.move(folder, house.folder / "lights")
    assert "clash" not in house.call("skills", "check", "lights").stdout


ESCAPES = "\x1b]0;own\x07\x9b2J\u202e"


def test_a_terminal_is_told_nothing_by_a_folder(house: House) -> None:
    lamp = lamps(house.folder / "mine", "lamps", says=f"Switches a lamp{ESCAPES}.")
    write(lamp, name=json.dumps(f"lamps{ESCAPES}"), about=json.dumps(ESCAPES))
    bad = lamps(house.folder / "mine", f"bad{ESCAPES}")
    (bad / "SKILL.md").write_text("none")
    for arguments, status, shown in (
        (("catalog", "--json"), 0, "\\u009b2J\\u202e"),
        (("skills", "list"), 0, "\\u001b]0;own"),
        (("skills", "check", f"no{ESCAPES}"), 1, "no\\u001b]0;own"),
        (("doctor",), 1, "bad\\u001b]0;own"),
        (("skills", "remove", f"bad{ESCAPES}"), 0, "bad\\u001b]0;own"),
    ):
        done = house.call(*arguments, status=status)
        written = done.stdout + done.stderr
        assert shown in written
        assert not set(ESCAPES) & {"\x1b", "\x07", "\x9b", "\u202e"} & set(written)
        if "--json" in arguments:
            assert ESCAPES in json.loads(done.stdout)["functionSchema"][-1]["description"]


def test_what_a_tool_says_in_the_terminal_is_only_text(house: House) -> None:
    breaks_down(house, 'def break_down():\n    """Breaks down."""\n    return {"summary": "\\x1b[2JDone"}\n')
    assert "\\u001b[2JDone" in house.run("chat", typed="break down\n").stdout


def test_the_catalogue_holds_what_the_model_sees(house: House) -> None:
    mine = house.folder / "mine"
    lamps(mine)
    lamps(mine, "street", says="Switches a street lamp.")
    write(lamps(mine, "gated"), front="metadata: {openclaw: {requires: {bins: [surely-not-there]}}}\n")
    (mine / "library").mkdir()
    shutil.copy(mine / "lamps" / "scripts" / "tools.py", mine / "library" / "tools.py")
    catalogue = json.loads(house.call("catalog", "--json").stdout)
    names = [schema["name"] for schema in catalogue["functionSchema"]]
    assert {"switch_lamp", "street_switch_lamp", "calculate"} <= set(names)
    assert len(names) == len(set(names)) == catalogue["count"]
    assert len([name for name in names if "switch_lamp" in name]) == 2
    assert catalogue["version"] == catalogue["hash"][:12]
    assert "- street_switch_lamp: Switches a street lamp" in house.call("catalog").stdout
    assert json.loads(house.call("catalog", "--json").stdout) == catalogue
    house.call("skills", "remove", "street")
    assert json.loads(house.call("catalog", "--json").stdout)["hash"] != catalogue["hash"]


def _listed(house: House) -> str:
    return house.call("skills", "list").stdout
