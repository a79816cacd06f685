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

Line = tuple[str, str]
"""What is written, and the pattern that the answer holds."""
NOON = "noon"
"""The server dies with what is written here on its way."""
FIRES = "fires"
"""Nothing is written: two minutes go by."""
Scene = tuple[str, Line, Line, Line]
"""Its name, and what Ana, João and Grace write at the same instant."""

DAY: list[Scene] = [
    (
        "greeting",
        ("holaa", "^¡Hola, Ana!"),
        ("oii tudo bem?", "^Olá, João!"),
        ("hey there", "^Hello, Grace!"),
    ),
    (
        "clock",
        ("che q hora es en tokio", "En Tokio (son las|es la) .*12 h más"),
        ("q horas sao em lisboa", "Em Lisboa (são|é)"),
        ("whats the time in london", "In London it is"),
    ),
    (
        "days",
        ("cuantos dias faltan para navidad?", r"Faltan? \d+ días? para el 25 de diciembre"),
        ("qts dias faltam pro natal", r"Faltam? \d+ dias? para 25 de dezembro"),
        ("how many days til christmas", r"\d+ days? until December 25"),
    ),
    (
        "carnival",
        ("cuando es carnaval", "martes"),
        ("qdo é carnaval", "terça-feira"),
        ("when is easter", "Sunday"),
    ),
    (
        "business days",
        ("qué fecha es 5 días hábiles después del 3/3/2026", "martes 10 de marzo de 2026"),
        ("que data é 5 dias uteis depois de 3/3/2026", "terça-feira, 10 de março de 2026"),
        ("what date is 5 business days after march 3 2026", "Tuesday, March 10, 2026"),
    ),
    (
        "share",
        ("cuanto es el 15% de 2.480", "= 372"),
        ("quanto é 15% de 2.480", "= 372"),
        ("whats 15% of 2,480", "= 372"),
    ),
    (
        "units",
        ("pasame 5 millas a km", "8,04672 km"),
        ("quantos km são 5 milhas", "8,04672 km"),
        ("5 miles in km", "8.04672 km"),
    ),
    (
        "weather",
        ("como esta el clima en cordoba", "Córdoba, Argentina: 18 °C"),
        ("como ta o tempo em recife", "Recife, Brasil: 18 °C"),
        ("weather in cordoba", r"Which one: Córdoba \(Argentina\) or Córdoba"),
    ),
    (
        "rain",
        ("va a llover mañana en rosario?", "Mañana en Rosario.*lluvia 85 %"),
        ("vai chover amanha no recife?", "Amanhã em Recife.*chuva 85"),
        ("will it rain tomorrow in rosario?", "in Rosario.*85"),
    ),
    (
        "place",
        (
            "vivo en rosario",
            r"(?s)\A(?=.*Tu zona horaria: ).*✓ Tu lugar para el tiempo: Rosario, Arg",
        ),
        (
            "moro em recife",
            r"(?s)\A(?=.*Seu fuso horário: Recife).*✓ Seu lugar para o tempo: Recife, Brasil",
        ),
        (
            "i live in boston",
            r"(?s)\A(?=.*Your time zone: New York).*✓ Your place for the weather: Boston, Unit",
        ),
    ),
    (
        "note",
        ("anotá comprar yerba y pan", "✓ Nota guardada: comprar yerba y pan"),
        ("anota ai: comprar tapioca e café", "✓ Nota salva: comprar tapioca e café"),
        ("note buy lantern oil", "✓ Note saved: buy lantern oil"),
    ),
    (
        NOON,
        ("anota: llamar al plomero", "✓ Nota guardada: llamar al plomero"),
        ("anota ligar pro dentista", "✓ Nota salva: ligar pro dentista"),
        ("note call the plumber", "✓ Note saved: call the plumber"),
    ),
    (
        "notes",
        ("que tengo anotado", "(?s)2 de 2.*yerba.*plomero"),
        ("oq eu tenho anotado", "(?s)2 de 2.*tapioca.*dentista"),
        ("my notes", "(?s)2 of 2.*lantern.*plumber"),
    ),
    (
        "note deleted",
        ("borrá la nota del plomero", "✓ Nota 2 borrada: llamar al plomero"),
        ("apaga a nota do dentista", "✓ Nota 2 apagada: ligar pro dentista"),
        ("delete the plumber note", "✓ Note 2 deleted: call the plumber"),
    ),
    (
        "note brought back",
        ("uy no, deshacelo", "✓ Nota 2 otra vez como estaba: llamar al plomero"),
        ("desfaz", "✓ Nota 2 de novo como estava: ligar pro dentista"),
        ("oops undo that", "✓ Note 2 as it was: call the plumber"),
    ),
    (
        "project",
        ("armá un proyecto Mudanza", "✓ Proyecto 1 creado: Mudanza"),
        ("cria um projeto Reforma", "✓ Projeto 1 criado: Reforma"),
        ("start a project Orchard", "✓ Project 1 created: Orchard"),
    ),
    (
        "task",
        ("agregá embalar los libros al proyecto mudanza", "✓ 1. embalar los libros"),
        ("adiciona pintar a sala no projeto reforma", "✓ 1. pintar a sala"),
        ("add plant trees to the orchard project", "✓ 1. plant trees"),
    ),
    (
        "task with a date",
        ("agregá la tarea pedir el flete para mañana", "✓ 2. pedir el flete .para"),
        ("adiciona a tarefa comprar tinta pra amanha", "✓ 2. comprar tinta .para"),
        ("add a task buy soil for tomorrow", "✓ 2. buy soil .due"),
    ),
    (
        "task done",
        ("ya hice la tarea embalar los libros", "(?s)✓ Hecha: 1. embalar los libros.*1 de 2"),
        ("ja fiz a tarefa pintar a sala", "(?s)✓ Feita: 1. pintar a sala.*1 de 2"),
        ("i did the task plant trees", "(?s)✓ Done: 1. plant trees.*1 of 2"),
    ),
    (
        "progress",
        ("como va el proyecto mudanza", "(?s)Mudanza.*50 %.*pedir el flete"),
        ("como ta o projeto reforma", "(?s)Reforma.*50 %.*comprar tinta"),
        ("hows the orchard project going", "(?s)Orchard.*50 %.*buy soil"),
    ),
    (
        "fact",
        ("acordate que soy vegetariana", "✓ Lo recordaré: soy vegetariana"),
        ("lembra que sou alergico a camarão", "✓ Vou lembrar: sou alergico a camarão"),
        ("remember that im a nurse", "✓ I will remember: im a nurse"),
    ),
    (
        "another fact",
        ("ya no soy vegetariana, ahora vegana", "(?s)✓ Lo recordaré: soy vegana.*Ya no: soy vegetariana"),
        ("não esquece que sou professor", "✓ Vou lembrar: sou professor"),
        ("im no longer a nurse, now a teacher", "(?s)✓ I will remember: im a teacher.*No longer: im a nurse"),
    ),
    (
        "what is known",
        ("qué sabés de mí?", r"^Lo que sé de ti \(1\):\n.*soy vegana$"),
        ("o q vc sabe de mim", r"^O que sei de você \(2\):"),
        ("what do u know about me", r"^What I know about you \(1\):\n.*im a teacher$"),
    ),
    (
        "reminder",
        ("recordame en 2 minutos sacar la tarta", "✓ Recordatorio hoy .*sacar la tarta"),
        ("me lembra de tirar o brigadeiro em 2 minutos", "✓ Lembrete hoje .*tirar o brigadeiro"),
        ("remind me in 2 minutes to check the casserole", "✓ Reminder today .*check the casserole"),
    ),
    (
        "reminder with its hour at the end",
        ("mañana recordame ir al banco a las 9", "✓ Recordatorio mañana 09:00: .*ir al banco(?! a las)"),
        ("amanhã me lembra de ligar pro banco às 9", "✓ Lembrete amanhã 09:00: .*ligar pro banco(?! às)"),
        ("remind me to call the bank tomorrow at 9", "✓ Reminder tomorrow 09:00: .*call the bank(?! at)"),
    ),
    (
        "reminder without a time",
        ("no te olvides de comprar pan", "^¿Para qué fecha u hora?"),
        ("não esquece de comprar pão", "^Para que data ou hora?"),
        ("dont forget to buy milk", "^For which date or time?"),
    ),
    (
        "its time",
        ("mañana a las 15", "✓ Recordatorio mañana 15:00: .*comprar pan"),
        ("amanhã às 15h", "✓ Lembrete amanhã 15:00: .*comprar pão"),
        ("tomorrow at 3pm", "✓ Reminder tomorrow 15:00: .*buy milk"),
    ),
    (
        FIRES,
        ("", "^⏰ Recordatorio: .*sacar la tarta"),
        ("", "^⏰ Lembrete: .*tirar o brigadeiro"),
        ("", "^⏰ Reminder: .*check the casserole"),
    ),
    (
        "snooze",
        ("dame 10 minutos mas", "✓ Otra vez (?:hoy|mañana) .*sacar la tarta"),
        ("mais 10 minutos", "✓ De novo (?:hoje|amanhã) .*tirar o brigadeiro"),
        ("10 more minutes", "✓ Once more (?:today|tomorrow) .*check the casserole"),
    ),
    (
        "reminders",
        ("q recordatorios tengo", "(?s)3 de 3.*tarta.*banco.*pan"),
        ("meus lembretes", "(?s)3 de 3.*brigadeiro.*banco.*pão"),
        ("my reminders", "(?s)3 of 3.*casserole.*bank.*milk"),
    ),
    (
        "file",
        ("guardá esto en lista.txt: yerba y queso", r"^¿Escribo en el archivo “lista.txt”\?"),
        ("salva isso em lista.txt: tapioca e coco", r"^Posso escrever no arquivo “lista.txt”\?"),
        ("save this in lista.txt: lantern wicks", r"^Shall I write to the file “lista.txt”\?"),
    ),
    (
        "yes",
        ("dale", "✓ Guardado en lista.txt"),
        ("pode", "✓ Salvo em lista.txt"),
        ("yep", "✓ Saved in lista.txt"),
    ),
    (
        "file read",
        ("que dice lista.txt", r"lista.txt:\nyerba y queso$"),
        ("oq diz lista.txt", r"lista.txt:\ntapioca e coco$"),
        ("whats in lista.txt", r"lista.txt:\nlantern wicks$"),
    ),
    (
        "files",
        ("que archivos tengo", r"^Tus archivos:\n• lista.txt \(14 B\)"),
        ("quais arquivos eu tenho", r"^Seus arquivos:\n• lista.txt \(15 B\)$"),
        ("what files do i have", r"^Your files:\n• lista.txt \(14 B\)$"),
    ),
    (
        "search",
        ("buscá en internet licuado de banana", "(?s)licuado de banana.*{web}/licuado"),
        ("pesquisa na internet bolo de tapioca", "(?s)bolo de tapioca.*{web}/tapioca"),
        ("google lighthouse hours", "(?s)lighthouse hours.*{web}/lighthouse"),
    ),
    (
        "page",
        ("leeme {web}/licuado", "Una banana y hielo"),
        ("lê {web}/tapioca", "Goma e coco"),
        ("whats on {web}/lighthouse", "opens at ten"),
    ),
    (
        "history",
        ("que te dije de la tarta?", "recordame en 2 minutos sacar la tarta"),
        ("o que eu falei sobre o brigadeiro", "tirar o brigadeiro em 2 minutos"),
        ("what did i tell you about the casserole", "remind me in 2 minutes to check the casserole"),
    ),
    (
        "tools",
        ("que herramientas tenes para notas", "Encontré .*/ayuda"),
        ("que ferramentas vc tem pra notas", "Encontrei .*/ajuda"),
        ("what tools do you have for notes", "I found .*/help"),
    ),
    (
        "abilities",
        ("q podes hacer?", "^Soy un asistente en su modo simple"),
        ("oq vc faz?", "^Sou um assistente no modo simples"),
        ("what can u do", "^I am an assistant in its simple built-in mode"),
    ),
    (
        "the owner's own",
        ("que version sos", "^Soy Recado"),
        ("qual sua versao", "^Só a pessoa dona"),
        ("what version are you", "^Only the person who owns"),
    ),
    (
        "the owner's view",
        ("estas funcionando bien?", "Todo funciona: recibo mensajes"),
        ("ta tudo funcionando?", "^Só a pessoa dona"),
        ("is everything working", "^Only the person who owns"),
    ),
    ("thanks", ("gracias genia", "^¡De nada!"), ("vlw", "^De nada!"), ("thx", "^You're welcome!")),
]
LINES = [
    (at, person, line[1])
    for at, (_, *lines) in enumerate(DAY)
    for person, line in zip(PEOPLE, lines, strict=True)
]
SHARED = {"datetime", "calculator", "weather", "notes", "projects", "memory", "reminders", "files", "web"} | {
    "conversation",
    "tools",
}


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
    pieces = world(
        folder,
        crowd=0,
        graph={"people": [{"id": name, **person} for name, person in PEOPLE.items()]},
        ALLOWED_PHONE_NUMBERS=",".join(person["phone"] for person in PEOPLE.values()),
        OWNER_PHONE_NUMBERS=PEOPLE["ana"]["phone"],
        SEARCH_URL=web.url,
        SWEEP_SECONDS="0.3",
        SEND_RECONCILE_SECONDS="2",
        **weather.settings,
    )
    server, graph = next(pieces)
    server.env |= injected(CLOCK=clock)
    played = Day(server, graph, web)
    try:
        played.start()
        played.play(jump)
        yield played
    finally:
        pieces.close()
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
