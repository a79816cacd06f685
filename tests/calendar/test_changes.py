"""Another time for what is set already."""

from datetime import datetime
from zoneinfo import ZoneInfo

from app.calendar.changes import read_change
from app.calendar.words import When

ZONE = ZoneInfo("America/Santiago")
NOW = datetime(2026, 11, 22, 15, 0, tzinfo=ZONE)
"""A Sunday afternoon."""
FRIDAY = datetime(2026, 11, 27, 15, 0, tzinfo=ZONE)
MONDAY = datetime(2026, 11, 23, 9, 0, tzinfo=ZONE)
FEBRUARY = datetime(2027, 2, 24, 9, tzinfo=ZONE)
EVERY_MONDAY = "FREQ=WEEKLY;BYDAY=MO"


def test_another_hour_leaves_the_day_and_another_day_the_hour() -> None:
    for language, text, due, rule, told in [
        ("es", "a las 16:30", FRIDAY, "", "2026-11-27 16:30"),
        ("es", "por la noche", FRIDAY, "", None),
        ("es", "al sábado", FRIDAY, "", "2026-11-28 15:00"),
        ("es", "el lunes a las 8", FRIDAY, "", "2026-11-23 08:00"),
        ("es", "en 20 minutos", FRIDAY, "", "2026-11-22 15:20"),
        ("es", "para hoy", MONDAY, "", None),
        ("es", "a las 3", FRIDAY, "", None),
        ("es", "a las 10:30", MONDAY, EVERY_MONDAY, "2026-11-23 10:30"),
        ("es", "todos los martes a las 8", MONDAY, EVERY_MONDAY, "2026-11-24 08:00"),
        ("pt", "para o dia 15/12", FRIDAY, "", "2026-12-15 15:00"),
        ("en", "to 4pm", MONDAY.replace(day=22, hour=20), "", "2026-11-22 16:00"),
        ("en", "to 9am", MONDAY.replace(day=22, hour=20), "", "2026-11-23 09:00"),
        ("en", "10am", MONDAY, EVERY_MONDAY + ";BYHOUR=9,15;BYMINUTE=0", None),
        ("en", "10am", MONDAY, "CRON:0 9 * * 1", None),
        ("es", "a las 17", MONDAY, "EVERY:7200", None),
        ("es", "todos los días", FRIDAY, "", "2026-11-23 15:00"),
        ("en", "better 8:30", FRIDAY.replace(hour=20), "", None),
        ("en", "every month", FRIDAY, "", None),
        ("pt", "de manhã", MONDAY, "", None),
        ("es", "los viernes", MONDAY, "FREQ=DAILY;INTERVAL=15", None),
        ("es", "para el 25", MONDAY, "FREQ=MONTHLY;BYMONTHDAY=20", None),
        ("en", "30 minutes earlier", FRIDAY, "", "2026-11-27 14:30"),
        ("es", "una hora después", FRIDAY, "", "2026-11-27 16:00"),
        ("es", "dos horas más temprano", FRIDAY, "", "2026-11-27 13:00"),
        ("es", "una semana después", FRIDAY, "", "2026-12-04 15:00"),
        ("es", "una hora antes", MONDAY, EVERY_MONDAY, "2026-11-23 08:00"),
        ("pt", "uma hora mais tarde", MONDAY, EVERY_MONDAY, "2026-11-23 10:00"),
        ("en", "a day later", MONDAY, EVERY_MONDAY, None),
        ("en", "every two weeks", MONDAY, EVERY_MONDAY, None),
        ("es", "cada mes", MONDAY, EVERY_MONDAY, None),
        ("pt", "a cada duas semanas", MONDAY, "FREQ=WEEKLY;BYDAY=MO,WE", None),
        ("pt", "todo mês", MONDAY, "FREQ=DAILY", None),
        ("es", "cada dos meses", MONDAY, "FREQ=MONTHLY;BYMONTHDAY=23", None),
        ("en", "every 3 days", FRIDAY, "", None),
        ("en", "make it the 22nd", FEBRUARY, "", "2027-02-22 09:00"),
        ("es", "el 22 a las 10 de la mañana", FEBRUARY, "", "2027-02-22 10:00"),
        ("pt", "pra quinta às 9", FEBRUARY, "", None),
        ("pt", "dia 3", FRIDAY, "", "2026-12-03 15:00"),
        ("en", "tonight at 8", FRIDAY, "", "2026-11-22 20:00"),
        ("en", "better at noon", FRIDAY, "", "2026-11-27 12:00"),
        ("es", "esta noche a las 8", FRIDAY, "", "2026-11-22 20:00"),
    ]:
        had = When(due.timestamp(), due.replace(tzinfo=None), rule)
        when = read_change(text, had, ZONE, NOW.timestamp(), language, "CL").when
        assert (when and datetime.fromtimestamp(when.due, ZONE).strftime("%Y-%m-%d %H:%M")) == told
        if when is not None and rule.startswith("FREQ"):
            assert when.rule.startswith(rule.partition(";")[0])


def test_an_hour_in_doubt_is_asked_about_and_takes_neither_day_nor_repetition() -> None:
    for had, rule, day in [(FRIDAY, "", "2026-11-27"), (MONDAY, EVERY_MONDAY, "2026-11-23")]:
        noon = NOW.replace(hour=12).timestamp()  # from here on the next 3 o'clock alone would be clear
        reading = read_change(
            "a las 3", When(had.timestamp(), had.replace(tzinfo=None), rule), ZONE, noon, "es"
        )
        assert (reading.when, reading.problem) == (None, "ambiguous")
        assert [f"{one:%Y-%m-%d %H:%M}" for one in reading.choices] == [f"{day} 03:00", f"{day} 15:00"]
