"""Jobs above their namespace's memory limit wait and are refused; all others are unaffected."""

import gc
import json
import tracemalloc

import pytest

from muster.api.document import JSON
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.validation.validate import MAX_SPEC_BYTES
from muster.collector.memory_limits import MemoryLimits
from muster.controller.jobs.job_memory import JOB_BYTES, JobMemory
from muster.objects.kubernetes.job_source import MAX_SPEC_TEXT_BYTES, WATCHED_JOBS, read_identity
from muster.objects.kubernetes.json_parts import find_value
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.object_parser import read_object
from muster.objects.kubernetes.resource import NO_ROOM, read_resource
from unit.controller.cluster_resources import resource


def heard(name: str, **fields: object) -> Object:
    """Return a job as kopf and the API server's answers deliver it."""
    source = resource(name, uid=f"uid-{name}", **fields)  # type: ignore[arg-type]
    return read_object(find_value(json.dumps(source).encode()), WATCHED_JOBS.parse_options)


def room(jobs: float) -> JobMemory:
    """Room for this many small jobs of a namespace."""
    most = int(jobs * (JOB_BYTES + 3_000))
    return JobMemory(MemoryLimits(per_namespace=most, total=10 * most, guaranteed=0))


def template(**spec: JSON) -> dict[str, JSON]:
    return {"template": {"spec": dict(spec)}}


def deep(levels: int) -> JSON:
    value: JSON = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def test_a_job_is_read_from_its_text_as_from_the_object() -> None:
    source = heard("vit", spec={"nodes": 3}, status={"phase": "Running", "message": "é"})
    assert isinstance(source["spec"], str)
    read = read_resource(source)
    assert isinstance(read.job, Job)
    assert (read.job.spec.nodes, read.status.phase, read.status_fields["message"]) == (3, "Running", "é")


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (template(affinity=deep(150)), "nested more than 100 levels deep"),
        ({"command": ["x" * MAX_SPEC_TEXT_BYTES]}, "bytes, which are too many"),
    ],
)
def test_a_spec_that_cannot_be_read_is_refused_and_says_what_to_do(spec: dict[str, JSON], found: str) -> None:
    read = read_resource(heard("vit", spec=spec))
    assert isinstance(read.job, InvalidResource)
    assert read.job.problems[0].path == "spec"
    assert found in read.job.problems[0].message
    assert f"at most {MAX_SPEC_BYTES} bytes" in read.job.problems[0].message


def test_a_status_that_cannot_be_read_decides_nothing() -> None:
    read = read_resource(heard("vit", status={"message": "x" * 1_000_000}))
    assert [problem.path for problem in read.status_problems] == ["status"]
    assert read.status_fields == {}
    # Its content is unknown: a write would overwrite the finalizers of other clients.
    many: list[JSON] = [f"example.com/{number}" for number in range(2_000)]
    assert [one.path for one in read_resource(heard("vit", metadata={"finalizers": many})).status_problems] == [
        "metadata.finalizers"
    ]


def test_a_refusal_does_not_keep_what_it_refused() -> None:
    read = read_resource(heard("vit", spec={"nodes": 0, "command": ["x" * 1000]}))
    assert isinstance(read.job, InvalidResource)
    assert read.job.__traceback__ is None
    assert not [one for one in gc.get_referrers(read.job) if type(one).__name__ == "frame" and "validate" in str(one)]


def test_jobs_beyond_the_room_of_their_namespace_wait_and_say_so() -> None:
    here = room(2)
    placed = [read_resource(here.reserve(heard(name))) for name in ("a", "b", "c")]
    assert [one.waits_for_memory for one in placed] == [False, False, True]
    assert isinstance(placed[2].job, InvalidResource)
    assert placed[2].job.reason == NO_ROOM
    assert "delete finished jobs" in str(placed[2].job.problems[0])
    # A new version of what is held is held, and what waits is read in full once it fits.
    assert not read_resource(here.reserve(heard("a", version=200)), placed[0]).waits_for_memory
    assert here.find_jobs_that_fit(10) == ()
    here.forget("uid-a")
    assert [one.name for one in here.find_jobs_that_fit(10)] == ["c"]
    admitted = read_resource(here.reserve(heard("c")), placed[2])
    assert isinstance(admitted.job, Job)
    assert here.find_jobs_that_fit(10) == ()


def test_a_job_that_grows_beyond_the_room_waits_and_what_it_took_is_free() -> None:
    here = room(2)
    first = read_resource(here.reserve(heard("a")))
    spec: dict[str, JSON] = {"command": ["x"] * 400}
    grown = read_resource(here.reserve(heard("a", version=200, generation=2, spec=spec)), first)
    assert grown.waits_for_memory
    assert here.get_loaded_jobs() == ()


def test_a_job_that_has_started_always_finds_room() -> None:
    here = room(2)
    for name in ("a", "b", "c"):
        here.reserve(heard(name))
    started = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    assert not read_resource(here.reserve(heard("d", status=started))).waits_for_memory


def test_of_a_refused_job_no_more_counts_than_that_it_is_there_and_why() -> None:
    here, why = room(2), InvalidResource((FieldProblem("spec.nodes", "found 0"),))
    source = here.reserve(heard("a", spec={"command": ["x" * 2_000]}))
    here.release_spec(read_identity(source), why)
    assert JOB_BYTES < here.limits.get_used("team") < JOB_BYTES + 1_000
    here.forget("uid-a")
    here.release_spec(read_identity(source), why)
    assert here.limits.get_used("team") == 0


# A list of the API server's, as Go writes it: U+2028 is escaped, the others are not.
@pytest.mark.parametrize("wide", ["", "\u00e9", "\u4e00", "\u2028", "\U0001f600"])
def test_a_job_counts_what_python_makes_of_its_characters(wide: str) -> None:
    here = JobMemory()
    source: Object = {**heard("a"), "spec": ""}
    command: list[JSON] = ["sh", *(f"{number}{wide}{'x' * 30_000}" for number in range(8))]
    spec = {"nodes": 1, "image": "x", "launcher": {"direct": {}}, "command": command}
    text = json.dumps(spec, ensure_ascii=False).replace("\u2028", "\\u2028")
    here.reserve({**source, "spec": text})
    tracemalloc.start()
    read = read_resource({**source, "spec": text})
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert isinstance(read.job, Job)
    assert held < here.limits.get_used("team") < 1.5 * held + JOB_BYTES


def test_a_refused_job_counts_the_words_that_say_why() -> None:
    here = JobMemory()
    files: JSON = {f"/\U0001f600{'k' * 12_000}{number}": "" for number in range(20)}
    source = here.reserve(heard("a", spec={"source": {"inline": {"files": files}}}))
    tracemalloc.start()
    read = read_resource(source)
    gc.collect()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert isinstance(read.job, InvalidResource)
    here.release_spec(read_identity(source), read.job)
    assert held < here.limits.get_used("team") < 2 * held + JOB_BYTES


def test_a_job_that_waits_with_a_long_status_keeps_none_of_it() -> None:
    here = room(0.5)
    read = read_resource(here.reserve(heard("a", status={"message": "x" * 100_000})))
    assert read.waits_for_memory
    assert [problem.path for problem in read.status_problems] == ["status"]
