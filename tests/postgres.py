"""A real Postgres server for tests: started on a free port in a folder of its own, and stopped by its id."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

NOBODY = 65534
_SETTINGS = ("shared_buffers=16MB", "max_connections=60", "listen_addresses=127.0.0.1", "max_wal_size=256MB")
_schemas = count(1)


def programs() -> Path | None:
    """The folder of `postgres` and `initdb`, or None."""
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[4]))
    if newest:
        return newest[-1].parent
    on_path = shutil.which("postgres")
    return Path(on_path).resolve().parent if on_path else None


class PostgresServer:
    """A server. `sync` has it wait for the disk, as a real one does; tests that stop it by force need that."""

    def __init__(self, *, sync: bool = False) -> None:
        found = programs()
        if found is None:
            pytest.skip("no Postgres on this machine: install Debian's postgresql to run this test")
        self.programs = found
        self.folder = Path(tempfile.mkdtemp(prefix="pagefold-postgres-"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, NOBODY, NOBODY)
        self.data, self.sync = self.folder / "data", sync
        options = ["-U", "pagefold", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        self._run("initdb", "-D", str(self.data), *options)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://pagefold@127.0.0.1:{self.port}/postgres"

    def new_schema(self) -> str:
        """The address of an empty store in this server."""
        name = f"store_{next(_schemas)}"
        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.url}?options={quote(f'-csearch_path={name}')}"

    def start(self) -> None:
        settings = (*_SETTINGS, f"port={self.port}", f"unix_socket_directories={self.folder}", f"fsync={self.sync}")
        options = [part for setting in settings for part in ("-c", setting)]
        log = (self.folder / "log").open("ab")
        command = [str(self.programs / "postgres"), "-D", str(self.data), *options]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **_not_root())
        log.close()
        for _ in range(600):
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.05)
            else:
                return
        raise AssertionError("Postgres did not start within 30 s")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT stops it at once and in order; SIGQUIT as a crash would."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(30)
            self.process = None

    def copy_aside(self) -> None:
        """Copies the data of a server that is stopped."""
        subprocess.run(["cp", "-a", str(self.data), str(self.folder / "copy")], check=True)

    def copy_running(self) -> None:
        """Copies the data of a server that runs, as a standby begins."""
        self._run(
            "pg_basebackup", "-h", "127.0.0.1", "-p", str(self.port), "-U", "pagefold", "-c", "fast", "-D", "copy"
        )

    def take_copy(self) -> None:
        """Puts the copy in the place of the data, as an old standby that takes over."""
        shutil.rmtree(self.data)
        (self.folder / "copy").rename(self.data)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **_not_root())


@contextmanager
def running_postgres(*, sync: bool = False) -> Iterator[PostgresServer]:
    server = PostgresServer(sync=sync)
    try:
        server.start()
        yield server
    finally:
        server.remove()


def _not_root() -> dict[str, Any]:
    """Postgres refuses to be run by root."""
    return {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}
