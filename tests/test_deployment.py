"""The container's files, checked as far as they can be without an engine that runs containers."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import Settings
from tests.world import ROOT, Server, free_port

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE = (ROOT / "docker-compose.yml").read_text("utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
SETTINGS = {str(field.alias or name).upper() for name, field in Settings.model_fields.items()}
FROM_A_TUNNEL = {"Host": "some-words.trycloudflare.com", "Cf-Ray": "8f0-SCL", "X-Forwarded-Proto": "https"}


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions in order, each on one line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1].strip()) for line in text.splitlines() if line]


def instruction(name: str) -> str:
    return [rest for found, rest in instructions() if found == name][-1]


def default(value: str) -> str:
    """What compose makes of a value where no variable is set."""
    return re.sub(r"\$\{\w+:?-([^}]*)\}", r"\1", value)


def environment() -> dict[str, str]:
    return {name: default(str(value)) for name, value in SERVICES["recado"]["environment"].items()}


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the environment of the container, but its folder and port; no model is there."""
    folder = tmp_path_factory.mktemp("container")
    server = Server(folder)
    own = {"DATABASE_URL": f"sqlite:///{folder}/recado.db", "DATA_DIR": str(folder)}
    server.env |= {**environment(), **own, "PORT": str(server.port), "OPENAI_BASE_URL": "", "LLM_MODEL": ""}
    yield server.start()
    server.kill()


def test_the_image_runs_as_a_numbered_user_who_owns_only_the_data() -> None:
    user = instruction("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    names = [name for name, _ in instructions()]
    assert names.index("USER") < names.index("CMD")
    assert "RUN" not in names[names.index("USER") :]
    assert re.search(r"install --directory --owner=recado .*--mode=0700 data /skills\b", DOCKERFILE)
    assert f"--uid {user.partition(':')[0]} " in DOCKERFILE
    assert json.loads(instruction("VOLUME")) == ["/app/data", "/skills"]
    assert not re.search(r"--chown|chown -R", DOCKERFILE)


def test_the_health_check_tells_a_server_that_answers_from_none(container: Server) -> None:
    command = json.loads(instruction("HEALTHCHECK").partition("CMD ")[2])
    assert command[0] == "python"

    def status(port: int) -> int:
        done = subprocess.run(
            [sys.executable, *command[1:]],
            env={**os.environ, "PORT": str(port)},
            capture_output=True,
            timeout=30,
        )
        return done.returncode

    assert status(container.port) == 0
    assert status(free_port()) != 0


def test_the_containers_command_and_environment_are_ours() -> None:
    assert json.loads(instruction("CMD")) == ["recado", "serve"]
    preset = {pair.partition("=")[0] for pair in shlex.split(instruction("ENV"))} - {
        "PATH",
        "PYTHONUNBUFFERED",
    }
    assert preset <= SETTINGS
    assert set(environment()) - {"TZ", "TUNNEL_TOKEN"} <= SETTINGS


def test_the_presets_of_compose_are_settings_that_are_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    settings = Settings(_env_file=None)  # type: ignore[call-arg]
    assert not settings.has_model
    assert settings.host == "0.0.0.0"
    assert settings.simulator == "on"
    assert SERVICES["recado"]["environment"]["SIMULATOR"].startswith("${SIMULATOR:-")  # "off" in .env counts
    mounts = {volume.split(":")[1] for volume in SERVICES["recado"]["volumes"]}
    assert str(settings.data_dir) in mounts
    assert str(settings.database.parent) in mounts
    assert str(settings.skills_dir) in mounts
    assert not any(volume.startswith(".") for volume in SERVICES["recado"]["volumes"])


def test_only_this_machine_reaches_what_is_published() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"recado": ["127.0.0.1:8000:8000"]}
    assert not any("network_mode" in service or "privileged" in service for service in SERVICES.values())


def test_recado_writes_its_volumes_only_and_gains_no_rights() -> None:
    recado = SERVICES["recado"]
    assert recado["read_only"] is True
    assert recado["cap_drop"] == ["ALL"]
    assert recado["security_opt"] == ["no-new-privileges:true"]
    named = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    declared = set(yaml.safe_load(COMPOSE)["volumes"])
    assert {name for name in named if not name.startswith(".")} == declared


def test_everything_beside_recado_starts_only_when_it_is_asked_for() -> None:
    asked_for = {name: service.get("profiles", []) for name, service in SERVICES.items()}
    assert {name: profiles for name, profiles in asked_for.items() if profiles} == {
        "ollama": ["model"],
        "model": ["model"],
        "tunnel": ["tunnel"],
        "named-tunnel": ["named"],
    }
    port = environment()["PORT"]
    assert SERVICES["tunnel"]["command"].endswith(f"--url http://recado:{port}")


def test_through_a_tunnel_there_is_the_webhook_and_nothing_else(container: Server) -> None:
    assert container.http.get("/simulator").status_code == 200
    answers = {
        path: container.http.get(path, headers=FROM_A_TUNNEL).status_code
        for path in ("/webhook", "/simulator", "/simulator/graph/v25.0/1", "/metrics", "/console", "/mcp")
    }
    assert answers == {
        "/webhook": 403,
        "/simulator": 404,
        "/simulator/graph/v25.0/1": 404,
        "/metrics": 401,
        "/console": 401,
        "/mcp": 401,
    }
    assert container.stop() == 0


def pull(tmp_path: Path, script: str, **variables: str) -> tuple[int, list[str]]:
    """The model service's own command, with an `ollama` that writes down what it was asked."""
    (tmp_path / "ollama").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "ollama").chmod(0o755)
    command = [part.replace("$$", "$") for part in SERVICES["model"]["entrypoint"]]
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LOG": str(tmp_path / "log"), **variables}
    done = subprocess.run(command, env=env, timeout=30)
    log = tmp_path / "log"
    return done.returncode, log.read_text().splitlines() if log.exists() else []


def test_the_models_that_are_named_are_fetched(tmp_path: Path) -> None:
    note = 'echo "$*" >> "$LOG"'
    assert pull(tmp_path, note, LLM_MODEL="qwen2.5:7b") == (0, ["pull qwen2.5:7b"])
    (tmp_path / "log").unlink()
    both = pull(tmp_path, note, LLM_MODEL="big:7b", CLASSIFIER_MODEL="small:1b")
    assert both == (0, ["pull big:7b", "pull small:1b"])
