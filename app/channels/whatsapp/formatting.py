"""Markdown in WhatsApp's formatting, plain text that must not look like it, and the splitting of long texts.

WhatsApp formats `*bold*`, `_italic_` and `~strike~` within one line, when the mark hugs its text and
stands at the edge of a word; `` `code` `` likewise. It knows no escape sign, so a literal mark that
would be taken for formatting gets an invisible WORD JOINER (U+2060) before it: no longer at the edge of
a word. Where WhatsApp would not format (`2*3*4`, `snake_case`, `a * b`) text stays untouched.

While a text is made, intended marks are Unicode noncharacters, which no text contains.
"""

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.tree import SyntaxTreeNode

JOINER = "\u2060"
BROKEN_FENCE = f"`{JOINER}`{JOINER}`"  # three backticks that open no code

_OPEN = {"*": "\ufdd0", "_": "\ufdd1", "~": "\ufdd2"}
_CLOSE = {"*": "\ufdd3", "_": "\ufdd4", "~": "\ufdd5"}
_KEPT = {"*": "\ufdd6", "_": "\ufdd7", "~": "\ufdd8", "`": "\ufdd9"}
_KEEP = str.maketrans(_KEPT)
_REVEAL = str.maketrans({sign: mark for mark, sign in _KEPT.items()})
_SHOW = str.maketrans({sign: mark for signs in (_OPEN, _CLOSE) for mark, sign in signs.items()})
_NONCHARACTERS = re.compile("[\ufdd0-\ufdef\ud800-\udfff]")
_ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>]+", re.IGNORECASE)
_LETTER = r"[^\W_]"
_OPENING = {mark: re.compile(rf"(?<!{_LETTER})(?<!\{mark})\{mark}+(?=\S)") for mark in _OPEN}
_CLOSING = {mark: re.compile(rf"(?<=\S)[{_CLOSE[mark]}{mark}](?!{_LETTER})") for mark in _OPEN}
_OPENING["`"], _CLOSING["`"] = re.compile("`"), re.compile(f"[`{_KEPT['`']}]")  # any pair, spaces or not

NESTING_LIMIT = 60
INDENT = "  "
RULE = "———"

_EMPHASIS = {"strong": "*", "em": "_", "s": "~"}
_BREAK_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)

FENCE = "```"
_RESERVE = 8  # characters that close and reopen a fence
_SMALLEST = 32  # below this limit no fence is reopened: a part would hold little else
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'»”’)\]]*\s")
_SPACE = re.compile(r"\s")
_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)+")


def _keep_within_words(state: StateInline, silent: bool) -> bool:
    """Take marks between letters or digits as text: `2*3*4` means it so."""
    if state.src[state.pos] not in "*~":
        return False
    scanned = state.scanDelims(state.pos, False)
    if scanned.can_open or scanned.can_close:
        return False
    if not silent:
        state.pending += state.src[state.pos] * scanned.length
    state.pos += scanned.length
    return True


_PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": NESTING_LIMIT})
_PARSER.enable(["strikethrough", "table"])
_PARSER.inline.ruler.before("strikethrough", "within words", _keep_within_words)


def render_whatsapp(markdown: str) -> str:
    """Return Markdown in WhatsApp's own formatting.

    Elements that WhatsApp lacks become plain text that reads well on a phone: headings are bold
    lines, links `text (address)`, tables `*header*: cell` lines. Never raises.
    """
    text = without_signs(markdown).expandtabs(4)
    tokens = _PARSER.parse(text)
    if any(token.level >= NESTING_LIMIT - 1 for token in tokens):  # the parser drops what is deeper
        return text.strip()
    rendered = "\n".join(_blocks(SyntaxTreeNode(tokens).children)).strip("\n")
    if not rendered and any(character.isalnum() for character in text):
        return text.strip()  # only what Markdown keeps to itself, such as link definitions
    return rendered


def _blocks(nodes: Sequence[SyntaxTreeNode], *, tight: bool = False) -> list[str]:
    """Return the lines of blocks below each other, with an empty one between them (none in a list item)."""
    lines: list[str] = []
    for node in nodes:
        block = _block(node)
        if lines and block and not tight:
            lines.append("")
        lines += block
    return lines


def _block(node: SyntaxTreeNode) -> list[str]:
    kind = node.type
    if kind in {"paragraph", "inline"}:
        return _prose(_inline(node))
    if kind == "heading":
        return _prose(marked("*", _inline(node)))
    if kind in {"fence", "code_block"}:
        return _code(node.content or node.info)
    if kind in {"bullet_list", "ordered_list"}:
        return _list(node)
    if kind == "blockquote":  # WhatsApp knows no quote in a quote: inner ones become part of it
        quoted = _blocks(node.children)
        return [line if not line or line.startswith("> ") else f"> {line}" for line in quoted]
    if kind == "table":
        return _table(node)
    if kind == "hr":
        return [RULE]
    return _blocks(node.children) if node.children else _prose(literal(node.content))


def _prose(inline: str) -> list[str]:
    settled = settle(inline)
    if not settled.strip():
        return []
    lines = (line.rstrip() for line in settled.split("\n"))
    return [JOINER + line if line.startswith(">") else line for line in lines]  # plain text is no quote


def _code(content: str) -> list[str]:
    if not content.strip():
        return []
    content = content.strip("\n").replace("```", BROKEN_FENCE)
    return ["```", *content.split("\n"), "```"]


def _list(node: SyntaxTreeNode) -> list[str]:
    lines: list[str] = []
    for item, label in zip(node.children, _labels(node), strict=True):
        body = _blocks(item.children, tight=True) or [""]
        if body[0] == "```":
            body.insert(0, "")
        lines.append((label + body[0]).rstrip())
        lines += [INDENT + line if line else "" for line in body[1:]]
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


def _table(node: SyntaxTreeNode) -> list[str]:
    """Render each row as lines of `*header*: cell`: a phone is too narrow for columns."""
    rows = [[_inline(cell) for cell in row.children] for section in node.children for row in section.children]
    headers = [marked("*", header) if header.strip() else "" for header in rows[0]]
    if len(rows) == 1:
        return _prose(" · ".join(filter(None, headers)))
    lines: list[str] = []
    for row in rows[1:]:
        block: list[str] = []
        for header, cell in zip(headers, row, strict=False):
            if cell.strip():
                block += _prose(f"{header}: {cell}" if header else cell)
        lines += ["", *block] if lines and block else block
    return lines


def _inline(node: SyntaxTreeNode) -> str:
    """Return the text of a block, its marks still as signs."""
    inline = [node] if node.type == "inline" else node.children[:1]
    return "".join(piece for one in inline for piece in _pieces(one.children))


def _pieces(nodes: Sequence[SyntaxTreeNode]) -> Iterator[str]:
    for node in nodes:
        if node.type in {"softbreak", "hardbreak"}:
            yield "\n"
        elif node.type in _EMPHASIS:
            yield marked(_EMPHASIS[node.type], "".join(_pieces(node.children)))
        elif node.type == "code_inline":
            yield _inline_code(node.content)
        elif node.type in {"link", "image"}:
            address = node.attrs.get("href") or node.attrs.get("src") or ""
            yield _link("".join(_pieces(node.children)), str(address))
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
    if not address or address.startswith("#"):
        return text
    shown, visible = settle(text), raw(address.removeprefix("mailto:").removeprefix("tel:"))
    is_alone = not shown.strip() or _bare(shown) == _bare(address)
    return visible if is_alone else f"{text} ({visible})"


def _bare(address: str) -> str:
    return re.sub("^(?:mailto:|tel:|https?://)", "", address).strip().rstrip("/")


def without_signs(text: str) -> str:
    """Remove the code points used here from outside text, and lone surrogates, which cannot be sent."""
    return _NONCHARACTERS.sub("", text)


def raw(text: str) -> str:
    """Protect the marks of addresses and code."""
    return text.translate(_KEEP)


def literal(text: str) -> str:
    """Return plain text; addresses in it keep their characters."""
    return _ADDRESS.sub(lambda found: raw(found[0]), text).replace("```", BROKEN_FENCE)


def marked(mark: str, inner: str) -> str:
    """Return a text to be formatted by a mark: each line of it for itself, but one that holds it as text."""
    lines = inner.replace(_OPEN[mark], "").replace(_CLOSE[mark], "").split("\n")
    for number, line in enumerate(lines):
        words = line.strip()
        if words and mark not in words:  # a mark counts only where it hugs the words
            lines[number] = line.replace(words, _OPEN[mark] + words + _CLOSE[mark], 1)
    return "\n".join(lines)


def settle(text: str) -> str:
    """Turn signs into WhatsApp's marks, and disarm literal marks."""
    return "\n".join(map(_disarmed, text.split("\n"))).translate(_SHOW).translate(_REVEAL)


def _disarmed(line: str) -> str:
    """Put a joiner before each literal mark that would open a formatting which a later one closes."""
    for mark in _OPENING:
        closing = 0
        for found in _CLOSING[mark].finditer(line):
            closing = found.start()
        head = _OPENING[mark].sub(lambda run: JOINER + JOINER.join(run[0]), line[:closing])
        line = head + line[closing:]
    return line


def split_message(text: str, limit: int = 4096) -> list[str]:
    """Split WhatsApp text into parts of at most `limit` characters; return `[]` for blank text.

    Cuts fall between paragraphs, else lines, sentences, words; only then anywhere. A code fence that is open
    at a cut is closed before and reopened after it. Nothing is lost but white space at the cuts. Length is
    counted in characters (code points), as Meta counts. Raises ValueError for a limit below 1.
    """
    if limit < 1:
        raise ValueError(f"a message holds at least one character; the limit was {limit}")
    parts, rest = [], text.strip("\n").rstrip()
    while len(rest) > limit:
        part, rest = _split(rest, limit)
        if part:
            parts.append(part)
    return [*parts, rest] if rest else parts


def _split(text: str, limit: int) -> tuple[str, str]:
    """Split off the first part; a fence that fits into the next part goes there whole."""
    reopens = limit >= _SMALLEST
    cut = _best_cut(text, limit - _RESERVE if reopens else limit)
    part, rest = text[:cut].rstrip(), _next_text(text, cut)
    if not reopens or part.count(FENCE) % 2 == 0:
        return part, rest
    begins, ends = part.rfind(FENCE), text.find(FENCE, cut) + len(FENCE)
    if part[:begins].strip() and (ends - begins <= limit or not part[begins + len(FENCE) :].strip()):
        return part[:begins].rstrip(), text[begins:]
    if rest.lstrip().startswith(FENCE):  # no code is left: a reopened fence would be empty
        return f"{part}\n{FENCE}", rest.lstrip().removeprefix(FENCE).lstrip("\n")
    return f"{part}\n{FENCE}", f"{FENCE}\n{rest}"


def _next_text(text: str, cut: int) -> str:
    """Return what follows a cut without empty lines; the indentation of a new line stays."""
    if blank := _BLANK_LINES.match(text, cut):
        return text[blank.end() :]
    return text[cut:] if text[cut - 1] == "\n" else text[cut:].lstrip()


def _best_cut(text: str, room: int) -> int:
    """Return the best end of a part of at most `room` characters.

    After a paragraph or a line if that leaves the part reasonably full, else after a sentence or a word.
    """
    half, quarter = room // 2, room // 4
    for separator, earliest in (("\n\n", half), ("\n", half), ("\n\n", quarter), ("\n", quarter)):
        found = text.rfind(separator, earliest, room + 1)
        if found > 0:
            return found
    if sentences := [found.end() - 1 for found in _SENTENCE_END.finditer(text, half, room + 1)]:
        return sentences[-1]
    if spaces := [found.start() for found in _SPACE.finditer(text, quarter + 1, room + 1)]:
        return spaces[-1]
    return room
