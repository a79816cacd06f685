"""Questions that a person answers with a press."""

import re

from app.tools.authoring import Sentences, cut, read_said

MOST_OPTIONS = 20
LONGEST_OPTION = 200
LONGEST_QUESTION = 900
# Plain ones alone: what another program may read as another host is no address to hide behind a button.
_ADDRESS = re.compile(r"https://([A-Za-z0-9.-]{1,253})(?::\d{1,5})?(?:[/?#][!-.0-?A-\[\]-~/]{0,1500})?")

SAID = read_said(__file__)


def ask_to_choose(question: str, options: list[str], context=None) -> dict:
    """Asks the person to choose one of several options, with buttons or a list. It ends your answer.

    Args:
        question: What the person reads above the options, with all that they need to know.
        options: 2 to 20 options, each in a few words.

    Example: ask me which of the three restaurants I want
    """
    say = Sentences(SAID, context)
    wanted = list(dict.fromkeys(" ".join(one.split())[:LONGEST_OPTION] for one in options if one.strip()))
    if len(wanted) < 2:
        return say.failed("TOO_FEW", code="BAD_REQUEST")
    if not question.strip():
        return say.failed("NO_QUESTION", code="BAD_REQUEST")
    asked = {"question": question.strip()[:LONGEST_QUESTION], "options": wanted[:MOST_OPTIONS]}
    return {"ok": True, "data": {"asked": asked["options"]}, "meta": {"asks": asked}}


def offer_link(text: str, title: str, url: str, context=None) -> dict:
    """Answers with a link as a button. It ends your answer.

    Args:
        text: What the person reads above the button.
        title: The button, at most 20 characters, such as "Ver el menú".
        url: The https address, exactly as the person, a search or a tool gave it.

    Example: send me the link of the clinic as a button
    """
    say, address = Sentences(SAID, context), _ADDRESS.fullmatch(url.strip())
    if address is None or not title.strip() or not text.strip():
        return say.failed("NO_ADDRESS", code="BAD_REQUEST")
    host = address[1]
    shown = f"{text.strip()[:LONGEST_QUESTION]}\n\n({host})"  # a button hides where it leads
    asked = {"question": shown, "link": {"title": cut(title, 20), "url": url.strip()}}
    return {"ok": True, "data": {"offered": url.strip()}, "meta": {"asks": asked}}


def ask_for_location(question: str, context=None) -> dict:
    """Asks the person where they are, with a button that sends their location. It ends your answer.

    Args:
        question: What the person reads above the button, such as "Where are you? Then I find the nearest."

    Example: ask me where I am
    """
    say = Sentences(SAID, context)
    if not question.strip():
        return say.failed("NO_QUESTION", code="BAD_REQUEST")
    asked = {"question": question.strip()[:LONGEST_QUESTION], "location": True}
    return {"ok": True, "data": {"asked": "location"}, "meta": {"asks": asked}}
