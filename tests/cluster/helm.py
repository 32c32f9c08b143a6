"""helm, as users run it to install muster."""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster import programs
from cluster.places import ROOT

CHART = ROOT / "charts" / "muster"
WAIT_SECONDS = 120
WAIT = ("--wait", f"--timeout={WAIT_SECONDS}s")

Values = Mapping[str, object]


class Helm:
    """helm as the administrator."""

    def __init__(self, kubeconfig: Path) -> None:
        self._command = [str(programs.find("helm")), f"--kubeconfig={kubeconfig}"]

    def __call__(self, *arguments: str) -> str:
        """Run helm and return its output. Raises if it fails."""
        done = subprocess.run([*self._command, *arguments], check=False, capture_output=True, text=True)
        assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def install(
        self, release: str, namespace: str, values: Values, chart: Path = CHART, options: Sequence[str] = WAIT
    ) -> None:
        """Install or upgrade a chart, by default until it is ready."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            # JSON is YAML.
            json.dump(values, file)
            file.flush()
            where = [f"--namespace={namespace}", "--create-namespace"]
            self("upgrade", "--install", release, str(chart), *where, f"--values={file.name}", *options)

    def uninstall(self, release: str, namespace: str) -> None:
        """Uninstall the release, and wait until all its objects are deleted."""
        self("uninstall", release, f"--namespace={namespace}", "--wait", f"--timeout={WAIT_SECONDS}s")
