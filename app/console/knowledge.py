"""The page of knowledge: files, questions that were asked and not known, and answers to them."""

import asyncio
import re
import time
from dataclasses import asdict
from hashlib import sha256

from fastapi import Request, Response

from app.console.site import Fields, Site, Values, Words, back
from app.errors import RecadoError
from app.i18n import lazy
from app.security import locked
from app.store import threads
from app.text import fold

ANSWERS = "answers.md"
UNKNOWN = ("UNKNOWN", "UNKNOWN_YET")  # the codes with which a tool says that nothing answers a question
HERE = "/console/knowledge"


def add_knowledge(site: Site) -> None:
    """Add the page of what the business tells."""
    router, knowledge = site.router, site.assistant.knowledge

    @site.page(HERE, "knowledge.html")
    async def files(request: Request, question: str = "", words: Words = "") -> Values:
        """Return the files, what was not known, and what a question finds."""
        unknown = await site.store.read(lambda conn: threads.unknown(conn, UNKNOWN, time.time()))
        answered = await asyncio.to_thread(_answered)
        asked = [one for one in unknown if _mark(one.text) not in answered]
        found = await asyncio.to_thread(knowledge.search, words) if words else []
        known = [one for one in found if one.is_enough]
        listed = [asdict(one) for one in await asyncio.to_thread(knowledge.files)]
        return {"files": listed, "asked": asked, "found": known, "words": words, "question": question}

    @router.post(f"{HERE}/answer")
    async def answer(form: Fields) -> Response:
        """Add a question with its answer to the file of answers."""
        question, text = " ".join(form.get("question", "").split()), form.get("answer", "").strip()
        if not (question and text):
            missing = "answer" if question else "question"
            raise RecadoError(lazy("write a question and its answer"), field=missing)
        await asyncio.to_thread(_append, question, text, form.get("asked", ""))
        return back(HERE)

    @router.post(f"{HERE}/add")
    async def add(request: Request) -> Response:
        file = request.state.files.get("file")
        if file is None or not file.filename:
            raise RecadoError(lazy("choose a file"), field="file")
        kept = await asyncio.to_thread(knowledge.add, file.filename, await file.read())
        if kept is None:
            raise RecadoError(lazy("Markdown, text, PDF, Word, Excel and CSV files are read"), field="file")
        if kept.fault:
            raise RecadoError(kept.fault, field="file")
        return back(HERE)

    @router.post(f"{HERE}/remove")
    async def remove(form: Fields) -> Response:
        if not await asyncio.to_thread(knowledge.remove, form.get("name", "")):
            raise RecadoError(lazy("there is no such file"))
        return back(HERE)

    def _answered() -> set[str]:
        """Return the marks of the questions in the file of answers, and of those as they were asked."""
        path = knowledge.folder / ANSWERS
        text = path.read_text("utf-8", "replace") if path.is_file() else ""
        questions = re.findall(r"^## (.*)", text, re.MULTILINE)
        return {*map(_mark, questions), *re.findall(r"^<!-- asked (\w+) -->$", text, re.MULTILINE)}

    def _append(question: str, text: str, asked: str) -> None:
        """Add to the file of answers, one at a time: in another thread or process somebody may do so too."""
        path = knowledge.folder / ANSWERS
        mark = f"<!-- asked {_mark(asked)} -->\n" if asked else ""  # its words may name somebody
        try:
            with locked(knowledge.folder):
                before = path.read_text("utf-8") if path.is_file() else ""
                kept = knowledge.add(ANSWERS, f"{before}\n{mark}## {question}\n\n{text}\n".lstrip().encode())
        except OSError as error:
            raise RecadoError(lazy("the answer could not be kept")) from error
        if kept is None or kept.fault:
            raise RecadoError(kept.fault if kept else lazy("the answer could not be kept"), field="answer")


def _mark(question: str) -> str:
    """Return a short mark of a question, the same however it is spaced and written."""
    return sha256(fold(" ".join(question[:300].split())).encode()).hexdigest()[:16]
