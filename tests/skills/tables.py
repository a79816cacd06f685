"""The tables of cases in `tables/`: for each test file a YAML file, with a list or mapping for each test."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

_FOLDER = Path(__file__).with_name("tables")


def table(file: str, name: str) -> Any:
    """Return the cases of a test."""
    return _read(file)[name]


@cache
def _read(file: str) -> dict[str, Any]:
    return dict(yaml.safe_load((_FOLDER / f"{file}.yaml").read_text("utf-8")))
