"""Prints the jobs and the notices of `muster import` for the manifests of the tests, as a JSON object by path."""

import json
import sys
from pathlib import Path

from muster.api.document import Document
from muster.api.yaml.load import load_documents
from muster.importers.kubernetes.manifests import ManifestResult, import_manifests

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "tests/unit/importers/kubernetes"
"""The folder with `manifests`, the `runtimes` of their TrainJobs, and the imported `jobs` with their notices."""


def load_folder(name: str) -> dict[str, list[Document]]:
    """Return the documents of each file in a folder of the tests, by the file's name without its suffix."""
    files = sorted((ROOT / FOLDER / name).glob("*.yaml"))
    return {file.stem: load_documents(file.read_text(encoding="utf-8"), file.name) for file in files}


def load_runtimes() -> list[Document]:
    """Return all runtimes of the tests."""
    return [document for documents in load_folder("runtimes").values() for document in documents]


def import_all() -> dict[str, ManifestResult]:
    """Import each manifest of the tests."""
    runtimes = load_runtimes()
    return {name: import_manifests(documents, runtimes) for name, documents in load_folder("manifests").items()}


if __name__ == "__main__":
    texts = {}
    for name, result in import_all().items():
        if result.problems:
            sys.exit("\n".join(result.problems))
        texts[f"{FOLDER}/jobs/{name}.yaml"] = "---\n".join(result.documents)
        texts[f"{FOLDER}/jobs/{name}.txt"] = "".join(f"{notice}\n" for notice in result.notices)
    sys.stdout.write(json.dumps(texts))
