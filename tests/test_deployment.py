"""The container's files, checked as far as they can be without an engine that runs containers."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest
import yaml

from app.settings import Settings
from tests.world import ROOT, Server, connected, free_port

DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE = (ROOT / "docker-compose.yml").read_text("utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
CLUSTER: list[dict[str, Any]] = list(
    yaml.safe_load_all((ROOT / "docs" / "kubernetes.yaml").read_text("utf-8"))
)
DEPLOYMENTS = {one["metadata"]["name"]: one for one in CLUSTER if one["kind"] == "Deployment"}
SETTINGS = {str(field.alias or name).upper() for name, field in Settings.model_fields.items()}
FROM_A_TUNNEL = {"Host": "some-words.trycloudflare.com", "Cf-Ray": "8f0-SCL", "X-Forwarded-Proto": "https"}


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions in order, each on one line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1].strip()) for line in text.splitlines() if line]


def instruction(name: str) -> str:
    return [rest for found, rest in instructions() if found == name][-1]


def interpolated(value: str, variables: dict[str, str]) -> str:
    """What compose makes of a value where these variables are set."""

    def put(found: re.Match[str]) -> str:
        given = variables.get(found[1], "")
        return (found[3] if given else "") if "+" in found[2] else given or found[3]

    while (inner := re.sub(r"\$\{(\w+)(:?[-+])([^${}]*)\}", put, value)) != value:
        value = inner
    return value


def environment(service: str = "recado", **variables: str) -> dict[str, str]:
    return {
        name: interpolated(str(value), variables) for name, value in SERVICES[service]["environment"].items()
    }


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

    for port, answers in ((container.port, True), (free_port(), False)):
        env = {**os.environ, "PORT": str(port)}
        done = subprocess.run([sys.executable, *command[1:]], env=env, capture_output=True, timeout=30)
        assert (done.returncode == 0) is answers


def test_the_presets_of_compose_are_valid_settings_of_a_server_that_writes_to_its_volumes_only(monkeypatch):
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    settings = Settings(_env_file=None)  # type: ignore[call-arg]
    assert not settings.has_model
    assert settings.host == "0.0.0.0"
    assert settings.simulator == "on"
    assert environment(SIMULATOR="off")["SIMULATOR"] == "off"
    assert settings.role == "all"
    mounts = {volume.split(":")[1] for volume in SERVICES["recado"]["volumes"]}
    assert str(settings.data_dir) in mounts
    assert f"{instruction('WORKDIR')}/{settings.database.parent}" in mounts
    assert str(settings.skills_dir) in mounts
    assert not any(volume.startswith(".") for volume in SERVICES["recado"]["volumes"])
    recado = SERVICES["recado"]
    assert (recado["read_only"], recado["cap_drop"]) == (True, ["ALL"])
    assert recado["security_opt"] == ["no-new-privileges:true"]
    named = {volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    assert {name for name in named if not name.startswith(".")} == set(yaml.safe_load(COMPOSE)["volumes"])


def test_with_a_password_the_work_is_divided_on_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    roles = {}
    for service in ("recado", "worker"):
        for name, value in {**environment(service, POSTGRES_PASSWORD="secret"), **connected(1)}.items():
            monkeypatch.setenv(name, value)
        settings = Settings(_env_file=None)  # type: ignore[call-arg]
        assert settings.database == "postgresql://recado:secret@postgres/recado"
        assert not settings.uses_simulator
        roles[service] = settings.role
    assert roles == {"recado": "web", "worker": "worker"}
    assert SERVICES["worker"]["deploy"] == {"replicas": 3}
    assert SERVICES["worker"]["volumes"] == SERVICES["recado"]["volumes"]
    assert "[postgres]" in DOCKERFILE


def test_compose_understands_the_file_and_not_a_misspelt_one() -> None:
    understands = jsonschema_rs.validator_for((ROOT / "tests" / "compose-spec.json").read_text()).is_valid
    file = yaml.safe_load(COMPOSE)
    assert understands(file)
    file["services"]["recado"]["read_onli"] = True
    assert not understands(file)


def test_the_cluster_runs_the_image_as_compose_does() -> None:
    user, group = map(int, instruction("USER").split(":"))
    for name, deployment in DEPLOYMENTS.items():
        pod = deployment["spec"]["template"]["spec"]
        one = pod["containers"][0]
        allowed = pod["securityContext"]
        assert (allowed["runAsUser"], allowed["runAsGroup"], allowed["runAsNonRoot"]) == (user, group, True)
        assert one["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert one["args"] == [*json.loads(instruction("CMD")), "--role", name.removeprefix("recado-")]
        assert {mount["mountPath"] for mount in one["volumeMounts"]} == {"/app/data", "/skills", "/tmp"}
    config = next(one["data"] for one in CLUSTER if one["kind"] == "ConfigMap")
    shared = {**SERVICES["recado"]["environment"], "TIMEZONE": "UTC"}
    assert config == {name: shared[name] for name in config}
    assert set(config) <= SETTINGS


def tree(folder: Path) -> set[tuple[str, int]]:
    """The files of a folder and their times, but for what is compiled."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {(str(path.relative_to(folder)), path.stat().st_mtime_ns) for path in files}


@pytest.mark.slow
def test_the_images_steps_make_a_server_that_writes_to_its_volumes_only(tmp_path: Path) -> None:
    image, data, skills = (tmp_path / name for name in ("image", "data", "skills"))
    for folder in (image, data, skills):
        folder.mkdir()
    sources = [shlex.split(rest) for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    for *names, place in sources:
        for name in names:
            target = image / place / name if place.endswith("/") else image / place
            ignored = shutil.ignore_patterns("__pycache__")
            copy = shutil.copy if (ROOT / name).is_file() else partial(shutil.copytree, ignore=ignored)
            copy(ROOT / name, target)
    venv.create(tmp_path / "venv", with_pip=True, symlinks=True)
    packages = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))  # what else is installed
    python = str(tmp_path / "venv" / "bin" / "python")
    install = shlex.split(next(rest for name, rest in instructions() if "pip install" in rest).split("&&")[0])
    done = subprocess.run([python, "-m", *install, "--no-deps"], cwd=image, capture_output=True, text=True)
    if "setuptools" in done.stderr and done.returncode:
        pytest.skip("no package index is in reach")
    assert done.returncode == 0, done.stderr
    before = tree(image)
    own = {"DATABASE_URL": f"sqlite:///{data}/recado.db", "DATA_DIR": str(data), "SKILLS_DIR": str(skills)}
    port = str(free_port())
    env = {"PATH": f"{Path(python).parent}:{os.environ['PATH']}", "HOME": "/nonexistent"}
    env |= {**environment(), **own, "PORT": port, "HOST": "127.0.0.1"}
    command = json.loads(instruction("CMD"))
    with subprocess.Popen(command, cwd=image, env=env, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert "is running" in server.stdout.readline()
        assert httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200
        server.terminate()
        assert server.wait(15) == 0
    assert tree(image) == before
    assert (data / "recado.db").exists()


def test_only_this_machine_reaches_what_is_published() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"recado": ["127.0.0.1:8000:8000"]}
    assert not any("network_mode" in service or "privileged" in service for service in SERVICES.values())


def test_through_a_tunnel_there_is_the_webhook_and_nothing_else(container: Server) -> None:
    assert container.http.get("/simulator").status_code == 200
    wanted = {"/webhook": 403, "/simulator": 404, "/simulator/graph/v25.0/1": 404}
    wanted |= {"/metrics": 401, "/console": 401, "/mcp": 401}
    asked = {path: container.http.get(path, headers=FROM_A_TUNNEL) for path in wanted}
    assert {path: answer.status_code for path, answer in asked.items()} == wanted
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
