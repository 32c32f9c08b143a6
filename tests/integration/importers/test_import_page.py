"""The page about `muster import` shows the command's real output."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from muster.api.spec.source import MAX_FILES
from muster.importers.sagemaker.source import MAX_INLINE_CHARS
from muster_dev.paths import ROOT

PAGE = (ROOT / "docs" / "import.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent


def test_the_pages_script_becomes_the_pages_job(tmp_path: Path) -> None:
    script, job = (re.search(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) for kind in ("python", "yaml"))
    command = re.search(r"^`(muster import .*?)` prints$", PAGE, re.MULTILINE)
    assert script is not None
    assert job is not None
    assert command is not None
    (tmp_path / "launch.py").write_text(script[1], encoding="utf-8")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print('trained')\n", encoding="utf-8")
    done = subprocess.run(
        [BIN / "muster", *shlex.split(command[1])[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == job[1]


def test_the_pages_numbers_are_the_codes() -> None:
    assert f"at most {MAX_FILES} files, {MAX_INLINE_CHARS // 1024} Ki characters" in PAGE
