"""Charts: numbers as a PNG that goes with the answer."""

import csv
import io
import re
import threading
from typing import Literal

from app.tools.authoring import Sentences, cut, read_said
from app.tools.result import ReturnedFile, ToolResult

MOST_POINTS = 200
MOST_BARS = 40
MOST_SLICES = 10
LONGEST_LABEL = 24
LONGEST_TITLE = 100
INCHES = (5.4, 3.6)
DOTS_PER_INCH = 200
COLOUR = "#ad452a"

SAID = read_said(__file__)
_ONE_AT_A_TIME = threading.Lock()  # matplotlib's fonts are shared


def chart(
    title: str,
    labels: list[str],
    values: list[float],
    kind: Literal["bar", "line", "pie"] = "bar",
    context=None,
) -> ToolResult:
    """Draws numbers as a picture that goes with the answer.

    Args:
        title: What the chart shows, with the unit: "Gastos de noviembre (MXN)".
        labels: The names of the numbers, in order.
        values: The numbers, one for each label.
        kind: bar to compare, line for what changes over time, pie for the parts of a whole.

    Example: hazme un gráfico de mis gastos: renta 8000, comida 3500, luz 600
    """
    say = Sentences(SAID, context)
    if len(labels) != len(values):
        return ToolResult.of(say.failed("UNEVEN", code="BAD_REQUEST", labels=len(labels), values=len(values)))
    return _drawn(
        say, title, [(label, float(value)) for label, value in zip(labels, values, strict=True)], kind
    )


def chart_file(
    path: str,
    label_column: str,
    value_column: str,
    title: str = "",
    kind: Literal["bar", "line", "pie"] = "bar",
    context=None,
) -> ToolResult:
    """Draws two columns of one of the person's CSV or Excel files; equal labels are added up.

    Args:
        path: The file, such as "recibidos/ventas.csv".
        label_column: The name of the column with the names or dates, as in the first row.
        value_column: The name of the column with the numbers.
        title: What the chart shows; "" for the names of the columns.
        kind: bar to compare, line for what changes over time, pie for the parts of a whole.

    Example: haz un gráfico de ventas por mes del archivo ventas.csv
    """
    say = Sentences(SAID, context)
    rows = _table(context.services.files, path, context)
    if not rows:
        return ToolResult.of(say.failed("UNREADABLE", path=cut(path, 80)))
    header = [one.strip() for one in rows[0]]
    wanted = {}
    for column in (label_column, value_column):
        found = [place for place, name in enumerate(header) if name.casefold() == column.strip().casefold()]
        if not found:
            names = ", ".join(cut(name, 30) for name in header[:12])
            return ToolResult.of(say.failed("NO_COLUMN", column=cut(column, 40), columns=names))
        wanted[column] = found[0]
    sums: dict[str, float] = {}
    for row in rows[1:]:
        if len(row) > max(wanted.values()) and (value := _number(row[wanted[value_column]])) is not None:
            label = row[wanted[label_column]].strip()
            sums[label] = sums.get(label, 0.0) + value
    drawn = _drawn(
        say,
        title or f"{header[wanted[value_column]]} · {header[wanted[label_column]]}",
        list(sums.items()),
        kind,
    )
    return drawn.with_meta(outside=True)  # labels of a file may be anybody's words


def _table(files, path, context):
    """Return the rows of the first table of a file, [] where it has none."""
    text, page, pages = "", 1, 1
    while page <= pages and page <= 40:
        read = files.read_file(path=path, page=page, context=context)
        if not read.ok:
            return []
        text, pages, page = text + read.data["content"], read.data["pages"], page + 1
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("# ")]
    if not lines:
        return []
    mark = max("\t;,", key=lines[0].count)
    return list(csv.reader(io.StringIO("\n".join(lines)), delimiter=mark))


def _number(text):
    """Return the number that a cell holds: "1,234.50", "1.234,50", "$ 12"; None for none."""
    bare = re.sub(r"[^\d.,-]", "", text)
    if not re.search(r"\d", bare):
        return None
    if "," in bare and "." in bare:
        decimal = max(bare.rfind(","), bare.rfind("."))
        bare = re.sub(r"[.,]", "", bare[:decimal]) + "." + bare[decimal + 1 :]
    elif bare.count(",") == 1 and len(bare.partition(",")[2]) != 3:
        bare = bare.replace(",", ".")
    else:
        bare = bare.replace(",", "")
    try:
        return float(bare)
    except ValueError:
        return None


def _drawn(say, title, points, kind):
    title = cut(title, LONGEST_TITLE)
    points = [(cut(str(label), LONGEST_LABEL), value) for label, value in points if value == value]
    if not points:
        return ToolResult.of(say.failed("NO_NUMBERS", code="BAD_REQUEST"))
    if kind == "pie":
        if min(value for _, value in points) < 0:
            return ToolResult.of(say.failed("NEGATIVE", code="BAD_REQUEST"))
        points = _largest(points, say("rest"))
    most = MOST_BARS if kind == "bar" else MOST_POINTS
    if len(points) > most:
        return ToolResult.of(say.failed("TOO_MANY", code="BAD_REQUEST", most=most))
    with _ONE_AT_A_TIME:
        picture = _png(title, points, kind)
    data = {"summary": say("drawn", title=title), "points": len(points)}
    return ToolResult(ok=True, data=data, attachments=(ReturnedFile(picture, "image/png", "chart.png"),))


def _largest(points, rest):
    """Return the largest slices, the others added up."""
    if len(points) <= MOST_SLICES:
        return points
    ordered = sorted(points, key=lambda point: -point[1])
    return [*ordered[: MOST_SLICES - 1], (rest, sum(value for _, value in ordered[MOST_SLICES - 1 :]))]


def _png(title, points, kind):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    labels, values = [label for label, _ in points], [value for _, value in points]
    figure = Figure(figsize=INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, parse_math=False)
    if kind == "pie":
        axes.pie(
            values,
            labels=labels,
            autopct="%1.0f%%",
            startangle=90,
            counterclock=False,
            textprops={"parse_math": False},
        )
    else:
        places = range(len(points))
        if kind == "bar":
            axes.bar(places, values, color=COLOUR)
        else:
            axes.plot(places, values, color=COLOUR, marker="o", markersize=3)
        step = max(1, len(points) // 20)
        axes.set_xticks(
            places[::step],
            labels[::step],
            rotation=45 if len(points) > 6 else 0,
            ha="right" if len(points) > 6 else "center",
            parse_math=False,
        )
        axes.spines[["top", "right"]].set_visible(False)
        axes.yaxis.set_major_formatter("{x:,.10g}")
        axes.grid(axis="y", alpha=0.3)
    written = io.BytesIO()
    FigureCanvasAgg(figure).print_png(written)
    return written.getvalue()
