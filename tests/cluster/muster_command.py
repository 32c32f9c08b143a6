"""The `muster` command, as a user with a kubeconfig runs it."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from cluster.terminal import Terminal
from support.muster_process import run_muster

COMMAND = (sys.executable, "-P", "-m", "muster.cli.main")


class BegunCommand(subprocess.Popen[str]):
    """A command that runs beside the test, and does not outlive a test that fails."""

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self.kill()
        super().__exit__(error_type, error, traceback)


@dataclass(frozen=True)
class Muster:
    """Runs commands for the jobs of `namespace`."""

    kubeconfig: Path
    namespace: str

    def __call__(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run the command to its end."""
        words = self._words(arguments)
        ended = run_muster(*words, env=self._environment)
        return subprocess.CompletedProcess(words, ended.exit_code, ended.output, ended.messages)

    def begin(self, *arguments: str) -> BegunCommand:
        """Start a command that continues."""
        return BegunCommand(
            [*COMMAND, *self._words(arguments)],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def on_terminal(self, *arguments: str) -> Terminal:
        """Return a command on a terminal, not yet started."""
        return Terminal([*COMMAND, *self._words(arguments)], self._environment)

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    def _words(self, arguments: tuple[str, ...]) -> list[str]:
        command, *rest = arguments
        # the other commands don't use a cluster
        about_a_job = ("ranks", "logs", "wait", "describe", "suspend", "resume", "restart", "rerun", "stacks")
        names = (*about_a_job, "list", "top", "doctor")
        asks = (command in names or "--on" in rest) and "--namespace" not in rest
        where = ["--namespace", self.namespace] if asks else []
        return [command, *rest, *where]
