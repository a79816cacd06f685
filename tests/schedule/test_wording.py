"""How a reminder says how often it comes: in words where they are right, else the rule as it is."""

from datetime import datetime
from zoneinfo import ZoneInfo

from app.schedule.wording import moment_text, rule_text

RULES = [
    ("EVERY:3600", "every hour", "cada hora", "a cada hora"),
    ("EVERY:1800", "every 30 minutes", "cada 30 minutos", "a cada 30 minutos"),
    ("EVERY:7200", "every 2 hours", "cada 2 horas", "a cada 2 horas"),
    ("CRON:0 9 * * 1-5", "0 9 * * 1-5", "0 9 * * 1-5", "0 9 * * 1-5"),
    ("FREQ=DAILY", "every day 09:00", "cada día 09:00", "todo dia 09:00"),
    (
        "FREQ=DAILY;BYHOUR=8,20;BYMINUTE=30",
        "every day 08:30, 20:30",
        "cada día 08:30, 20:30",
        "todo dia 08:30, 20:30",
    ),
    ("FREQ=DAILY;INTERVAL=3", "every 3 days 09:00", "cada 3 días 09:00", "a cada 3 dias 09:00"),
    (
        "FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYSETPOS=-1",
        "each month on day 31 09:00",
        "cada mes, el día 31 09:00",
        "todo mês, no dia 31 09:00",
    ),
    (
        "EVERY:28800;UNTIL=2027-02-07T23:59",
        "every 8 hours until 7 Feb 2027",
        "cada 8 horas hasta el 07/02/2027",
        "a cada 8 horas até 07/02/2027",
    ),
    (
        "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24",
        "each year on December 24 09:00",
        "cada año, el 24 de diciembre 09:00",
        "todo ano, em 24 de dezembro 09:00",
    ),
    *(
        (rule, f"{rule} 09:00", f"{rule} 09:00", f"{rule} 09:00")
        for rule in (
            *("FREQ=MONTHLY;BYDAY=1FR", "FREQ=MONTHLY;BYMONTHDAY=1,15", "FREQ=DAILY;BYMONTH=2"),
            "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=-1",
        )
    ),
]


def test_a_rule_in_three_languages() -> None:
    for rule, english, spanish, portuguese in RULES:
        start = datetime(2027, 1, 31, 9)
        told = [rule_text(rule, start, language) for language in ("en", "es", "pt")]
        assert told == [english, spanish, portuguese]


def test_a_moment_names_its_zone_where_the_person_goes_by_another() -> None:
    for zone, own, told in [
        ("Europe/Madrid", "Europe/Madrid", "tomorrow 09:00"),
        ("Europe/Madrid", "", "tomorrow 09:00"),
        ("Europe/Madrid", "America/Tijuana", "Tue 24 Nov 09:00 (Madrid)"),
        ("Etc/GMT+8", "America/Tijuana", "Tue 24 Nov 09:00 (UTC-8)"),
    ]:
        due = datetime(2026, 11, 24, 9, tzinfo=ZoneInfo(zone)).timestamp()
        assert moment_text(due, zone, due - 20 * 3600, "en", own) == told
