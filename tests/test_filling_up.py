"""A disk that fills up and a person who has much: what stops first, what goes on, what is told."""

import asyncio
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from app.cli.server import check_database
from app.doctor.data import check_folder
from app.errors import StoreError
from app.settings import Settings
from tests.standins.model import echo, keeper
from tests.world import wait_for

MORE_THAN_ANY_DISK = str(10**12)
HUNDRED = "x" * 100


def traced(server) -> int:
    return server.rows("SELECT count(*) AS n FROM model_calls")[0]["n"]


@pytest.mark.slow
def test_on_a_disk_nearly_full_messages_are_answered_without_traces_and_no_note_is_kept(make_world, model):
    server, graph = make_world(model=model(keeper), FREE_SPACE_MB=MORE_THAN_ANY_DISK)
    wait_for(lambda: server.http.get("/health").json()["status"] == "degraded", "the first look at the disk")
    assert server.http.get("/health").json() == {"status": "degraded", "reason": "the disk is nearly full"}
    assert "disk is nearly full" in graph.ask("p0", "keep bread")
    assert (traced(server), server.rows("SELECT * FROM prompt_parts")) == (0, [])
    assert server.rows("SELECT sum(tokens) AS n FROM token_use")[0]["n"] > 0
    assert server.log.count("traces and media are not kept") == 1
    alerts = server.rows("SELECT code, times FROM alerts WHERE mended_at IS NULL ORDER BY code")
    assert [tuple(row) for row in alerts] == [("space:data", 1), ("space:traces", 1)]
    server.restart(FREE_SPACE_MB="1")
    wait_for(lambda: server.http.get("/health").json() == {"status": "ok"}, "the first look at the disk")
    graph.ask("p0", "keep milk")
    kept = str([row["value"] for row in server.rows("SELECT value FROM skill_data")])
    assert ("milk" in kept, "bread" in kept) == (True, False)
    assert traced(server) > 0


def test_who_has_used_up_their_quota_is_told_and_others_are_not_touched(make_world):
    server, graph = make_world(DATA_QUOTA_MB="0.0003")
    graph.ask("p0", f"save a note: first {HUNDRED}")
    assert "your data has reached its limit" in graph.ask("p0", f"save a note: second {HUNDRED}")
    assert "limit" not in graph.ask("p1", f"save a note: mine {HUNDRED}")
    graph.ask("p0", "borra la nota 1")
    assert "limit" not in graph.ask("p0", f"save a note: third {HUNDRED}")
    kept = str([row["value"] for row in server.rows("SELECT value FROM skill_data")])
    assert ("second" in kept, "third" in kept, "mine" in kept) == (False, True, True)


def test_the_doctor_tells_what_is_not_kept_and_the_cure(tmp_path):
    address = f"sqlite:///{tmp_path}/recado.db"
    (enough,) = check_folder(Settings(_env_file=None, database_url=address, free_space_mb="0"))
    assert (enough.level, "GB free" in enough.fact) == ("OK", True)
    low = Settings(_env_file=None, database_url=address, free_space_mb=MORE_THAN_ANY_DISK)
    (finding,) = check_folder(low)
    assert (finding.level, "and notes and files are refused" in finding.fact) == ("WARN", True)
    assert f"free at least {MORE_THAN_ANY_DISK} MB" in finding.cure


@pytest.fixture
def small_disk() -> Iterator[Callable[[Path], None]]:
    """Puts a disk of 64 MB in a folder's place."""
    mounted: list[Path] = []

    def mount(folder: Path) -> None:
        command = ["mount", "-t", "tmpfs", "-o", "size=64m", "recado-test", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("this user may not mount a disk")
        mounted.append(folder)

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.slow
def test_a_disk_that_fills_and_is_freed_while_the_server_runs(make_world, model, small_disk, tmp_path):
    """Of the database alone: the data folder lies elsewhere."""
    small = tmp_path / "small"
    small.mkdir()
    small_disk(small)
    address, data = f"sqlite:///{small}/recado.db", str(tmp_path / "data")
    options = {"DATABASE_URL": address, "DATA_DIR": data, "FREE_SPACE_MB": "40", "SWEEP_SECONDS": "0.2"}
    server, graph = make_world(model=model(echo), start=False, **options)
    server.start()
    filler = small / "filler"
    graph.ask("p0", "one")
    filler.write_bytes(b"x" * 30 * 1024**2)
    wait_for(lambda: server.http.get("/health").json()["status"] == "degraded", "the low disk to be seen")
    settings = Settings(_env_file=None, database_url=address, DATA_DIR=data, free_space_mb=40)
    assert [finding.level for finding in check_folder(settings)] == ["OK", "WARN"]
    assert graph.ask("p0", "two") == "you said: two"
    filler.unlink()
    wait_for(lambda: server.http.get("/health").json()["status"] == "ok", "the room to be seen")
    graph.ask("p0", "three")
    server.stop()
    with closing(sqlite3.connect(small / "recado.db")) as database:
        (traces,) = database.execute("SELECT count(*) FROM model_calls").fetchone()
    assert traces == 4  # two of each, none of "two"


def test_a_full_disk_is_not_called_a_lack_of_rights(tmp_path, small_disk):
    small_disk(tmp_path)
    settings = Settings(_env_file=None, database_url=f"sqlite:///{tmp_path}/data/recado.db", free_space_mb=40)
    settings.data_dir.mkdir()
    with suppress(OSError), (tmp_path / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(1 << 20))
    (finding,) = check_folder(settings)
    assert (finding.level, finding.fact.partition(": ")[2]) == ("FAIL", "No space left on device")
    assert finding.cure.startswith("free at least 40 MB there")
    with pytest.raises(StoreError, match="No space left on device; make room there"):
        asyncio.run(check_database(settings.database))
