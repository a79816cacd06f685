"""What a card says of a skill, and what an update changes."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from app.installs.quarantine import Quarantined
from app.installs.skill_cards import card, difference, quoted
from tests.skills.archives import SKILL


def quarantined(mcp: object = None, **files: str) -> Quarantined:
    tree = {path.replace("__", "/").replace("_dot_", "."): text.encode() for path, text in files.items()}
    if mcp is not None:
        tree["mcp.json"] = json.dumps(mcp).encode()
    return Quarantined("https://x.net/demo.zip", "demo", {"SKILL.md": SKILL} | tree)


TOOLS = '''
from typing import Literal

def tide(station: str, unit: Literal["m", "ft"] = "m") -> str:
    """Says the next tide.

    Args:
        station: Where.
        unit: Metres or feet.
    """
    return station
'''


def test_the_card_says_what_the_bytes_say() -> None:
    mcp = {
        "mcpServers": {
            "tides": {"url": "https://mcp.tides.net/", "headers": {"Authorization": "Bearer ${TIDES_TOKEN}"}},
            "shell": {"command": "sh"},
            "listed": {"registry": "io.github.tides/server", "version": "1.2.0"},
        }
    }
    tree = quarantined(mcp, scripts__tools_dot_py=TOOLS, LICENSE="\nMIT License\n")
    made = card(tree)
    assert (made.name, made.description, made.licence) == ("demo", "Does things.", "MIT License")
    assert (made.source, made.sha256) == ("https://x.net/demo.zip", tree.sha256)
    (tool,) = made.tools
    assert (tool.name, tool.description) == ("tide", "Says the next tide")
    assert [(one.name, one.type, one.required) for one in tool.parameters] == [
        ("station", "string", True),
        ("unit", "m | ft", False),
    ]
    assert [server.name for server in made.servers] == ["tides", "listed"]
    assert [refused.name for refused in made.refused] == ["shell"]
    assert (made.settings, made.audience) == (("TIDES_TOKEN",), "owners")
    assert made.hosts == ("mcp.tides.net",)
    assert made.size == sum(map(len, tree.files.values()))


def test_a_skill_without_secrets_is_for_everyone() -> None:
    assert card(quarantined(scripts__tools_dot_py=TOOLS)).audience == "everyone"


def test_tools_that_cannot_be_read_are_said() -> None:
    made = card(quarantined(scripts__tools_dot_py="def broken(:"))
    assert made.tools == ()
    assert made.tools_fault.startswith("scripts/tools.py line 1")


def test_an_annotation_beyond_reason_is_said() -> None:
    annotation = "|".join(["int"] * 1000)
    made = card(quarantined(scripts__tools_dot_py=f'def f(x: {annotation}):\n    """D."""\n'))
    assert made.tools == ()
    assert "nested too deeply" in made.tools_fault


def test_a_name_beyond_reason_is_any_type_that_nobody_knows() -> None:
    made = card(quarantined(scripts__tools_dot_py=f'def f(x: a{".a" * 1000}):\n    """D."""\n'))
    assert [(tool.name, tool.parameters[0].required) for tool in made.tools] == [("f", True)]


def test_an_update_is_told_by_its_difference() -> None:
    old = card(quarantined(scripts__tools_dot_py=TOOLS, old_dot_md="old", same_dot_md="same"))
    told = TOOLS.replace("next tide", "next tide. Ask no one") + '\ndef sink(ship: str):\n    """Sinks."""\n'
    new = card(quarantined(scripts__tools_dot_py=told, new_dot_md="https://new.net", same_dot_md="same"))
    change = difference(old, new)
    assert (change.files_added, change.files_removed) == (("new.md",), ("old.md",))
    assert change.files_changed == ("scripts/tools.py",)
    assert (change.tools_added, change.tools_removed, change.tools_changed) == (("sink",), (), ("tide",))
    assert change.hosts_added == ("new.net",)
    assert not difference(new, new)
    assert difference(new, old).tools_removed == ("sink",)


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_a_quoted_text_is_one_line_with_nothing_invisible(text: str) -> None:
    shown = quoted(text)
    assert shown.isprintable()
    assert "”" not in shown[1:-1]


def test_quoting_shows_what_would_be_invisible() -> None:
    assert (
        quoted("Nice\u202eecin\n\nInstall? \u200b”yes” \ufe01")
        == "“Nice\\u202eecin Install? \\u200b\\u201dyes\\u201d \\ufe01”"
    )
