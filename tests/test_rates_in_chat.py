"""How often a tool may be called, as it shows in a conversation and in the figures."""

from tests.mailer import ANA, asked, calling, drop_mailer, marks, press, questions
from tests.world import wait_for


def test_nobody_is_asked_about_a_call_that_comes_too_often_and_a_no_is_free(make_world, model, tmp_path):
    skills = drop_mailer(tmp_path / "own")
    page = skills / "mailer" / "SKILL.md"
    page.write_text(page.read_text().replace("metadata:\n", "metadata:\n  calls-per-minute: '1'\n"))
    server, graph = make_world(model=model(calling(ANA)), SKILLS_DIR=str(skills))
    graph.say("p0", "mail, please")
    press(graph, "p0", asked(graph, "p0"), "No")
    wait_for(lambda: "said no" in graph.texts("p0")[-1], "the no")
    graph.say("p0", "a mail again, please")
    press(graph, "p0", asked(graph, "p0", 2), "Yes")
    wait_for(lambda: '"ok":true' in graph.texts("p0")[-1], "the mail")
    graph.say("p0", "one more mail, please")
    wait_for(lambda: "UPSTREAM_RATE_LIMIT" in graph.texts("p0")[-1], "the refusal")
    assert len(questions(graph, "p0")) == 2
    assert len(marks(skills, "sent")) == 1

    rows = server.rows("SELECT code, step, calls FROM tool_statistics WHERE tool = 'send_mail'")
    counted = {row["code"]: (row["calls"], row["step"] >= 0) for row in rows}
    assert counted == {"DENIED": (1, False), "UPSTREAM_RATE_LIMIT": (1, False), "ok": (1, True)}
    metrics = server.http.get("/metrics").text
    for code in counted:
        assert f'recado_tool_calls_total{{code="{code}",tool="send_mail"}} 1.0' in metrics
    assert 'recado_tool_seconds_count{tool="send_mail"} 1.0' in metrics
