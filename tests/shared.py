"""What lies beside the project on some machines: recordings and the scorer. Tests that need it skip elsewhere."""

from pathlib import Path

import pytest

SHARED = Path(__file__).parent.parent.parent / "shared"
FAMILIES = sorted((SHARED / "traces").glob("[!p]*.jsonl.xz"))
SCORER = SHARED / "score" / "score.py"

needs_traces = pytest.mark.skipif(
    not FAMILIES, reason="the recorded sessions (../shared/traces) are not on this machine"
)
needs_scorer = pytest.mark.skipif(not SCORER.exists(), reason="the scorer (../shared/score) is not on this machine")
