import time

import pytest

from tests.skills.tools import context, functions

calculate = functions("calculator")["calculate"]

EXACT = [
    # expression, country, result
    ("2 + 2", "MX", "4"),
    ("2+2", "MX", "4"),
    ("2 + 3 * 4", "MX", "14"),
    ("(2 + 3) × 4", "MX", "20"),
    ("-2^2", "MX", "-4"),
    ("(-2)^2", "MX", "4"),
    ("2^-1", "MX", "0.5"),
    ("2 ** 3 ** 2", "MX", "512"),
    ("7 // 2", "MX", "3"),
    ("-7 // 2", "MX", "-4"),
    ("10 % 3", "MX", "1"),
    ("10 mod 4", "MX", "2"),
    ("0.1 + 0.2", "MX", "0.3"),
    ("1 / 8", "MX", "0.125"),
    ("12345678901234567890 * 98765432109876543210", "MX", "1219326311370217952237463801111263526900"),
    ("2^100", "MX", "1267650600228229401496703205376"),
    ("1/3 + 1/3 + 1/3", "MX", "1"),
    ("12% de 3.450", "AR", "414"),
    ("12% de 3,450", "MX", "414"),
    ("12% of 3450", "US", "414"),
    ("12 por ciento de 3450", "MX", "414"),
    ("16 por ciento de dos mil quinientos", "MX", "400"),
    ("2 mil quinientos entre dos", "MX", "1250"),
    ("dos mil 500 menos veintidos", "MX", "2478"),
    ("cien mil mas uno", "MX", "100001"),
    ("cento e vinte e cinco vezes dois", "BR", "250"),
    ("mil e duzentos menos quinhentos", "BR", "700"),
    ("two hundred and fifty plus three thousand one hundred", "US", "3350"),
    ("a hundred plus twenty-five", "US", "125"),
    ("suma dos y tres", "MX", "5"),
    ("split 640 between 4 people", "US", "160"),
    ("rachar 240 reais pra 5 pessoas", "BR", "48"),
    ("divide la cuenta de 640 entre cuatro amigos", "MX", "160"),
    ("15 por cento de 200", "BR", "30"),
    ("20 percent of 80", "US", "16"),
    ("3450 + 16%", "MX", "4002"),
    ("3450 mas el 16%", "MX", "4002"),
    ("500 - 20%", "MX", "400"),
    ("500 menos 20%", "MX", "400"),
    ("100 + 50 + 10%", "MX", "165"),
    ("100 * 10%", "MX", "10"),
    ("50% + 50%", "MX", "1"),
    ("50%", "MX", "0.5"),
    ("mitad de 50", "MX", "25"),
    ("la mitad de 7", "MX", "3.5"),
    ("a metade de 9", "BR", "4.5"),
    ("half of 30", "US", "15"),
    ("100 / mitad de 4", "MX", "50"),
    ("el doble de 8", "MX", "16"),
    ("o triplo de 5", "BR", "15"),
    ("un tercio de 90", "MX", "30"),
    ("raiz de 144", "MX", "12"),
    ("raíz cuadrada de 2.25", "MX", "1.5"),
    ("square root of 81", "US", "9"),
    ("raiz quadrada de 16", "BR", "4"),
    ("√16 + 9", "MX", "13"),
    ("raiz cubica de 27", "MX", "3"),
    ("27^(1/3)", "MX", "3"),
    ("sqrt(4/9) * 3", "MX", "2"),
    ("abs(-3)", "MX", "3"),
    ("round(2.5)", "MX", "3"),
    ("round(3.14159, 2)", "MX", "3.14"),
    ("round(3,14159; 2)", "AR", "3.14"),
    ("max(3,5)", "AR", "5"),
    ("min(1,200, 7)", "MX", "7"),
    ("max(1; 2; 30)", "BR", "30"),
    ("factorial(10)", "MX", "3628800"),
    ("5!", "MX", "120"),
    ("2(3 + 4)", "MX", "14"),
    ("5²", "MX", "25"),
    ("½ + ¼", "MX", "0.75"),
    ("3 x 4", "MX", "12"),
    ("3x4", "MX", "12"),
    ("3 por 4", "MX", "12"),
    ("3 multiplicado por 4", "MX", "12"),
    ("12 vezes 7", "BR", "84"),
    ("6 times 7", "US", "42"),
    ("10 dividido entre 4", "MX", "2.5"),
    ("10 dividido por 4", "BR", "2.5"),
    ("10 entre 5", "MX", "2"),
    ("10 divided by 4", "US", "2.5"),
    ("8 más 3 menos 1", "MX", "10"),
    ("8 mais 3", "BR", "11"),
    ("8 plus 3 minus 1", "US", "10"),
    ("2 elevado a la 10", "MX", "1024"),
    ("2 elevado a 10", "BR", "1024"),
    ("2 to the power of 10", "US", "1024"),
    ("9 al cuadrado", "MX", "81"),
    ("9 ao quadrado", "BR", "81"),
    ("4 squared", "US", "16"),
    ("dos más dos", "MX", "4"),
    ("treinta y cinco por dos", "MX", "70"),
    ("twenty-one plus one", "US", "22"),
    ("3 mil + 500", "MX", "3500"),
    ("2 millones / 4", "MX", "500000"),
    ("1,234.50 + 1", "MX", "1235.5"),
    ("1.234,50 + 1", "AR", "1235.5"),
    ("1.234,50 + 1", "MX", "1235.5"),
    ("1 234,50 + 1", "ES", "1235.5"),
    ("1,234,567 - 1", "MX", "1234566"),
    ("1.234.567 - 1", "CO", "1234566"),
    ("1.234 * 2", "AR", "2468"),
    ("1.234 * 2", "MX", "2.468"),
    ("1,234 * 2", "BR", "2.468"),
    ("0.125 * 8", "AR", "1"),
    ("3,5 * 2", "MX", "7"),
    ("1e3 + 1", "MX", "1001"),
    ("$1,500 + $250.75", "MX", "1750.75"),
    ("R$ 10,50 * 2", "BR", "21"),
    ("100 pesos + 50", "MX", "150"),
    ("¿cuánto es 15 × 4?", "MX", "60"),
    ("cuanto es 7 por 8 por favor", "MX", "56"),
    ("quanto é 5 + 5?", "BR", "10"),
    ("what's 9 - 4 =", "US", "5"),
    ("calculame 30 / 6 porfa", "AR", "5"),
    ("1 ** 999999999999", "MX", "1"),
    ("(-1) ^ 1000000001", "MX", "-1"),
    ("0 ^ 0", "MX", "1"),
    ("divide 90 por 4", "MX", "22.5"),
    ("divide 90 por 4", "BR", "22.5"),
    ("divide 90 by 4", "US", "22.5"),
    ("multiplica 3 por 4", "MX", "12"),
    ("soma 10, 20 e 30", "BR", "60"),
    ("suma 10, 20 y 30", "MX", "60"),
    ("suma 10, 20 y 30", "AR", "60"),
    ("add 10, 20 and 30", "US", "60"),
    ("add 10 to 20", "US", "30"),
    ("la suma de 2 y 3", "MX", "5"),
    ("R$ 50 + R$ 30", "BR", "80"),
    ("quanto é R$ 50 + R$ 30", "BR", "80"),
    ("whats 15% of 2480", "US", "372"),
    ("20% tip on 84.50", "US", "16.9"),
    ("15% off 80", "US", "68"),
    ("1/4 de 200", "BR", "50"),
    ("3 + 3/4 of 80 - 1", "US", "62"),
    ("2 * 1/4 of 200", "US", "100"),
    ("15% de descuento en 800", "MX", "680"),
    ("desconto de 10% em 350 reais", "BR", "315"),
    ("10% de propina sobre 350", "MX", "35"),
]


@pytest.mark.parametrize(("expression", "country", "expected"), EXACT)
def test_exact_results(expression: str, country: str, expected: str) -> None:
    answer = calculate(expression, context=context(country=country))
    assert answer.get("result") == expected, answer
    assert answer["exact"] is True


ROUNDED = [
    ("1/3", "0.333333333333"),
    ("2/3", "0.666666666667"),
    ("sqrt(2)", "1.41421356237"),
    ("pi * 2", "6.28318530718"),
    ("e", "2.71828182846"),
    ("2^0.5", "1.41421356237"),
    ("1000 * (1 + 0.0725/12)^360", "8744.77196355"),
    ("2^-200", "6.22301527786e-61"),
    ("raiz cubica de 10", "2.15443469003"),
]


@pytest.mark.parametrize(("expression", "expected"), ROUNDED)
def test_rounded_results_are_marked(expression: str, expected: str) -> None:
    answer = calculate(expression, context=context())
    assert answer.get("result") == expected, answer
    assert answer["exact"] is False
    assert "≈" in answer["summary"]


HOSTILE = [
    ("", "EMPTY"),
    ("   ?", "EMPTY"),
    ("9**9**9", "TOO_BIG"),
    ("9^9^9^9", "TOO_BIG"),
    ("10^5000", "TOO_BIG"),
    ("10^-100000", "TOO_BIG"),
    ("(10^3999) * (10^3999)", "TOO_BIG"),
    ("0.5 ^ 1e9", "TOO_BIG"),
    ("2 ^ (10^3000)", "TOO_BIG"),
    ("1.5 ^ 123456789.5", "TOO_BIG"),
    ("1e999999999", "TOO_BIG"),
    ("factorial(10**9)", "TOO_BIG"),
    ("2000!", "TOO_BIG"),
    ("5!!!!", "TOO_BIG"),
    ("9" * 3000, "TOO_LONG"),
    ("1+" * 500 + "1", "TOO_LONG"),
    ("(" * 150 + "1" + ")" * 150, "TOO_DEEP"),
    ("-" * 300 + "1", "TOO_DEEP"),
    ("sqrt " * 100 + "1", "TOO_DEEP"),
    ("2^" * 100 + "1", "TOO_DEEP"),
    ("1/0", "DIVISION_BY_ZERO"),
    ("5 % 0", "DIVISION_BY_ZERO"),
    ("5 // 0", "DIVISION_BY_ZERO"),
    ("0 ^ -1", "DIVISION_BY_ZERO"),
    ("sqrt(-4)", "NOT_REAL"),
    ("(-8)^0.5", "NOT_REAL"),
    ("factorial(2.5)", "NOT_WHOLE"),
    ("factorial(-1)", "NOT_WHOLE"),
    ("2 +", "UNFINISHED"),
    ("(2 + 3", "UNCLOSED"),
    ("2 + 3)", "UNEXPECTED"),
    ("2 3", "UNEXPECTED"),
    ("* 4", "UNEXPECTED"),
    ("1.2.3,4", "BAD_NUMBER"),
    ("1,23,4", "BAD_NUMBER"),
    ("sqrt(1; 2)", "ARGUMENTS"),
    ("round(1; 2.5)", "ARGUMENTS"),
    ("__import__('os').system('true')", "UNKNOWN_WORD"),
    ("().__class__", "UNKNOWN_WORD"),
    ("lambda: 0", "UNKNOWN_WORD"),
    ("open('/etc/passwd')", "UNKNOWN_WORD"),
    ("2 + gato", "UNKNOWN_WORD"),
    ("=" * 1999 + "x", "UNKNOWN_WORD"),
    ("1." * 990, "BAD_NUMBER"),
    ("2 + 🎉", "UNKNOWN_WORD"),
    ("2 \x00 2", "UNKNOWN_WORD"),
]


@pytest.mark.parametrize(("expression", "code"), HOSTILE)
def test_what_cannot_be_calculated_is_refused_quickly(expression: str, code: str) -> None:
    began = time.perf_counter()
    answer = calculate(expression, context=context())
    assert time.perf_counter() - began < 5
    assert answer.get("ok") is False, answer
    assert answer["error"]["code"] == code
    assert answer["error"]["message"]
    assert answer["error"]["hint"]


@pytest.mark.parametrize("expression", ["(10^3999)", "1449!", "(7/3)^4000", "3^8000", "1/(10^3999)"])
def test_the_largest_results_are_still_quick(expression: str) -> None:
    began = time.perf_counter()
    assert "result" in calculate(expression, context=context())
    assert time.perf_counter() - began < 5


SUMMARIES = [
    ("cuanto es 2+2", "es", "MX", "2 + 2 = 4"),
    ("12345*6789", "es", "MX", "12,345 × 6,789 = 83,810,205"),
    ("12345*6789", "pt", "BR", "12.345 × 6.789 = 83.810.205"),
    ("10/4", "es", "AR", "10 ÷ 4 = 2,5"),
    ("12% de 3450", "es", "CO", "12% de 3.450 = 414"),
    ("12% of 3450", "en", "US", "12% of 3,450 = 414"),
    ("3450 + 16%", "es", "CL", "3.450 + 16% = 4.002"),
    ("10%3", "es", "MX", "10 mod 3 = 1"),
    ("la mitad de 50", "es", "MX", "la mitad de 50 = 25"),
    ("raiz de 16", "es", "MX", "√16 = 4"),
    ("-(2+3)*4", "es", "MX", "-(2 + 3) × 4 = -20"),
    ("max(1; 2)", "es", "MX", "max(1; 2) = 2"),
    ("2^10", "en", "", "2^10 = 1024"),
    ("7/2", "pt", "", "7 ÷ 2 = 3,5"),
    ("1/3", "es", "AR", "1 ÷ 3 ≈ 0,333333333333"),
    ("3,5 * 2", "es", "MX", "3.5 × 2 = 7\nLeí 3,5 como 3.5."),
    ("20% de 1.500", "es", "MX", "20% de 1.5 = 0.3\nLeí 1.500 como 1.5."),
    ("1.234,50 + 1", "es", "MX", "1,234.5 + 1 = 1,235.5\nLeí 1.234,50 como 1,234.5."),
    ("84.50 * 2", "en", "US", "84.5 × 2 = 169"),
    ("15% off 80", "en", "US", "80 - 15% = 68"),
    ("2^64", "es", "MX", "2^64 = 18446744073709551616"),
    ("1.234 * 2", "es", "AR", "1.234 × 2 = 2.468"),
    ("1.234 * 2", "es", "MX", "1.234 × 2 = 2.468"),
    ("1,234 * 2", "en", "US", "1,234 × 2 = 2,468"),
]


@pytest.mark.parametrize(("expression", "language", "country", "expected"), SUMMARIES)
def test_the_summary_is_in_the_persons_form(
    expression: str, language: str, country: str, expected: str
) -> None:
    assert calculate(expression, context=context(language, country))["summary"] == expected


def test_without_a_country_an_ambiguous_number_gives_both_readings() -> None:
    answer = calculate("12% de 3.450", context=context("es", ""))
    assert answer["ambiguous"] is True
    assert {reading["result"] for reading in answer["readings"]} == {"414", "0.414"}
    assert "3450" in answer["summary"]
    assert "3.45" in answer["summary"]


def test_without_a_person_it_answers_in_english() -> None:
    assert calculate("2 + 2")["summary"] == "2 + 2 = 4"
    assert calculate("1/0")["error"]["message"].startswith("Division by zero")
