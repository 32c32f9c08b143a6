"""`-o json|yaml|wide`."""

import json
from pathlib import Path

import pytest
import yaml

from muster.api.json_fields import read_mapping
from muster.api.status.status import NodeCounts, RankDetail, RankStatus, StateRange, Status, StepRange
from muster.api.yaml.serialise import serialise_status
from muster.cli.board.observed_job import ObservedJob, build_view, read_observed_job
from muster.cli.errors import BadInput
from muster.cli.jobs.rank_data import build_rank_data, format_rank_lines
from muster.cli.jobs.wait import print_job
from muster.cli.output import TextFormat, format_data, read_text_format
from muster.cli.render.validate import check_files

HOSTILE = "\x1b[2J\x9b1m\u202eevil"
STATUS = Status(
    phase="Running",
    message="3 of 4 ranks run",
    attempt=2,
    nodes=NodeCounts(desired=2, ready=2),
    ranks=RankStatus(
        world=4,
        running=3,
        ready="3/4",
        by_state=(StateRange(state="Running", count=3, ranks="0-2"), StateRange(state="Failed", count=1, ranks="3")),
        by_step=(StepRange(step=7, ranks="0-2"),),
        details=(
            RankDetail(
                rank=3, node=1, pod="vit-1-0", node_name="ip-1", state="Failed", exit_code=3, reason="RankFailed"
            ),
        ),
    ),
)
JOB = """\
apiVersion: muster.dev/v1alpha1
kind: DistributedTrainingJob
metadata: {name: NAME}
spec: {nodes: NODES, procsPerNode: 1, launcher: {direct: {}}, command: [train], image: x}
"""


def make_job() -> ObservedJob:
    return read_observed_job(
        {"metadata": {"name": "vit", "namespace": "team-a"}, "spec": {"nodes": 2}, "status": serialise_status(STATUS)}
    )


@pytest.mark.parametrize("text", [None, "json", "yaml", "wide"])
def test_known_formats(text: str | None) -> None:
    assert read_text_format(text) == text


def test_an_unknown_format() -> None:
    with pytest.raises(BadInput, match="-o xml: expected json, yaml or wide"):
        read_text_format("xml")


def test_text_of_users_is_escaped() -> None:
    for text, parsed in (
        (format_data({"a": HOSTILE}, "json"), json.loads(format_data({"a": HOSTILE}, "json"))),
        (format_data({"a": HOSTILE}, "yaml"), yaml.safe_load(format_data({"a": HOSTILE}, "yaml"))),
    ):
        assert text.isascii()
        assert text.replace("\n", "").isprintable()
        assert parsed == {"a": HOSTILE}


def test_each_rank_has_the_fields_of_the_status() -> None:
    job = make_job()
    data = read_mapping(build_rank_data(job, build_view(job, 0.0)))
    ranks = data.pop("ranks")
    assert data == {
        "name": "vit",
        "namespace": "team-a",
        "phase": "Running",
        "message": "3 of 4 ranks run",
        "attempt": 2,
    }
    assert isinstance(ranks, list)
    assert ranks[0] == {"rank": 0, "node": 0, "state": "Running", "step": 7}
    assert ranks[3] == {
        "rank": 3,
        "node": 1,
        "pod": "vit-1-0",
        "nodeName": "ip-1",
        "state": "Failed",
        "exitCode": 3,
        "reason": "RankFailed",
        "message": "",
    }


def test_the_wide_lines_of_ranks() -> None:
    lines = format_rank_lines(build_view(make_job(), 0.0))
    assert lines == [
        "RANK  NODE   POD      KUBERNETES NODE  STATE    STEP  BEHIND  NOTE",
        "0     vit-0  -        -                Running  7     -",
        "1     vit-0  -        -                Running  7     -",
        "2     vit-1  -        -                Running  7     -",
        "3     vit-1  vit-1-0  ip-1             Failed   -     -       exit 3 · RankFailed",
    ]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_an_ended_job_is_printed_as_its_resource(output: TextFormat, capsys: pytest.CaptureFixture[str]) -> None:
    job = make_job()
    print_job(job, output)
    assert yaml.safe_load(capsys.readouterr().out) == job.resource
    print_job(job, None)
    assert capsys.readouterr().out == ""


def test_an_ended_job_as_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_job(make_job(), "wide")
    title, line = capsys.readouterr().out.splitlines()
    assert title.startswith("NAME  BACKEND     PHASE    NODES  RANKS")
    assert line.endswith("3 of 4 ranks run")


def write_jobs(folder: Path) -> list[str]:
    good, bad = folder / "good.yaml", folder / "bad.yaml"
    good.write_text(JOB.replace("NAME", "vit").replace("NODES", "2") + "---\nkind: Service\n", encoding="utf-8")
    bad.write_text(JOB.replace("NAME", "vit").replace("NODES", "0"), encoding="utf-8")
    return [str(good), str(bad), str(folder / "missing.yaml")]


def test_the_results_of_validation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write_jobs(tmp_path)
    assert check_files(files, None, "json") == 2
    said = capsys.readouterr()
    good, bad, missing = json.loads(said.out)["results"]
    assert good == {"file": files[0], "name": "vit", "valid": True, "problems": [], "warnings": []}
    assert bad["problems"] == [{"line": 4, "field": "spec.nodes", "message": "found 0; allowed are 1 to 10000"}]
    assert (bad["valid"], "name" in bad) == (False, False)
    assert missing["problems"] == [{"message": "No such file or directory"}]
    assert f"{files[1]}:4: spec.nodes: found 0; allowed are 1 to 10000" in said.err
    assert f"{files[2]}: No such file or directory" in said.err
    check_files(files)
    # standard error is the same with and without the option
    assert capsys.readouterr().err == said.err


def test_the_lines_of_validation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write_jobs(tmp_path)
    assert check_files(files[:2], None, "wide") == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [
        [files[0], "vit", "Kubernetes", "2", "1", "valid"],
        [files[1], "-", "-", "-", "-", "1", "problem"],
    ]
