"""Manifests in the shape of the projects' examples become the jobs of the folder `jobs`, with their notices."""

from muster.api.validation.validate import validate
from muster.api.yaml.load import load_documents
from muster.importers.kubernetes.kinds.registry import IMPORTERS
from muster.importers.kubernetes.manifests import import_manifests, read_kind
from support.rows import check_rows
from unit.importers.kubernetes.manifest_files import HERE, MANIFESTS, RUNTIMES

JOBS = HERE / "jobs"


def test_a_manifest_becomes_its_job() -> None:
    def check(name: str) -> None:
        result = import_manifests(MANIFESTS[name], RUNTIMES)
        assert result.problems == []
        assert "---\n".join(result.documents) == (JOBS / f"{name}.yaml").read_text(encoding="utf-8")
        assert result.notices == (JOBS / f"{name}.txt").read_text(encoding="utf-8").splitlines()

    check_rows(MANIFESTS, check)


def test_the_jobs_are_valid() -> None:
    def check_row(file: object) -> None:
        documents = load_documents((JOBS / str(file)).read_text(encoding="utf-8"), "job.yaml")
        jobs = [document for document in documents if read_kind(document)[1] == "DistributedTrainingJob"]
        assert [validate(job).metadata.name for job in jobs]

    check_rows(sorted(JOBS.glob("*.yaml")), check_row)


def test_each_kind_has_examples() -> None:
    kinds = {read_kind(document) for documents in MANIFESTS.values() for document in documents}
    assert kinds >= IMPORTERS.keys()
    assert len(MANIFESTS) >= 25
