"""Generates the checked-in files that are made from code, and checks whether they are current."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence

from muster_dev.paths import BIN, PYTHON, ROOT

EXAMPLES = (
    *("data_parallel", "digits", "sagemaker_hosts", "two_dimensional"),
    *("mpi_c", "mpi_gradients", "mpi_messages", "nccl_tests"),
    *("sagemaker_estimator", "sagemaker_model_parallel", "sagemaker_mpi", "sagemaker_smddp", "sagemaker_torchrun"),
)
"""Folders of training/examples whose rendered jobs are checked in."""

POOLS = ("cpu", "g5", "p3dn", "p4d", "p5", "p5en", "trn1", "trn2")
"""Jobs of tests/unit/pools whose rendered form is checked in: one for each kind of machine."""

_REFERENCE = str(ROOT / "tools" / "muster_dev" / "field_reference.py")

CRD = "crds/muster.dev_distributedtrainingjobs.yaml"
GENERATED = {
    CRD: (str(BIN / "muster"), "crd"),
    # Helm installs the files of a chart's folder, and doesn't package links.
    f"charts/muster/{CRD}": (str(BIN / "muster"), "crd"),
    "operator/muster/api/validation/rules/pods/pod_fields.json": (
        str(PYTHON),
        str(ROOT / "tools" / "muster_dev" / "pod_fields.py"),
    ),
    **{f"docs/reference/{part}.md": (str(PYTHON), _REFERENCE, part) for part in ("spec", "status")},
    "docs/board.svg": (str(PYTHON), str(ROOT / "tools" / "muster_dev" / "board_picture.py")),
}
"""Each file with the command that prints it."""

_RENDERED = {
    **{f"training/examples/{name}/job.yaml": f"tests/unit/golden/{name}.yaml" for name in EXAMPLES},
    **{f"tests/unit/pools/{name}.yaml": f"tests/unit/golden/pools/{name}.yaml" for name in POOLS},
}
"""Each job's file and the file with its objects."""

SETS = (
    (str(PYTHON), str(ROOT / "tools" / "muster_dev" / "golden_import.py")),
    (
        str(PYTHON),
        str(ROOT / "tools" / "muster_dev" / "golden_render.py"),
        *(f"{job}={file}" for job, file in _RENDERED.items()),
    ),
)
"""Commands that print several files, as one JSON object of texts by their paths."""


def stale() -> Sequence[str]:
    """The files that differ from their command's output."""
    problems = []
    for command, paths in _commands():
        completed = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
        if completed.returncode != 0:
            problems.append(f"{paths}: `{' '.join(command)}` failed: {completed.stderr.strip()}")
            continue
        problems += [
            f"{path} is not what the code makes: run `make generate`"
            for path, text in _files(command, completed.stdout)
            if not (ROOT / path).is_file() or (ROOT / path).read_text(encoding="utf-8") != text
        ]
    return problems


def main(_: Sequence[str]) -> int:
    """`make generate`: write all files."""
    for command, _paths in _commands():
        completed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for path, text in _files(command, completed.stdout):
            (ROOT / path).write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    return 0


def _commands() -> Iterator[tuple[Sequence[str], str]]:
    """Each command once, with a name for its files."""
    yield from ((command, path) for path, command in GENERATED.items() if path != f"charts/muster/{CRD}")
    yield from ((command, command[1]) for command in SETS)


def _files(command: Sequence[str], printed: str) -> Iterator[tuple[str, str]]:
    if command in SETS:
        texts: dict[str, str] = json.loads(printed)
        yield from texts.items()
    yield from ((path, printed) for path, made_by in GENERATED.items() if made_by == command)
