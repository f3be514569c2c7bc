"""The alert rules and the dashboard in docs/operations load, and name only metrics that there are."""

import json
import re
from pathlib import Path

import yaml

from pagefold.model_proxy.limited_http import ConnectionLimits
from pagefold.model_proxy.readiness import Readiness
from pagefold.telemetry.metrics import METRICS

FOLDER = Path(__file__).parents[2] / "docs/operations"


def named(expression: str) -> set[str]:
    return {re.sub(r"_bucket$", "", name) for name in re.findall(r"pagefold_[a-z_]+", expression)}


def test_every_rule_loads_and_has_an_expression_over_metrics_and_steps_that_there_are() -> None:
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    steps = Readiness(ConnectionLimits()).times.keys()
    assert set(group) == {"name", "rules"}
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"]) > 5
    for rule in group["rules"]:
        assert set(rule) - {"for"} == {"alert", "expr", "labels", "annotations"}
        assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"].endswith(".")
        assert named(rule["expr"])
        assert named(rule["expr"]) <= METRICS.keys()
        assert set(re.findall(r'step="([^"]+)"', rule["expr"])) <= steps
        assert rule["expr"].count("(") == rule["expr"].count(")")


def test_the_dashboard_loads_and_every_panel_asks_for_metrics_that_there_are() -> None:
    dashboard = json.loads((FOLDER / "grafana.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(expressions) == 8
    for expression in expressions:
        assert named(expression) <= METRICS.keys()
    assert len({panel["id"] for panel in dashboard["panels"]}) == 8
