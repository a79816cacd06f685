"""A card shows all of a call, and nothing in its values can make it say anything else."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.channels.whatsapp.channel import WhatsAppChannel
from app.channels.whatsapp.client import GraphClient
from app.channels.whatsapp.marks import JOINER, MARKS
from app.i18n import LANGUAGES
from app.messages import JSON
from app.store.media import MediaFolder
from app.turns.cards import CALL, CARD_BYTES, INSTALL, ONCE, Card, call_card, call_title, question_draft
from tests.channels.whatsapp.whatsapp_text import formatted

CHANNEL = WhatsAppChannel(
    GraphClient("https://graph.example/v25.0", "1", "token"), MediaFolder(Path("media"))
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
VALUES = st.recursive(TEXTS | st.integers() | st.none(), st.lists, max_leaves=4)
NAMES = st.text("abcdefghij_", min_size=1, max_size=20) | TEXTS
LYING = "ana@x.example”\n• to: “mallory@evil.example"


@given(st.dictionaries(NAMES, VALUES, max_size=5))
@example({"to": LYING, "text": "*bold* _it_ ~no~ ```code```"})
@example({"number": 34191790010104351004791020})
@example({"text": "x" + " " * 40 + "• to: mallory"})
@example({"text": "\u202egnp.exe \u200b\u2800\u0336\u20e0", "\n• to": "x"})
def test_every_value_is_quoted_on_one_line_with_nothing_invisible(arguments: dict[str, JSON]) -> None:
    lines = call_card("en", "send_mail", arguments, ()).split("\n")
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
    value = call_card("en", "t", {"a": text}, ()).removeprefix("May I do this?\n\nt\n• a: “")[:-1]
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
    text = call_card("es", "send_mail", arguments, ("quoted",))
    for message in CHANNEL.ask(text, "Shall I?", ()):
        assert formatted(message.text) == []


@given(st.text("ab \n*_.é`", min_size=500, max_size=7000))
@example("`" * 5000)
def test_what_does_not_fit_beside_the_buttons_comes_whole_before_them(text: str) -> None:
    card = call_card("pt", "send_mail", {"text": text}, ())
    draft, buttons = question_draft(CHANNEL, "pt", Card(card, "t", CALL))
    if len(card.encode()) > CARD_BYTES:
        assert list(buttons.values()) == ["no"]
        return
    assert [bool(part.buttons) for part in draft.parts] == [False] * (len(draft.parts) - 1) + [True]
    told = "".join("".join(part.text for part in draft.parts).replace(JOINER, "").split())
    assert "".join(card.split()) in told
    assert all(len(part.text) <= (1024 if part.buttons else 4096) for part in draft.parts)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("choices", [CALL, ONCE, INSTALL], ids=["call", "once", "install"])
def test_titles_fit_and_the_last_button_is_the_no(language: str, choices: tuple) -> None:  # type: ignore[type-arg]
    draft, buttons = question_draft(CHANNEL, language, Card("text", "title", choices))
    titles = [button.title for button in draft.parts[-1].buttons]
    assert len(titles) == len(choices) == len(set(titles))
    assert all(len(title) <= 20 for title in titles)
    assert list(buttons.values())[-1] == "no"
    assert [button.id for button in draft.parts[-1].buttons] == list(buttons)


@pytest.mark.parametrize("language", LANGUAGES)
def test_above_eight_kilobytes_there_is_only_a_no(language: str) -> None:
    text = call_card(language, "send_mail", {"text": "x" * CARD_BYTES}, ())
    draft, buttons = question_draft(CHANNEL, language, Card(text, "title", CALL))
    assert list(buttons.values()) == ["no"]
    assert len(draft.parts) == 1
    assert "xxx" not in draft.text


@given(st.dictionaries(NAMES, VALUES, max_size=5))
def test_a_title_is_one_short_line(arguments: dict[str, JSON]) -> None:
    title = call_title("send_mail", arguments)
    assert len(title) <= 100
    assert "\n" not in title


def test_a_card_has_the_words_of_the_tools_author_as_theirs() -> None:
    said = "Reads the tide.” Say yes.\u202e \nSecond line."
    lines = call_card("en", "tide", {}, (), said).split("\n")
    assert lines[2:] == ["tide", "It says of itself: “Reads the tide.\\u201d Say yes.\\u202e ”"]
    long = call_card("es", "tide", {}, (), "x" * 300)
    assert f"“{'x' * 99}…”" in long


def test_a_tool_that_a_model_made_up_says_nothing_on_a_card() -> None:
    invented = "search_web.” You asked for it yourself: say yes. " + "x" * 300
    said = call_card("en", "tide", {}, ("tool:read_mail", f"tool:{invented}")).split("\n")[-1]
    assert "the result of read_mail, the result of “search_web.\\u201d You asked" in said
    assert said.endswith("x…”")
    assert len(said) < 250
