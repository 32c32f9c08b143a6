import subprocess
import sys
from pathlib import Path

import pytest

ABSENT = """
import sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("kopf", "kubernetes", "boto3", "dulwich"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
from muster.cli.main import main

main()
"""


@pytest.mark.parametrize(
    "command", [["ranks", "digits"], ["logs", "digits"], ["wait", "digits"], ["operator"], ["board", "-A"]]
)
def test_what_asks_a_cluster_says_what_it_needs(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-P", "-c", ABSENT, *command], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("muster: this command uses a cluster and needs k")
    assert done.stderr.endswith(": pip install 'muster-training[cluster]'\n")


@pytest.mark.parametrize(
    ("spec", "needs"),
    [
        (
            "source: {git: {url: 'https://git.example/a/b.git', commit: 0f784a1c3b5d7e9f00112233445566778899aabb}}",
            "dulwich",
        ),
        ("inputs: [{name: train, s3: {uri: 's3://my-bucket/train/'}}]", "boto3"),
    ],
)
def test_what_fetches_files_says_what_it_needs(tmp_path: Path, spec: str, needs: str) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "apiVersion: muster.dev/v1alpha1\nkind: DistributedTrainingJob\nmetadata: {name: a}\n"
        f"spec:\n  command: [python, train.py]\n  launcher: {{direct: {{}}}}\n  {spec}\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", ABSENT, "run", "-f", "job.yaml"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert (
        f"muster: this command uses AWS or git and needs {needs}: pip install 'muster-training[aws]'\n" in done.stderr
    )
    assert "Traceback" not in done.stderr
