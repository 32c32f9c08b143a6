"""`muster render`: its output, and that the examples render to the reviewed golden files."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.cli.job_file import read_job
from muster.cli.render.placeholders import PLACEHOLDERS, simulate_apply
from muster.cli.render.render import render_text
from muster.objects.kubernetes.names import build_agent_name
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.render import render_pod, render_service
from muster_dev.generated_files import EXAMPLES, POOLS
from muster_dev.golden_render import render_job
from unit.render.kubernetes.cluster_jobs import cluster_job

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "unit" / "golden"


def documents(text: str) -> list[Fields]:
    return [document for document in yaml.safe_load_all(text) if document is not None]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_rendered_as_it_was(name: str) -> None:
    """After an intended change run `make generate`, and review the difference."""
    text = render_job(read_job(str(ROOT / "training" / "examples" / name / "job.yaml")))
    assert text == (GOLDEN / f"{name}.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", POOLS)
def test_a_machine_s_job_is_rendered_as_it_was(name: str) -> None:
    text = render_text(read_job(str(ROOT / "tests" / "unit" / "pools" / f"{name}.yaml")), b"")
    assert text == (GOLDEN / "pools" / f"{name}.yaml").read_text(encoding="utf-8")


def test_every_example_is_kept() -> None:
    folders = {path.parent.name for path in (ROOT / "training" / "examples").glob("*/job.yaml")}
    assert folders == set(EXAMPLES) == {path.stem for path in GOLDEN.glob("*.yaml")}


def test_what_is_shown_is_what_the_cluster_gets() -> None:
    job = cluster_job()
    shown = documents(render_text(job, b"agent"))
    applied = simulate_apply(job)
    kinds = ["DistributedTrainingJob", "Service", "ConfigMap", "ConfigMap", "Pod"]
    assert [document["kind"] for document in shown] == kinds
    assert shown[1] == render_service(applied)
    assert shown[4] == render_pod(applied, 0, 0, replace(PLACEHOLDERS, agent_config_map=build_agent_name(b"agent")))


def test_a_large_job_is_a_few_documents() -> None:
    override: JSON = {"nodes": "0,7", "template": {"metadata": {"labels": {"role": "first"}}}}
    text = render_text(cluster_job(nodes=512, nodeOverrides=[override]), b"")
    assert [document["kind"] for document in documents(text)][4:] == ["Pod", "Pod"]
    assert "# nodes 0,7, which differ only in their rank; the first one:\n# node 0: algo-1" in text
    assert "# nodes 1-6,8-511, which differ only in their rank; the first one:\n# node 1: algo-2" in text


def test_a_job_that_runs_here_only_shows_what_its_ranks_see() -> None:
    text = render_text(cluster_job(image=None), b"")
    assert "#   SM_CURRENT_HOST=algo-1\n" in text
    assert text.endswith("# no pod: no image is set for the ranks' container: set spec.image, for example "
                         "pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime\n")  # fmt: skip


def test_values_of_several_lines_stay_comments() -> None:
    variables: JSON = [
        {"name": "A", "value": "x\n---\ny: 1"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s"}}},
    ]
    text = render_text(cluster_job(env=variables, command=["sh", "-c", "a\nb"]), b"")
    assert "#   A=x\\u000a---\\u000ay: 1\n" in text
    assert "#   B=<secretKeyRef>\n" in text
    assert len(documents(text)) == 5


def test_differing_devices_are_an_error() -> None:
    job = cluster_job(
        nodeOverrides=[
            {
                "nodes": "1",
                "template": {
                    "spec": {"containers": [{"name": "trainer", "resources": {"limits": {"nvidia.com/gpu": 4}}}]}
                },
            }
        ]
    )
    text = render_text(job, b"")
    assert read_mapping(documents(text)[0]["spec"])["nodes"] == 2
    assert (
        "# a cluster can't run this job yet: spec.procsPerNode: found Auto, and node 0 has devices for 1 rank" in text
    )
