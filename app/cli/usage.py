"""`recado usage`: what was sent, thought and billed in a month."""

from collections.abc import Mapping
from typing import Any

from app.cli.database import read_records
from app.cli.output import table
from app.cli.server import find_server
from app.settings import Settings
from app.store import billing
from app.text import visible


def read_usage(settings: Settings, month: str) -> dict[str, Any]:
    """Return the usage of a month (YYYY-MM). Raises RecadoError where there is no database yet."""
    server = find_server(settings.data_dir)
    if server is not None:
        return dict(server.ask("usage", {"month": month}))
    rates = billing.read_rates(settings.data_dir)
    return read_records(settings.database_path, lambda conn: billing.usage(conn, rates, month))


def usage_text(used: Mapping[str, Any]) -> str:
    """Return the usage as tables: by person, then by day."""
    head = ("MESSAGES", "TOKENS", f"COST ({used['currency']})")
    lines = [f"{used['month']}: {_line(used)}"]
    lines += [f"  {category}: {count}" for category, count in used["categories"].items()]
    if used["unpriced"]:
        lines.append(f"  {used['unpriced']} messages have no known price (rates.yaml)")
    people = [(visible(one["name"]) or one["person"], *_cells(one)) for one in used["people"]]
    days = [(one["day"], *_cells(one)) for one in used["days"]]
    tables = [table((first, *head), rows) for first, rows in (("PERSON", people), ("DAY", days)) if rows]
    return "\n\n".join(("\n".join(lines), *tables))


def _line(sums: Mapping[str, Any]) -> str:
    return f"{sums['messages']} messages, {sums['tokens']} tokens, {sums['cost']:.3f}"


def _cells(sums: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(sums["messages"]), str(sums["tokens"]), f"{sums['cost']:.3f}"
