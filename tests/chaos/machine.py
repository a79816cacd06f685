"""What a test asks of `inject/`: faults of the machine that one server runs on."""

from pathlib import Path

from tests.world import Server

INJECT = Path(__file__).with_name("inject")


def injected(server: Server, **faults: object) -> dict[str, str]:
    """The environment that brings these faults about; see `inject/sitecustomize.py` for their names."""
    path = f"{INJECT}:{server.env['PYTHONPATH']}"
    return {"PYTHONPATH": path} | {f"CHAOS_{name}": str(value) for name, value in faults.items()}
