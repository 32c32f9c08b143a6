"""The `muster` command, as a user with a kubeconfig runs it."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cluster.terminal import Terminal

PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Muster:
    """Runs commands for the jobs of `namespace`."""

    kubeconfig: Path
    namespace: str

    def __call__(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run the command to its end."""
        return subprocess.run(
            self._line(arguments),
            env=self._environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    def begin(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a command that continues."""
        return subprocess.Popen(
            self._line(arguments),
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def on_terminal(self, *arguments: str) -> Terminal:
        """Return a command on a terminal, not yet started."""
        return Terminal(self._line(arguments), self._environment)

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    def _line(self, arguments: tuple[str, ...]) -> list[str]:
        command, *rest = arguments
        # the other commands don't use a cluster
        about_a_job = ("ranks", "logs", "wait", "describe", "suspend", "resume", "restart", "rerun", "stacks")
        names = (*about_a_job, "list", "top", "doctor")
        asks = (command in names or "--on" in rest) and "--namespace" not in rest
        where = ["--namespace", self.namespace] if asks else []
        return [sys.executable, "-P", "-m", "muster.cli.main", command, *rest, *where]
