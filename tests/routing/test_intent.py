"""Reading a classifier's answer, whatever shape it comes in."""

from app.routing.classifier import Intent, read_intent

KNOWN = ("notes", "weather", "date-time", "calculator", "mcp_github")

FULL = '{"categories": ["notes", "weather"], "phrases": ["save a note", "weather in Rome"]}'
READ = Intent(("notes", "weather"), ("save a note", "weather in Rome"), "model")


def test_reads_what_can_be_read() -> None:
    for text, expected in [
        (FULL, READ),
        (f"```json\n{FULL}\n```", READ),
        (f"Sure! Here it is:\n{FULL}\nAnything else?", READ),
        ('["notes"]', Intent(("notes",), source="model")),
        ('[{"name": "notes"}, {"name": "weather"}]', Intent(("notes", "weather"), source="model")),
        ('{"categories": "notes, weather"}', Intent(("notes", "weather"), source="model")),
        ('{"Categories": ["NOTES"]}', Intent(("notes",), source="model")),
        ('{"categories": {"notes": 0.9, "weather": 0}}', Intent(("notes",), source="model")),
        ('{"categories": ["date_time", "Date Time"]}', Intent(("date-time",), source="model")),
        ('{"categories": ["notes", "astrology"]}', Intent(("notes",), source="model")),
        ('{"categories": []}', Intent()),
        ('{"categories": [1, null, ["notes"]]}', Intent(("notes",), source="model")),
        ('{"categories": ["notes"], "phrases": "one thing"}', Intent(("notes",), ("one thing",), "model")),
        ('{"categories": ["notes"], "phrases": [1, {}, " a  b "]}', Intent(("notes",), ("a b",), "model")),
        ("[]", Intent()),
        ("none", Intent()),
        ("notes", Intent(("notes",), source="model")),
        ("notes, weather", Intent(("notes", "weather"), source="model")),
        ("**mcp_github**", Intent(("mcp_github",), source="model")),
        ("{'categories': ['notes'], 'phrases': ['weather in Rome']}", Intent(("notes",), source="model")),
        ('{"categories": ["notes", "weat', Intent(("notes",), source="model")),
        ('{"categories": ["notes",], }', Intent(("notes",), source="model")),
        ("", None),
        ("I cannot help with that.", None),
        ("{" * 5000, None),
        ("\x00\x00", None),
    ]:
        assert read_intent(text, KNOWN) == expected


def test_at_most_six_categories_and_short_phrases() -> None:
    known = [f"c{n}" for n in range(20)]
    reading = read_intent(f'{{"categories": {known}, "phrases": ["{"x" * 900}"]}}'.replace("'", '"'), known)
    assert reading is not None
    assert reading.categories == tuple(known[:6])
    assert len(reading.phrases[0]) == 200
