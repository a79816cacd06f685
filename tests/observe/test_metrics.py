"""The figures that Prometheus reads."""

import re

from app.ops.metrics import Metrics


def render(metrics: Metrics) -> str:
    usage = {"categories": {}, "tokens": 0, "currency": "USD", "cost": 0}
    return metrics.render(running_turns=0, waiting_messages=0, outbox={}, usage=usage).decode()


def series(metrics: Metrics, name: str) -> dict[str, float]:
    """Values of a figure by what stands in its braces."""
    found = re.findall(rf"^{name}{{(.*)}} (\S+)$", render(metrics), re.MULTILINE)
    return {labels: float(value) for labels, value in found}


def test_calls_are_counted_by_tool_and_code_and_timed() -> None:
    metrics = Metrics()
    for code in ("ok", "ok", "TIMEOUT"):
        metrics.tool_called("search", code, 0.2)
    assert series(metrics, "recado_tool_calls_total") == {
        'code="ok",tool="search"': 2.0,
        'code="TIMEOUT",tool="search"': 1.0,
    }
    metrics.tool_called("search", "DENIED", None)
    assert series(metrics, "recado_tool_calls_total")['code="DENIED",tool="search"'] == 1.0
    assert series(metrics, "recado_tool_seconds_count") == {'tool="search"': 3.0}
    metrics.tool_called("search", "ok", 99.0)
    within = series(metrics, "recado_tool_seconds_bucket")
    assert [within[f'le="{most}",tool="search"'] for most in ("0.1", "0.25", "30.0", "+Inf")] == [0, 3, 3, 4]
    assert round(series(metrics, "recado_tool_seconds_sum")['tool="search"'], 3) == 99.6


def test_codes_that_a_tool_makes_up_stay_bounded() -> None:
    metrics = Metrics()
    for _ in range(2):
        for number in range(100):
            metrics.tool_called("t", f"CODE_{number}", 0.1)
    for code in ("ok", "two words", "\ud800", 'quo"te', ""):
        metrics.tool_called("t", code, 0.1)
    counted = series(metrics, "recado_tool_calls_total")
    assert len(counted) == 34
    assert counted['code="CODE_31",tool="t"'] == 2.0
    assert counted['code="ok",tool="t"'] == 1.0
    assert counted['code="OTHER",tool="t"'] == 136 + 4
