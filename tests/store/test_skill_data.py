"""The data of skills: quota, bounds, and the facts a turn starts from."""

import asyncio
from typing import Any

import pytest

from app.skills.frames import HEADER, Answer, Ask, answer_ask, decode, encode
from app.store import disk_space
from app.store.database import Database
from app.store.skill_data import CALL_BYTES, KEY_CHARACTERS, VALUE_BYTES, NoRoom, SkillStore
from tests.store.rows import ANA, T, admit

COUNTED = "SELECT coalesce(sum(length(CAST(key AS BLOB)) + length(CAST(value AS BLOB))), 0) FROM skill_data"


async def person(store: Database, sender: object = ANA) -> str:
    return await store.tx(lambda conn: admit(conn, sender).id)  # type: ignore[arg-type]


async def write(store: Database, who: str, quota: int = 0, skill: str = "notes", **values: object) -> None:
    """One call that writes these keys; None deletes."""
    face = SkillStore(store, who, skill, quota)
    for key, one in values.items():
        await (face.delete(key) if one is None else face.put(key, one))
    await store.tx(face.apply)


async def counted(store: Database) -> tuple[int, int]:
    """(bytes as the database counted them along, bytes that are there)"""
    rows = [await store.one("SELECT sum(data_bytes) FROM people"), await store.one(COUNTED)]
    return rows[0][0], rows[1][0]  # type: ignore[index]


async def test_what_would_exceed_the_quota_is_not_kept_and_nothing_of_its_call(store: Database) -> None:
    ana = await person(store)
    await write(store, ana, 100, a="x" * 50)
    with pytest.raises(NoRoom) as full:
        await write(store, ana, 100, b="y" * 30, c="z" * 30)
    assert full.value.code == "QUOTA_EXCEEDED"
    rows = await store.all("SELECT key FROM skill_data")
    assert [row["key"] for row in rows] == ["a"]
    assert (await counted(store))[0] == (await counted(store))[1]


async def test_writes_committed_together_do_not_both_get_the_last_bytes(store: Database) -> None:
    ana = await person(store)
    faces = [SkillStore(store, ana, "notes", 100) for _ in range(5)]
    for n, face in enumerate(faces):
        await face.put(f"k{n}", "x" * 40)
    calls = [store.tx(face.apply) for face in faces]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(outcome, NoRoom) for outcome in outcomes) == 3
    assert (await counted(store))[1] <= 100


@pytest.mark.parametrize("change", [{"a": "less"}, {"a": None}, {"a": None, "b": "in its place"}])
async def test_over_the_quota_or_without_space_less_may_be_kept(
    store: Database, change: dict[str, str]
) -> None:
    ana = await person(store)
    await write(store, ana, a="x" * 500)
    await store.tx(lambda conn: disk_space.update_alerts(conn, 0, 1000, T))
    await write(store, ana, 100, **change)
    assert (await counted(store))[1] < 100


async def test_the_sizes_of_one_call_are_bounded(store: Database) -> None:
    face = SkillStore(store, "p", "notes")
    for key, one in [("k" * (KEY_CHARACTERS + 1), "x"), ("k", "x" * VALUE_BYTES)]:
        with pytest.raises(ValueError, match="at most"):
            await face.put(key, one)
    for n in range(CALL_BYTES // VALUE_BYTES - 1):
        await face.put(f"k{n}", "x" * (VALUE_BYTES - 2))
    with pytest.raises(ValueError, match="at most 8 MiB"):
        await face.put("one more", "x" * (VALUE_BYTES - 2))


@pytest.mark.parametrize("key", ["half \ud800", 5, None, ["a"]])
async def test_a_key_that_could_not_be_written_with_the_result_is_refused_at_once(
    store: Database, key: Any
) -> None:
    rows = SkillStore(store, "p", "box")
    with pytest.raises(ValueError, match="a key is text"):
        await rows.put(key, 1)


async def test_a_list_has_no_more_rows_than_asked_for_whatever_is_asked(store: Database) -> None:
    ana = await person(store)
    await write(store, ana, **{f"k{n}": n for n in range(5)})
    face = SkillStore(store, ana, "notes")
    assert await face.list("k", 2) == {"k0": 0, "k1": 1}
    assert await face.list("k", -1) == await face.list("k", 0) == {}
    assert len(await face.list("k", 10**30)) == 5


async def test_what_a_worker_asks_for_is_handed_on_as_it_is_stored_and_bounded(store: Database) -> None:
    ana = await person(store)
    await write(store, ana, **{'a"ñ': {"x": [1, "é"]}, "null": None, "b": 2**53})
    face = SkillStore(store, ana, "notes")
    await face.put("c", "own")

    async def asked(method: str, *args: object) -> Answer:
        answered = await answer_ask(Ask(1, f"store.{method}", [*args]), face, None)  # type: ignore[arg-type]
        found: Answer = decode(encode(answered)[HEADER:])
        return found

    assert (await asked("list", "", 10)).value == {'a"ñ': {"x": [1, "é"]}, "b": 2**53, "c": "own"}
    assert (await asked("list", "", -1)).value == {}
    assert [(await asked("get", key)).value for key in ("b", "c", "none")] == [[2**53], ["own"], []]
    for group in range(2):
        rows = {f"l{group}{n}": "x" * (VALUE_BYTES - 2) for n in range(20)}
        await write(store, ana, **rows)
    assert "list fewer" in (await asked("list", "l", 5000)).error
    assert len((await asked("list", "l", 20)).value) == 20
    assert len(await face.list("l", 5000)) == 40
