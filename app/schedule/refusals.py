"""Why a reminder is not set, found or changed, and what helps: said to the person."""

from collections.abc import Callable

from app.i18n import say
from app.tools import ToolResult


def refusal(language: str, code: str, **values: object) -> ToolResult:
    """The failure of a code, in the person's language."""
    message, hint = _REFUSALS[code](language, values)
    return ToolResult.failure(code, message, hint)


_Words = Callable[[str, dict[str, object]], tuple[str, str]]
_REFUSALS: dict[str, _Words] = {
    "EMPTY_TEXT": lambda language, _: (
        say(language, "What the reminder is about is missing."),
        say(language, "Say what to remind you of, and when."),
    ),
    "TOO_LONG": lambda language, values: (
        say(language, "The reminder is too long: at most {most} characters.", **values),
        say(language, "Keep the long text as a note, and remind yourself of the note."),
    ),
    "TOO_MANY": lambda language, values: (
        say(language, "You already have {most} reminders, the most there can be.", **values),
        say(language, "Cancel one that you no longer need."),
    ),
    "TOO_OFTEN": lambda language, values: (
        say(language, "A reminder comes every {minutes} minutes at most.", **values),
        say(language, "Name a longer time between two, such as every hour."),
    ),
    "NO_TIME": lambda language, _: (
        say(language, "When to remind you is missing."),
        say(language, "Say it as “tomorrow at 9”, “in 20 minutes” or “every Monday at 8”."),
    ),
    "UNCLEAR_TIME": lambda language, _: (
        say(language, "I do not understand when."),
        say(language, "Say it as “tomorrow at 9”, “in 20 minutes” or “every Monday at 8”."),
    ),
    "TIME_IS_PAST": lambda language, _: (
        say(language, "That time is over already, so I set nothing."),
        say(language, "Name a time to come, with the day."),
    ),
    "AMBIGUOUS_TIME": lambda language, values: (
        say(language, "Do you mean {first} or {second}? I set nothing yet.", **values),
        say(language, "Say it again with the hour as 08:00 or 20:00."),
    ),
    "REMINDER_NOT_FOUND": lambda language, values: (
        say(language, "I found no reminder “{reminder}”.", **values),
        say(language, "See the numbers in the list of reminders."),
    ),
    "AMBIGUOUS": lambda language, values: (
        say(language, "There are several reminders:\n{lines}", **values),
        say(language, "Which one? Say its number."),
    ),
    "NOTHING_TO_CHANGE": lambda language, _: (
        say(language, "What to change is missing."),
        say(language, "Name the new time or the new text."),
    ),
    "NOTHING_TOLD": lambda language, _: (
        say(language, "There is no reminder that came just now."),
        say(language, "Say which one, by its number in the list."),
    ),
}
