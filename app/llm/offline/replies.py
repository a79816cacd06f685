"""The sentences of the built-in model: questions, small talk, help."""

from collections.abc import Sequence

from app.i18n import say
from app.llm.offline.slots import Kind, Parameter
from app.llm.results import inline
from app.llm.smalltalk import Talk
from app.search.words import words

_MAX_ITEMS = 20
_MAX_QUOTED = 3
_MAX_EXAMPLES = 3
_LONGEST_QUOTE = 120


def question(parameter: Parameter, language: str) -> str:
    """Return the question for a parameter that a tool needs."""
    if parameter.kind is Kind.TEXT and "name" in words(parameter.name):
        return say(language, "Which one do you mean? Say its name.")
    choices = parameter.schema.get("enum")
    listed = " · ".join(str(one) for one in choices[:_MAX_ITEMS]) if isinstance(choices, list) else ""
    which = say(language, "Which of these do you mean?")
    asked = {
        Kind.PLACE: say(language, "Which place do you mean?"),
        Kind.WHEN: say(language, "For which date or time?"),
        Kind.EXPRESSION: say(language, "What should I calculate?"),
        Kind.NUMBER: say(language, "Which number do you mean?"),
        Kind.FILE: say(language, "Which file do you mean?"),
        **dict.fromkeys((Kind.URL, Kind.EMAIL), say(language, "Which address do you mean?")),
        Kind.ENUM: f"{which} {listed}".strip(),
        Kind.FLAG: say(language, "Yes or no?"),
        Kind.LIST: say(language, "What things? You can name several, with commas between them."),
    }
    return asked.get(parameter.kind) or say(language, "What should it say?")


def talk_text(talk: Talk | None, name: str, abilities: Sequence[str], language: str) -> str:
    """Return a short answer to small talk, or to what was not understood, with examples of `abilities`."""
    examples = [one for line in abilities for one in line.split(" · ") if one[:1] == "“" and " " in one]
    whole = [one for one in examples if "…" not in one]
    quoted = " · ".join(whole[-_MAX_EXAMPLES:])
    shown = say(language, "You can write, for example: {examples}", examples=quoted) if quoted else ""
    if talk is Talk.GREETING:
        hello = say(language, "Hello, {name}!", name=name) if name else say(language, "Hello!")
        help_offer = say(language, "How can I help?")
        return f"{hello} {help_offer}\n\n{shown}".strip()
    if talk is None or talk is Talk.ABOUT:
        text = say(language, "I did not understand that.")
        if talk is Talk.ABOUT:
            text = say(
                language,
                "I am an assistant in its simple built-in mode: I understand short requests. Whoever runs me "
                "can connect a language model.",
            )
        more = say(language, "Write /help for everything I can do.")
        return "\n\n".join((f"{text} {shown}".strip(), more))
    return {
        Talk.THANKS: say(language, "You're welcome!"),
        Talk.GOODBYE: say(language, "See you!"),
        Talk.NOD: "👍",
        Talk.ANSWER: say(language, "I am not waiting for an answer just now. What can I do for you?"),
        Talk.NEVER_MIND: say(language, "All right, I changed nothing."),
    }[talk]


def unknown_text(parts: Sequence[str], language: str) -> str:
    """Name the parts of a message that nothing was done about, while something else was."""
    listed = ", ".join(f"“{inline(part[:_LONGEST_QUOTE], language)}”" for part in parts[:_MAX_QUOTED])
    return say(language, "This part I did not understand: {part}", part=listed)


def unclear_when_text(language: str) -> str:
    unclear = say(language, "I do not understand when.")
    how = say(language, "Say it as “tomorrow at 9”, “in 20 minutes” or “every Monday at 8”.")
    return f"{unclear} {how}"


def withheld_text(parts: Sequence[str], language: str) -> str:
    """Return the answer to a message that would change something, but is no clear order."""
    text = say(language, "I changed nothing. If you want something done, tell me in one short sentence.")
    return "\n\n".join((text, unknown_text(parts, language))) if parts else text
