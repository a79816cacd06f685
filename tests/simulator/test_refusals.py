"""Meta's error codes: what the simulator announces of each is what the Graph client makes of it."""

import orjson
import pytest

from app.channels.whatsapp.client import HOLD, RETRY, TEMPLATE, read_response
from app.messages import Refused
from app.simulator.refusals import CONSEQUENCES, Refusal

THEN = {"retry": "retry", "operator": "hold", "template": "template", "give_up": "give_up"}
PERMISSIONS = range(200, 300)
"""One meaning for all of them: the simulator offers the first alone."""


@pytest.mark.parametrize(
    ("code", "then"), [(code, THEN[name]) for name, codes in CONSEQUENCES.items() for code in codes]
)
def test_a_refusal_has_the_consequence_it_is_listed_under(code: int, then: str) -> None:
    refusal = Refusal(code)
    result = read_response(refusal.status, orjson.dumps(refusal.as_json()))
    assert isinstance(result, Refused)
    assert (result.then, result.code) == (then, code)


def test_every_code_that_the_client_knows_can_be_played() -> None:
    offered = {code for codes in CONSEQUENCES.values() for code in codes}
    assert RETRY | TEMPLATE | (HOLD - set(PERMISSIONS[1:])) <= offered
