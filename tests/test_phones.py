"""Which numbers are taken for what their owner typed without the country code."""

from app.phones import country, country_of_zone, timezone_of, without_country_code


def test_a_number_that_some_country_uses_or_has_a_form_for_is_beyond_doubt() -> None:
    for number in [
        *("525512345678", "5215512345678", "525550000001", "12125550001", "5491122334455", "541122334455"),
        *("5511999990000", "551187654321", "34600111222"),
    ]:
        assert {without_country_code(number, home) for home in ("MX", "")} == {""}
    for number in ["10955501234", "15550783881"]:  # which nobody is known to use
        assert without_country_code(number, "MX") == ""


def test_a_number_without_its_country_code_gets_it_from_where_the_machine_is() -> None:
    for number, home, cure in [
        ("5512345678", "MX", "put +52 before it: +52 55 1234 5678"),
        ("8112345678", "MX", "put +52 before it: +52 81 1234 5678"),
        ("11912345678", "BR", "put +55 before it: +55 11 91234-5678"),
        ("2125550001", "US", "put +1 before it: +1 212-555-0001"),
        ("5512345678", "", "write it like +52 55 1234 5678"),
        ("8112345678", "", "write it like"),
        ("12", "MX", "write it like"),
    ]:
        assert cure in without_country_code(number, home)


def test_a_zone_names_its_country() -> None:
    named = {"America/Mexico_City": "MX", "America/Buenos_Aires": "AR", "UTC": "", "Etc/UTC": "", "x": ""}
    assert {zone: country_of_zone(zone) for zone in named} == named


def test_a_number_has_the_zone_of_its_area_code_else_of_most_people_of_its_country() -> None:
    for number, zone in [
        ("5215550100001", "America/Mexico_City"),
        ("525512345678", "America/Mexico_City"),
        ("5216641234567", "America/Tijuana"),
        ("5581912345678", "America/Sao_Paulo"),  # Recife, not the island of the same area code
        ("529981234567", "America/Cancun"),
        ("5511955501234", "America/Sao_Paulo"),
        ("559291234567", "America/Manaus"),
        ("14155550123", "America/Los_Angeles"),
        ("18005550123", "America/New_York"),
        ("5491122334455", "America/Buenos_Aires"),
        ("34600111222", "Europe/Madrid"),
        ("447700900123", "Europe/London"),
        ("351912345678", "Europe/Lisbon"),
        ("999999", ""),
    ]:
        assert timezone_of(country(number), number) == zone


def test_a_country_alone_has_the_zone_of_most_of_its_people() -> None:
    assert [timezone_of(code) for code in ("MX", "BR", "US", "CO", "XX")] == [
        *("America/Mexico_City", "America/Sao_Paulo", "America/New_York", "America/Bogota", "")
    ]
