"""kill -9 at random instants while forty people write and their messages are delivered again and again.

    python -m tests.chaos.storm --kills 1000 [--seed N] [--deaf]

prints the seed, one line each hundred kills, and what was found; it ends with 1 where a law was broken.
"""

import argparse
import random
import re
import tempfile
import time
from pathlib import Path

from tests.forks import SERVE
from tests.standins.model import ModelServer, calls, is_classifier, last_user_text
from tests.world import Graph, Server, open_work, wait_for, world

PEOPLE = 40
MESSAGES = 200
"""At the least; a long storm has five for each kill."""
DEAF = ("tests.chaos.deaf",)


def settings(deaf: bool) -> dict[str, object]:
    """The world a storm is for."""
    return {
        "crowd": PEOPLE,
        "graph": {"retry_pause": 0.3},
        "BURST_QUIET_SECONDS": "0.05",
        "SEND_RECONCILE_SECONDS": "5",
        "SWEEP_SECONDS": "0.2" if deaf else "30",
    }


def play(body):
    """Classifies, asks for two tools at once, then answers with every word of the burst."""
    if is_classifier(body):
        return '{"categories": ["calculator", "notes"], "phrases": ["calculate", "save a note"]}'
    said = re.findall(r"\bm\d+\b", last_user_text(body))
    if not any(message["role"] == "tool" for message in body["messages"]):
        return calls(("calculate", {"expression": "6*7"}), ("save_note", {"text": said[-1]}))
    return "answer " + " ".join(said)


def storm(server: Server, graph: Graph, *, kills: int, seed: int, deaf: bool) -> None:
    """Kills and starts the server `kills` times, then asserts that every law held.

    About a third of the lives end while the server still starts. No two of those follow each other, and a
    turn that the next crash could end goes on before it: a server that never comes to work gives its turns
    up after a few crashes, and may.
    """
    chance = random.Random(seed)
    launcher = DEAF if deaf else SERVE
    total = max(MESSAGES, 5 * kills)
    people = [f"p{n % PEOPLE}" for n in range(total)]
    sent: list[dict[str, str]] = []
    starting = False
    server.start(launcher=launcher)
    for kill in range(kills):
        share = range(kill * total // kills, (kill + 1) * total // kills)
        fresh = [{"person": people[n], "type": "text", "text": f"m{n}"} for n in share]
        graph.faults(duplicate=chance.randint(1, 3))
        for message, wamid in zip(fresh, graph.inbound(*fresh), strict=True):
            sent.append({**message, "id": wamid})
        graph.inbound(*chance.sample(sent, min(5, len(sent))))  # redeliveries, old and new
        time.sleep(chance.uniform(0.0 if starting else 0.2, 1.2))
        wait_for(lambda: not nearly_given_up(server), "a turn that was cut off again and again to go on", 60)
        server.kill()
        starting = not starting and chance.random() < 0.5
        server.start(launcher=launcher, wait=not starting)
        if kill % 100 == 99:
            print(f"{kill + 1} kills, {len(server.rows('SELECT 1 FROM turns'))} turns", flush=True)
    wait_for(server.healthy, "the last start")
    wait_for(lambda: graph.log()["pending"] == 0, "every webhook to be taken", 120)
    wait_for(lambda: not open_work(server), "every turn and send to end", 240)
    wait_for(lambda: graph.log()["pending"] == 0, "every status to be taken", 60)
    check(server, graph, people)


def nearly_given_up(server: Server) -> bool:
    """Whether a turn begins, or has begun, the last but one of its attempts."""
    return bool(server.rows("SELECT 1 FROM turns WHERE state <> 'done' AND attempts >= 2"))


def check(server: Server, graph: Graph, people: list[str]) -> None:
    """Every message answered once and in order, every note of a turn kept at most once."""
    failed = server.rows("SELECT * FROM turns WHERE outcome <> 'answered'")
    assert not failed, [dict(row) for row in failed]
    for person in sorted(set(people)):
        expected = [f"m{n}" for n, whose in enumerate(people) if whose == person]
        answered = answered_words(graph, person)
        assert answered == expected, f"{person} was answered {answered}, not {expected}"
    assert server.rows("SELECT source FROM outbox GROUP BY source HAVING count(*) > 1") == []
    assert server.rows("SELECT 1 FROM journal GROUP BY turn_id, key HAVING count(*) > 1") == []
    notes = "SELECT value ->> 'text' FROM skill_data WHERE skill = 'notes'"
    assert server.rows(f"{notes} GROUP BY person_id, value ->> 'text' HAVING count(*) > 1") == []


def answered_words(graph: Graph, person: str) -> list[str]:
    """The messages that the answers name, in order; the receipts below an answer name one again."""
    answers = (text.partition("\n")[0] for text in graph.texts(person))
    return [word for answer in answers for word in re.findall(r"m\d+", answer)]


def main() -> None:
    parser = argparse.ArgumentParser(description="A kill -9 storm")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--deaf", action="store_true", help="every wake is dropped: only the sweep finds work"
    )
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, {arguments.kills} kills", flush=True)
    model = ModelServer(play)
    options = settings(arguments.deaf) | {"OPENAI_BASE_URL": model.url, "LLM_MODEL": "stand-in"}
    with tempfile.TemporaryDirectory() as folder:
        for server, graph in world(Path(folder), **options):
            storm(server, graph, kills=arguments.kills, seed=arguments.seed, deaf=arguments.deaf)
            turns, sends = len(server.rows("SELECT 1 FROM turns")), len(graph.sends())
            print(f"{arguments.kills} kills, {turns} turns, {sends} messages sent: every law held")
    model.stop()


if __name__ == "__main__":
    main()
