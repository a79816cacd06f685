from pathlib import Path

SKILLS = Path(__file__).parents[2]


def test_simple_text() -> str:
    """Answers with text."""
    return "This is a simple text response for testing."


def test_error_handling() -> str:
    """Always fails."""
    raise RuntimeError("This tool intentionally returns an error for testing")


def test_logging_tool() -> str:
    """Answers, and sends no log messages."""
    return "Nothing is logged to a client."


def test_trigger_tool_change() -> str:
    """Drops another skill beside this one."""
    number = len(list(SKILLS.iterdir()))
    folder = SKILLS / f"dropped-{number}"
    (folder / "scripts").mkdir(parents=True)
    code = f'def dropped_{number}() -> int:\n    """Counts."""\n    return 1\n'
    (folder / "scripts" / "tools.py").write_text(code)
    (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\ndescription: A tool more.\n---\nCounts.\n")
    return folder.name
