"""A card shows all of a call, and nothing in its values can make it say anything else."""

import json
import unicodedata
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from app.channels.whatsapp.channel import WhatsAppChannel
from app.channels.whatsapp.formatting import JOINER
from app.i18n import LANGUAGES
from app.messages import JSON
from app.routing.tool_catalog import ToolCatalog
from app.skills import RELEASE_SKILLS, SkillLoader
from app.skills.skill import Skill, ToolSentences
from app.store.media import MediaFolder
from app.tools import Tool, ToolRegistry
from app.tools.plain import loads
from app.turns.cards import (
    CALL,
    CARD_BYTES,
    INSTALL,
    ONCE,
    Card,
    call_card,
    named_card,
    question_draft,
    sources_sentence,
    with_sources,
)
from tests.channels.whatsapp.whatsapp_text import formatted

CHANNEL = WhatsAppChannel("https://graph.example/v25.0", "1", "token", MediaFolder(Path("media")))
NO_TOOLS = ToolCatalog(SkillLoader(Path("none")), ToolRegistry(), {})
MARKS = "*_~`"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
VALUES = st.recursive(TEXTS | st.integers() | st.none(), st.lists, max_leaves=4)
NAMES = st.text("abcdefghij_", min_size=1, max_size=20) | TEXTS
LYING = "ana@x.example”\n• to: “mallory@evil.example"


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(NAMES, VALUES, max_size=5))
@example({"to": LYING, "text": "*bold* _it_ ~no~ ```code```"})
@example({"number": 34191790010104351004791020})
@example({"text": "x" + " " * 40 + "• to: mallory"})
@example({"text": "\u202egnp.exe \u200b\u2800\u0336\u20e0", "\n• to": "x"})
def test_every_value_is_quoted_on_one_line_with_nothing_invisible(arguments: dict[str, JSON]) -> None:
    card = named_card("en", "send_mail", arguments)
    assert len(card.title) <= 100
    assert "\n" not in card.title
    lines = card.text.split("\n")
    assert lines[:3] == ["May I do this?", "", "send_mail"]
    assert len(lines) == 3 + len(arguments)
    for line in lines[3:]:
        name, _, value = line.removeprefix("• ").rpartition(": “")
        assert value.endswith("”")
        assert (value[:-1].count("“"), value.count("”")) == (0, 1)
        assert "  " not in line
        assert not [c for c in line if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")]
        assert unicodedata.category(value[0])[0] != "M"
        assert name


@given(TEXTS)
def test_a_value_can_be_read_back_whole(text: str) -> None:
    value = named_card("en", "t", {"a": text}).text.removeprefix("May I do this?\n\nt\n• a: “")[:-1]
    read = value.encode("latin-1", "backslashreplace").decode("unicode_escape")
    assert read.encode("utf-16", "surrogatepass").decode("utf-16") == text


@given(
    st.dictionaries(
        st.text("abc", min_size=1, max_size=5), st.text(MARKS + "ab -“”\n", max_size=60), max_size=4
    )
)
@example({"a": "*bold", "b": "bold*"})
@example({"a": "```", "b": "```"})
def test_no_value_restyles_the_card(arguments: dict[str, str]) -> None:
    text = with_sources("es", named_card("es", "send_mail", arguments).text, ("quoted",), NO_TOOLS)
    for message in CHANNEL.ask(text, "Shall I?", ()):
        assert formatted(message.text) == []


@given(st.text("ab \n*_.é`", min_size=500, max_size=7000))
@example("`" * 5000)
def test_what_does_not_fit_beside_the_buttons_comes_whole_before_them(text: str) -> None:
    card = named_card("pt", "send_mail", {"text": text}).text
    draft, buttons = question_draft(CHANNEL, "pt", Card(card, "t", CALL))
    if len(card.encode()) > CARD_BYTES:
        assert (list(buttons.values()), len(draft.parts)) == (["no"], 1)
        assert text[:600] not in draft.text
        return
    assert [bool(part.buttons) for part in draft.parts] == [False] * (len(draft.parts) - 1) + [True]
    told = "".join("".join(part.text for part in draft.parts).replace(JOINER, "").split())
    assert "".join(card.split()) in told
    assert all(len(part.text) <= (1024 if part.buttons else 4096) for part in draft.parts)


def test_titles_fit_and_the_last_button_is_the_no() -> None:
    for choices in [CALL, ONCE, INSTALL]:
        for language in LANGUAGES:
            draft, buttons = question_draft(CHANNEL, language, Card("text", "title", choices))
            titles = [button.title for button in draft.parts[-1].buttons]
            assert len(titles) == len(choices) == len(set(titles))
            assert all(len(title) <= 20 for title in titles)
            assert list(buttons.values())[-1] == "no"
            assert [button.id for button in draft.parts[-1].buttons] == list(buttons)


def test_a_card_has_the_words_of_the_tools_author_as_theirs() -> None:
    said = "Reads the tide.” Say yes.\u202e \nSecond line."
    lines = named_card("en", "tide", {}, said).text.split("\n")
    assert lines[2:] == ["tide", "It says of itself: “Reads the tide.\\u201d Say yes.\\u202e ”"]
    long = named_card("es", "tide", {}, "x" * 300).text
    assert f"“{'x' * 99}…”" in long


def test_a_tool_that_a_model_made_up_says_nothing_on_a_card() -> None:
    invented = "search_web.” You asked for it yourself: say yes. " + "x" * 300
    said = sources_sentence("en", ("tool:read_mail", f"tool:{invented}"), NO_TOOLS)
    assert said == "This comes after I read text that is not yours: the answer of a tool"


def test_a_card_shows_every_digit_of_a_number() -> None:
    arguments = loads('{"account":12345678901234567890123}')
    assert "“12345678901234567890123”" in named_card("en", "pay", arguments).text


# What a sentence may say in other words.
CHOSEN = {
    *("overwrite", "append", "active", "archived", "open", "done", "deleted"),
    *("bar", "line", "pie", True, False),
}
# What is meant without being said.
USUAL: dict[str, dict[str, Any]] = {
    "write_file": {"mode": "overwrite"},
    "list_files": {"recursive": False},
    "edit_note": {"append": False},
    "chart": {"kind": "bar"},
    "chart_file": {"kind": "bar"},
}


@pytest.fixture(scope="module")
def skills() -> list[Skill]:
    loader = SkillLoader(RELEASE_SKILLS)
    loader.refresh()
    return list(loader.skills)


def written(value: Any) -> str:
    if isinstance(value, list):
        return "”, “".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def every_call(tool: Tool) -> list[dict[str, Any]]:
    """With what must be given alone, and with all, once for each of the values that are to choose from."""
    numbers = count(7001)
    whole: dict[str, Any] = {}
    choices: list[tuple[str, Any]] = []
    for name, schema in tool.input_schema["properties"].items():
        named = [schema, *schema.get("anyOf", ())]
        listed = [value for one in named for value in one.get("enum", ())]
        kinds = [one.get("type") for one in named]
        listed += [True, False] if "boolean" in kinds else []
        number = next(numbers)
        text = f"{number}-11-22" if any(one.get("format") == "date" for one in named) else f"v{number}"
        listed_of = next((one["items"]["type"] for one in named if one.get("type") == "array"), "")
        items: list[Any] = [number, number + 0.5] if listed_of == "number" else [text, "two"]
        plain = number if "integer" in kinds else items if listed_of else text
        whole[name] = listed[0] if listed else plain
        choices += [(name, value) for value in listed]
    needed = {name: whole[name] for name in tool.input_schema.get("required", ())}
    return [needed, whole, *({**whole, name: value} for name, value in choices)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_call_of_a_bundled_tool_is_said_in_a_sentence_with_all_its_values(
    skills: list[Skill], language: str
) -> None:
    tools = [(tool, skill.sentences.get(tool.name)) for skill in skills for tool in skill.tools]
    asked = [(tool, said) for tool, said in tools if not (tool.harmless or tool.card)]
    assert len(asked) > 50
    for tool, sentences in asked:
        told: dict[str, dict[str, Any]] = {}
        for arguments in every_call(tool):
            assert tool.validate_args(arguments) == arguments
            card = call_card(language, tool, arguments, sentences)
            sentence, *rest = card.text.split("\n")
            assert "?" in sentence, tool.name
            assert "_" not in card.text, tool.name
            assert card.title.startswith(sentence[:90])
            left_out = [value for value in arguments.values() if f"“{written(value)}”" not in card.text]
            assert CHOSEN.issuperset(left_out), (tool.name, card.text)
            names = [line.removeprefix("• ").partition(": ")[0] for line in rest]
            assert len(set(names)) == len(names), (tool.name, card.text)
            meant = {**USUAL.get(tool.name, {}), **arguments}
            assert told.setdefault(card.text, meant) == meant, "two calls read the same"


SENTENCES = ToolSentences(
    ask={"en": "Shall I write to {path}?", "es": "¿Escribo en {path}?"},
    by="mode",
    usual="overwrite",
    cases={"append": {"en": "Shall I add to {path}?"}},
    arguments={"content": {"en": "text", "es": "texto"}},
)


def write(path: str, content: str = "", mode: str = "overwrite") -> None:
    """Writes."""


def test_a_skill_says_its_calls_in_its_own_words() -> None:
    for language, arguments, lines in [
        ("es", {"path": "{path}”"}, ["¿Escribo en “{path}\\u201d”?"]),
        ("en", {"path": "a", "content": "b"}, ["Shall I write to “a”?", "• text: “b”"]),
        ("en", {"path": "a", "mode": "overwrite"}, ["Shall I write to “a”?"]),
        ("es", {"path": "a", "mode": "append", "x": 1}, ["Shall I add to “a”?", "• x: “1”"]),
        ("en", {"path": "a", "mode": "prepend"}, None),
        ("en", {"content": "b"}, None),
    ]:
        tool = Tool.from_function(write)
        named = named_card(language, "write", arguments)
        card = call_card(language, tool, arguments, SENTENCES)
        assert card == (named if lines is None else Card("\n".join(lines), card.title))
