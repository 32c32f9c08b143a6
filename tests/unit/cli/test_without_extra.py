"""What commands say if the packages of an extra are missing."""

import json
import subprocess
import sys
from pathlib import Path

ABSENT = """
import json
import os
import sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("kopf", "kubernetes", "boto3", "dulwich"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
from muster.cli.main import main

# One process for each command, without starting Python and importing the command line again.
for number, command in enumerate(json.loads(sys.argv[1])):
    if not os.fork():
        os.dup2(os.open(str(number), os.O_WRONLY | os.O_CREAT), 2)
        sys.argv = ["muster", *command]
        main()
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


def run_without_extras(folder: Path, *commands: list[str]) -> list[tuple[int, str]]:
    """Return the exit code and the standard error of each command."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", ABSENT, json.dumps(commands)],
        check=True,
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    codes = done.stdout.split()
    assert len(codes) == len(commands)
    return [(int(code), (folder / str(number)).read_text()) for number, code in enumerate(codes)]


def test_what_asks_a_cluster_says_what_it_needs(tmp_path: Path) -> None:
    commands = [["ranks", "digits"], ["logs", "digits"], ["wait", "digits"], ["operator"], ["board", "-A"]]
    for code, error in run_without_extras(tmp_path, *commands):
        assert code == 1
        assert "Traceback" not in error
        assert error.startswith("muster: this command uses a cluster and needs k")
        assert error.endswith(": pip install 'muster-training[cluster]'\n")


GIT = "source: {git: {url: 'https://git.example/a/b.git', commit: 0f784a1c3b5d7e9f00112233445566778899aabb}}"
S3 = "inputs: [{name: train, s3: {uri: 's3://my-bucket/train/'}}]"


def test_what_fetches_files_says_what_it_needs(tmp_path: Path) -> None:
    for name, spec in (("git", GIT), ("s3", S3)):
        (tmp_path / f"{name}.yaml").write_text(
            "apiVersion: muster.dev/v1alpha1\nkind: DistributedTrainingJob\nmetadata: {name: a}\n"
            f"spec:\n  command: [python, train.py]\n  launcher: {{direct: {{}}}}\n  {spec}\n"
        )
    results = run_without_extras(tmp_path, ["run", "-f", "git.yaml"], ["run", "-f", "s3.yaml"])
    for (code, error), package in zip(results, ("dulwich", "boto3"), strict=True):
        assert code == 1
        needs = f"muster: this command uses AWS or git and needs {package}: pip install 'muster-training[aws]'\n"
        assert needs in error
        assert "Traceback" not in error
