"""The calculator's tools: arithmetic, units, and money at a given rate."""

from app.tools.authoring import Sentences

from .calculation import SAID, worked_out
from .money import exchanged, is_money
from .numbers import Unreadable, form_of
from .units import conversion, near_units


def calculate(expression: str, context=None) -> dict:
    """Calculates an arithmetic expression exactly: + - × ÷, powers, roots, percentages, in digits or words.

    Args:
        expression: The calculation as the person wrote it, such as "12% de 3.450", "(2 + 3) × 4" or
            "raíz de 144", with numbers in their own country's form.

    Example: cuánto es 15% de 2300
    Example: quanto é 12 vezes 7
    """
    say = Sentences(SAID, context)
    try:
        return worked_out(expression, form_of(_country(context), say.language), say.language)
    except Unreadable as error:
        return _failed(say, error, say("hint"))


def convert_units(quantity: str, to_unit: str, context=None) -> dict:
    """Converts a quantity exactly into another unit: length, mass, volume, temperature, area, speed, data,
    time, energy, power, pressure; metric, US and imperial.

    Args:
        quantity: The number and unit as the person wrote them, such as "5 km", "media taza" or "5 ft 11 in".
        to_unit: The unit to convert into, such as "millas" or "°F".

    Example: cuántas millas son 5 km
    Example: 100 graus fahrenheit em celsius
    """
    say, country = Sentences(SAID, context), _country(context)
    try:
        return conversion(quantity, to_unit, form_of(country, say.language), say.language, country)
    except Unreadable as error:
        if error.code == "UNKNOWN_UNIT" and (is_money(quantity) or is_money(to_unit)):
            error = Unreadable("NO_RATE")
        near = near_units(error.what) if error.code == "UNKNOWN_UNIT" else []
        return _failed(say, error, say("near", names=", ".join(near)) if near else say("hint_units"))


def convert_money(quantity: str, rate: str, to_currency: str = "", context=None) -> dict:
    """Converts an amount of money at a rate that the person gives. It knows no rates of its own.

    Args:
        quantity: The amount and its currency as the person wrote them, such as "100 dólares".
        rate: The price of one unit of the dearer currency as the person wrote it, such as "18,50".
        to_currency: The currency to convert into, such as "pesos"; empty where they did not say.

    Example: cuánto son 100 dólares a 18,50
    Example: 250 euros a 6,10 reais
    """
    say = Sentences(SAID, context)
    try:
        return exchanged(quantity, rate, to_currency, form_of(_country(context), say.language), say.language)
    except Unreadable as error:
        return _failed(say, error, say("hint_money"))


def _failed(say, error, hint):
    return say.failed(error.code, hint=hint, what=error.what[:40])


def _country(context):
    return context.person.country.upper() if context is not None and context.person is not None else ""
