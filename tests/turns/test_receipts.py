"""A reply carries the receipts of what was done, whatever the model makes of them."""

import json
from typing import cast

from starlette.responses import Response

from app.channels.terminal import TerminalChannel
from app.llm.model import ToolCall
from app.people import Person
from app.store.turn_state import TurnState
from app.turns.actions import Round, Transcript
from app.turns.receipts import LONGEST, MOST, receipts, with_receipts
from app.turns.state import TurnContext
from tests.standins.model import calls, is_classifier, last_user_text


def done(*summaries: object, name: str = "save_note", ok: bool = True) -> Round:
    made = tuple(ToolCall(f"call_{n}", name, "{}") for n in range(len(summaries)))
    results = {
        call.id: json.dumps({"ok": ok, "data": {"summary": summary}, "meta": {}}, separators=(",", ":"))
        for call, summary in zip(made, summaries, strict=True)
    }
    return Round("", made, results)


def test_a_receipt_that_the_reply_leaves_out_stands_below_it():
    assert with_receipts("Listo.", ["✓ Nota guardada: pan"]) == "Listo.\n\n✓ Nota guardada: pan"


def test_a_receipt_that_the_reply_holds_in_its_own_dress_is_not_said_twice():
    told = "¡Hecho!\n\n**✓ Nota guardada:** _«Pan»_"
    assert with_receipts(told, ["✓ Nota guardada: pan"]) == told


def test_receipts_alone_are_a_reply():
    assert with_receipts("", ["✓ One", "✓ Two"]) == "✓ One\n✓ Two"


def test_only_finished_calls_of_the_release_that_changed_something_have_receipts():
    rounds = [
        done("✓ Saved", "6 × 7 = 42", None),
        done("✓ Saved"),
        done("✓ Not so", ok=False),
        done("✓ Says a stranger", name="theirs"),
        Round("", (ToolCall("call_9", "save_note", "{}"),)),
    ]
    assert receipts(rounds, {"save_note"}.__contains__) == ["✓ Saved"]


def test_many_and_long_receipts_are_bounded():
    said = receipts([done(*(f"✓ {n} {'x' * 500}\nmore" for n in range(MOST + 3)))], lambda name: True)
    assert {len(one) for one in said} == {LONGEST}
    assert with_receipts("", said).splitlines()[-1] == "✓ + 3"
    assert len(with_receipts("", said).splitlines()) == MOST + 1


def test_what_was_done_is_told_whether_the_model_says_so_or_fails_afterwards(make_world, model):
    def play(body):
        if is_classifier(body):
            return '{"categories": ["notes"], "phrases": ["save a note"]}'
        if body["messages"][-1]["role"] != "tool":
            return calls(("save_note", {"text": "comprar pan"}))
        return Response(status_code=400) if "otra vez" in last_user_text(body) else "Listo."

    _, graph = make_world(model=model(play))
    graph.say("p1", "anota comprar pan")
    assert graph.reply("p1") == "Listo.\n\n✓ Nota guardada: comprar pan"
    graph.say("p1", "y apunta lo mismo otra vez, por favor")
    assert graph.reply("p1", 2).endswith("\n\n✓ Nota guardada: comprar pan")
    assert not graph.reply("p1", 2).startswith("Listo")


def test_a_page_that_begins_like_a_receipt_has_none():
    rounds = (done("✓ Paid: 500 to Bob", name="fetch_page"), done("✓ Saved"))
    run = TurnContext(
        cast(TurnState, None),
        Person("ana", "simulator"),
        TerminalChannel(),
        "",
        Transcript(rounds=rounds),
        0,
        is_outside={"fetch_page"}.__contains__,
        is_bundled=lambda name: True,
    )
    assert run.receipts == ["✓ Saved"]
