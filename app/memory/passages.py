"""Cut what a business wrote into passages: a section, a question with its answer, or a row of a table."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

LONGEST = 1_200  # characters of a passage; a longer section is cut at its paragraphs
MOST_OF_A_FILE = 20_000  # passages

_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*\s*")
_ASKS = r"(?:\*\*)?(?:[pq]\s*[:)]|(?:pregunta|pergunta|question)\s*[:.)])"
_ANSWERS = r"(?:\*\*)?(?:[ra]\s*[:)]|(?:respuesta|resposta|answer)\s*[:.)])"
_QUESTION = re.compile(_ASKS, re.IGNORECASE)
_MARK = re.compile(rf"^(?:{_ASKS}|{_ANSWERS})\s*(?:\*\*)?\s*", re.IGNORECASE | re.MULTILINE)
# An answer may stand below an empty line; a question begins a paragraph of its own.
_PARAGRAPH = re.compile(rf"\n\s*\n(?!\s*{_ANSWERS})|\n(?={_ASKS})", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->")
_RULE = re.compile(r"\|?[\s:|-]*-[\s:|-]*\|?")
_SEPARATORS = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class Passage:
    """`title`: a heading, a question or the first cell of a row; `text`: the words as they stand."""

    title: str
    text: str
    place: str = ""  # where it stands in the file: its headings, or the number of its row
    cells: str = ""  # of a row, without the names of their columns, which all rows have


def cut(name: str, text: str) -> list[Passage]:
    """Return the passages of a file's text; `name` tells a table (.csv, .tsv, .xlsx) from other text.

    Raises ValueError for a table that cannot be read.
    """
    read = {"xlsx": _sheets, "xlsm": _sheets, "csv": _csv, "tsv": _csv}
    suffix = name.rpartition(".")[2].casefold()
    try:
        return list(islice(read.get(suffix, _prose)(text), MOST_OF_A_FILE))
    except csv.Error as error:
        raise ValueError(f"its rows cannot be read ({error}); save it as CSV in UTF-8 again") from error


def _prose(text: str) -> Iterator[Passage]:
    headings: list[tuple[int, str]] = []
    lines: list[str] = []

    def section() -> Iterator[Passage]:
        title = headings[-1][1] if headings else ""
        place = " › ".join(heading for _, heading in headings)
        yield from _tables(title, place, lines)
        lines.clear()

    for line in _COMMENT.sub("", text).splitlines():
        heading = _HEADING.fullmatch(line.strip())
        if heading is None:
            lines.append(line)
            continue
        yield from section()
        level = len(heading[1])
        headings = [one for one in headings if one[0] < level] + [(level, heading[2].strip("*_ "))]
    yield from section()


def _tables(title: str, place: str, lines: Sequence[str]) -> Iterator[Passage]:
    """Yield the tables, the questions with their answers, and the paragraphs under one heading."""
    prose: list[str] = []
    table: list[list[str]] = []
    for line in [*lines, ""]:
        if line.strip().startswith("|"):
            if not _RULE.fullmatch(line.strip()):
                table.append([cell.strip(" *") for cell in line.strip().strip("|").split("|")])
            continue
        if table:
            yield from _rows(table, place or title)
            table = []
        prose.append(line)
    yield from _paragraphs(title, place, "\n".join(prose))


def _paragraphs(title: str, place: str, text: str) -> Iterator[Passage]:
    """Yield each question with its answer, and as many of the other paragraphs together as fit."""
    part = ""
    for paragraph in filter(None, (one.strip() for one in _PARAGRAPH.split(text))):
        if _QUESTION.match(paragraph):
            whole = _MARK.sub("", paragraph, count=2)  # that of the question and that of its answer
            yield Passage(whole.partition("\n")[0].strip("* "), whole, place)
            continue
        for piece in _pieces(paragraph):
            if part and len(part) + len(piece) > LONGEST:
                yield Passage(title or _first_words(part), part, place)
                part = ""
            part = f"{part}\n\n{piece}" if part else piece
    if part:
        yield Passage(title or _first_words(part), part, place)


def _pieces(paragraph: str) -> Iterator[str]:
    while len(paragraph) > LONGEST:
        at = paragraph.rfind(" ", LONGEST // 2, LONGEST) + 1 or LONGEST
        yield paragraph[:at].strip()
        paragraph = paragraph[at:]
    yield paragraph


def _csv(text: str) -> Iterator[Passage]:
    lines = io.StringIO(text, newline=None)  # Excel for Mac ends them with "\r"
    separator = max(_SEPARATORS, key=lines.readline().count)
    lines.seek(0)
    rows = csv.reader(lines, delimiter=separator)
    yield from _rows(
        [[cell.strip() for cell in row] for row in rows if any(cell.strip() for cell in row)], ""
    )


def _sheets(text: str) -> Iterator[Passage]:
    for sheet in re.split(r"(?m)^# (?=[^\t\n]*$)", text):  # the name of a sheet; cells are parted by tabs
        title, _, body = sheet.partition("\n")
        rows = [line.split("\t") for line in body.splitlines() if line.strip()]
        if rows:
            yield from _rows(rows, title.strip())


def _rows(rows: Sequence[Sequence[str]], place: str) -> Iterator[Passage]:
    """Yield a passage a row, each cell under the name of its column."""
    if not rows:
        return
    head, *others = rows
    for number, row in enumerate(others, 2):
        cells = [(name, cell) for name, cell in zip(head, row, strict=False) if cell]
        text = "; ".join(f"{name}: {cell}" if name else cell for name, cell in cells)
        if text:
            words = [cell for _, cell in cells if re.search(r"[^\W\d_]", cell)]
            cells_alone = " ".join(cell for _, cell in cells)
            yield Passage(" ".join(words[:2]), text, f"{place} {number}".strip(), cells_alone)


def _first_words(text: str) -> str:
    return " ".join(text.split()[:8])
