"""tools.py with modules beside it, run in this process."""

import sys
from pathlib import Path

import pytest

from app.skills.modules import ToolsModuleError, tool_functions


def write(folder: Path, **modules: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return folder / "tools.py"


USING = 'from .words import greet\n\n\ndef hello() -> str:\n    """Says hello."""\n    return greet()\n'


def test_a_module_beside_is_imported_and_its_functions_are_no_tools(tmp_path: Path) -> None:
    path = write(tmp_path / "a", tools=USING, words='def greet():\n    """Greets."""\n    return "hola"\n')
    functions, left_out = tool_functions(path, "a")
    assert (list(functions), left_out) == (["hello"], [])
    assert functions["hello"]() == "hola"
    assert not (path.parent / "__pycache__").exists()


def test_modules_of_the_same_name_stay_apart(tmp_path: Path) -> None:
    said = []
    for name in ("a", "b"):
        path = write(tmp_path / name, tools=USING, words=f"def greet():\n    return {name!r}\n")
        said.append(tool_functions(path, name)[0]["hello"])
    assert [say() for say in said] == ["a", "b"]
    assert "words" not in sys.modules


def test_a_change_of_a_module_beside_is_seen_at_once(tmp_path: Path) -> None:
    for greeting in ("uno", "dos"):
        path = write(tmp_path / "a", tools=USING, words=f"def greet():\n    return {greeting!r}\n")
        assert tool_functions(path, "a")[0]["hello"]() == greeting


def test_an_import_inside_a_function_finds_it_too(tmp_path: Path) -> None:
    late = 'def hello() -> str:\n    """Says hello."""\n    from .words import greet\n\n    return greet()\n'
    path = write(tmp_path / "a", tools=late, words="def greet():\n    return 'hola'\n")
    assert tool_functions(path, "a")[0]["hello"]() == "hola"


@pytest.mark.parametrize("words", ["1 / 0\n", "def greet(:\n", "import nothing_of_that_name\n"])
def test_a_broken_module_beside_is_a_fault_and_leaves_nothing(tmp_path: Path, words: str) -> None:
    path = write(tmp_path / "a", tools=USING, words=words)
    before = set(sys.modules)
    with pytest.raises(ToolsModuleError):
        tool_functions(path, "a")
    assert not {name for name in set(sys.modules) - before if name.startswith("recado_skill_")}
