"""A disk that is full, or slow to sync: nothing is acknowledged that is not kept, and it all comes right."""

import resource
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.chaos.machine import dial, injected
from tests.standins.model import ModelServer, echo
from tests.world import Graph, Server, open_work, text_body, wait_for, world

pytestmark = pytest.mark.slow

OPEN_WINDOW = {"window_open": True, "retry_pause": 0.3}
Fill = Callable[[], None]


@contextmanager
def limited_files(server: Server) -> Iterator[tuple[Fill, Fill]]:
    """No file of the server grows any more: what any user can do to their own process."""
    pid = server.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    yield (
        lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, limits[1])) and None,
        lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, limits) and None,
    )


@contextmanager
def full_filesystem(server: Server) -> Iterator[tuple[Fill, Fill]]:
    """Another file takes all that is left of a small file system."""
    hog = server.folder / "hog"

    def fill() -> None:
        with hog.open("wb", buffering=0) as file:
            for size in (65536, 4096, 512, 1):
                try:
                    while file.write(b"x" * size) == size:
                        pass
                except OSError:
                    continue

    yield fill, lambda: hog.unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path | None]:
    """A file system of 16 MB in memory; None where this user may mount none."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    mounted = subprocess.run(mount, capture_output=True, timeout=10, check=False).returncode == 0
    yield folder if mounted else None
    if mounted:
        subprocess.run(["umount", "--lazy", str(folder)], timeout=10, check=True)


def test_what_a_full_disk_took_is_answered_and_what_it_refused_comes_again(make_world, model, disk):
    server, graph = make_world(start=False, model=model(echo), crowd=12, graph=OPEN_WINDOW)
    if disk is not None:
        server.folder = disk
        server.env["DATABASE_URL"] = f"sqlite:///{disk}/recado.db"
    server.start()
    graph.say("p0", "before")
    graph.reply("p0")
    with (full_filesystem if disk is not None else limited_files)(server) as (fill, free):
        graph.inbound(*({"person": f"p{n}", "type": "text", "text": "under way"} for n in range(1, 6)))
        fill()
        wait_for(lambda: _refuses(server), "a message to be refused")
        # A short commit may fit in meanwhile: health tells of the last one.
        answer = wait_for(lambda: _refuses(server) and _unwell(server), "health to say so")
        assert answer.json()["status"] == "down"
        graph.inbound(*({"person": f"p{n}", "type": "text", "text": "too late"} for n in range(6, 11)))
        free()
        for n in range(1, 11):
            assert graph.reply(f"p{n}")
    wait_for(lambda: not open_work(server) and graph.log()["pending"] == 0, "the end")
    assert {n: len(graph.texts(f"p{n}")) for n in range(11)} == dict.fromkeys(range(11), 1)
    assert _health(server).status_code == 200


def _refuses(server: Server) -> bool:
    """Whether a long message gets a 503; the same one each time, so that it is one message in the end."""
    body = text_body("wamid.full", "nobody keeps this " * 3000, "12125550011")
    return server.post(body).status_code == 503


def _health(server: Server):
    return server.http.get("/health")


def _unwell(server: Server):
    answer = _health(server)
    return answer if answer.status_code == 503 else None


@pytest.fixture(scope="module")
def slow_world(tmp_path_factory) -> Iterator[tuple[Server, Graph, Callable[[float], None]]]:
    """A server on a disk whose commits last as long as the test says."""
    played, folder = ModelServer(echo), tmp_path_factory.mktemp("slow")
    options = {"OPENAI_BASE_URL": played.url, "LLM_MODEL": "stand-in"}
    pace = folder / "pace"
    commits_last = dial(pace)
    for server, graph in world(folder, crowd=10, graph=OPEN_WINDOW, **options, **injected(DISK=pace)):
        server.start()
        yield server, graph, commits_last
    played.stop()


def test_a_message_is_acknowledged_after_its_commit_and_not_before(slow_world):
    server, graph, commits_last = slow_world
    commits_last(1)
    with ThreadPoolExecutor(8) as pool:
        bodies = [text_body(f"wamid.{n}", f"m{n}", f"1212555{n:04}") for n in range(8)]
        assert all(pool.map(lambda body: _acknowledged(server, body), bodies))
    commits_last(0)
    wait_for(lambda: not open_work(server), "every answer")
    assert [graph.texts(f"p{n}") for n in range(8)] == [[f"you said: m{n}"] for n in range(8)]


def _acknowledged(server: Server, body: dict) -> bool:
    """Posts a body; whether its message was in the file at the moment of the 200."""
    wamid = body["entry"][0]["changes"][0]["value"]["messages"][0]["id"]
    assert server.rows("SELECT 1 FROM messages WHERE wamid = ?", wamid) == []
    assert server.post(body).status_code == 200
    return bool(server.rows("SELECT 1 FROM messages WHERE wamid = ?", wamid))


def test_a_commit_that_takes_too_long_is_503_stays_queued_and_is_answered_once(slow_world):
    server, graph, commits_last = slow_world
    body, kept = text_body("wamid.slow", "hello", "12125550008"), "SELECT 1 FROM messages WHERE wamid = ?"
    commits_last(600)
    assert server.post(body).status_code == 503
    assert server.rows(kept, "wamid.slow") == []
    again = threading.Thread(target=server.post, args=(body,))
    again.start()
    commits_last(0)
    again.join(10)
    assert server.post(body).status_code == 200
    assert graph.reply("p8") == "you said: hello"
    wait_for(lambda: not open_work(server), "the end")
    assert graph.texts("p8") == ["you said: hello"]
    assert len(server.rows(kept, "wamid.slow")) == 1


def test_a_death_during_a_long_commit_loses_nothing_that_was_acknowledged(slow_world):
    server, graph, commits_last = slow_world
    graph.say("p9", "kept")
    graph.reply("p9")
    wait_for(lambda: not open_work(server) and graph.log()["pending"] == 0, "the first to end")
    commits_last(600)
    graph.say("p9", "not kept")
    assert server.post(text_body("wamid.lost", "nor this", "12125550009")).status_code == 503
    server.kill()
    commits_last(0)
    server.start()
    assert server.rows("SELECT 1 FROM messages WHERE wamid = 'wamid.lost'") == []
    assert graph.reply("p9", 2) == "you said: not kept"
