"""Which tools are offered, and in which order."""

from app.routing import Intent, select_tools
from app.search.index import Document, ToolIndex

THINGS = {
    "weather": ("forecast", "rain", "wind", "sunrise"),
    "notes": ("save_note", "list_notes", "search_notes", "delete_note"),
    "money": ("convert_currency", "stock_price", "send_invoice", "pay_bill"),
    "music": ("play_song", "pause_song", "next_song", "song_lyrics"),
    "quiet": ("xyzzy", "plugh"),
}
TOOLS = {name: category for category, names in THINGS.items() for name in names} | {"search_tools": "tools"}
INDEX = ToolIndex(
    Document(name, name, f"Tool about {name.replace('_', ' ')}", category) for name, category in TOOLS.items()
)
NOTHING = Intent()


def chosen(intent: Intent, said: str, **more: object) -> tuple[str, ...]:
    found = select_tools(intent, said, INDEX, TOOLS, always=("search_tools",), **more)  # type: ignore[arg-type]
    return tuple(one.name for one in found)


def test_at_most_eight_and_always_the_search() -> None:
    names = chosen(NOTHING, "song note rain currency invoice bill stock lyrics wind")
    assert len(names) == 8
    assert "search_tools" in names
    assert len(set(names)) == 8


def test_each_chosen_category_has_its_best_tool() -> None:
    names = chosen(Intent(("weather", "quiet", "money"), source="model"), "play a song")
    assert {TOOLS[name] for name in names} >= {"weather", "quiet", "money", "music"}


def test_each_phrase_finds_its_tool() -> None:
    intent = Intent((), ("convert currency", "delete note", "song lyrics"), source="model")
    assert {"convert_currency", "delete_note", "song_lyrics"} <= set(chosen(intent, "hazme todo eso"))


def test_small_talk_changes_nothing() -> None:
    sticky = ("play_song", "search_tools", "rain")
    assert chosen(NOTHING, "muchas gracias", sticky=sticky) == sticky
    assert chosen(NOTHING, "hola") == ("search_tools",)


def test_a_set_that_serves_stays_and_additions_come_last() -> None:
    first = chosen(NOTHING, "play song")
    assert chosen(NOTHING, "play song again", sticky=first) == first
    few = ("search_tools", "play_song", "gone")
    names = chosen(NOTHING, "convert currency", sticky=few)
    assert names[:2] == ("search_tools", "play_song")
    assert "convert_currency" in names[2:]
