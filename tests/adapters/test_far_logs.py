"""Recordings that are no files of lines: rows of Parquet, and objects in a bucket. The same sessions come out."""

import gzip
import json
import lzma
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pagefold.adapters import recordings
from pagefold.adapters.recordings import LogPath
from pagefold.adapters.s3 import S3Objects
from pagefold.analysis.engine import Engine, run_on_sessions
from pagefold.analysis.problems import FileProblem
from pagefold.analysis.replay_job import ReplayJob, replay_session
from pagefold.derive.cost import ASSUMED
from pagefold.errors import ConfigError
from pagefold.settings.sections import SinkSettings
from tests.analysis.logs import talk, written
from tests.buckets import running_bucket

WORK = partial(replay_session, policy="lossless")
ROWS = [talk(f"s{at}", turns=3 + at % 5, lines=20) for at in range(40)]


def job(storage: SinkSettings = recordings.NOWHERE) -> ReplayJob:
    return ReplayJob(ASSUMED, "o200k", 200_000, storage=storage)


def replayed(paths: list[LogPath], storage: SinkSettings = recordings.NOWHERE, jobs: int = 1) -> list[Any]:
    found = run_on_sessions(paths, WORK, job(storage), Engine(jobs=jobs))
    return [str(one) if isinstance(one, FileProblem) else (one.id, one.value) for one in found]


def parquet(folder: Path, select: str, name: str = "train-00000.parquet") -> Path:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed (the extra analysis)")
    source, target = written(folder / "rows.jsonl.txt", *ROWS), folder / name
    read = f"read_json('{source}', format = 'newline_delimited')"
    duckdb.connect().execute(f"COPY (SELECT {select} FROM {read}) TO '{target}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    return target


@pytest.mark.parametrize(
    "columns", ["id, source, messages", "id, source, CAST(to_json(messages) AS VARCHAR) AS messages"]
)
def test_rows_of_parquet_are_sessions_like_lines(columns: str, tmp_path: Path) -> None:
    lines = written(tmp_path / "lines.jsonl", *ROWS)
    path = parquet(tmp_path, columns)

    assert recordings.find([str(tmp_path)]) == [lines, path]
    assert replayed([path]) == replayed([lines])
    assert recordings.expected_sessions(path) == len(ROWS)


def test_a_long_parquet_file_is_many_pieces_of_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(tmp_path, "id, source, messages")
    whole = replayed([path])
    monkeypatch.setattr("pagefold.adapters.parquet_logs._BATCH_BYTES", 3_000)
    found = list(recordings.batches(path, given=None, max_bytes=1 << 26))

    assert len(found) > 3
    assert [row for batch in found if batch.rows is not None for row in batch.rows] == list(range(len(ROWS)))
    assert replayed([path]) == whole


def test_parquet_without_sessions_is_told_with_its_name(tmp_path: Path) -> None:
    path = parquet(tmp_path, "id, source")
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1" + b"\0" * 40)

    assert replayed([path]) == [f"{path}: cannot be read: no column 'messages' in it, which holds a session's messages"]
    assert str(torn) in replayed([torn])[0]
    parquet(tmp_path, "id", "sessions-00001.parquet")  # a table of pagefold's own
    assert [found.name for found in recordings.find([str(tmp_path)])] == [torn.name, path.name]


@pytest.fixture(scope="module", params=["moto_server", "s3rver"])
def bucket(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SinkSettings]:
    with running_bucket(request.param, tmp_path_factory.mktemp("bucket")) as settings:
        yield settings


def test_recordings_in_a_bucket_are_read_like_files_and_leave_none(bucket: SinkSettings, tmp_path: Path) -> None:
    log = "\n".join(map(json.dumps, ROWS)).encode()
    document = json.dumps(ROWS[3], indent=1).encode()
    contents = {"a.jsonl": log, "b.jsonl.xz": lzma.compress(log), "c.jsonl.gz": gzip.compress(log), "d.json": document}
    objects = S3Objects(replace(bucket, prefix=""))
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        objects.put_now(f"logs/{name}", content)
    objects.put_now("logs/notes.txt", b"no recording")
    objects.put_now("logs-of-others/e.jsonl", log)
    address = f"s3://{bucket.bucket}"
    names = recordings.find([f"{address}/logs", f"{address}/logs/a.jsonl"], bucket)

    assert [str(name) for name in names] == [f"{address}/logs/{name}" for name in contents]
    here = replayed(recordings.find([str(tmp_path)]))
    assert replayed(names, bucket) == here
    assert replayed(names, bucket, jobs=2) == here
    assert bucket.secret_key not in repr(job(bucket))

    objects.delete(["logs/d.json"])
    assert "logs/d.json: cannot be read: the bucket" in replayed(names[3:], bucket)[0]
    with pytest.raises(ConfigError, match="no recording there"):
        recordings.find([f"{address}/nothing"], bucket)


def test_a_bucket_without_an_address_is_refused_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match=r"set sink\.endpoint"):
        recordings.find(["s3://logs/today"])
