"""From a calculation in words to its result, and how both are shown."""

import re

from app.text import shortened
from app.tools.authoring import read_said

from .arithmetic import CONSTANTS, FUNCTIONS, MAX_DEPTH, Parser, outcome
from .money import in_cents, tells_money
from .numbers import MAX_DIGITS, digits_of, localised, read_number, told_decimal
from .reading import MAX_LENGTH, MAX_TOKENS, plain, tokens_of

SAID = read_said(
    __file__, MAX_LENGTH=MAX_LENGTH, MAX_TOKENS=MAX_TOKENS, MAX_DEPTH=MAX_DEPTH, MAX_DIGITS=MAX_DIGITS
)
SHOWN = {"*": "×", "/": "÷", "sqrt": "√", "cbrt": "∛", "pi": "π"}


def worked_out(expression, form, language):
    """Calculate what the words ask for; both readings where a number has two. Raises Unreadable."""
    text, show = plain(expression), _cents if tells_money(expression) else outcome
    told_mark = told_decimal(text)
    tokens = tokens_of(text, told_mark or form.decimal)
    unsure = [] if told_mark else list(dict.fromkeys(token.text for token in tokens if token.unsure))
    first = _result(tokens, form, language, show)
    if form.known or not unsure:
        notes = _readings(tokens, form, language) if form.known else []
        told = {"summary": f"{first['summary']}\n{' '.join(notes)}", "read_as": notes} if notes else {}
        return {**first, **told}
    other = "," if form.decimal == "." else "."
    second = _result(tokens_of(text, other), form, language, show)
    word = unsure[0]
    readings = [digits_of(read_number(word, decimal)[0]) for decimal in (form.decimal, other)]
    summary = SAID[language]["either"].format(
        text=word, first=readings[0], second=readings[1], one=first["summary"], two=second["summary"]
    )
    return {"summary": summary, "ambiguous": True, "readings": [first, second]}


def _readings(tokens, form, language):
    """Return a sentence for each number that means something else than it would by the country's marks."""
    notes = {}
    for token in tokens:
        if token.kind != "number" or not re.search("[.,]", token.text):
            continue
        plain = localised(digits_of(token.value), form)
        is_short = token.unsure and form.decimal in token.text and plain != token.text  # 1.500, read as 1.5
        if is_short or _bare(token.text, form) != _bare(plain, form):
            notes[token.text] = SAID[language]["read"].format(text=token.text, plain=plain)
    return list(notes.values())


def _bare(text, form):
    """Return a number without what its value does not depend on: grouping, and zeros at the end."""
    text = re.sub(r"[ \u00a0\u202f']", "", text.replace(form.group, "") if form.group else text)
    whole, mark, rest = text.partition(form.decimal)
    rest = rest.rstrip("0")
    return f"{whole.lstrip('0')}{mark if rest else ''}{rest}"


def _cents(value):
    shown, exact = in_cents(value.number)
    return shown, exact and value.exact


def _result(tokens, form, language, show):
    value = Parser(tokens).value()
    shown, exact = show(value)
    written = localised(shown, form)
    expression = _rendered(tokens, form, language)
    equals = "=" if exact else "≈"
    return {
        "summary": f"{expression} {equals} {written}",
        "result": shown,
        "formatted": written,
        "exact": exact,
        **({} if exact or not value.exact else {"fraction": _fraction(value.number)}),
    }


def _fraction(number):
    return f"{number.numerator}/{number.denominator}" if number.denominator < 10**6 else ""


def _rendered(tokens, form, language):
    """Return the expression as it was understood, in signs and the country's numbers."""
    parts = []
    after_operand = False
    for token in tokens:
        glue = " " if parts else ""
        text = SHOWN.get(token.text, SAID[language].get(token.text, token.text))
        if token.kind == "number":
            text, after = localised(digits_of(token.value), form), True
        elif token.kind == "name":
            after = token.text in CONSTANTS
        elif token.text in {"%", "!", ")", ";"}:
            glue, after = "", token.text != ";"
        elif token.text == "^":
            glue, after = "", False
        else:
            after = False
        if parts and (parts[-1].endswith(("(", "^", "√", "∛")) or parts[-1].strip() in {"u-", "u+"}):
            glue = ""
        if token.text == "(" and parts and parts[-1].strip() in FUNCTIONS:
            glue = ""
        if token.text in {"-", "+"} and not after_operand:
            text = f"u{text}"
        parts.append(f"{glue}{text}")
        after_operand = after
    return shortened("".join(parts).replace("u-", "-").replace("u+", "+"), 300)
