"""The figures that Prometheus reads."""

import re

from app.ops.health import Metrics


def series(metrics: Metrics, name: str) -> dict[str, float]:
    """Values of a figure by what stands in its braces."""
    found = re.findall(rf"^{name}{{(.*)}} (\S+)$", metrics.render(0).decode(), re.MULTILINE)
    return {labels: float(value) for labels, value in found}


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
