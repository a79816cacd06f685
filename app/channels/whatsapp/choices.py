"""Choices as WhatsApp shows them: up to three buttons, a list of up to ten rows, else numbered lines.

Limits: https://developers.facebook.com/docs/whatsapp/cloud-api/messages/interactive-list-messages
"""

from collections.abc import Sequence

from app.channels.whatsapp.marks import literal, settle
from app.messages import Button, Outgoing

MOST_BUTTONS, MOST_ROWS = 3, 10
BUTTON_TITLE, ROW_TITLE, ROW_DESCRIPTION = 20, 24, 72
BODY = 1024
TEXT = 4096


def choice_messages(question: str, options: Sequence[Button], list_label: str) -> list[Outgoing]:
    """Return a question with its options; `list_label` is the button that opens a list.

    A title that has no room is cut by whole words, and then the body holds all options whole.
    """
    whole = [option.title for option in options]
    width = BUTTON_TITLE if len(options) <= MOST_BUTTONS else ROW_TITLE
    titles = _distinct([cut_by_words(title, width) for title in whole], width)
    lines = [f"{number}. {title}" for number, title in enumerate(whole, 1)]
    is_cut = titles != whole
    body = settle(literal("\n\n".join([question, "\n".join(lines)]) if is_cut else question))
    if len(options) > MOST_ROWS or len(body) > BODY:
        return [Outgoing(settle(literal(f"{question}\n\n" + "\n".join(lines)))[:TEXT])]
    shown = tuple(Button(option.id, title) for option, title in zip(options, titles, strict=True))
    if len(options) <= MOST_BUTTONS:
        return [Outgoing(body, buttons=shown)]
    return [Outgoing(body, rows=shown, label=cut_by_words(list_label, BUTTON_TITLE))]


def cut_by_words(text: str, width: int) -> str:
    """Return a text of at most `width` characters, cut after a word if one ends in its second half."""
    text = " ".join(text.split())
    if len(text) <= width:
        return text
    head = text[: width - 1]
    word_end = head.rfind(" ")
    return (head[:word_end] if word_end >= width // 2 else head).rstrip(" ,;:-") + "…"


def _distinct(titles: Sequence[str], width: int) -> list[str]:
    """Give titles that became the same their numbers: WhatsApp refuses two that are equal."""
    if len(set(titles)) == len(titles):
        return list(titles)
    return [cut_by_words(f"{number}. {title}", width) for number, title in enumerate(titles, 1)]
