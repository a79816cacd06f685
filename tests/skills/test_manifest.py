import json
from pathlib import Path

import pytest
import yaml

from app.skills.manifest import ManifestError, parse_frontmatter, read_manifest
from app.skills.skill import missing

GOOD = b"---\nname: demo\ndescription: Does things.\n---\n# Body\n"


def test_every_real_frontmatter_is_read_as_yaml_reads_it(samples: Path) -> None:
    lines = (samples / "skills/frontmatters.jsonl").read_text("utf-8").splitlines()
    rows = list(map(json.loads, lines))
    assert rows
    refused = []
    for row in rows:
        text = f"---\n{row['frontmatter']}\n---\n# Body\n"
        try:
            manifest = read_manifest(text.encode(), row["dir"])
        except ManifestError as error:
            refused.append((row["path"], str(error)))
            continue
        try:
            expected = yaml.safe_load(row["frontmatter"])
        except yaml.YAMLError:
            assert any("invalid YAML" in warning for warning in manifest.warnings), row["path"]
        else:
            assert manifest.fields == expected, row["path"]
        assert manifest.name
        assert manifest.description
        assert manifest.body == "# Body"
    assert all(reason for _, reason in refused)
    assert len(refused) < len(rows) / 50


def test_harmless_forms_are_read() -> None:
    for content in [
        GOOD,
        b"\xef\xbb\xbf" + GOOD,
        GOOD.replace(b"\n", b"\r\n"),
        b"\n\n" + GOOD,
        GOOD.replace(b"---\n#", b"--- \n#"),
    ]:
        manifest = read_manifest(content, "demo")
        assert (manifest.name, manifest.description, manifest.body) == ("demo", "Does things.", "# Body")
        assert manifest.warnings == ()


def test_what_cannot_be_read_says_why() -> None:
    for content, said in [
        (b"", "must start with a frontmatter"),
        (b"# Only a body", "must start with a frontmatter"),
        (b"---\nname: demo\n", "must start with a frontmatter"),
        (b"---\n---\nbody", "must be `key: value` lines"),
        (b"---\n- a\n- b\n---\n", "must be `key: value` lines"),
        (b"---\nname: demo\n---\n", "no description"),
        (b"---\nname: demo\ndescription: ''\n---\n", "no description"),
        (b"---\nname: demo\ndescription: {a: 1}\n---\n", "no description"),
        (b"---\nname: a\ndescription: [unclosed\n---\n", "flow sequence in SKILL.md, line 3"),
        (
            b"---\nname: *a\ndescription: b\n---\n",
            "^invalid YAML: found undefined alias.* in SKILL.md, line 2",
        ),
        (b"---\ndescription: !!python/object:os.system x\n---\n", "invalid YAML"),
        (b"---\ndescription: " + b"[" * 3000 + b"\n---\n", "invalid YAML"),
        (b"---\ndescription: \xff\xfe\n---\n", "not UTF-8"),
        (b"---\ndescription: " + b"x" * 70_000 + b"\n---\n", "characters"),
    ]:
        with pytest.raises(ManifestError, match=said):
            read_manifest(content, "demo")


def test_an_unquoted_colon_is_rescued_with_a_warning() -> None:
    text = "name: demo\ndescription: Use when: the person asks\n  for more: help\nmetadata:\n  a: b"
    fields, warnings = parse_frontmatter(text)
    assert fields == {
        "name": "demo",
        "description": "Use when: the person asks for more: help",
        "metadata": {"a": "b"},
    }
    assert len(warnings) == 1


def test_deviations_are_warned_of_and_loaded() -> None:
    for frontmatter, folder, name, warning in [
        ("description: x", "demo", "demo", "no name"),
        ("name: other\ndescription: x", "demo", "other", "not the folder's name"),
        ("name: Demo Skill\ndescription: x", "demo", "Demo Skill", "lowercase"),
        ("name: 42\ndescription: x", "42", "42", ""),
        (f"name: {'a' * 65}\ndescription: x", "a" * 65, "a" * 65, "64 at most"),
        (f"name: demo\ndescription: {'x ' * 600}", "demo", "demo", ""),
    ]:
        manifest = read_manifest(f"---\n{frontmatter}\n---\n".encode(), folder)
        assert manifest.name == name
        assert warning in " ".join(manifest.warnings)


def test_requirements_of_other_assistants_are_told_in_words() -> None:
    requires = '{"bins": ["no-gh"], "anyBins": ["no-a", "no-b"], "env": ["K"]}'
    metadata = f'{{"openclaw": {{"os": ["solaris"], "requires": {requires}}}}}'
    manifest = read_manifest(f"---\nname: demo\ndescription: x\nmetadata: {metadata}\n---\n".encode(), "demo")
    for part in ("no-gh is not installed", "no-a, no-b", "variable K", "for solaris"):
        assert part in missing(manifest)
    here = '{"openclaw": {"os": ["macOS", "Linux"], "requires": {"bins": "sh", "anyBins": ["no-a", "sh"]}}}'
    met = read_manifest(f"---\nname: demo\ndescription: x\nmetadata: {here}\n---\n".encode(), "demo")
    assert missing(met) == ""
