"""Times that are over, in three languages."""

from datetime import datetime
from zoneinfo import ZoneInfo

from app.calendar.words import read_past

ZONE = ZoneInfo("America/Lima")
NOW = datetime(2026, 11, 25, 10, tzinfo=ZONE).timestamp()  # a Wednesday


def test_a_time_is_read_as_days_of_the_persons_clock() -> None:
    for text, first, after, rest in [
        ("qué dijimos ayer del plomero", "2026-11-24", "2026-11-25", "qué dijimos del plomero"),
        ("lo del seguro la semana pasada", "2026-11-16", "2026-11-23", "lo del seguro"),
        ("o que falamos mês passado", "2026-10-01", "2026-11-01", "o que falamos"),
        ("como quedamos en marzo", "2026-03-01", "2026-04-01", "como quedamos"),
        ("en diciembre", "2025-12-01", "2026-01-01", ""),
        ("3 days ago about the car", "2026-11-22", "2026-11-23", "about the car"),
        ("hace dos semanas", "2026-11-08", "2026-11-15", ""),
        ("last friday", "2026-11-20", "2026-11-21", ""),
        ("el 14 de abril", "2026-04-14", "2026-04-15", ""),
        ("há 2 meses", "2026-09-01", "2026-10-01", ""),
        ("o ano passado", "2025-01-01", "2026-01-01", ""),
    ]:
        found = read_past(text, ZONE, NOW)
        assert found is not None
        days = [datetime.fromtimestamp(at, ZONE).date().isoformat() for at in found[:2]]
        assert (days, found[2]) == ([first, after], rest)


def test_what_names_no_time_is_left_alone() -> None:
    for text in ["el plomero", "el 30 de febrero", "mayonesa", "para mañana"]:
        assert read_past(text, ZONE, NOW) is None
