"""An answer that claims a deed that no tool did is caught, and mended by one more round."""

from pathlib import Path
from typing import Any

import yaml

from app.turns.answer_check import claimed
from tests.standins.model import calls, is_classifier
from tests.world import Town, open_work, wait_for


def test_deeds_are_caught_and_other_sentences_are_not() -> None:
    examples = yaml.safe_load(Path(__file__).with_name("deeds.yaml").read_text("utf-8"))
    caught = [bool(claimed(one, read_something=False)) for one in examples["claims"]]
    wrongly = [bool(claimed(one, read_something=False)) for one in examples["honest"]]
    assert len(caught) + len(wrongly) >= 80
    assert sum(caught) / len(caught) >= 0.90
    assert sum(wrongly) / len(wrongly) <= 0.02


def test_a_model_that_only_says_so_is_asked_again_and_then_does_it(town: Town) -> None:
    learns = True

    def play(body: dict[str, Any]) -> Any:
        if is_classifier(body):
            return '{"categories": ["notes"], "phrases": ["save a note"]}'
        last = body["messages"][-1]
        if last["role"] == "tool":
            return "I saved the note."
        if "A check of your answer" in str(last["content"]) and learns:
            return calls(("save_note", {"text": "the gate is green"}))
        return "Sure! I saved the note. The gate is green."

    notes = "SELECT 1 FROM skill_data WHERE skill = 'notes'"
    server, graph, person, town.model.play = town.server, town.graph, town.newcomer(), play
    before = len(server.rows(notes))
    assert "the gate is green" in graph.ask(person, "note that the gate is green")
    assert len(server.rows(notes)) == before + 1
    assert len(town.model.main_calls) == 3
    learns = False
    assert graph.ask(person, "and that the door is red") == (
        "Sure! The gate is green.\n\nI have not done that. Ask me for it again, in one short sentence."
    )
    wait_for(lambda: not open_work(server), "the turn")
    assert len(server.rows(notes)) == before + 1
    assert len(town.model.main_calls) == 5
