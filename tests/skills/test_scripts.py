"""Scripts of standard skills: what runs them, where, and what skills of many shapes give."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from app.skills.scripts import INTERPRETER_PATH
from tests.installs.made_packages import make_wheel
from tests.mailer import asked, press, questions
from tests.skills.folders import write
from tests.standins.model import calls, is_classifier, last_user_text
from tests.tides import told
from tests.world import wait_for

pytestmark = pytest.mark.slow

# Shapes of public skills: the files of each, how it is run, and what is told of it.
SHAPES: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "sibling-module": (
        {
            "scripts/lib/tides.py": "HIGH = 'noon'\n",
            "scripts/show.py": "from lib.tides import HIGH\nprint('high at', HIGH)\n",
        },
        {"script": "scripts/show.py"},
        "high at noon",
    ),
    "shell": (
        {"scripts/sum.sh": '#!/bin/bash\nset -e\necho "sum: $(($1 + $2))"\n'},
        {"script": "scripts/sum.sh", "args": ["2", "3"]},
        "sum: 5",
    ),
    "javascript": (
        {
            "scripts/rows.mjs": "import {argv} from 'node:process'\n"
            "console.log('rows:', argv.slice(2).length)\n"
        },
        {"script": "scripts/rows.mjs", "args": ["a", "b"]},
        "rows: 2" if shutil.which("node", path=INTERPRETER_PATH) else "needs node",
    ),
    "ends-badly": (
        {"scripts/fail.py": "import sys\nsys.exit('the file has no rows')\n"},
        {"script": "scripts/fail.py"},
        "SCRIPT_FAILED",
    ),
    "wants-the-internet": (
        {"scripts/ask.py": "import socket\nsocket.create_connection(('1.1.1.1', 53), 3)\n"},
        {"script": "scripts/ask.py"},
        "Operation not permitted",
    ),
    "unknown-interpreter": (
        {"scripts/plot.R": "#!/usr/bin/env Rscript-of-nobody\nplot(1)\n"},
        {"script": "scripts/plot.R"},
        "needs Rscript-of-nobody",
    ),
    "leads-out": ({"scripts/a.py": "print(1)\n"}, {"script": "../../x.py"}, "is no program of leads-out"),
}


def play(body: dict[str, Any]) -> Any:
    """Chooses the skill that is named, and runs what the message asks for."""
    said = last_user_text(body)
    if is_classifier(body):
        return json.dumps({"categories": re.findall(r"with the skill ([\w-]+)", said)[-1:]})
    newest = max(n for n, message in enumerate(body["messages"]) if message["role"] == "user")
    results = [one["content"] for one in body["messages"][newest:] if one["role"] == "tool"]
    if results:
        return "result: " + results[-1]
    return calls(("run_skill_script", json.loads(said[said.index("{") :])))


def run(graph: Any, skill: str, **call: Any) -> None:
    graph.say("p0", f"please with the skill {skill} {json.dumps({'skill': skill, **call})}")


@pytest.mark.usefixtures("sandboxed")
def test_skills_of_many_shapes_run_or_say_what_they_lack_and_a_link_opens_nothing(
    make_world: Any, model: Any, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    for name, (files, _, _) in SHAPES.items():
        write(own / name, files=files)
    code = (
        "import os, sys\nos.symlink(sys.argv[1], 'stolen.txt')\n"
        "os.symlink(os.path.dirname(sys.argv[1]), 'away')\n"
        "open('own.txt', 'w').write('own')\n"
    )
    write(own / "links", files={"scripts/link.py": code})
    server, graph = make_world(model=model(play), SKILLS_DIR=str(own), CONFIRMATION_MODE="yolo")
    for number, (name, (_, call, said)) in enumerate(SHAPES.items(), 1):
        run(graph, name, **call)
        assert said in graph.reply("p0", number), name
    run(graph, "links", script="scripts/link.py", args=[str(server.folder / "admin_token")])
    said = told(graph, "p0", "own.txt")
    assert "sent to the person with your answer: own.txt" in said
    assert "stolen.txt (" not in said
    wait_for(lambda: any("document" in one["body"] for one in graph.sends("p0")), "the file")
    assert sum("document" in one["body"] for one in graph.sends("p0")) == 1


@pytest.mark.usefixtures("sandboxed")
def test_a_script_asks_first_sees_the_persons_files_alone_and_what_it_writes_is_sent(
    make_world: Any, model: Any, tmp_path: Path
) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "print(sorted(os.listdir('.')), Path('in.txt').read_text(), os.environ.get('SECRET'))\n"
        "print([place for place in sys.argv[1:] if os.path.exists(place)])\n"
        "Path('report.txt').write_text('done')\n"
    )
    folder = write(tmp_path / "own/reports", files={"scripts/report.py": code})
    server, graph = make_world(model=model(play), SKILLS_DIR=str(tmp_path / "own"), SECRET="s3cret")
    workspace = server.folder / "workspace"
    workspace.mkdir(exist_ok=True)
    (workspace / "in.txt").write_text("of Ana")
    args = [str(server.folder / "recado.db"), str(server.folder / "admin_token")]
    run(graph, "reports", script="scripts/report.py", args=args)
    card = asked(graph, "p0")
    assert card["text"].startswith("Shall I run the program “scripts/report.py” of the skill “reports”?")
    assert not (workspace / "report.txt").exists()
    press(graph, "p0", card, "Always here")
    said = told(graph, "p0", "of Ana")
    assert "['in.txt', 'people'] of Ana None\\n[]" in said
    wait_for(lambda: any("document" in one["body"] for one in graph.sends("p0")), "the file")
    (workspace / "report.txt").unlink()
    graph.say("p0", "/new")  # what the program said is text of others, after which everything is asked
    told(graph, "p0", "start afresh")
    run(graph, "reports", script="scripts/report.py")
    wait_for((workspace / "report.txt").exists, "the second run, unasked")
    assert len(questions(graph, "p0")) == 1
    graph.say("p0", "/new")
    wait_for(lambda: sum("start afresh" in text for text in graph.texts("p0")) == 2, "a new beginning")
    (folder / "scripts" / "report.py").write_text(code + "print('changed')\n")
    run(graph, "reports", script="scripts/report.py")
    asked(graph, "p0", 2)  # "always" was for the program as it was


@pytest.mark.usefixtures("sandboxed")
def test_packages_of_a_dropped_folder_are_installed_by_skills_add_and_shown_before(
    make_world: Any, model: Any, tmp_path: Path
) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    make_wheel(shelf, "tide-table", code="HIGH = 'noon'\n")
    code = "# /// script\n# dependencies = ['tide-table']\n# ///\nimport tide_table\nprint(tide_table.HIGH)\n"
    folder = write(tmp_path / "own/tables", files={"scripts/table.py": code})
    write(tmp_path / "own/prose", files={"references/guide.md": "Read me."})
    more = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shelf), "CONFIRMATION_MODE": "yolo"}
    server, graph = make_world(model=model(play), SKILLS_DIR=str(tmp_path / "own"), **more)
    listed = server.recado("skills", "list")
    assert re.search(r"^tables .*scripts that do not run: needs packages: tide-table", listed, re.M)
    assert re.search(r"^prose .*ready, instructions only", listed, re.M)
    run(graph, "tables", script="scripts/table.py")
    told(graph, "p0", "needs packages: tide-table")
    assert "To install them: recado skills add" in server.recado("skills", "add", str(folder))
    added = server.recado("skills", "add", str(folder), "--yes")
    assert "script: scripts/table.py (python3; packages: tide-table) runs in the sandbox" in added
    assert (
        "--hash=sha256:" in next((server.folder / "skill-packages").glob("*/requirements.lock")).read_text()
    )
    run(graph, "tables", script="scripts/table.py")
    told(graph, "p0", "noon")
    assert re.search(r"^tables .*ready, scripts with python3", server.recado("skills", "list"), re.M)
