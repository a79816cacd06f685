"""The names and defaults that others rely on: a change here is a change of the contract."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from app.settings import MessageBudget, Settings
from app.turns.turn import TurnRunner

NAMES = {
    "app.tools": (
        *("Tool", "ToolResult", "ToolRegistry", "ExecutionEngine", "ConfirmationPolicy", "ToolContext"),
        *("DuplicateToolError", "ToolNotFoundError", "PathTraversalError", "NoTTYError", "parse_docstring"),
        *("build_catalog", "get_catalog_cached", "validate_path", "file_tools"),
    ),
    "app.skills": ("load_skill", "SkillLoader"),
    "app.channels.whatsapp": ("parse_webhook", "verify_signature", "render_whatsapp", "split_message"),
    "app.routing": ("classify_intent", "select_tools"),
}

SIMULATOR_API = "http://127.0.0.1:8000/simulator/graph/v25.0"
DEFAULTS: dict[str, Any] = {
    "HOST": "127.0.0.1",
    "PORT": 8000,
    "DATABASE_URL": "sqlite:///data/recado.db",
    "WHATSAPP_ACCESS_TOKEN": "",
    "WHATSAPP_PHONE_NUMBER_ID": "",
    "WHATSAPP_VERIFY_TOKEN": "",
    "WHATSAPP_APP_SECRET": "",
    "WHATSAPP_API_URL": SIMULATOR_API,
    "ALLOWED_PHONE_NUMBERS": frozenset(),
    "OWNER_PHONE_NUMBERS": frozenset(),
    "ACCESS": "listed",
    "GUEST_TOOLS": frozenset(),
    "DISCLOSURE": "",
    "MONTHLY_MESSAGE_BUDGET": MessageBudget(),
    "HANDOVER_HOURS": 12,
    "HANDOVER_MINUTES": 15,
    "OPENING_HOURS": "",
    "KNOWLEDGE_DIR": Path("data/knowledge"),
    "OUTBOUND_WEBHOOKS": [],
    "OPENAI_BASE_URL": "",
    "OPENAI_API_KEY": "",
    "LLM_MODEL": "",
    "CLASSIFIER_MODEL": "",
    "MODELS": [],
    "LLM_TIMEOUT": 120,
    "CLASSIFIER_TIMEOUT": 20,
    "TRANSCRIPTION_BASE_URL": "",
    "TRANSCRIPTION_API_KEY": "",
    "TRANSCRIPTION_MODEL": "whisper-1",
    "SPEECH_MODEL": "",
    "SPEECH_VOICE": "",
    "VISION": "auto",
    "SKILLS_DIR": Path("skills"),
    "MAX_TOOLS_PER_CALL": 8,
    "MAX_TOOL_ROUNDS": 5,
    "MCP_CONFIG_PATH": Path("data/mcp_servers.json"),
    "MCP_REGISTRY_URL": "https://registry.modelcontextprotocol.io",
    "SMITHERY_API_KEY": "",
    "AGENT_WRITE_ENABLED": False,
    "CONFIRMATION_MODE": "confirm-sensitive",
    "DRY_RUN": False,
    "WORKSPACE_DIR": Path("data/workspace"),
    "ALLOW_DELETE": False,
    "RATE_LIMIT_MAX": 20,
    "RATE_LIMIT_WINDOW": 60,
    "BURST_QUIET_SECONDS": 1.2,
    "BURST_MAX_SECONDS": 5,
    "DAILY_TOKEN_BUDGET": 0,
    "TIMEZONE": "",
    "ADMIN_TOKEN": "",
    "SEND_RECONCILE_SECONDS": 15,
    "SANDBOX": "auto",
    "SIMULATOR": "auto",
    "DATA_DIR": Path("data"),
    "LOG_LEVEL": "INFO",
    "LOG_JSON": False,
}


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in DEFAULTS:
        monkeypatch.delenv(name, raising=False)
    return Settings(_env_file=None)  # type: ignore[call-arg]


def test_a_name_that_others_import_is_there() -> None:
    for module, names in NAMES.items():
        for name in names:
            assert callable(getattr(importlib.import_module(module), name))
    assert callable(TurnRunner.execute_tool_loop)


def test_a_variable_is_a_setting_with_its_default(settings: Settings) -> None:
    for name, default in DEFAULTS.items():
        value = getattr(settings, name.lower())
        shown = value.get_secret_value() if hasattr(value, "get_secret_value") else value
        assert shown == default, name


@pytest.mark.parametrize(
    ("environment", "name", "expected"),
    [
        ({"WHATSAPP_ACCESS_TOKEN": "t"}, "whatsapp_api_url", "https://graph.facebook.com/v25.0"),
        ({"LLM_MODEL": "large"}, "classifier_model", "large"),
        ({"DATABASE_URL": "sqlite:///elsewhere/r.db"}, "data_dir", Path("elsewhere")),
        ({"DATA_DIR": "/d"}, "workspace_dir", Path("/d/workspace")),
        ({"OPENAI_API_KEY": "k"}, "has_model", False),
        ({"OPENAI_BASE_URL": "http://m", "LLM_MODEL": "m"}, "has_model", True),
        (
            {"ALLOWED_PHONE_NUMBERS": "+52 1 55 1234 5678, 5491155500001"},
            "allowed_phone_numbers",
            frozenset({"525512345678", "541155500001"}),
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_a_default_follows_from_others(monkeypatch, settings, environment, name, expected):
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert getattr(Settings(_env_file=None), name) == expected  # type: ignore[call-arg]


def test_every_setting_is_of_the_contract_or_one_of_our_own() -> None:
    names = {field.alias or name.upper() for name, field in Settings.model_fields.items()}
    own = {
        *("ROLE", "PUBLIC_URL", "SWEEP_SECONDS", "CONCURRENT_TURNS", "FREE_SPACE_MB", "DATA_QUOTA_MB"),
        *("FILES_QUOTA_MB", "SMITHERY_URL", "GUEST_LIMIT", "GUESTS_LIMIT", "TOKEN_LIMIT", "SEND_LIMIT"),
        "WHATSAPP_REMINDER_TEMPLATE",
    }
    assert names == set(DEFAULTS) | own
