"""What `deploy/` names is there: settings, paths, and the files that Compose mounts. `make deploy-check` runs the tools
that the files are for."""

import re
from pathlib import Path

import pytest

from pagefold.model_proxy.readiness import PATHS
from pagefold.settings.knobs import KNOBS
from pagefold.settings.sections import ServeSettings

DEPLOY = Path(__file__).parents[1] / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_setting_that_is_named_exists(file: Path) -> None:
    named = set(re.findall(r"\bPAGEFOLD_[A-Z_]*[A-Z]\b", file.read_text("utf-8")))
    unknown = {name for name in named if not any(knob.path_of(name) for knob in KNOBS.values())}
    assert not unknown


def test_probes_ask_paths_that_are_answered_without_a_token() -> None:
    for name in ("Dockerfile", "helm/pagefold/templates/deployment.yaml", "envoy/envoy.yaml"):
        asked = set(re.findall(r"(/live|/ready)\b", (DEPLOY / name).read_text("utf-8")))
        assert asked
        assert {path.encode() for path in asked} <= PATHS


def test_files_that_are_mounted_are_there() -> None:
    mounted = re.findall(r'"(\.{1,2}/[^:"]+):', (DEPLOY / "compose/compose.yaml").read_text("utf-8"))
    assert mounted
    assert all((DEPLOY / "compose" / name).is_file() for name in mounted)


def test_instances_are_given_longer_to_end_than_streams_may_go_on() -> None:
    grace = ServeSettings().grace_seconds
    unit = (DEPLOY / "systemd/pagefold.service").read_text("utf-8")
    compose = (DEPLOY / "compose/compose.yaml").read_text("utf-8")
    assert all(
        int(found[1]) > grace
        for found in (re.search(r"TimeoutStopSec=(\d+)", unit), re.search(r"stop_grace_period: (\d+)s", compose))
        if found
    )
    assert "TimeoutStopSec" in unit
    assert "stop_grace_period" in compose
