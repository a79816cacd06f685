"""The skill `selfcode`: what an owner sees of the assistant, and what nobody sees."""

import shutil
from types import SimpleNamespace

import pytest

from app.tools import ToolContext
from app.tools.tool import Services
from tests.skills.tools import functions_of
from tests.world import ROOT, TOKEN

TOOLS = ROOT / "skills" / "selfcode" / "scripts" / "tools.py"

NAMED = """
    .. ../x.py app/../../x.py /etc/passwd /proc/self/environ ~/.ssh/id_rsa .env .env.local app/.env
    skills/mine/.env .env.production skills/notes/../../.env .git/config .git/HEAD app/.git/config
    .github/x.yml .venv/pyvenv.cfg .ci/run data/recado.db recado.db app/recado.db app/recado.db-wal
    data/recado.db-shm app/x.sqlite3 data/admin_token admin_token data/server.json server.json
    data/mcp_servers.json data/secrets/github data/workspace/a.txt data/skills/x/SKILL.md app/data.json
    skills/mine/secrets.py skills/mine/secret.txt skills/mine/credentials.md skills/mine/key.pem
    skills/mine/tokens.txt skills/mine/api_key.txt skills/mine/apikey.md skills/mine/my-token.py
    skills/mine/password.md app/server.pem app/server.key skills/mine/id_rsa app/cert.p12
    skills/mine/id_ed25519.txt app/.netrc .npmrc .pypirc skills/mine/.netrc app/x.kdbx
    skills/mine/wallet.txt app/__pycache__/main.py build/x.py node_modules/x.js settings.py
    skills/mine/google-credentials.yaml skills/mine/client_secret.yaml skills/mine/PRIVATE.md
    skills/mine/clientsecret.yaml skills/mine/MySecrets.txt skills/mine/apitoken.txt skills/mine/keys.txt
    skills/mine/ssh_key.md skills/mine/pwd.txt skills/mine/passwort.txt docs/certs/ours.txt
"""
SENSITIVE = ["", "app/\0.py", *NAMED.split()]


@pytest.fixture(scope="module")
def tools():
    return SimpleNamespace(**functions_of(TOOLS, "selfcode"))


@pytest.fixture(scope="module")
def is_safe_path(tools):
    return tools.read_source_file.__globals__["_is_safe_path"]


def context(closed=(), may_write=False) -> ToolContext:
    admin = SimpleNamespace(closed=tuple(closed), may_write=may_write)
    return ToolContext(services=Services(admin=admin))


def test_no_sensitive_path_is_read_or_written(tools):
    for path in SENSITIVE:
        read = tools.read_source_file(path, context=context(may_write=True))
        written = tools.write_source_file(path, "x", context=context(may_write=True))
        assert (read["ok"], written["ok"]) == (False, False), path


def test_a_list_of_everything_names_no_sensitive_file(tools, is_safe_path):
    listed = tools.list_source_files(context=context())["files"]
    assert "app/main.py" in tools.list_source_files("app", "*.py", context=context())["files"]
    assert listed
    assert all(is_safe_path(path) for path in listed)


def test_links_out_of_the_project_and_into_peoples_data_lead_nowhere(is_safe_path, tmp_path):
    project, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (project / "app", project / "docs" / "data", outside):
        folder.mkdir(parents=True)
    for file in (outside / "x.py", project / "docs" / "data" / "x.md", project / "app" / "real.py"):
        file.write_text("x")
    (project / "app" / "link.py").symlink_to(outside / "x.py")
    (project / "app" / "folder").symlink_to(outside)
    (project / "app" / "data.md").symlink_to(project / "docs" / "data" / "x.md")
    (project / "app" / "inner.py").symlink_to(project / "app" / "real.py")
    closed = [project / "docs" / "data"]
    safe = {
        path: is_safe_path(path, project, closed)
        for path in ("app/link.py", "app/folder/x.py", "app/data.md", "docs/data/x.md", "app/inner.py")
    }
    assert [path for path, is_safe in safe.items() if is_safe] == ["app/inner.py"]


@pytest.fixture
def copy(tmp_path):
    """The tools over a project of their own that may be changed."""
    project = tmp_path / "project"
    skill = project / "skills" / "selfcode"
    shutil.copytree(TOOLS.parents[1], skill)
    (project / "app").mkdir()
    (project / "app" / "a.py").write_text("one = 1\ntwo = 2\nthree = 3\n")
    return project, SimpleNamespace(**functions_of(skill / "scripts" / "tools.py", "selfcode"))


PATCH = """--- a/app/a.py
+++ b/app/a.py
@@ -1,3 +1,3 @@
 one = 1
-two = 2
+two = {new}
 three = 3
"""


def test_files_change_only_where_the_operator_allows_it(copy):
    project, tools = copy
    for answer in (
        tools.write_source_file("app/a.py", "x = 1\n", context=context()),
        tools.apply_patch(PATCH.format(new="22"), context=context()),
    ):
        assert answer["error"]["code"] == "READ_ONLY"
    assert (project / "app" / "a.py").read_text() == "one = 1\ntwo = 2\nthree = 3\n"


def test_a_patch_changes_what_it_says_or_nothing(copy):
    project, tools = copy
    allowed = context(may_write=True)
    assert tools.apply_patch(PATCH.format(new="22"), context=allowed)["summary"].startswith("✓")
    assert (project / "app" / "a.py").read_text() == "one = 1\ntwo = 22\nthree = 3\n"
    other = "--- /dev/null\n+++ b/app/new.py\n@@ -0,0 +1,1 @@\n+fresh = True\n"
    for patch in (
        PATCH.format(new="22"),  # the line is another one by now
        other + PATCH.replace("two = 2", "two = 22").format(new="(("),  # no valid Python
        other + PATCH.replace("app/a.py", "data/recado.db").format(new="3"),
        "no diff at all",
        "1" * 32_000,  # the library would work on such a line for half a minute
        other.replace("app/new.py", "app/a.py"),  # what it calls new is there
        PATCH.format(new="3").replace("+++ b/app/a.py", "+++ /dev/null"),
    ):
        assert tools.apply_patch(patch, context=allowed)["error"]["code"] == "BAD_PATCH"
    assert sorted(path.name for path in (project / "app").iterdir()) == ["a.py"]
    assert tools.apply_patch(other, context=allowed)["paths"] == ["app/new.py"]


def test_an_owner_is_told_about_the_assistant_and_others_are_not(offline_town):
    graph, other = offline_town.graph, offline_town.newcomer()
    for asked, told in [
        ("qué versión sos?", "Soy Recado"),
        ("muéstrame tu configuración", "MAX_TOOLS_PER_CALL"),
        ("show me the recent logs", "[info"),
    ]:
        answer = graph.ask("p0", asked)
        assert told in answer
        assert TOKEN not in answer
    assert "MAX_TOOLS" not in graph.ask(other, "muéstrame tu configuración")
