"""Calls of the tools that ship with us, as a person says them: a sentence, and words for the arguments.

What others bring keeps its exact name on a card: nobody here knows what it does.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.i18n import say
from app.messages import JSON


@dataclass(frozen=True, slots=True)
class Said:
    """A call in a sentence; `rest` are the arguments that it does not show, by their words."""

    sentence: str
    rest: tuple[tuple[str, str], ...]


def said_of_call(
    language: str, tool: str, arguments: Mapping[str, JSON], quoted: Callable[[JSON], str]
) -> Said | None:
    """What a call of a shipped tool would do; None where there are no words for it.

    Every argument is in the sentence or in the rest, whole, as `quoted` writes it.
    """
    tells, usual = _TOLD_BY.get(tool, ("", None))
    value = arguments.get(tells, usual)
    sentence = _SENTENCES.get(tool if value == usual else f"{tool} {value}".lower())
    if sentence is None:
        return None
    values = {name: _Value(quoted(given)) for name, given in arguments.items() if name != tells}
    text = sentence(language, values)
    words = _words(language)
    return Said(
        text, tuple((words.get(name, name), one.text) for name, one in values.items() if not one.shown)
    )


def said_of_result(language: str, tool: str) -> str:
    """Where the text of others in a shipped tool's result came from; "" where there are no words for it."""
    if _KEEPS.search(tool):
        return say(language, "something remembered out of text of others")
    return {
        "fetch_page": say(language, "a web page"),
        "list_files": say(language, "names of files"),
        "read_file": say(language, "a file"),
        "search_history": say(language, "our older messages"),
        "search_web": say(language, "a web search"),
    }.get(tool, "")


_KEEPS = re.compile("note|project|task|remind|remember|recall|forget|_list$|check_off")
"""Shipped tools that show what the person keeps: it may have been made of text of others."""


class _Value:
    """A value that knows whether a sentence showed it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.shown = False

    def __format__(self, spec: str) -> str:
        self.shown = True
        return self.text


_TOLD_BY: Mapping[str, tuple[str, JSON]] = {
    "write_file": ("mode", "overwrite"),
    "list_files": ("recursive", False),
    "edit_note": ("append", False),
    "check_off": ("done", True),
    "update_project": ("status", None),
    "update_task": ("status", None),
}
"""The argument by whose value the sentence is another one, and what is meant where it is left out."""

_SENTENCES: Mapping[str, Callable[[str, Mapping[str, _Value]], str]] = {
    "calculate": lambda to, v: say(to, "Shall I work this out?", **v),
    "convert_units": lambda to, v: say(to, "Shall I work this out?", **v),
    "convert_money": lambda to, v: say(to, "Shall I work this out?", **v),
    "search_history": lambda to, v: say(to, "Shall I look through our older messages?", **v),
    "current_time": lambda to, v: say(to, "Shall I look at the clock or the calendar?", **v),
    "convert_time": lambda to, v: say(to, "Shall I look at the clock or the calendar?", **v),
    "set_time_zone": lambda to, v: say(to, "Shall I use the time zone of {place} for you?", **v),
    "days_between": lambda to, v: say(to, "Shall I look at the clock or the calendar?", **v),
    "weekday_of": lambda to, v: say(to, "Shall I look at the clock or the calendar?", **v),
    "business_days_between": lambda to, v: say(to, "Shall I look at the clock or the calendar?", **v),
    "add_business_days": lambda to, v: say(to, "Shall I look at the clock or the calendar?", **v),
    "holidays": lambda to, v: say(to, "Shall I look at the clock or the calendar?", **v),
    "preview_skill_from_url": lambda to, v: say(to, "Shall I look at the skill at {url}?", **v),
    "search_mcp_registry": lambda to, v: say(to, "Shall I search the list of servers for {words}?", **v),
    "get_mcp_server_info": lambda to, v: say(to, "Shall I look at the server {name}?", **v),
    "list_mcp_servers": lambda to, v: say(to, "Shall I list your servers?", **v),
    "enable_mcp_server": lambda to, v: say(to, "Shall I switch the server {name} on?", **v),
    "disable_mcp_server": lambda to, v: say(to, "Shall I switch the server {name} off?", **v),
    "read_file": lambda to, v: say(to, "Shall I read the file {path}?", **v),
    "list_files": lambda to, v: say(to, "Shall I list your files?", **v),
    "list_files true": lambda to, v: say(
        to, "Shall I list your files, also those in the folders inside?", **v
    ),
    "write_file": lambda to, v: say(
        to, "Shall I write to the file {path}? Whatever it holds now is replaced.", **v
    ),
    "write_file append": lambda to, v: say(to, "Shall I add this at the end of the file {path}?", **v),
    "delete_file": lambda to, v: say(to, "Shall I delete the file {path}?", **v),
    "remember": lambda to, v: say(to, "Shall I remember this about you?", **v),
    "recall": lambda to, v: say(to, "Shall I look at what I remember about you?", **v),
    "forget": lambda to, v: say(to, "Shall I forget {what}?", **v),
    "forget_everything": lambda to, v: say(to, "Shall I forget everything I remember about you?", **v),
    "save_note": lambda to, v: say(to, "Shall I save this note?", **v),
    "list_notes": lambda to, v: say(to, "Shall I list your notes?", **v),
    "search_notes": lambda to, v: say(to, "Shall I search your notes for {query}?", **v),
    "edit_note": lambda to, v: say(
        to, "Shall I change the note {note}? Its text is replaced by this one.", **v
    ),
    "edit_note true": lambda to, v: say(to, "Shall I add this at the end of the note {note}?", **v),
    "delete_note": lambda to, v: say(to, "Shall I delete this note?", **v),
    "undo_note": lambda to, v: say(to, "Shall I bring a note back as it was?", **v),
    "add_to_list": lambda to, v: say(to, "Shall I put {items} on a list?", **v),
    "check_off": lambda to, v: say(to, "Shall I check {items} off a list?", **v),
    "check_off false": lambda to, v: say(to, "Shall I mark {items} on a list as not done?", **v),
    "take_off_list": lambda to, v: say(to, "Shall I take {items} off a list?", **v),
    "show_list": lambda to, v: say(to, "Shall I show a list?", **v),
    "delete_list": lambda to, v: say(to, "Shall I delete the list {list_name} with all that is on it?", **v),
    "create_project": lambda to, v: say(to, "Shall I create the project {name}?", **v),
    "list_projects": lambda to, v: say(to, "Shall I list your projects?", **v),
    "show_project": lambda to, v: say(to, "Shall I show how a project is going?", **v),
    "update_project": lambda to, v: say(to, "Shall I change the project {project}?", **v),
    "update_project active": lambda to, v: say(to, "Shall I take up the project {project} again?", **v),
    "update_project archived": lambda to, v: say(to, "Shall I archive the project {project}?", **v),
    "delete_project": lambda to, v: say(
        to, "Shall I delete the project {project} with all its tasks and notes?", **v
    ),
    "add_task": lambda to, v: say(to, "Shall I add the task {task}?", **v),
    "list_tasks": lambda to, v: say(to, "Shall I list your tasks?", **v),
    "update_task": lambda to, v: say(to, "Shall I change the task {task}?", **v),
    "update_task open": lambda to, v: say(to, "Shall I mark the task {task} as not done?", **v),
    "update_task done": lambda to, v: say(to, "Shall I mark the task {task} as done?", **v),
    "update_task deleted": lambda to, v: say(to, "Shall I delete the task {task}?", **v),
    "add_project_note": lambda to, v: say(to, "Shall I add this note to a project?", **v),
    "set_reminder": lambda to, v: say(to, "Shall I set this reminder?", **v),
    "list_reminders": lambda to, v: say(to, "Shall I list your reminders?", **v),
    "change_reminder": lambda to, v: say(to, "Shall I change the reminder {reminder}?", **v),
    "snooze_reminder": lambda to, v: say(to, "Shall I tell you a reminder once more?", **v),
    "cancel_all_reminders": lambda to, v: say(to, "Shall I cancel all your reminders?", **v),
    "cancel_reminder": lambda to, v: say(to, "Shall I cancel the reminder {reminder}?", **v),
    "assistant_version": lambda to, v: say(to, "Shall I look at my own version?", **v),
    "show_configuration": lambda to, v: say(to, "Shall I look at my configuration?", **v),
    "show_health": lambda to, v: say(to, "Shall I look at how I am running?", **v),
    "skill_details": lambda to, v: say(to, "Shall I look at my skills?", **v),
    "recent_logs": lambda to, v: say(to, "Shall I look at my logs?", **v),
    "list_source_files": lambda to, v: say(to, "Shall I list the files of my source code?", **v),
    "read_source_file": lambda to, v: say(to, "Shall I read the file {path} of my source code?", **v),
    "search_source": lambda to, v: say(to, "Shall I search my source code for {words}?", **v),
    "outline_source_file": lambda to, v: say(to, "Shall I read the file {path} of my source code?", **v),
    "write_source_file": lambda to, v: say(
        to, "Shall I write to the file {path} of my source code? Whatever it holds now is replaced.", **v
    ),
    "apply_patch": lambda to, v: say(to, "Shall I change my source code like this?", **v),
    "get_weather": lambda to, v: say(to, "Shall I look up the weather?", **v),
    "set_usual_place": lambda to, v: say(to, "Shall I take {place} as your usual place?", **v),
    "search_web": lambda to, v: say(to, "Shall I search the web for {query}?", **v),
    "fetch_page": lambda to, v: say(to, "Shall I open the page {url}?", **v),
}
"""By a tool's name, with the value of the argument that `_TOLD_BY` names where it is not the usual one."""


def _words(language: str) -> Mapping[str, str]:
    """What a person calls the arguments."""
    return {
        "about": say(language, "about"),
        "content": say(language, "text"),
        "count": say(language, "at most"),
        "date": say(language, "day"),
        "day": say(language, "day"),
        "days": say(language, "days"),
        "due": say(language, "by"),
        "end": say(language, "until"),
        "expression": say(language, "sum"),
        "fact": say(language, "text"),
        "folder": say(language, "folder"),
        "from_place": say(language, "from"),
        "level": say(language, "level"),
        "limit": say(language, "at most"),
        "list_name": say(language, "list"),
        "lines": say(language, "lines"),
        "name": say(language, "name"),
        "note": say(language, "note"),
        "page": say(language, "page"),
        "part": say(language, "part"),
        "patch": say(language, "changes"),
        "path": say(language, "folder"),
        "pattern": say(language, "names like"),
        "place": say(language, "place"),
        "project": say(language, "project"),
        "quantity": say(language, "amount"),
        "query": say(language, "words"),
        "rate": say(language, "rate"),
        "reminder": say(language, "reminder"),
        "replaces": say(language, "in place of"),
        "since": say(language, "from"),
        "start": say(language, "from"),
        "status": say(language, "only"),
        "text": say(language, "text"),
        "time": say(language, "time"),
        "to_currency": say(language, "to"),
        "to_place": say(language, "to"),
        "to_unit": say(language, "to"),
        "units": say(language, "units"),
        "until": say(language, "until"),
        "when": say(language, "when"),
    }
