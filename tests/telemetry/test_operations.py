"""The alert rules and the dashboard in docs/operations load, and name only metrics that there are."""

import json
import re
from pathlib import Path

from pagefold.telemetry.metrics import METRICS

FOLDER = Path(__file__).parents[2] / "docs/operations"


def named(expression: str) -> set[str]:
    return {re.sub(r"_bucket$", "", name) for name in re.findall(r"pagefold_[a-z_]+", expression)}


def test_every_rule_has_an_expression_over_metrics_that_there_are() -> None:
    text = (FOLDER / "alerts.yml").read_text()
    expressions = re.findall(r"^        expr: (.+)$", text, re.MULTILINE)
    assert len(expressions) == text.count("- alert: Pagefold") == text.count("summary: ") > 5
    for expression in expressions:
        assert named(expression)
        assert named(expression) <= METRICS.keys()
        assert expression.count("(") == expression.count(")")


def test_the_dashboard_loads_and_every_panel_asks_for_metrics_that_there_are() -> None:
    dashboard = json.loads((FOLDER / "grafana.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(expressions) == 8
    for expression in expressions:
        assert named(expression) <= METRICS.keys()
    assert len({panel["id"] for panel in dashboard["panels"]}) == 8
