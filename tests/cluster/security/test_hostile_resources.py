"""Resources and objects that only a bug or an attacker creates: they affect one job, and no other."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.images import PULL_POLICY
from cluster.operator.cluster_jobs import FOREVER, manifest
from cluster.operator.site import Site
from cluster.shared import Manifest

ONE: dict[str, Any] = {"nodes": 1, "procsPerNode": 1}
RUNNING = "jsonpath={.status.phase}=Running"
HELD = "example.com/hold"
RELEASED = json.dumps({"metadata": {"finalizers": None}})

# Unescaped, it would switch the terminal to red, ring, start a new line in a log, and reverse the rest of the line.
CONTROLS = "\x1b[31mred\x07\n2026-01-01T00:00:00.000Z ERROR forged \u202e\x9b"


def template(**pod: object) -> Manifest:
    trainer = {"name": "trainer", "imagePullPolicy": PULL_POLICY}
    return {"spec": {"terminationGracePeriodSeconds": 6, "containers": [trainer], **pod}}


def nested(levels: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def large() -> Manifest:
    """Return the content of a template of 250 KiB."""
    trainer = {
        "name": "trainer",
        "imagePullPolicy": PULL_POLICY,
        "env": [{"name": f"LARGE_{index}", "value": "x" * 25_000} for index in range(10)],
    }
    return {"spec": {"terminationGracePeriodSeconds": 6, "containers": [trainer]}}


def decorated(name: str) -> Manifest:
    """Create a job with labels, annotations, an owner and a finalizer of another controller."""
    body = manifest(name, FOREVER, nodes=1, procsPerNode=1)
    metadata = {
        "name": name,
        "labels": {"muster.dev/job": "another", "app": "x"},
        "annotations": {"note": CONTROLS, "muster.dev/spec-hash": "0"},
        "finalizers": [HELD],
    }
    return {**body, "metadata": metadata}


@pytest.fixture(scope="module")
def hostile(guarded: Site) -> Iterator[Site]:
    """Apply all hostile jobs at once, and a normal job."""
    jobs = guarded.jobs
    jobs.run("create", "service", "clusterip", "squatted-muster", "--tcp=1:1")
    jobs.run("create", "configmap", "squatted-too-muster", "--from-literal=mine=1")
    jobs.apply("harmless", FOREVER, **ONE)
    for name in ("squatted", "squatted-too", "relabelled", "unlabelled", "disowned", "scribbled"):
        jobs.apply(name, FOREVER, **ONE)
    jobs.apply("large", FOREVER, **ONE, template=large())
    jobs.apply("deep", FOREVER, **ONE, template=template(affinity=nested(64)))
    jobs.apply("controls", f"import sys; sys.exit({CONTROLS!r})", **ONE)
    jobs.apply("unfound", **ONE, command=[f"/{CONTROLS}"])
    jobs.run("apply", "-f", "-", stdin=json.dumps(decorated("decorated")))
    for name in ("harmless", "relabelled", "unlabelled", "disowned", "scribbled", "decorated"):
        jobs.wait(name, RUNNING)
    before = jobs.run("get", "pod/harmless-0-0", "--output=jsonpath={.metadata.uid}")
    yield guarded
    # a failed test may have left its finalizer, which blocks the namespace
    if jobs.run("get", "dtj/decorated", "--ignore-not-found"):
        jobs.run("patch", "dtj/decorated", "--type=merge", "--patch", RELEASED)
    after = jobs.run("get", "pod/harmless-0-0", "--output=jsonpath={.metadata.uid}")
    assert (jobs.status("harmless")["phase"], after) == ("Running", before)
    assert "Traceback" not in guarded.said
    assert all(line.startswith("20") and " forged" not in line[:40] for line in guarded.said.splitlines())
    jobs.run("delete", "dtj", "--all", "--wait=false")


@pytest.mark.parametrize(("job", "kind"), [("squatted", "Service"), ("squatted-too", "ConfigMap")])
def test_a_name_that_somebody_else_has_is_waited_for(hostile: Site, job: str, kind: str) -> None:
    hostile.jobs.wait(job, "jsonpath={.status.conditions[?(@.type=='Stalled')].reason}=NameTaken")
    assert f"{kind} {job}-muster" in hostile.jobs.status(job)["message"]
    assert hostile.jobs.children(job, "pods") == set()
    hostile.jobs.run("delete", f"{kind.lower()}/{job}-muster")
    hostile.jobs.wait(job, RUNNING)


def test_a_large_template_is_a_template(hostile: Site) -> None:
    hostile.jobs.wait("large", RUNNING)


def test_a_deep_template_is_refused(hostile: Site) -> None:
    hostile.jobs.wait("deep", "condition=Accepted=False")
    assert "64 levels" in hostile.jobs.status("deep")["message"]


@pytest.mark.parametrize("job", ["controls", "unfound"])
def test_control_characters_end_up_on_nobodys_terminal(hostile: Site, job: str) -> None:
    hostile.jobs.wait(job, "condition=Failed")
    status = hostile.jobs.status(job)
    assert "forged" in status["message"]
    shown = [status["message"], *(entry["message"] for entry in status["conditions"] + status["ranks"]["details"])]
    listed = json.loads(
        hostile.jobs.run("get", "events", f"--field-selector=involvedObject.name={job}", "--output=json")
    )
    shown += [event["message"] for event in listed["items"]]
    assert all(text.isprintable() for text in shown), shown


def test_what_else_is_in_the_metadata_is_its_owners(hostile: Site) -> None:
    jobs = hostile.jobs
    assert jobs.resource("decorated")["metadata"]["finalizers"] == [HELD]
    pod = json.loads(jobs.run("get", "pod/decorated-0-0", "--output=json"))["metadata"]
    assert pod["labels"]["muster.dev/job"] == "decorated"
    jobs.run("delete", "dtj/decorated", "--wait=false")
    jobs.run("delete", "pod/decorated-0-0")
    # while a finalizer blocks its deletion, muster doesn't create it again
    jobs.apply("meanwhile", "pass", **ONE)
    jobs.wait("meanwhile", "condition=Complete")
    assert jobs.children("decorated", "pods") == set()
    jobs.run("patch", "dtj/decorated", "--type=merge", "--patch", RELEASED)
    jobs.wait("decorated", "delete")


def test_a_pod_is_known_by_its_owner_and_its_name(hostile: Site) -> None:
    """Labels are for users and selectors: changing them has no effect."""
    jobs = hostile.jobs
    marks = ("muster.dev/node=7", "muster.dev/replacement=x", "muster.dev/job=other", "muster.dev/job-uid=0")
    jobs.run("label", "--overwrite", "pod/relabelled-0-0", *marks)
    jobs.patch("relabelled", suspend=True)
    jobs.wait("relabelled", "condition=Suspended")
    assert jobs.run("get", "pods", "--output=name").count("relabelled") == 0
    jobs.patch("relabelled", suspend=False)
    jobs.wait("relabelled", RUNNING)


@pytest.mark.parametrize(
    ("job", "change"),
    [
        ("unlabelled", {"labels": {"muster.dev/job-uid": None}}),
        ("disowned", {"ownerReferences": None}),
    ],
)
def test_a_pod_that_is_taken_from_its_job(hostile: Site, job: str, change: Manifest) -> None:
    jobs = hostile.jobs
    jobs.run("patch", f"pod/{job}-0-0", "--type=merge", "--patch", json.dumps({"metadata": change}))
    jobs.wait(job, "condition=Failed")
    assert f"pod {job}-0-0" in jobs.status(job)["message"]


def test_an_edited_pod_goes_on(hostile: Site) -> None:
    jobs = hostile.jobs
    jobs.run("annotate", "--overwrite", "pod/scribbled-0-0", "muster.dev/spec-hash=0", f"note={CONTROLS}")
    jobs.run("label", "pod/scribbled-0-0", "mine=1")
    jobs.apply("after-scribbles", "pass", **ONE)
    jobs.wait("after-scribbles", "condition=Complete")
    assert jobs.status("scribbled")["phase"] == "Running"
