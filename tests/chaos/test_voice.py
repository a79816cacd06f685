"""kill -9 along the way of voice notes: each is answered once, in order; no known transcript is made again.

The seed is printed; RECADO_SEED replays it, RECADO_KILLS changes how often the server dies.
"""

import asyncio
import base64
import os
import random
import time
from collections import Counter

import pytest

from app.simulator.graph import canned_clip
from tests.standins.model import echo
from tests.world import open_work, wait_for

pytestmark = pytest.mark.slow


def test_each_voice_note_is_transcribed_and_answered_once(make_world, model):
    seed = int(os.environ.get("RECADO_SEED") or time.time())
    kills = int(os.environ.get("RECADO_KILLS") or 8)
    print(f"\nseed {seed} (RECADO_SEED={seed} replays it), {kills} kills")
    chance = random.Random(seed)
    heard: Counter[str] = Counter()

    async def hear(data: bytes) -> str:
        await asyncio.sleep(0.15)
        said = data.rpartition(b"#")[2].decode()
        heard[said] += 1
        return said

    played = model(echo)
    played.hear = hear
    server, graph = make_world(model=played)
    for number in range(kills):
        data = base64.b64encode(canned_clip() + f"#nota {number}".encode()).decode()
        note = {"person": "p1", "type": "voice", "data": data, "mime_type": "audio/ogg"}
        wamid = graph.inbound(note)[0]
        time.sleep(chance.uniform(0, 0.6))
        server.kill()
        known = {row["text"] for row in server.rows("SELECT text FROM messages WHERE kind = 'audio'")} - {""}
        before = Counter({said: heard[said] for said in known})
        server.start()
        graph.inbound({**note, "id": wamid})  # a redelivery
        graph.reply("p1", number + 1)
        assert all(heard[said] == times for said, times in before.items()), (
            "a known transcript was made again"
        )
    wait_for(lambda: not open_work(server), "the end")
    assert graph.texts("p1") == [f"you said: nota {number}" for number in range(kills)]
