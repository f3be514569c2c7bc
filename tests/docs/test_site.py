"""The site of docs/: built without a warning, and nothing in it is loaded from elsewhere. Skips where `make site` has
not put its tools into .site."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

FOLDER = Path(os.environ.get("SITE_DIR") or ROOT / ".site").absolute()
MKDOCS = FOLDER / "venv" / "bin" / "mkdocs"


def built(into: Path) -> Path:
    """Builds the site, strictly."""
    if not MKDOCS.exists():
        pytest.skip(f"no site tools in {FOLDER}: make site")
    command = [str(MKDOCS), "build", "--strict", "--quiet", "--site-dir", str(into)]
    environment = {"PATH": os.environ["PATH"], "NO_MKDOCS_2_WARNING": "1", "HOME": str(into.parent)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return into


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    site = built(tmp_path / "html")
    pages = sorted(site.rglob("*.html"))
    loads = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//", re.I)

    assert len(pages) > 35
    assert [page.name for page in pages if loads.search(page.read_text(encoding="utf-8"))] == []
    styles = "".join(sheet.read_text(encoding="utf-8") for sheet in site.rglob("*.css"))
    assert not re.search(r"url\([\"']?(?:https?:)?//|@import", styles)
