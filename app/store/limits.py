"""Limits and costs: what was used, by hours of UTC, and the messages that Meta bills, each counted once."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, BeforeValidator

from app.errors import RecadoError
from app.messages import JSON, Pricing
from app.settings import Limit
from app.store.conditions import RUNNABLE, SILENT, UNCLAIMED, UNSENT
from app.store.database import Connection, Row, exists, scalar, update

Period = Literal["hour", "day", "month"]
LAST_TURNS = 20  # tell what a turn may cost
TOKENS_OF_A_TURN = 4_000  # before any turn was seen
CALLS_OF_A_TURN = 3  # of the model, each with all that the person wrote: the tools, a tool's call, the answer
CHARACTERS_PER_TOKEN = 4
GUESTS_CHARACTERS = 8_000  # of what a guest wrote that one turn shows the model
PERIODS: dict[Period, int] = {"hour": 13, "day": 10, "month": 7}  # characters of 2026-11-25T10 that name it

RATES_FILE = "rates.yaml"  # of the operator, in DATA_DIR
RATES = Path(__file__).with_name(RATES_FILE)
MILLION = 1_000_000
_TOKENS_OF, _COST_OF = "tokens of ", "cost of "  # an endpoint of `MODELS`, in the table `used`
REGULAR = "regular"  # the kind of message that costs; the others are free (Meta, 2026-10)

_HELD_BACK = f"inbox.waits_for <> '' AND {UNCLAIMED}"


class Rate(BaseModel, frozen=True):
    """A price since a day (YYYY-MM-DD) for messages of a category to people of a country."""

    country: str
    category: str
    since: Annotated[str, BeforeValidator(str)]  # YAML reads an unquoted day as a date
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
        if (price := self.price(row)) is not None:
            return price
        of_category = [rate.price for rate in self.rates if rate.category == row["category"]]
        return max(of_category or [rate.price for rate in self.rates], default=Decimal(0))


def add(conn: Connection, what: str, amount: int, now: float) -> None:
    """Count what was used now; `what` is as the table `used` explains it."""
    conn.execute(
        "INSERT INTO used (what, hour, amount) VALUES (?, ?, ?)"
        " ON CONFLICT (what, hour) DO UPDATE SET amount = used.amount + excluded.amount",
        (what, _hour(now), amount),
    )


def used(conn: Connection, what: str, now: float) -> dict[Period, int]:
    """Return what was used in this hour, on this day and in this month."""
    hour = _hour(now)
    sql = "SELECT hour, amount FROM used WHERE what = ? AND hour BETWEEN ? AND ?"
    rows = conn.execute(sql, (what, hour[:7], hour)).fetchall()
    return {
        period: sum(row["amount"] for row in rows if row["hour"].startswith(hour[:characters]))
        for period, characters in PERIODS.items()
    }


def answers_to(conn: Connection, person: str, now: float) -> dict[Period, int]:
    """Return how many turns of a person began in this hour, on this day and in this month."""
    sql = "SELECT count(*) FROM turns WHERE person_id = ? AND created_at BETWEEN ? AND ?"
    return {period: scalar(conn, sql, person, _begins(period, now), now) for period in PERIODS}


def answers_allowed(conn: Connection, person: str, usual: Limit) -> Limit:
    """Return the limit on answers to a person: the usual one, with their own number a day if set."""
    own = scalar(conn, "SELECT daily_answers FROM people WHERE id = ?", person)
    return usual if own is None else replace(usual, day=own)


def set_daily(conn: Connection, person: str, answers: int | None, tokens: int | None) -> None:
    """Set a person's own daily limits, None for those of the settings; try again what waited for one."""
    update(conn, "people", "id = ?", person, daily_answers=answers, daily_tokens=tokens)
    release(conn, person)


def reached(limit: Limit, amounts: dict[Period, int], share: float = 1.0) -> Period | None:
    """Return the longest period in which `share` of the limit is used up, None if none is."""
    for period in reversed(PERIODS):
        most = getattr(limit, period)
        if most and amounts[period] >= most * share:
            return period
    return None


def period_name(period: Period, now: float) -> str:
    """Return the name of the period that `now` is in, such as "2026-11-25" for a day."""
    return _hour(now)[: PERIODS[period]]


def period_ends(period: Period, now: float) -> float:
    """Return when the period that `now` is in is over."""
    longer = {"hour": timedelta(hours=1), "day": timedelta(days=1), "month": timedelta(days=32)}[period]
    begins = datetime.fromtimestamp(_begins(period, now), UTC)
    return _begins(period, (begins + longer).timestamp())


def hold_back(conn: Connection, conversation: str, reason: str, until: float) -> None:
    """Make the messages of a conversation that no turn has taken up wait until a limit's period is over."""
    waits = f"conversation_id = ? AND {UNCLAIMED}"
    update(conn, "inbox", waits, conversation, due_at=until, waits_for=reason)


def waiting_kinds(conn: Connection, conversation: str, now: float) -> set[str]:
    """Return the kinds of the messages that wait for a new turn of ours; none while a turn is open."""
    is_open = f"SELECT 1 FROM turns WHERE conversation_id = ? AND {RUNNABLE}"
    is_silent = f"{SILENT} AND conversation_id = ?"
    if exists(conn, is_open, conversation) or exists(conn, is_silent, now, conversation):
        return set()
    waiting = f"SELECT DISTINCT kind FROM inbox WHERE conversation_id = ? AND {UNCLAIMED}"
    return {row["kind"] for row in conn.execute(waiting, (conversation,))}


def count_queued(conn: Connection) -> int:
    """Return how many messages wait for their first send, with one for each turn that is not over."""
    queued: int = scalar(conn, f"SELECT count(*) FROM outbox WHERE attempts = 0 AND {UNSENT}")
    return queued + int(scalar(conn, f"SELECT count(*) FROM turns WHERE {RUNNABLE}"))


def tokens_needed(conn: Connection, conversation: str) -> tuple[int, int]:
    """Return the tokens that a guest's next turn needs, and those that the open turns do.

    A turn alone is thought to cost as much as the last turns on average, beside others as much as the
    costliest of them; both times with what was written for it.
    """
    ended = "FROM turns WHERE traced = 1 AND done_at IS NOT NULL ORDER BY done_at DESC LIMIT ?"
    last = f"SELECT prompt_tokens + completion_tokens AS tokens {ended}"
    size = "SELECT sum(length(m.text) + length(m.payload)) AS characters FROM"
    waiting = (
        f"inbox JOIN messages m ON m.id = inbox.message_id WHERE inbox.conversation_id = ? AND {UNCLAIMED}"
    )
    open_turns = conn.execute(
        f"{size} turns LEFT JOIN messages m ON m.turn_id = turns.id AND m.direction = 'in'"
        f" WHERE {RUNNABLE} GROUP BY turns.id"
    ).fetchall()
    cost = f"SELECT {'max' if open_turns else 'avg'}(tokens) FROM ({last}) AS last"
    each = int(scalar(conn, cost, LAST_TURNS) or TOKENS_OF_A_TURN)
    promised = sum(each + _tokens_of(row["characters"]) for row in open_turns)
    return each + _tokens_of(scalar(conn, f"{size} {waiting}", conversation)), promised


def _tokens_of(characters: int | None) -> int:
    return min(characters or 0, GUESTS_CHARACTERS) * CALLS_OF_A_TURN // CHARACTERS_PER_TOKEN


def release(conn: Connection, person: str = "") -> None:
    """Look anew at what waits for a limit: a person's, who is no guest any more, or everybody's."""
    whose = f"{_HELD_BACK} AND ? IN ('', person_id)"
    conn.execute(f"UPDATE inbox SET due_at = received_at, waits_for = '' WHERE {whose}", (person,))


def _hour(now: float) -> str:
    return f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H}"


def _begins(period: Period, now: float) -> float:
    moment = datetime.fromtimestamp(now, UTC).replace(minute=0, second=0, microsecond=0)
    if period != "hour":
        moment = moment.replace(hour=0)
    return (moment.replace(day=1) if period == "month" else moment).timestamp()


def read_rates(data_dir: Path) -> RateTable:
    """Return the operator's rate table, else the release's. Raises RecadoError for one that is none."""
    file = data_dir / RATES_FILE
    file = file if file.is_file() else RATES
    try:
        table = yaml.safe_load(file.read_text("utf-8"))
        return RateTable.model_validate(table)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RecadoError(f"{file} cannot be read as rates: {error}; {RATES} shows the form") from error


def record_billed(conn: Connection, wamid: str, person: str, pricing: Pricing, now: float) -> None:
    """Count a message once, whichever of its statuses tells the price."""
    conn.execute(
        "INSERT INTO billed (wamid, person_id, country, category, kind, day)"
        " SELECT ?, id, country, ?, ?, ? FROM people WHERE id = ? ON CONFLICT (wamid) DO NOTHING",
        (wamid, pricing.category, pricing.kind, period_name("day", now), person),
    )


def count_model(conn: Connection, name: str, tokens: int, cost: float, now: float) -> None:
    """Count an answer of an endpoint of `MODELS`; `cost` is in the currency of its price."""
    add(conn, _TOKENS_OF + name, tokens, now)
    add(conn, _COST_OF + name, round(cost * MILLION), now)


def may_ask_model(conn: Connection, name: str, limit: Limit, budget: float, now: float) -> bool:
    """Tell whether an endpoint has something left of its limit of tokens and of its budget for the month."""
    if reached(limit, used(conn, _TOKENS_OF + name, now)):
        return False
    return not budget or used(conn, _COST_OF + name, now)["month"] < budget * MILLION


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
    waiting = f"SELECT waits_for, count(*) FROM inbox WHERE {_HELD_BACK} GROUP BY waits_for"
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
        "waiting": dict(conn.execute(waiting).fetchall()),
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
