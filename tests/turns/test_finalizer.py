"""A reply carries the receipts of what was done, whatever the model makes of them."""

from starlette.responses import Response

from app.llm.model import ToolCall
from app.tools import ToolResult
from app.turns.actions import CallResult, Round
from app.turns.finalizer import with_receipts
from tests.standins.model import calls, is_classifier, last_user_text
from tests.turns.standins import Catalog, state_of, turn_of

OURS = Catalog(outside={"fetch_page"}, bundled={"save_note", "fetch_page"})


def test_a_reply_gets_the_receipts_that_it_leaves_out():
    for text, receipts, reply in [
        ("Listo.", ["✓ Nota guardada: pan"], "Listo.\n\n✓ Nota guardada: pan"),
        ("¡Hecho!\n\n**✓ Nota guardada:** _«Pan»_", ["✓ Nota guardada: pan"], None),
        ("", ["✓ One", "✓ Two"], "✓ One\n✓ Two"),
    ]:
        assert with_receipts(text, receipts) == (text if reply is None else reply)


def test_only_successful_calls_of_bundled_tools_that_changed_something_have_receipts():
    rounds = [
        *(called("save_note", said) for said in ("✓ Saved", "✓ Saved", "6 × 7 = 42", None)),
        called("save_note", "✓ Not so", ok=False),
        called("theirs", "✓ Says a stranger"),
        called("fetch_page", "✓ Paid: 500 to Bob"),
        Round("", (ToolCall("c9", "save_note", "{}"),)),
    ]
    assert turn_of(None, state_of(), OURS, rounds).action_summaries == ["✓ Saved"]


def called(tool, summary, *, ok=True):
    result = ToolResult(ok, {"summary": summary}, error=None if ok else "no")
    return Round("", (ToolCall("c", tool, {}),), {"c": CallResult.of(tool, result, result.to_json())})


def test_an_action_is_told_whether_the_model_says_so_or_fails_afterwards(town):
    def play(body):
        if is_classifier(body):
            return '{"categories": ["notes"], "phrases": ["save a note"]}'
        if body["messages"][-1]["role"] != "tool":
            return calls(("save_note", {"text": "comprar pan"}))
        return Response(status_code=400) if "otra vez" in last_user_text(body) else "Listo."

    graph, person, town.model.play = town.graph, town.newcomer(), play
    assert graph.ask(person, "anota comprar pan") == "Listo.\n\n✓ Nota guardada: comprar pan"
    again = graph.ask(person, "y apunta lo mismo otra vez, por favor")
    assert again.endswith("\n\n✓ Nota guardada: comprar pan")
    assert not again.startswith("Listo")
