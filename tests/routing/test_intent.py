"""Reading a classifier's answer, whatever shape it comes in."""

import pytest

from app.routing.intent import Reading, read_intent

KNOWN = ("notes", "weather", "date-time", "calculator", "mcp_github")

FULL = '{"categories": ["notes", "weather"], "phrases": ["save a note", "weather in Rome"], "language": "es"}'
READ = Reading(("notes", "weather"), ("save a note", "weather in Rome"), "es")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (FULL, READ),
        (f"```json\n{FULL}\n```", READ),
        (f"```\n{FULL}", READ),
        (f"Sure! Here it is:\n{FULL}\nAnything else?", READ),
        (f"<think>maybe calculator {{}}</think>\n{FULL}", READ),
        (f'maybe ["calculator"]</think>{FULL}', READ),
        ('["notes"]', Reading(("notes",))),
        ('["notes", "weather"]', Reading(("notes", "weather"))),
        ('[{"name": "notes"}, {"name": "weather"}]', Reading(("notes", "weather"))),
        ('{"categories": "notes, weather"}', Reading(("notes", "weather"))),
        ('{"category": "notes"}', Reading(("notes",))),
        ('{"Categories": ["NOTES"]}', Reading(("notes",))),
        ('{"categories": {"notes": 0.9, "weather": 0}}', Reading(("notes",))),
        ('{"categories": [{"category": "notes"}], "language": "Spanish"}', Reading(("notes",), (), "es")),
        ('{"categories": ["date_time", "Date Time"]}', Reading(("date-time",))),
        ('{"categories": ["notes", "astrology"]}', Reading(("notes",))),
        ('{"categories": ["astrology"]}', Reading()),
        ('{"categories": []}', Reading()),
        ('{"categories": null, "phrases": null, "language": null}', Reading()),
        ('{"categories": ["none"]}', Reading()),
        ('{"categories": [1, null, ["notes"]]}', Reading(("notes",))),
        (
            '{"categories": ["notes"], "phrases": "one thing", "language": "pt-BR"}',
            Reading(("notes",), ("one thing",), "pt"),
        ),
        (
            '{"categories": ["notes"], "phrases": [1, {}, " a  b "], "language": 7}',
            Reading(("notes",), ("a b",)),
        ),
        ("[]", Reading()),
        ("{}", Reading()),
        ("none", Reading()),
        ("None.", Reading()),
        ("`none`", Reading()),
        ("notes", Reading(("notes",))),
        ("notes, weather", Reading(("notes", "weather"))),
        ("- notes\n- weather", Reading(("notes", "weather"))),
        ("**mcp_github**", Reading(("mcp_github",))),
        ("The category is weather.", Reading(("weather",))),
        ("{'categories': ['notes'], 'phrases': ['weather in Rome']}", Reading(("notes",))),
        ('{"categories": ["notes", "weat', Reading(("notes",))),
        ('{"categories": ["notes",], }', Reading(("notes",))),
        ("", None),
        ("   \n", None),
        ("<think>notes, surely</think>", None),
        ("<think>notes, and then it was cut", None),
        ("I cannot help with that.", None),
        ("42", None),
        ("{" * 5000, None),
        ("[" * 50_000, None),
        ("\x00\x00", None),
    ],
)
def test_reads_what_can_be_read(text: str, expected: Reading | None) -> None:
    assert read_intent(text, KNOWN) == expected


def test_at_most_six_categories_and_short_phrases() -> None:
    known = [f"c{n}" for n in range(20)]
    reading = read_intent(f'{{"categories": {known}, "phrases": ["{"x" * 900}"]}}'.replace("'", '"'), known)
    assert reading is not None
    assert reading.categories == tuple(known[:6])
    assert len(reading.phrases[0]) == 200
