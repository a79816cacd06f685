"""What people write for a moment or a repetition, in three languages."""

from datetime import datetime
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from app.calendar.words import Reading, read_when

ZONE = ZoneInfo("America/Santiago")
NOW = datetime(2026, 11, 22, 15, 0, tzinfo=ZONE)
"""A Sunday afternoon."""


def read(text: str, language: str = "es", country: str = "CL", now: datetime = NOW) -> Reading:
    return read_when(text, ZONE, now.timestamp(), language, country)


ONCE = [
    ("es", "el jueves 17 a las 10", "2026-12-17 10:00"),
    ("pt", "na sexta dia 11 às 15h", "2026-12-11 15:00"),
    ("en", "on friday 4th at 10am", "2026-12-04 10:00"),
    ("en", "friday 9am", "2026-11-27 09:00"),
    ("es", "mañana por la mañana", "2026-11-23 09:00"),
    ("es", "pasado mañana a las 10:30", "2026-11-24 10:30"),
    ("es", "en 20 minutos", "2026-11-22 15:20"),
    ("en", "in 60 seconds", "2026-11-22 15:01"),
    ("es", "en una hora y media", "2026-11-22 16:30"),
    ("es", "dentro de 2 horas y 15 minutos", "2026-11-22 17:15"),
    ("es", "en una semana a las 10", "2026-11-29 10:00"),
    ("es", "el martes a las 7 y media de la tarde", "2026-11-24 19:30"),
    ("es", "el próximo viernes a las 6 de la tarde", "2026-11-27 18:00"),
    ("es", "el 24 de diciembre a las 8 de la noche", "2026-12-24 20:00"),
    ("es", "el último día del mes", "2026-11-30 09:00"),
    ("es", "el 29 de febrero a las 9", "2028-02-29 09:00"),
    ("es", "a medianoche", "2026-11-23 00:00"),
    ("es", "2026-12-24T12:00:00Z", "2026-12-24 09:00"),
    ("pt", "quando for 17h", "2026-11-22 17:00"),
    ("en", "thurs 10:30", "2026-11-26 10:30"),
    ("pt", "daqui a meia hora", "2026-11-22 15:30"),
    ("pt", "daqui a um mês e meio", "2027-01-06 15:00"),
    ("pt", "hoje à noite", "2026-11-22 20:00"),
    ("pt", "na sexta que vem às 8 da manhã", "2026-11-27 08:00"),
    ("en", "in half an hour", "2026-11-22 15:30"),
    ("en", "at half past 9 pm tomorrow", "2026-11-23 21:30"),
    ("en", "december 24 at 8pm", "2026-12-24 20:00"),
    ("en", "on the 3rd at noon", "2026-12-03 12:00"),
]


def test_a_moment() -> None:
    for language, said, due in ONCE:
        reading = read(said, language)
        assert reading.when is not None
        assert datetime.fromtimestamp(reading.when.due, ZONE).strftime("%Y-%m-%d %H:%M") == due
        assert reading.when.rule == ""
        assert reading.rest == ""


AGAIN = [
    ("es", "todos los lunes a las 8", "FREQ=WEEKLY;BYDAY=MO", "11-23 08:00"),
    ("es", "cada dos horas", "EVERY:7200", "11-22 17:00"),
    ("es", "de lunes a viernes a las 7", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "11-23 07:00"),
    ("es", "los martes y jueves a las 18", "FREQ=WEEKLY;BYDAY=TU,TH", "11-24 18:00"),
    ("es", "el último día de cada mes a las 10", "FREQ=MONTHLY;BYMONTHDAY=-1", "11-30 10:00"),
    ("es", "todos los meses el día 10", "FREQ=MONTHLY;INTERVAL=1;BYMONTHDAY=10", "12-10 09:00"),
    ("es", "cada 24 de diciembre", "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24", "12-24 09:00"),
    ("pt", "toda segunda e quarta às 18h30", "FREQ=WEEKLY;BYDAY=MO,WE", "11-23 18:30"),
    ("pt", "todo dia 5 às 10h", "FREQ=MONTHLY;BYMONTHDAY=5", "12-05 10:00"),
    ("en", "every other day at 9am", "FREQ=DAILY;INTERVAL=2", "11-23 09:00"),
    ("pt", "a cada duas semanas na quinta às 9", "FREQ=WEEKLY;INTERVAL=2;BYDAY=TH", "11-26 09:00"),
    ("en", "every other friday at 9am", "FREQ=WEEKLY;INTERVAL=2;BYDAY=FR", "11-27 09:00"),
    ("en", "0 9 * * 1-5", "CRON:0 9 * * 1-5", "11-23 09:00"),
    ("en", "freq=weekly;byday=mo", "FREQ=WEEKLY;BYDAY=MO", "11-23 09:00"),
]


def test_a_repetition_and_its_first_time() -> None:
    for language, said, rule, first in AGAIN:
        reading = read(said, language)
        assert reading.when is not None
        assert reading.when.rule == rule
        assert datetime.fromtimestamp(reading.when.due, ZONE).strftime("%m-%d %H:%M") == first


def test_what_cannot_be_set_says_why() -> None:
    for said, problem, choices in [
        ("a las 8", "ambiguous", ["22 20:00", "23 08:00"]),
        ("mañana a las 3", "ambiguous", ["23 03:00", "23 15:00"]),
        ("hoy a las 10:00", "ambiguous", ["22 22:00", "23 10:00"]),
        ("mañana por la mañana a las 9 pm", "unclear", []),
        ("el martes 30 de noviembre", "unclear", []),
        ("a las 10 para las 9 de la noche", "unclear", []),
        ("el lunes que viene a las 9", "unclear", []),  # tomorrow, or in eight days
        ("hoy a las 9 de la mañana", "past", []),
        ("hoy a la tarde", "past", []),
        ("esta tarde", "past", []),
        ("hoje à tarde", "past", []),
        ("el 3 de enero de 2020", "past", []),
        ("el 31 de febrero", "unclear", []),
        ("el jueves 16", "unclear", []),  # that is a Wednesday
        ("hoy", "unclear", []),
        ("cuando puedas", "missing", []),
    ]:
        reading = read(said)
        assert (reading.when, reading.problem) == (None, problem)
        assert [one.strftime("%d %H:%M") for one in reading.choices] == choices


def test_the_rest_is_what_it_is_about() -> None:
    for language, said, rest in [
        ("es", "mañana a las 10 ir al sat", "ir al sat"),
        ("pt", "amanhã às 10 ligar pro Sun", "ligar pro Sun"),
        ("es", "mañana llamar a Ana a las 9", "llamar a Ana"),
        ("es", "comprar 2 kg de pan mañana por la mañana", "comprar 2 kg de pan"),
        ("en", "call mom in 20 minutes", "call mom"),
        ("es", "el lunes 30 pagar el alquiler", "pagar el alquiler"),
    ]:
        assert read(said, language).rest == rest


def test_the_order_of_day_and_month_is_the_persons() -> None:
    for language, country, zone, month in [
        ("en", "US", "America/Denver", 5),
        ("en", "GB", "Europe/London", 12),
        ("en", "", "Europe/Berlin", 12),
        ("es", "CL", "America/Santiago", 12),
        ("en", "US", "Europe/Berlin", None),  # the one or the other
    ]:
        when = read_when("5/12/2027", ZoneInfo(zone), NOW.timestamp(), language, country).when
        assert (when and when.start.month) == month


@given(st.text(max_size=80), st.sampled_from(["es", "pt", "en"]))
def test_any_text_is_read_without_a_fault(text: str, language: str) -> None:
    reading = read(text, language)
    assert (reading.when is None) == bool(reading.problem)


@given(
    st.lists(
        st.sampled_from(
            """a las at às 9 31 12:30 99 pm cada every todo lunes segunda monday mañana de la tarde en in
            minutos día mes del último 24 diciembre 2026-12-24 * * / - y e and 0""".split()  # noqa: SIM905
        ),
        max_size=9,
    )
)
def test_any_heap_of_such_words_is_read_without_a_fault(words: list[str]) -> None:
    for language in ("es", "pt", "en"):
        reading = read(" ".join(words), language)
        assert reading.when is None or reading.when.due > NOW.timestamp()


def test_each_of_several_hours_counts() -> None:
    for language, text, rule, first in [
        ("pt", "todo dia às 8 e às 20", "FREQ=DAILY;BYHOUR=8,20;BYMINUTE=0", "2026-11-22 20:00"),
        (
            "es",
            "todos los lunes a las 9:30 y a las 15:30",
            "BYDAY=MO;BYHOUR=9,15;BYMINUTE=30",
            "2026-11-23 09:30",
        ),
        ("en", "every day at 8am and 8pm", "FREQ=DAILY;BYHOUR=8,20;BYMINUTE=0", "2026-11-22 20:00"),
        ("pt", "de 8 em 8 horas", "EVERY:28800", "2026-11-22 23:00"),
        ("es", "cada 2 semanas los lunes", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "2026-11-23 09:00"),
        ("en", "monday to friday at 7 until dec 4", "UNTIL=2026-12-04T23:59", "2026-11-23 07:00"),
        ("es", "a la 1 menos cuarto", "", "2026-11-23 12:45"),
        ("pt", "quinze para as 5", "", "2026-11-22 16:45"),
        ("es", "en 1 día y 3 horas", "", "2026-11-23 18:00"),
        ("en", "tomorrow at half nine", "", "2026-11-23 09:30"),
        ("es", "este fin de semana a las 18", "", "2026-11-22 18:00"),
        ("es", "cada 8 horas hasta el domingo", "EVERY:28800;UNTIL=2026-11-29T23:59", "2026-11-22 23:00"),
        ("en", "on the first of every month at 10", "FREQ=MONTHLY;BYMONTHDAY=1", "2026-12-01 10:00"),
    ]:
        when = read(text, language).when
        assert when is not None
        assert when.rule.endswith(rule)
        assert datetime.fromtimestamp(when.due, ZONE).strftime("%Y-%m-%d %H:%M") == first


def test_what_no_rule_of_ours_says_is_not_half_taken() -> None:
    for text in [
        *("todos los días a las 8 y a las 20:30", "mañana a las 9 y a las 15"),
        *("amanhã ao meio-dia e à meia-noite", "el último viernes del mes"),
        *("on the first monday of the month", "cada lunes a las 8 y jueves a las 9"),
        *("cada 2 horas hasta las 6 de la tarde", "every other day for two weeks", "at 6 mon wed fri"),
        *("2 horas antes do voo, que é amanhã às 18h", "sex às 18h da cerveja"),
        *("por 7 dias às 20h do antibiótico", "todo dia às 22h sem ser sábado"),
        *("amanhã e sábado às 9h da feira", "un viernes sí y otro no a las 9", "the vet tomorrow, 8 ish"),
        *("the kids tomorrow 10 to 8", "at 9 on weekdays and 10am on weekends"),
        *("every monday to thursday at 9", "todos los lunes a jueves a las 8"),
        "de lunes a viernes a las 8 y el sábado a las 9",
    ]:
        language = "en" if text.startswith(("at ", "every ", "the ", "call ")) else "pt"
        assert read(text, language).problem == "unclear"


def test_an_hour_of_what_is_to_be_told_is_left_to_it() -> None:
    for language, text, when, rest in [
        ("es", "mañana a las 9 que tengo turno a las 10", "2026-11-23 09:00", "que tengo turno a las 10"),
        ("en", "tomorrow at 9 that lunch is at noon", "2026-11-23 09:00", "that lunch is at noon"),
        ("pt", "amanhã às 9 que a loja abre às 10 e fecha às 18", "2026-11-23 09:00", None),
    ]:
        reading = read(text, language)
        assert reading.when is not None
        assert f"{reading.when.start:%Y-%m-%d %H:%M}" == when
        assert reading.rest == (rest or "que a loja abre às 10 e fecha às 18")
