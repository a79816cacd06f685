"""The messages that Meta bills, each counted once, and their prices: `recado usage`."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, BeforeValidator

from app.errors import RecadoError
from app.messages import JSON, Pricing
from app.settings import Limit
from app.store import limits
from app.store.database import Connection, Row
from app.store.statistics import day_of

RATES_FILE = "rates.yaml"  # of the operator, in DATA_DIR
RATES = Path(__file__).with_name(RATES_FILE)
MILLION = 1_000_000
_TOKENS_OF, _COST_OF = "tokens of ", "cost of "  # an endpoint of `MODELS`, in the table `used`
REGULAR = "regular"  # the kind of message that costs; the others are free (Meta, 2026-10)

Written = Annotated[str, BeforeValidator(str)]  # YAML reads an unquoted day as a date


class Rate(BaseModel, frozen=True):
    """A price since a day (YYYY-MM-DD) for messages of a category to people of a country."""

    country: str
    category: str
    since: Written
    price: Decimal


class RateTable(BaseModel, frozen=True):
    """Prices in one currency (ISO 4217)."""

    currency: str = "USD"
    rates: tuple[Rate, ...] = ()

    def price(self, row: "Row | Mapping[str, str]") -> Decimal | None:
        """Return what a row of `billed` costs, None where no rate is known."""
        if row["kind"] != REGULAR:
            return Decimal(0)
        there = (row["country"], row["category"])
        known = [
            rate for rate in self.rates if (rate.country, rate.category) == there and rate.since <= row["day"]
        ]
        return max(known, key=lambda rate: rate.since).price if known else None

    def price_in_budget(self, row: "Row | Mapping[str, str]") -> Decimal:
        """Return what a row counts in a budget: where no rate is known, the dearest of its category."""
        price = self.price(row)
        if price is not None:
            return price
        of_category = [rate.price for rate in self.rates if rate.category == row["category"]]
        return max(of_category or [rate.price for rate in self.rates], default=Decimal(0))


def read_rates(data_dir: Path) -> RateTable:
    """Return the operator's rate table, else the release's. Raises RecadoError for one that is none."""
    file = data_dir / RATES_FILE
    file = file if file.is_file() else RATES
    try:
        table = yaml.safe_load(file.read_text("utf-8"))
        return RateTable.model_validate(table)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RecadoError(f"{file} cannot be read as rates: {error}; {RATES} shows the form") from error


def record(conn: Connection, wamid: str, person: str, pricing: Pricing, now: float) -> None:
    """Count a message once, whichever of its statuses tells the price."""
    conn.execute(
        "INSERT INTO billed (wamid, person_id, country, category, kind, day)"
        " SELECT ?, id, country, ?, ?, ? FROM people WHERE id = ? ON CONFLICT (wamid) DO NOTHING",
        (wamid, pricing.category, pricing.kind, day_of(now), person),
    )


def count_model(conn: Connection, name: str, tokens: int, cost: float, now: float) -> None:
    """Count an answer of an endpoint of `MODELS`; `cost` is in the currency of its price."""
    limits.add(conn, _TOKENS_OF + name, tokens, now)
    limits.add(conn, _COST_OF + name, round(cost * MILLION), now)


def may_ask_model(conn: Connection, name: str, limit: Limit, budget: float, now: float) -> bool:
    """Tell whether an endpoint has something left of its limit of tokens and of its budget for the month."""
    if limits.reached(limit, limits.used(conn, _TOKENS_OF + name, now)):
        return False
    return not budget or limits.used(conn, _COST_OF + name, now)["month"] < budget * MILLION


def usage(conn: Connection, rates: RateTable, month: str) -> dict[str, JSON]:
    """Return the messages, tokens and costs of a month (YYYY-MM): in all, by category, person and day.

    Costs are in `currency`, but those of `models` (the endpoints of `MODELS`) in that of their prices;
    `unpriced` counts the messages for which no rate is known; `waiting` are messages that wait now, by the
    limit for which they do.
    """
    first, last = f"{month}-01", f"{month}-31"
    total, people, days = _Sums(), defaultdict[str, _Sums](_Sums), defaultdict[str, _Sums](_Sums)
    categories: Counter[str] = Counter()
    for row in conn.execute(
        "SELECT person_id, country, category, kind, day, count(*) AS messages FROM billed"
        " WHERE day BETWEEN ? AND ? GROUP BY person_id, country, category, kind, day",
        (first, last),
    ):
        categories[row["category"]] += row["messages"]
        for sums in (total, people[row["person_id"]], days[row["day"]]):
            sums.add(row["messages"], rates.price(row))
    for row in conn.execute("SELECT * FROM token_use WHERE day BETWEEN ? AND ?", (first, last)):
        for sums in (total, people[row["person_id"]], days[row["day"]]):
            sums.tokens += row["tokens"]
    names: dict[str, str] = dict(conn.execute("SELECT id, name FROM people").fetchall())
    query = "SELECT what, sum(amount) FROM used WHERE hour LIKE ? GROUP BY what"
    amounts: dict[str, int] = dict(conn.execute(query, (f"{month}%",)).fetchall())
    return {
        "month": month,
        "currency": rates.currency,
        **total.told(),
        "categories": dict(sorted(categories.items())),
        "people": [{"person": one, "name": names[one], **sums.told()} for one, sums in people.items()],
        "models": [
            {"model": name, "tokens": amount, "cost": amounts[_COST_OF + name] / MILLION}
            for what, amount in sorted(amounts.items())
            if (name := what.removeprefix(_TOKENS_OF)) != what
        ],
        "waiting": limits.held_back(conn),
        "days": [{"day": day, **days[day].told()} for day in sorted(days)],
    }


@dataclass(slots=True)
class _Sums:
    messages: int = 0
    unpriced: int = 0
    tokens: int = 0
    cost: Decimal = Decimal(0)

    def add(self, messages: int, price: Decimal | None) -> None:
        self.messages += messages
        self.unpriced += messages if price is None else 0
        self.cost += messages * (price or 0)

    def told(self) -> dict[str, JSON]:
        return asdict(self) | {"cost": float(self.cost)}
