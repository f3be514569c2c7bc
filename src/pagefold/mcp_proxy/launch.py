"""Starts a server's process, and imports no more than that takes.

The client waits for the server, whose start takes longest, so it comes before everything that can be done meanwhile.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from pagefold.errors import ConfigError


def launch(command: Sequence[str], environment: Mapping[str, str] | None = None, folder: str = "") -> "ChildProcess":
    """Starts a process in a group of its own. Raises ConfigError where there is no such program or it cannot be run."""
    try:
        # The owner of the process closes the pipes.
        process = subprocess.Popen(  # noqa: S603 - the command is the user's own
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            cwd=folder or None,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{command[0]}: cannot be started: {reason}") from error
    return ChildProcess(process)


KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""The signal that no process can ignore; on Windows SIGTERM ends a process at once."""


class ChildProcess:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process

    @property
    def ending(self) -> str:
        """How it ended, once it has."""
        code = self.process.returncode or 0
        return f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"

    def signal_all(self, sign: int) -> None:
        """Signals the server and what it has started: that may still run when the server itself has ended."""
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, sign)
            elif self.process.poll() is None:
                self.process.send_signal(sign)

    def end_now(self) -> None:
        """Kills a process that nobody will use."""
        self.signal_all(KILL)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self.process.wait()
