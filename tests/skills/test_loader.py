import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.skills import RELEASE_SKILLS, SkillLoader, load_skill
from app.skills.servers import read_servers
from app.tools import ToolContext
from tests.skills.folders import write
from tests.skills.tables import table
from tests.skills.tools import functions_of
from tests.world import ROOT

HELLO = 'def hello(name: str = "you") -> str:\n    """Greets."""\n    return f"hello {name}"\n'


def ship(release: Path, *names: str) -> None:
    release.mkdir(parents=True, exist_ok=True)
    (release / "bundled.txt").write_text("# bundled\n" + "\n".join(names) + "\n", "utf-8")


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    ship(folder, "first", "second")
    return folder


def loaded(skills: Path, release: Path | None = None, **options: Any) -> SkillLoader:
    loader = SkillLoader(skills, release or skills / "none", **options)
    loader.refresh()
    return loader


def test_the_skills_of_the_release_load_without_a_fault() -> None:
    loader = loaded(RELEASE_SKILLS, RELEASE_SKILLS)
    bundled = [skill for skill in loader.skills if skill.bundled]
    assert {"calculator", "datetime", "notes"} <= {skill.name for skill in bundled}
    for skill in bundled:
        assert (skill.faults, skill.warnings, skill.available) == ((), (), True), skill.name
        assert len(skill.instructions) <= 1200, skill.name  # each prompt that holds them pays for them
        for tool in skill.tools:
            for language in ("es", "pt", "en"):
                assert len(tool.phrases[language]) >= 10, (tool.name, language)
            slots = {slot for phrases in tool.phrases.values() for text in phrases for slot in _slots(text)}
            assert slots <= tool.input_schema["properties"].keys(), tool.name


def test_a_bundled_skill_says_each_sentence_in_each_language() -> None:
    for file in RELEASE_SKILLS.glob("*/assets/sentences.yaml"):
        if said := yaml.safe_load(file.read_text("utf-8")).get("said"):
            assert set(said) == {"es", "pt", "en"}
            assert {frozenset(sentences) for sentences in said.values()} == {frozenset(said["en"])}


def test_what_is_read_of_the_release_is_what_runs() -> None:
    """The shell shows the bundled skills from their texts, the server from their code."""
    live, read = SkillLoader(RELEASE_SKILLS), SkillLoader(RELEASE_SKILLS, runs_code=False)
    for loader in (live, read):
        loader.refresh()
    assert [tool.definition_hash for tool in live.tools] == [tool.definition_hash for tool in read.tools]
    assert [skill.faults for skill in read.skills] == [()] * len(live.skills)


def _slots(text: str) -> list[str]:
    return [part.split("}")[0].split("=")[0] for part in text.split("{")[1:]]


async def test_public_documented_functions_of_a_bundled_skill_are_tools(release: Path) -> None:
    code = (
        "from json import dumps\nfrom pathlib import Path\n"
        + HELLO
        + 'async def later() -> str:\n    """Waits."""\n    return "later"\n'
        + "def undocumented():\n    return 1\n"
    )
    front = (
        "metadata:\n  sensitive-tools: later ghost\n  idempotent-tools: hello\n  timeout-seconds: '5'\n"
        "  include-tools: web_search\n  settings: CITY\n  audience: owners\n"
    )
    skill = load_skill(write(release / "first", code, front=front), release=release)
    assert [tool.name for tool in skill.tools] == ["hello", "later"]
    hello, later = skill.tools
    assert (hello.category, hello.timeout, hello.idempotent, hello.sensitive) == ("first", 5.0, True, False)
    assert (later.idempotent, later.sensitive, later.audience) == (False, True, "owners")
    assert [skill.manifest.words(key) for key in ("include-tools", "settings")] == [
        ("web_search",),
        ("CITY",),
    ]
    assert skill.audience == "owners"
    assert "'ghost'" in " ".join(skill.warnings)
    assert "undocumented has no docstring" in " ".join(skill.left_out)
    result = await hello.execute({"name": "Ana"}, ToolContext())
    assert result.data == "hello Ana"


def test_a_module_that_does_not_import_is_a_fault(release: Path) -> None:
    for code, said in [
        ("def broken(:\n", "line 1"),
        ("raise ValueError('no luck')", "line 1: ValueError: no luck"),
        ("import surely_not_installed_here", "needs the package surely_not_installed_here"),
        ("x = 1\x00", "scripts/tools.py"),
    ]:
        skill = load_skill(write(release / "first", code), release=release)
        assert said in " ".join(skill.faults)
        assert (skill.available, skill.tools) == (False, ())
        assert skill.reason == skill.faults[0]


def test_a_folder_that_was_not_bundled_is_never_imported(tmp_path: Path, release: Path) -> None:
    trap = tmp_path / "imported"
    code = f"open({str(trap)!r}, 'w')\n{HELLO}"
    folder = write(tmp_path / "own" / "first", code, body="Run {baseDir}/x.")
    skill = load_skill(folder, release=release)
    assert not trap.exists()
    assert (skill.bundled, skill.available, skill.reason) == (False, True, "")
    (hello,) = skill.tools
    assert hello.input_schema["properties"] == {"name": {"type": "string", "default": "you"}}
    assert skill.instructions == f"Run {folder}/x."


def test_a_package_that_is_not_installed_is_named(tmp_path: Path) -> None:
    code = (
        "import json\nimport beside\nfrom folder_beside import x\nimport recado_test_package.inner\n"
        "import recado_other_package\n"
        "try:\n    import guarded_package\nexcept ImportError:\n    pass\n"
        "def later():\n    import later_package\n" + HELLO
    )
    folder = write(tmp_path / "own" / "needy", code, files={"scripts/beside.py": "import beside\n"})
    (folder / "scripts" / "folder_beside").mkdir()
    loader = loaded(tmp_path / "own")
    skill = loader.skills[0]
    assert not skill.available
    assert skill.reason == (
        "it needs the package recado_other_package, which is not installed; "
        "it needs the package recado_test_package, which is not installed"
    )
    assert [tool.name for tool in skill.tools] == ["hello"]
    assert loader.tools == ()
    assert not loader.refresh()


def test_what_only_skills_of_the_release_may_say_of_themselves_is_not_believed(tmp_path: Path) -> None:
    front = "metadata:\n  harmless-tools: hello\n  own-results: '*'\n  search-results: hello\n"
    folder = write(tmp_path / "own" / "first", HELLO, front=front)
    own, elsewhere = load_skill(folder), load_skill(folder, is_installed=True)
    for skill, outside in ((own, False), (elsewhere, True)):
        (tool,) = skill.tools
        assert (tool.harmless, tool.outside, tool.permits_addresses) == (False, outside, False)
    assert own.warnings == (
        "harmless-tools is only believed of a skill of the release",
        "search-results is only believed of a skill of the release",
    )
    assert elsewhere.warnings == (
        *own.warnings,
        "own-results is only believed of a skill that is not from elsewhere",
    )


def device(path: Path) -> None:
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # /dev/zero, which never ends
    except PermissionError:
        pytest.skip("only root makes devices")


ODD = {"pipe": os.mkfifo, "device": device, "folder": Path.mkdir, "loop": lambda path: path.symlink_to(path)}


@pytest.mark.parametrize(
    ("name", "kind"),
    [*(("SKILL.md", kind) for kind in ("pipe", "device", "folder", "loop")), ("scripts/tools.py", "pipe")],
)
def test_what_is_no_plain_file_is_named_and_never_waited_for(tmp_path: Path, name: str, kind: str) -> None:
    folder = write(tmp_path / "own" / "odd", HELLO)
    (folder / "assets").mkdir()
    write(tmp_path / "own" / "good", HELLO)
    path = folder / name
    path.unlink(missing_ok=True)
    ODD[kind](path)
    loader = loaded(tmp_path / "own")
    assert [skill.name for skill in loader.skills if skill.available and skill.tools][:1] == ["good"]
    odd = next(skill for skill in loader.skills if skill.folder == folder)
    assert name in " ".join((*odd.faults, *odd.warnings))


AS_NOBODY = """
import os, sys
from pathlib import Path
from app.skills import SkillLoader

def look():
    loader = SkillLoader(Path(sys.argv[1]), Path("/nonexistent"))
    loader.refresh()
    return [(skill.name, skill.faults) for skill in loader.skills]

look()  # loads what it needs while it may
if os.geteuid() == 0:  # root may read everything
    os.setgroups([])
    os.setuid(65534)
print(look())
"""


def test_a_folder_that_may_not_be_read_is_named() -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to others
        hidden = write(Path(name) / "hidden", HELLO)
        write(Path(name) / "good", HELLO)
        Path(name).chmod(0o755)
        hidden.chmod(0)
        closed = write(Path(name) / "closed", HELLO) / "scripts"
        closed.chmod(0o311)
        ran = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, name], cwd=ROOT, capture_output=True, text=True, timeout=60
        )
        hidden.chmod(0o755)
        closed.chmod(0o755)
    assert "('closed', ('the folder cannot be read: Permission denied',))" in ran.stdout, ran.stderr
    assert "('hidden', ('the folder cannot be read: Permission denied',))" in ran.stdout, ran.stderr
    assert "('good', ())" in ran.stdout


def test_a_link_in_the_release_does_not_make_a_folder_bundled(tmp_path: Path, release: Path) -> None:
    folder = write(tmp_path / "elsewhere", HELLO, name="first")
    (release / "first").symlink_to(folder)
    assert not load_skill(release / "first", release=release).bundled


@pytest.mark.parametrize("name", ["SKILL.md", "scripts/tools.py", "assets/phrases.yaml"])
def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path, release: Path, name: str) -> None:
    folder = write(release / "first", HELLO)
    outside = tmp_path / "outside"
    outside.write_text("---\nname: first\ndescription: stolen\n---\n", "utf-8")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside)
    skill = load_skill(folder, release=release)
    assert any("leads out" in text for text in (*skill.faults, *skill.warnings))
    assert "stolen" not in skill.description


def test_a_folder_that_is_too_big_is_refused(tmp_path: Path) -> None:
    for fill in (Path.touch, Path.mkdir):
        folder = write(tmp_path / fill.__name__)
        for n in range(260):
            fill(folder / f"{n}.txt")
        assert "too big" in load_skill(folder).faults[0]
    deep = write(tmp_path / "deep")
    deep.joinpath(*"a" * 40).mkdir(parents=True)
    assert "nested more than 32 deep" in load_skill(deep).faults[0]


def test_who_may_use_a_skill_is_not_lost_by_how_it_is_written(tmp_path: Path) -> None:
    for written, audience in [
        *((written, "owners") for written in ("Owners", "[owners]")),
        *((written, written) for written in ("everyone", "members")),
        ("maintainers", "members"),
    ]:
        front = f"metadata: {{audience: {written}, sensitive-tools: '*'}}\n"
        skill = load_skill(write(tmp_path / "first", HELLO, front=front))
        assert (skill.audience, skill.tools[0].audience) == (audience, audience)
        assert skill.tools[0].sensitive, "a star makes every tool one that asks"


def test_the_second_tool_of_a_name_is_offered_under_its_skills(tmp_path: Path, release: Path) -> None:
    for name in ("first", "second"):
        files = {"assets/phrases.yaml": f"hello: {{es: [hola {name}]}}\n"}
        write(release / name, HELLO, files=files)
    loader = loaded(tmp_path / "own", release)
    assert [tool.name for tool in loader.tools] == ["hello", "second_hello"]
    assert loader.tools[1].phrases["es"] == ("hola second",)
    assert loader.clashes == ("second: the tool hello is offered as second_hello",)


def test_of_skills_of_one_name_the_bundled_one_is_used_else_the_one_in_a_folder_of_that_name(
    tmp_path: Path, release: Path
) -> None:
    write(release / "first", HELLO)
    for name, folder in (("first", "first"), ("mine", "mine"), ("mine", "zzz")):
        write(tmp_path / "own" / folder, name=name, body=f"In {folder}.")
    loader = loaded(tmp_path / "own", release)
    assert [skill.instructions for skill in loader.skills if skill.available] == ["Body.", "In mine."]
    assert loader.skill("first").folder == release / "first"
    assert len(loader.clashes) == 2
    assert [tool.name for tool in loader.tools] == ["hello"]


def test_long_names_keep_their_end_and_fit(tmp_path: Path) -> None:
    release, skill, tool = tmp_path / "release", "s" * 60, "t" * 30 + "_the_function_with_a_long_name_indeed"
    code = HELLO.replace("hello(", f"{tool}(") + HELLO.replace("hello(", "año(")
    ship(release, "a", skill)
    write(release / "a", code)
    write(release / skill, code)
    loader = loaded(tmp_path / "own", release)
    names = [one.name for one in loader.tools]
    assert len(set(names)) == 4
    for name in names:
        assert len(name) <= 64
        assert name.isascii()
    assert sum(name.endswith(tool[-40:]) for name in names) == 2


USING = 'from .words import greet\n\n\ndef hello() -> str:\n    """Says hello."""\n    return greet()\n'


def test_modules_beside_bundled_tools_are_imported_apart_and_are_no_tools(tmp_path: Path) -> None:
    said = []
    for name in ("a", "b"):
        words = f'def greet():\n    """Greets."""\n    return {name!r}\n'
        folder = write(tmp_path / name, USING, files={"scripts/words.py": words})
        functions = functions_of(folder / "scripts" / "tools.py", name)
        assert list(functions) == ["hello"]
        said.append(functions["hello"])
    assert [say() for say in said] == ["a", "b"]
    assert "words" not in sys.modules


def test_beside_metadata_only_what_asks_for_care_counts(tmp_path: Path) -> None:
    for front in ("metadata: {sensitive_tools: hello}", "sensitive-tools: hello", "Sensitive_Tools: ['*']"):
        folder = write(
            tmp_path / "first", HELLO, front=f"{front}\nidempotent-tools: hello\naudience: everyone\n"
        )
        skill = load_skill(folder)
        assert (skill.tools[0].sensitive, skill.tools[0].idempotent) == (True, False)
        assert (skill.audience, skill.warnings) == ("members", ())


def test_phrases_that_do_not_fit_are_left_out_with_a_warning(release: Path) -> None:
    written = {"assets/phrases.yaml": "hello: {es: [' hola']}\nghost: {es: [x]}\n"}
    folder = write(release / "first", HELLO, files=written)
    skill = load_skill(folder, release=release)
    assert skill.tools[0].phrases == {"es": ("hola",)}
    assert "'ghost'" in " ".join(skill.warnings)
    for broken in ("[", "- a\n- b\n", "hello: text\n", "hello: {fr: [salut]}\n", "hello: {es: ['']}\n"):
        (folder / "assets/phrases.yaml").write_text(broken, "utf-8")
        skill = load_skill(folder, release=release)
        assert (skill.available, skill.tools[0].phrases) == (True, {})
        assert "phrases.yaml is left out: " in " ".join(skill.warnings)


def test_a_server_of_a_skill_from_elsewhere_with_a_command_or_a_doubtful_address_is_refused() -> None:
    for entry in table("servers", "refused"):
        servers, refused = read_servers(json.dumps({"mcpServers": {"one": entry}}).encode())
        assert servers == ()
        assert refused[0].name == "one"
        assert refused[0].reason
