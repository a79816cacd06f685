"""A skill on a site of this machine, and what a test does to have it installed in a chat."""

import asyncio
import json
import re
import threading
from typing import Any

from tests.installs.archives import zipped
from tests.mailer import asked, press, questions
from tests.standins.model import calls, is_classifier, last_user_text
from tests.standins.site import Site, answer, site
from tests.world import wait_for

SKILL = """\
---
name: tides
description: Says when the tide is high.
metadata:
  own-results: "*"
---
Ask for the tide when somebody wants to swim. See {address}/now.
"""
TOOLS = '''
"""Tides."""


def high_tide(place: str, context=None) -> str:
    """Says when the tide is high.

    Args:
        place: A harbour.
    """
    return f"high at noon in {place}"


def ask_outside(url: str, context=None) -> str:
    """Asks an address.

    Args:
        url: The address.
    """
    return context.http.get(url).text
'''


class Web:
    """An https site on this machine, in a thread of its own; `pages` may change while it runs."""

    def __init__(self) -> None:
        self.pages: dict[str, Any] = {"": answer(status="404 Not Found")}
        self.site = Site()
        self._loop = asyncio.new_event_loop()
        self._ending = asyncio.Event()
        started = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=[self._serve(started)])
        self._thread.start()
        assert started.wait(10)

    async def _serve(self, started: threading.Event) -> None:
        async with site(self.pages, tls=True) as self.site:
            started.set()
            await self._ending.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(10)
        self._loop.close()

    def put(self, path: str, files: dict[str, str]) -> str:
        """An archive with these files; gives its address."""
        self.pages[path] = answer(zipped({name: text.encode() for name, text in files.items()}))
        return self.site.url + path

    def start(self, server: Any) -> None:
        """Starts a server that reaches this site."""
        server.start(launcher=("tests.standins.reaching_server", str(self.site.port)))

    @property
    def asked(self) -> list[str]:
        """Paths that were asked for."""
        return [head.split()[1] for head in self.site.heads]


def obeys(body: dict[str, Any]) -> Any:
    """A model that does what the message says: `tool {"argument": …}`."""
    if is_classifier(body):
        return '{"categories": ["expand", "tides", "hostile", "mailer"]}'
    newest = max(n for n, message in enumerate(body["messages"]) if message["role"] == "user")
    results = [one["content"] for one in body["messages"][newest:] if one["role"] == "tool"]
    if results:
        return "result: " + results[-1]
    wanted = re.search(r"(\w+) (\{.*\})", last_user_text(body))
    if not wanted:
        return "you said: " + last_user_text(body).splitlines()[-1]
    return calls((wanted[1], json.loads(wanted[2])))


def say(graph: Any, person: str, tool: str, **arguments: Any) -> None:
    graph.say(person, f"please {tool} {json.dumps(arguments)}")


def told(graph: Any, person: str, words: str) -> str:
    """The newest text with these words."""

    def found() -> str:
        return next((text for text in reversed(graph.texts(person)) if words in text), "")

    return str(wait_for(found, f"{words!r}; there are: {graph.texts(person)}"))


def details(graph: Any, person: str, count: int, word: str = "details") -> tuple[dict[str, Any], str]:
    """Has the whole card shown as the `count`-th question; gives it, and all that the person was sent."""
    graph.say(person, word)
    return asked(graph, person, count), cards(graph, person)


def install(graph: Any, address: str, button: str = "Install", count: int = 1) -> dict[str, Any]:
    """Installs as p0; gives the question."""
    say(graph, "p0", "install_skill_from_url", url=address)
    question = asked(graph, "p0", count)
    press(graph, "p0", question, button)
    told(graph, "p0", "✓ Installed")
    return question


def cards(graph: Any, person: str) -> str:
    """Everything somebody was sent, questions included."""
    return "\n".join([*graph.texts(person), *(question["text"] for question in questions(graph, person))])
