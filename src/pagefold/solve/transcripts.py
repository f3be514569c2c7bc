"""Keeps the conversation of every run in a file of its own, with what came of it. No key is ever in it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pagefold.errors import ConfigError
from pagefold.solve.verdict import Result


@dataclass(frozen=True, slots=True)
class Transcripts:
    """`folder` is where they go, None for nowhere; `without_key` takes the key out of a text, wherever it stands."""

    folder: Path | None = None
    without_key: Callable[[str], str] = str

    def add(
        self, key: str, result: Result, messages: Sequence[Mapping[str, Any]], usages: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """Raises ConfigError where the file cannot be written."""
        if self.folder is None:
            return
        path = self.folder / f"{re.sub(r'[^A-Za-z0-9.]+', '-', key)}.json"
        told = {"key": key, "result": asdict(result), "usage": list(usages), "messages": list(messages)}
        text = self.without_key(json.dumps(told, ensure_ascii=False, indent=1))
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise ConfigError(f"--transcripts {path}: cannot be written ({error.strerror})") from error
