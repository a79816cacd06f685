"""A day of three people in three languages: the built-in model, words as people type them, a kill at noon."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from app.schedule.wording import city_of
from app.skills import SkillLoader
from app.skills.skill import RELEASE_SKILLS
from tests.chaos.machine import dial, injected
from tests.standins.weather import WeatherService
from tests.standins.web import Web
from tests.world import Graph, Server, wait_for, world

pytestmark = pytest.mark.slow

PEOPLE = {
    "ana": {"name": "Ana", "phone": "5493415550001", "user_id": "AR.1055010001", "language": "es"},
    "joao": {"name": "João", "phone": "5581955501234", "user_id": "BR.1055010002", "language": "pt"},
    "grace": {"name": "Grace", "phone": "16175550123", "user_id": "US.1055010003", "language": "en"},
}
MARKS = {
    "ana": ("yerba", "mudanza", "tarta", "vegan", "licuado"),
    "joao": ("tapioca", "reforma", "brigadeiro", "camarão", "professor"),
    "grace": ("lantern", "orchard", "casserole", "teacher", "lighthouse"),
}
"""Words that only this person says, or is told."""

NOON = "noon"
"""The server dies with what is written here on its way."""
FIRES = "fires"
"""Nothing is written: two minutes go by."""
DAY = [
    (one["scene"], *(tuple(one[person]) for person in PEOPLE))
    for one in yaml.safe_load(Path(__file__).with_name("day.yaml").read_text("utf-8"))
]
"""The name of each scene; for each person what they write, and the pattern that the answer holds."""
LINES = [
    (at, person, line[1])
    for at, (_, *lines) in enumerate(DAY)
    for person, line in zip(PEOPLE, lines, strict=True)
]
SHARED = {"datetime", "calculator", "weather", "notes", "projects", "memory", "reminders", "files", "web"}
SHARED |= {"conversation", "tools"}


RECEIPTS = tuple(
    (re.compile(pattern), kind, is_true)
    for pattern, kind, is_true in (
        (r"✓ (?:Nota guardada|Nota salva|Note saved): (?P<what>.+)", "note", True),
        (r"✓ (?:Nota|Note) \d+ (?:borrada|apagada|deleted): (?P<what>.+)", "note", False),
        (r"✓ (?:Nota|Note) \d+ .*(?:estaba|estava|was): (?P<what>.+)", "note", True),
        (r"✓ (?:Proyecto|Projeto|Project) \d+ \w+: (?P<what>.+)", "project", True),
        (r"✓ \d+\. (?P<what>.+?)(?: \(.*\))?", "task", True),
        (r"✓ (?:Hecha|Feita|Done): \d+\. (?P<what>.+)", "done", True),
        (r"✓ (?:Lo recordaré|Vou lembrar|I will remember): (?P<what>.+)", "fact", True),
        (r"(?:Ya no|Não mais|No longer): (?P<what>.+)", "fact", False),
        (r"✓ (?:Tu lugar|Seu lugar|Your place) .*: (?P<what>.+)", "place", True),
        (r"✓ (?:Tu zona horaria|Seu fuso horário|Your time zone): (?P<what>[^.]+)\. .+", "zone", True),
        (r"✓ (?:Guardado en|Salvo em|Saved in) (?P<what>.+)", "file", True),
        (
            r"✓ (?:Recordatorio|Lembrete|Reminder|Otra vez|De novo|Once more) \w+ (?P<when>\d\d:\d\d): "
            r"[«“]?(?P<what>.+?)[»”]?(?: \(.*\))?",
            "reminder",
            True,
        ),
        (r"⏰ \w+: [«“]?(?P<what>.+?)[»”]?(?: \(.*\))?", "reminder", False),
    )
)
"""A line that says what was done, the kind of row it is about, and whether there is one from then on."""

State = dict[tuple[str, str], str]
"""What a person has, by kind and text; of a reminder its hour."""


@dataclass
class Day:
    """What came of it: the answers by the number of their scene and the person."""

    server: Server
    graph: Graph
    web: Web
    answers: dict[tuple[int, str], str] = field(default_factory=dict)

    def play(self, jump: Callable[[float], None]) -> None:
        for at, (scene, *lines) in enumerate(DAY):
            said = dict(zip(PEOPLE, (text.replace("{web}", self.web.url) for text, _ in lines), strict=True))
            before = {person: len(self.graph.sends(person)) for person in PEOPLE}
            if scene == FIRES:
                jump(130)
            else:
                self.graph.inbound(*({"person": one, "type": "text", "text": said[one]} for one in PEOPLE))
            if scene == NOON:
                self._die()
            for person in PEOPLE:
                self.answers[at, person] = self._answer(person, before[person])

    def start(self) -> None:
        launcher = ("tests.standins.reaching_server", str(self.web.port))
        self.server.start(launcher=launcher)

    def _die(self) -> None:
        wait_for(lambda: self.server.rows("SELECT 1 FROM inbox WHERE done_at IS NULL"), "an open message")
        self.server.kill()
        self.start()

    def _answer(self, person: str, before: int) -> str:
        """The one message after the first `before`; "" where none came."""
        try:
            sends = wait_for(lambda: self.graph.sends(person)[before:], "an answer", 20)
        except AssertionError:
            return ""
        return "\n\n".join(_text(entry) for entry in sends)

    def id_of(self, person: str) -> str:
        phone = PEOPLE[person]["phone"]
        found = self.server.rows("SELECT person_id FROM aliases WHERE kind = 'phone' AND address = ?", phone)
        return str(found[0]["person_id"])

    def told(self, person: str) -> list[str]:
        return [_text(entry) for entry in self.graph.sends(person)]


def _text(entry: dict[str, Any]) -> str:
    body = entry["body"]
    return str(body["text"]["body"] if "text" in body else body["interactive"]["body"]["text"])


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    folder = tmp_path_factory.mktemp("day")
    weather, web = WeatherService(), Web()
    web.pages = {
        "/licuado": "<title>Licuado</title><p>Una banana y hielo.</p>",
        "/tapioca": "<title>Tapioca</title><p>Goma e coco.</p>",
        "/lighthouse": "<title>Lighthouse</title><p>It opens at ten.</p>",
    }
    web.results = lambda query: [web.result(path, path[1:]) for path in web.pages if path[1:] in query]
    clock = folder / "clock"
    jump = dial(clock)
    options = {
        "ALLOWED_PHONE_NUMBERS": ",".join(person["phone"] for person in PEOPLE.values()),
        "OWNER_PHONE_NUMBERS": PEOPLE["ana"]["phone"],
        "SEARCH_URL": web.url,
        **{"SWEEP_SECONDS": "0.3", "SEND_RECONCILE_SECONDS": "2"},
        **injected(CLOCK=clock),
        **weather.settings,
    }
    people = [{"id": name, **person} for name, person in PEOPLE.items()]
    for server, graph in world(folder, crowd=0, graph={"people": people}, **options):
        played = Day(server, graph, web)
        played.start()
        played.play(jump)
        yield played
    weather.stop()
    web.stop()


def test_every_sentence_is_answered_with_what_it_asks_for(day: Day) -> None:
    address = re.escape(day.web.url)
    other = [
        (told, day.answers[at, person])
        for at, person, told in LINES
        if not re.search(told.replace("{web}", address), day.answers[at, person])
    ]
    assert other == []


def test_the_kill_at_noon_lost_no_message_and_doubled_none(day: Day) -> None:
    for person in PEOPLE:
        assert len(day.told(person)) == len(DAY)
    assert not day.server.rows("SELECT 1 FROM turns WHERE state <> 'done'")


def test_everybody_used_every_skill_and_selfcode_was_the_owners_alone(day: Day) -> None:
    loader = SkillLoader(RELEASE_SKILLS)
    loader.refresh()
    skill_of = {tool.name: skill.name for skill in loader.skills for tool in skill.tools}
    for person in PEOPLE:
        called = day.server.rows(
            "SELECT payload FROM journal WHERE kind = 'intent' AND person_id = ?", day.id_of(person)
        )
        used = {skill_of[json.loads(row["payload"])["tool"]] for row in called}
        assert used == (SHARED | {"selfcode"} if person == "ana" else SHARED)


def test_the_receipts_of_the_day_come_to_what_is_in_the_database(day: Day) -> None:
    for person in PEOPLE:
        assert _told_state(day, person) == _kept_state(day, person)


def _told_state(day: Day, person: str) -> State:
    state: State = {}
    for line in "\n".join(day.told(person)).splitlines():
        found = [(match, *rest) for pattern, *rest in RECEIPTS if (match := pattern.fullmatch(line))]
        assert found or not line.startswith("✓"), line
        for match, kind, is_true in found:
            if is_true:
                state[kind, match["what"]] = match.groupdict().get("when") or ""
            else:
                del state[kind, match["what"]]
    return state


def _kept_state(day: Day, person: str) -> State:
    id_ = day.id_of(person)
    said = day.server.rows("SELECT timezone FROM people WHERE id = ?", id_)[0]["timezone"]
    language = {"ana": "es", "joao": "pt", "grace": "en"}[person]
    state: State = {("zone", city_of(said, language)): ""}
    for row in day.server.rows("SELECT key, value FROM skill_data WHERE person_id = ?", id_):
        value, kind = json.loads(row["value"]), row["key"].partition(":")[0]
        if kind == "usual":
            state["place", f"{value['name']}, {value['country']}"] = ""
        elif kind in ("note", "project", "task", "fact") and "text" in value:
            state[kind, value["text"]] = ""
            state |= {("done", value["text"]): ""} if value.get("done") else {}
    for row in day.server.rows("SELECT * FROM schedules WHERE active = 1 AND person_id = ?", id_):
        due = datetime.fromtimestamp(row["due_at"], ZoneInfo(row["zone"]))
        state["reminder", row["text"]] = f"{due:%H:%M}"
    return state | {("file", path.name): "" for path in _folder(day, person).iterdir() if path.is_file()}


def _folder(day: Day, person: str) -> Path:
    workspace = day.server.folder / "workspace"
    return workspace if person == "ana" else workspace / "people" / day.id_of(person)


def test_nobody_was_told_anothers_words(day: Day) -> None:
    for person in PEOPLE:
        assert _foreign_marks("\n".join(day.told(person)), person) == []
        assert _foreign_marks((_folder(day, person) / "lista.txt").read_text(), person) == []


def test_no_prompt_and_no_row_of_one_person_holds_anothers_words(day: Day) -> None:
    people = {day.id_of(person): person for person in PEOPLE}
    tables = [row["name"] for row in day.server.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    seen = set()
    for table in tables:
        for row in day.server.rows(f"SELECT * FROM {table}"):
            owner = people.get(dict(row).get("person_id", ""), "")
            assert _foreign_marks(str(dict(row)), owner) == [], table
            seen |= {table} if owner else set()
    assert {"messages", "prompt_parts", "model_calls", "journal", "skill_data", "schedules"} <= seen
    assert _foreign_marks(day.server.log, "") == []


def _foreign_marks(text: str, person: str) -> list[str]:
    """Words that somebody else said; of nobody's text all of them."""
    others = [mark for other, marks in MARKS.items() if other != person for mark in marks]
    return [mark for mark in others if mark in text.casefold()]
