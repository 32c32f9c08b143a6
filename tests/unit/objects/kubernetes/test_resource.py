import pytest

from muster.api.document import JSON
from muster.api.field_problems import InvalidResource
from muster.api.spec.job import Job
from muster.objects.kubernetes.resource import read_resource
from unit.controller.cluster_resources import CREATED, resource


def test_a_resource_is_read_whole() -> None:
    read = read_resource(resource(status={"phase": "Running", "attempt": 2}))
    assert (str(read), read.uid, read.version, read.generation) == ("team/vit", "u-1", "100", 1)
    assert isinstance(read.job, Job)
    assert read.job.metadata.creation_timestamp == CREATED
    assert (read.status.phase, read.status.attempt) == ("Running", 2)
    assert read.status_fields == {"phase": "Running", "attempt": 2}
    assert not read.is_terminating


def test_what_is_wrong_with_a_spec_is_kept() -> None:
    read = read_resource(resource(spec={"nodes": 0}))
    assert isinstance(read.job, InvalidResource)
    assert "spec.nodes" in str(read.job)


def test_a_later_muster_may_have_written_more_into_the_status() -> None:
    read = read_resource(
        resource(status={"phase": "Running", "elastic": {"min": 1}, "nodes": {"desired": 2, "ready": 1, "lost": 1}})
    )
    assert read.status.nodes is not None
    assert read.status.nodes.desired == 2


def test_problems_of_an_impossible_status_are_named() -> None:
    written: dict[str, JSON] = {"phase": "Running", "attempt": 2, "startTime": "yesterday", "nodes": {"ready": 1}}
    read = read_resource(resource(status=written))
    assert [problem.path for problem in read.status_problems] == ["status.startTime"]
    assert (read.status.attempt, read.status.nodes, read.status_fields) == (2, None, written)


def test_a_spec_is_read_once_for_each_generation() -> None:
    first = read_resource(resource())
    assert read_resource(resource(version=101), first).job is first.job
    changed = read_resource(resource(version=102, generation=2, spec={"suspend": True}), first)
    assert isinstance(changed.job, Job)
    assert changed.job.spec.suspend
    assert read_resource(resource(uid="u-2", spec={"nodes": 3}), first).job is not first.job


@pytest.mark.parametrize(("version", "is_newer"), [(99, False), (100, False), (101, True), (1000, True)])
def test_versions_are_numbers(version: int, is_newer: bool) -> None:  # noqa: FBT001 - a row of the table
    assert read_resource(resource(version=version)).is_newer_than(read_resource(resource(version=100))) is is_newer


def test_a_resource_that_is_being_deleted_says_so() -> None:
    assert read_resource(resource(metadata={"deletionTimestamp": CREATED})).is_terminating
