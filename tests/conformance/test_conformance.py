"""Both sides of the protocol as its own suite sees them: our server at /mcp, and our manager as a client."""

from pathlib import Path
from typing import get_args

import pytest

from tests.conformance import suite

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    try:
        suite.install()
    except suite.NotHere as reason:
        pytest.skip(f"the conformance suite is not here: {reason}")


@pytest.mark.parametrize("revision", suite.REVISIONS)
def test_our_server_passes_what_is_required_of_tools(revision: str, tmp_path: Path) -> None:
    with suite.served(tmp_path) as url:
        outcomes = suite.server_outcomes(url, revision, tmp_path / "results")
    assert {one.scenario: one.fault for one in outcomes if one.fault} == {}
    passing = {one.scenario for one in outcomes if one.verdict == "passes"}
    assert {"tools-list", "tools-call-simple-text", "tools-call-error", "dns-rebinding-protection"} <= passing


def test_our_manager_passes_what_is_required_of_a_client(tmp_path: Path) -> None:
    outcomes = list(suite.client_outcomes(suite.REVISIONS[-1], tmp_path))
    assert {one.scenario: one.fault for one in outcomes if one.fault} == {}
    assert "tools_call" in {one.scenario for one in outcomes if one.verdict == "passes"}


def test_every_exception_is_of_a_scenario_that_is_required() -> None:
    for leg in get_args(suite.Leg):
        known = {scenario for revision in suite.REVISIONS for scenario in suite.required(leg, revision)}
        assert {entry.partition(":")[0] for entry in suite.not_ours(leg)} <= known
    assert "auth/basic-cimd" in suite.left_out("client")
