"""Files that are made from code and checked in: who makes them, and whether they are what would be made now."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from muster_dev.places import BIN, PYTHON, ROOT

EXAMPLES = (
    *("data_parallel", "digits", "sagemaker_hosts", "two_dimensional"),
    *("mpi_c", "mpi_gradients", "mpi_messages", "nccl_tests"),
)
"""The folders of training/examples whose rendered jobs are kept, byte for byte."""

POOLS = ("cpu", "g5", "p3dn", "p4d", "p5", "p5en", "trn1", "trn2")
"""The same for jobs of tests/unit/pools: one for each kind of machine."""

_RENDER = str(ROOT / "tools" / "muster_dev" / "golden_render.py")

CRD = "crds/muster.dev_distributedtrainingjobs.yaml"
GENERATED = {
    CRD: (str(BIN / "muster"), "crd"),
    # Helm installs what is in a chart, and packs no links.
    f"charts/muster/{CRD}": (str(BIN / "muster"), "crd"),
    "docs/board.svg": (str(PYTHON), str(ROOT / "tools" / "muster_dev" / "board_picture.py")),
    **{
        f"tests/unit/golden/{name}.yaml": (str(PYTHON), _RENDER, f"training/examples/{name}/job.yaml")
        for name in EXAMPLES
    },
    **{
        f"tests/unit/golden/pools/{name}.yaml": (str(PYTHON), _RENDER, f"tests/unit/pools/{name}.yaml")
        for name in POOLS
    },
}
"""Each file and the command that prints it."""


def stale() -> Sequence[str]:
    """The files that differ from what their command prints now."""
    problems = []
    for path, command in GENERATED.items():
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
        file = ROOT / path
        if done.returncode != 0:
            problems.append(f"{path}: `{' '.join(command)}` failed: {done.stderr.strip()}")
        elif not file.is_file() or file.read_text(encoding="utf-8") != done.stdout:
            problems.append(f"{path} is not what the code makes: run `make generate`")
    return problems


def main(_: Sequence[str]) -> int:
    """`make generate`: write them."""
    for path, command in GENERATED.items():
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        (ROOT / path).write_text(done.stdout, encoding="utf-8")
        print(f"wrote {path}")
    return 0
