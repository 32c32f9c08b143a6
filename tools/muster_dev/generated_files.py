"""`make generate`: writes the generated files in the repository. `make check` uses it to compare them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence

from muster_dev.paths import BIN, PYTHON, ROOT

EXAMPLES = (
    *("accelerate", "data_parallel", "deepspeed", "digits", "lightning", "recovery", "ray_train"),
    *("sagemaker_hosts", "transformers"),
    "two_dimensional",
    *("mpi_c", "mpi_gradients", "mpi_messages", "nccl_tests"),
    *("sagemaker_estimator", "sagemaker_model_parallel", "sagemaker_mpi", "sagemaker_smddp", "sagemaker_torchrun"),
)
"""Folders of training/examples whose rendered jobs are in the repository."""

POOLS = ("cpu", "g5", "p3dn", "p4d", "p5", "p5en", "trn1", "trn2")
"""Jobs of tests/unit/pools whose rendered pods are in the repository, one for each kind of machine."""

_REFERENCE = str(ROOT / "tools" / "muster_dev" / "field_reference.py")

CRDS = {
    f"crds/muster.dev_{plural}.yaml": (str(BIN / "muster"), "crd", plural)
    for plural in ("distributedtrainingjobs", "trainingtemplates", "clustertrainingtemplates")
}
GENERATED = {
    **CRDS,
    # The chart needs its own copies, because Helm doesn't package links.
    **{f"charts/muster/{path}": command for path, command in CRDS.items()},
    "operator/muster/api/validation/rules/pods/pod_fields.json": (
        str(PYTHON),
        str(ROOT / "tools" / "muster_dev" / "pod_fields.py"),
    ),
    **{f"docs/reference/{part}.md": (str(PYTHON), _REFERENCE, part) for part in ("spec", "status")},
    "docs/board.svg": (str(PYTHON), str(ROOT / "tools" / "muster_dev" / "board_picture.py")),
}
"""The generated files, with the command that prints each."""

_GOLDEN_FILES = {
    **{f"training/examples/{name}/job.yaml": f"tests/unit/golden/{name}.yaml" for name in EXAMPLES},
    **{f"tests/unit/pools/{name}.yaml": f"tests/unit/golden/pools/{name}.yaml" for name in POOLS},
}
"""The files of jobs, with the file of the objects that each job is rendered to."""

MULTI_FILE_COMMANDS = (
    (str(PYTHON), str(ROOT / "tools" / "muster_dev" / "golden_import.py")),
    (str(PYTHON), str(ROOT / "tools" / "muster_dev" / "golden_manifests.py")),
    (
        str(PYTHON),
        str(ROOT / "tools" / "muster_dev" / "golden_render.py"),
        *(f"{job}={file}" for job, file in _GOLDEN_FILES.items()),
    ),
)
"""Commands that print several files, as a JSON object of texts by path."""


def find_outdated_files() -> Sequence[str]:
    """Return a message for each file that differs from the output of its command."""
    problems = []
    for command, paths in _list_commands():
        completed = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
        if completed.returncode != 0:
            problems.append(f"{paths}: `{' '.join(command)}` failed: {completed.stderr.strip()}")
            continue
        problems += [
            f"{path} differs from the generated file: run `make generate`"
            for path, text in _split_output(command, completed.stdout)
            if _is_outdated(path, text)
        ]
    return problems


def main(_: Sequence[str]) -> int:
    """`make generate`: write the files that have changed."""
    for command, _paths in _list_commands():
        completed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        for path, text in _split_output(command, completed.stdout):
            if _is_outdated(path, text):
                (ROOT / path).write_text(text, encoding="utf-8")
                print(f"wrote {path}")
    return 0


def _is_outdated(path: str, text: str) -> bool:
    file = ROOT / path
    return not file.is_file() or file.read_text(encoding="utf-8") != text


def _list_commands() -> Iterator[tuple[Sequence[str], str]]:
    """Yield each command once, with a name for its files."""
    yield from ((command, path) for path, command in GENERATED.items() if not path.startswith("charts/"))
    yield from ((command, command[1]) for command in MULTI_FILE_COMMANDS)


def _split_output(command: Sequence[str], printed: str) -> Iterator[tuple[str, str]]:
    if command in MULTI_FILE_COMMANDS:
        texts: dict[str, str] = json.loads(printed)
        yield from texts.items()
    yield from ((path, printed) for path, file_command in GENERATED.items() if file_command == command)
