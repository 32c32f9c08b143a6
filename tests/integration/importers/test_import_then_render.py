"""A user's workflow: a launch script becomes a file, and the file becomes the request that the SDK sent."""

import json
import subprocess
import sys
from pathlib import Path

import yaml

from muster_dev.golden_import import GOLDEN_FOLDER, ROLE, build_scripts, create_code_folder
from muster_dev.paths import ROOT

MUSTER = Path(sys.executable).parent / "muster"


def run(folder: Path, *words: str) -> str:
    done = subprocess.run([MUSTER, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_import_then_render_gives_the_sdks_request(tmp_path: Path) -> None:
    create_code_folder(tmp_path)
    (tmp_path / "launch.py").write_text(dict(build_scripts(ROOT / GOLDEN_FOLDER))["plain"], encoding="utf-8")
    job = run(tmp_path, "import", "launch.py", "--aws-region", "us-west-2", "--role", ROLE)
    (tmp_path / "job.yaml").write_text(job, encoding="utf-8")

    body = yaml.safe_load(run(tmp_path, "render", "-f", "job.yaml", "--aws-account", "111122223333"))
    expected = json.loads((ROOT / GOLDEN_FOLDER / "plain.json").read_text(encoding="utf-8"))
    body["Tags"] = [tag for tag in body["Tags"] if not tag["Key"].startswith("muster.dev/")]
    ours, theirs = (json.dumps(each).replace(each["TrainingJobName"], "NAME") for each in (body, expected))
    assert json.loads(ours) == json.loads(theirs)
