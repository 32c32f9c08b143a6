import subprocess
import sys

import pytest

ABSENT = """
import sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("kopf", "kubernetes"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
from muster.cli.main import main

main()
"""


@pytest.mark.parametrize("command", [["ranks", "digits"], ["logs", "digits"], ["wait", "digits"], ["operator"]])
def test_what_asks_a_cluster_says_what_it_needs(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-P", "-c", ABSENT, *command], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("muster: this command asks a cluster and needs k")
    assert done.stderr.endswith(": pip install 'muster[cluster]'\n")
