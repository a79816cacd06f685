"""Which tools are offered, and in which order."""

from app.routing import Intent, select_tools
from app.search import Document, ToolIndex

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


def test_sticky_tools_give_way_to_what_is_needed() -> None:
    full = ("rain", "wind", "sunrise", "play_song", "pause_song", "next_song", "song_lyrics", "search_tools")
    names = chosen(Intent(("money",), source="model"), "convert currency", sticky=full)
    assert len(names) == 8
    assert {"convert_currency", "search_tools"} <= set(names)
    assert [name for name in names if name in full] == [name for name in full if name in names]


def test_what_is_not_needed_comes_as_far_as_there_is_room() -> None:
    money, sizes = Intent(("money",), source="model"), dict.fromkeys(TOOLS, 100)
    assert len(chosen(money, "convert currency", sizes=sizes, room=500)) == 5
    assert set(chosen(money, "convert currency", sizes=sizes, room=300)) >= {
        "convert_currency",
        "search_tools",
    }
    assert len(chosen(money, "convert currency", sizes=sizes, room=300)) == 3
    assert set(chosen(money, "convert currency", sizes=sizes, room=0)) == {"convert_currency", "search_tools"}
    had = ("rain", "wind", "search_tools")
    names = chosen(money, "convert currency", sizes=sizes, room=300, sticky=had)
    assert names[0] == "search_tools"  # what is of no use now leaves first
    assert chosen(NOTHING, "rain", sizes=sizes, room=0, sticky=had) == had


def test_each_tool_says_why_it_was_chosen() -> None:
    intent = Intent(("money",), ("convert currency",), source="model")
    found = select_tools(
        intent, "euros?", INDEX, TOOLS, sticky=("rain",), always=("search_tools",), beside=("xyzzy",)
    )
    why = {one.name: one.why for one in found}
    assert why["convert_currency"] == "category"
    assert (why["search_tools"], why["xyzzy"], why["rain"]) == ("always", "include", "kept")
    assert {why[name] for name in THINGS["money"]} <= {"category", "words", "sibling"}
    best = next(one for one in found if one.why == "category")
    assert (best.phrase, best.coverage, best.kept) == ("convert currency", 1.0, False)
    assert 0 < best.score <= 1
    assert [one.name for one in found if one.kept] == ["rain"]


def test_where_one_tool_fits_it_is_the_best_and_not_the_search() -> None:
    assert chosen(NOTHING, "convert currency", limit=1) == ("convert_currency",)
    assert chosen(NOTHING, "thanks", limit=1, sticky=("play_song",)) == ("play_song",)
    assert set(chosen(NOTHING, "convert currency", limit=2)) == {"convert_currency", "search_tools"}


def test_the_search_takes_no_chosen_categorys_place() -> None:
    three = Intent(("weather", "money", "music"), source="model")
    assert {TOOLS[name] for name in chosen(three, "all of it", limit=3)} == {"weather", "money", "music"}
    assert "search_tools" in chosen(three, "all of it", limit=4)
