"""Markdown in WhatsApp's formatting."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from app.channels.whatsapp.marks import BROKEN_FENCE, JOINER, literal, marked, raw, settle, without_signs

NESTING_LIMIT = 60
INDENT = "  "
RULE = "———"
_PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": NESTING_LIMIT}).enable(
    ["strikethrough", "table"]
)

_EMPHASIS = {"strong": "*", "em": "_", "s": "~"}
_BREAK_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TASKS = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
_HIDDEN_SCHEMES = ("mailto:", "tel:", "https://", "http://")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the result. Lines of code are kept to the letter: never quoted nor indented."""

    text: str
    is_code: bool = False


_EMPTY = _Line("")


def render_whatsapp(markdown: str) -> str:
    """Return Markdown in WhatsApp's own formatting.

    Elements that WhatsApp lacks become plain text that reads well on a phone: headings are bold
    lines, links `text (address)`, tables `*header*: cell` lines. Never raises.
    """
    text = without_signs(markdown).expandtabs(4)
    tokens = _PARSER.parse(text)
    if any(token.level >= NESTING_LIMIT - 1 for token in tokens):  # the parser drops what is deeper
        return text.strip()
    lines = _blocks(SyntaxTreeNode(tokens).children)
    rendered = "\n".join(line.text for line in lines).strip("\n")
    if not rendered and any(character.isalnum() for character in text):
        return text.strip()  # only what Markdown keeps to itself, such as link definitions
    return rendered


def _blocks(nodes: Sequence[SyntaxTreeNode], *, tight: bool = False) -> list[_Line]:
    """Render blocks below each other, with an empty line between them (none in a list item)."""
    lines: list[_Line] = []
    for node in nodes:
        block = _block(node)
        if lines and block and not tight:
            lines.append(_EMPTY)
        lines += block
    return lines


def _block(node: SyntaxTreeNode) -> list[_Line]:
    kind = node.type
    if kind in {"paragraph", "inline"}:
        return _prose(_inline(node))
    if kind == "heading":
        return _prose(marked("*", _inline(node)))
    if kind in {"fence", "code_block"}:
        return _code(node.content or node.info)
    if kind in {"bullet_list", "ordered_list"}:
        return _list(node)
    if kind == "blockquote":
        return _quote(node)
    if kind == "table":
        return _table(node)
    if kind == "hr":
        return [_Line(RULE)]
    return _blocks(node.children) if node.children else _prose(literal(node.content))


def _prose(inline: str) -> list[_Line]:
    settled = settle(inline)
    if not settled.strip():
        return []
    return [_Line(_unquoted(line.rstrip())) for line in settled.split("\n")]


def _unquoted(line: str) -> str:
    """Keep a plain line from reading as a quote."""
    return JOINER + line if line.startswith(">") else line


def _code(content: str) -> list[_Line]:
    if not content.strip():
        return []
    content = content.strip("\n").replace("```", BROKEN_FENCE)
    return [_Line(line, is_code=True) for line in ("```", *content.split("\n"), "```")]


def _list(node: SyntaxTreeNode) -> list[_Line]:
    lines: list[_Line] = []
    for item, label in zip(node.children, _labels(node), strict=True):
        body = _task(_blocks(item.children, tight=True))
        if not body or body[0].is_code:
            body.insert(0, _EMPTY)
        lines.append(_Line((label + body[0].text).rstrip() if body[0].text else label.rstrip()))
        lines += [line if line.is_code else _Line(INDENT + line.text) for line in body[1:]]
    return lines


def _labels(node: SyntaxTreeNode) -> list[str]:
    """Return the numbers as written, as people answer with them ("delete 3"); counted if some are equal."""
    if node.type == "bullet_list":
        return ["- "] * len(node.children)
    written = [item.info for item in node.children]
    if len(set(written)) < len(written):
        first = int(node.attrs.get("start", 1))
        written = [str(number) for number in range(first, first + len(written))]
    return [f"{number}. " for number in written]


def _task(body: list[_Line]) -> list[_Line]:
    if body and not body[0].is_code and body[0].text[:4] in _TASKS:
        return [_Line(_TASKS[body[0].text[:4]] + body[0].text[4:]), *body[1:]]
    return body


def _quote(node: SyntaxTreeNode) -> list[_Line]:
    """Begin every line with `> `; WhatsApp knows no quote in a quote, so inner ones become part of it."""
    return [
        line if line.is_code or not line.text or line.text.startswith("> ") else _Line(f"> {line.text}")
        for line in _blocks(node.children)
    ]


def _table(node: SyntaxTreeNode) -> list[_Line]:
    """Render each row as lines of `*header*: cell`: a phone is too narrow for columns."""
    rows = [row.children for section in node.children for row in section.children]
    headers = [_inline(cell) for cell in rows[0]]
    if len(rows) == 1:
        return _prose(" · ".join(marked("*", header) for header in headers if header.strip()))
    lines: list[_Line] = []
    for row in rows[1:]:
        cells = [_cell(header, _inline(cell)) for header, cell in zip(headers, row, strict=False)]
        block = [line for cell in cells if cell for line in _prose(cell)]
        if lines and block:
            lines.append(_EMPTY)
        lines += block
    return lines


def _cell(header: str, cell: str) -> str:
    if not cell.strip():
        return ""
    return f"{marked('*', header)}: {cell}" if header.strip() else cell


def _inline(node: SyntaxTreeNode) -> str:
    """Return the text of a block, its marks still as signs."""
    inline = node if node.type == "inline" else next(iter(node.children), None)
    if inline is None:
        return ""
    return "".join(_pieces(inline.children))


def _pieces(nodes: Sequence[SyntaxTreeNode]) -> Iterator[str]:
    for node in nodes:
        if node.type in {"softbreak", "hardbreak"}:
            yield "\n"
        elif node.type in _EMPHASIS:
            yield marked(_EMPHASIS[node.type], "".join(_pieces(node.children)))
        elif node.type == "code_inline":
            yield _inline_code(node.content)
        elif node.type == "link":
            yield _link("".join(_pieces(node.children)), str(node.attrs.get("href", "")))
        elif node.type == "image":
            yield _link("".join(_pieces(node.children)), str(node.attrs.get("src", "")))
        else:
            yield literal(_BREAK_TAG.sub("\n", node.content))


def _inline_code(content: str) -> str:
    content = content.strip()
    if not content:
        return ""
    if "```" in content:
        return raw(content.replace("```", BROKEN_FENCE))
    return raw(f"```{content}```" if "`" in content else f"`{content}`")


def _link(text: str, address: str) -> str:
    """Return `text (address)`; only one of them if they are equal or one is missing."""
    shown = settle(text)
    if not address or address.startswith("#"):
        return text
    if not shown.strip() or _bare(shown) == _bare(address):
        return raw(_visible(address))
    return f"{text} ({raw(_visible(address))})"


def _visible(address: str) -> str:
    return address.removeprefix("mailto:").removeprefix("tel:")


def _bare(address: str) -> str:
    for scheme in _HIDDEN_SCHEMES:
        address = address.removeprefix(scheme)
    return address.strip().rstrip("/")
