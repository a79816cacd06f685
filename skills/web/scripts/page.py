"""The readable text of a page: what a browser's reading view would leave.

Python's own parser reads it piece by piece: it makes no tree, so no nesting and no size makes it slow.
"""

import time
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

# Of text; a page that has more is cut.
MOST_CHARACTERS = 200_000
MOST_LINKS = 40
SECONDS = 5.0
PIECE = 65_536
# Characters from which on <article> or <main> is believed to be the page.
ENOUGH = 200
# A block with this share of its text in links is a menu.
LINKED = 0.6
# Only blocks up to this length are taken for one.
SHORT = 120

_UNSEEN_NAMES = "script style noscript template svg math canvas iframe object select button dialog head"
_BLOCK_NAMES = """
address article aside blockquote body br dd details div dl dt figcaption figure footer form h1 h2 h3 h4 h5 h6
header hr html li main menu nav ol p pre section summary table tbody tr ul
"""
_UNSEEN, _BLOCKS = frozenset(_UNSEEN_NAMES.split()), frozenset(_BLOCK_NAMES.split())
_AROUND = frozenset(("nav", "footer", "aside"))
_COUNTED = _UNSEEN | _AROUND | {"article", "main", "title", "pre"}
_HEADINGS = {f"h{level}": f"{'#' * min(level, 3)} " for level in range(1, 7)}


@dataclass(frozen=True)
class Page:
    """`links`: what the text links to, by the words of the link."""

    title: str
    text: str
    links: tuple[tuple[str, str], ...] = ()


def page_of(html: str, url: str) -> Page:
    """Return the readable part of a page; `url` is where its links begin."""
    reader = _Reader(url)
    until = time.monotonic() + SECONDS
    for start in range(0, len(html), PIECE):
        reader.feed(html[start : start + PIECE])
        if reader.is_full or time.monotonic() > until:
            break
    reader.feed("<br>")  # lets go of a last text; its own `close` takes the square of what was never closed
    return reader.page()


@dataclass
class _Block:
    """A paragraph, a heading, a line of a list; `linked` counts its characters that stand in links."""

    mark: str = ""
    pieces: list[str] = field(default_factory=list)
    text: str = ""
    linked: int = 0
    is_main: bool = False
    is_around: bool = False
    is_pre: bool = False
    links: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_menu(self) -> bool:
        return len(self.text) <= SHORT and self.linked >= LINKED * max(len(self.text), 1)


class _Reader(HTMLParser):
    """Gathers blocks of text, each with what stands around it."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = url
        self._blocks: list[_Block] = []
        self._block = _Block()
        # How many elements are open, of the kinds that matter.
        self._inside: dict[str, int] = {}
        self._title = ""
        self._named = ""
        self._link = ""
        self._link_pieces: list[str] = []
        self._size = 0

    @property
    def is_full(self) -> bool:
        return self._size >= MOST_CHARACTERS

    def page(self) -> Page:
        self._end_block()
        seen = [block for block in self._blocks if not block.is_around]
        main = [block for block in seen if block.is_main]
        if sum(len(block.text) for block in main) >= ENOUGH:
            seen = main
        told = [block for block in seen if not block.is_menu] or seen or self._blocks
        text = "\n".join(f"{block.mark}{block.text}" for block in told)[:MOST_CHARACTERS]
        links = {target: name for block in told for name, target in block.links}
        listed = tuple((name, target) for target, name in links.items())[:MOST_LINKS]
        return Page(_spaced(self._named or self._title)[:300], text, listed)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "meta" and values.get("property") == "og:title":
            self._named = values.get("content") or ""
        if tag == "base" and values.get("href"):
            self._base = _joined(self._base, values["href"] or "")
        if tag in _BLOCKS:
            self._inside.pop("head", None)  # it is seldom closed
            self._end_block(_HEADINGS.get(tag, "- " if tag == "li" else ""))
        if tag in ("td", "th") and self._block.pieces:
            self._block.pieces.append(" | ")
        if tag == "a":
            self._end_link()
            self._link = _joined(self._base, values.get("href") or "")
        if tag in _COUNTED:
            self._inside[tag] = self._inside.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._end_link()
        if tag in _BLOCKS:
            self._end_block()
            self._block.mark = ""
        if self._inside.get(tag):
            self._inside[tag] -= 1

    def handle_data(self, data: str) -> None:
        if self._inside.get("title") and not self._inside.get("svg"):
            self._title += data[: 1000 - len(self._title)]
            return
        if self._is_in(_UNSEEN):
            return
        block = self._block
        if not block.pieces:
            if not data.strip():
                return
            block.is_main, block.is_around = self._is_in(("article", "main")), self._is_in(_AROUND)
            block.is_pre = bool(self._inside.get("pre"))
        self._size += len(data)
        block.pieces.append(data)
        if self._link:
            block.linked += len(data)
            self._link_pieces.append(data)

    def _is_in(self, tags: frozenset[str] | tuple[str, ...]) -> bool:
        return any(count and tag in tags for tag, count in self._inside.items())

    def _end_link(self) -> None:
        name = _spaced("".join(self._link_pieces))
        if name and self._link.startswith(("http://", "https://")):
            self._block.links.append((name[:100], self._link))
        self._link, self._link_pieces = "", []

    def _end_block(self, mark: str = "") -> None:
        """Begin another block; an empty one passes its mark on."""
        link = self._link
        self._end_link()
        self._link = link
        block = self._block
        text = "".join(block.pieces)
        block.text = text.strip("\n") if block.is_pre else _spaced(text)
        if block.text:
            self._blocks.append(block)
            block.pieces = []
        self._block = _Block(mark or ("" if block.text else block.mark))


def _joined(base: str, target: str) -> str:
    try:
        return urljoin(base, target.strip())[:2000]
    except ValueError:
        return ""


def _spaced(text: str) -> str:
    return " ".join(text.split())
