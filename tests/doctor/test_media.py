"""What the doctor says of voice notes and pictures."""

from pathlib import Path

import pytest

from app.doctor.model import check_voice
from app.settings import Settings
from tests.standins.model import ModelServer, echo


def settings(tmp_path: Path, **changes: str) -> Settings:
    return Settings(_env_file=None, DATA_DIR=tmp_path, **changes)


@pytest.mark.parametrize(("hears", "level", "fact"), [(True, "OK", "transcribes"), (False, "WARN", "404")])
def test_the_endpoint_of_voice_notes_is_tried(tmp_path: Path, hears: bool, level: str, fact: str) -> None:
    model = ModelServer(echo, (lambda data: "") if hears else None)
    try:
        [finding] = check_voice(settings(tmp_path, transcription_base_url=model.url))
    finally:
        model.stop()
    assert (finding.level, fact in finding.fact) == (level, True)


@pytest.mark.parametrize(
    ("model", "level", "fact"),
    [
        ("local:/no/such/folder", "FAIL", "no folder /no/such/folder"),
        ("whisper-1", "OK", "nothing transcribes them"),
    ],
)
def test_what_is_missing_for_voice_notes_is_said(tmp_path: Path, model: str, level: str, fact: str) -> None:
    [finding] = check_voice(settings(tmp_path, transcription_model=model))
    assert (finding.level, fact in finding.fact) == (level, True)
