"""What `muster describe` suggests, and that the pages it names exist."""

import pytest

from integration.docs.pages import headings
from muster.api.document import JSON
from muster.api.status.hang import HangRecord
from muster.api.status.restarts import RestartRecord, Restarts
from muster.api.status.sagemaker import BackendStatus
from muster.api.status.status import Condition, Status
from muster.cli.board.observed_job import ObservedJob
from muster.cli.describe import next_steps
from muster.cli.describe.next_steps import PAGES_BY_REASON, find_failure_page, list_next_steps
from muster_dev.paths import ROOT

AT = "2026-11-21T05:00:00Z"
PAGES = {value for name, value in vars(next_steps).items() if name.endswith("_PAGE")} | {*PAGES_BY_REASON.values()}


def condition(type_: str, reason: str, status: str = "True") -> tuple[Condition, ...]:
    return (Condition(type=type_, status=status, reason=reason, last_transition_time=AT),)


def steps(**fields: object) -> str:
    return "\n".join(list_next_steps(ObservedJob("vit", "u", 1, None, Status.model_validate(fields))))


@pytest.mark.parametrize("page", sorted(PAGES))
def test_the_pages_exist(page: str) -> None:
    file, _, anchor = page.partition("#")
    assert not anchor or anchor in headings(ROOT / file)


@pytest.mark.parametrize("reason", sorted(PAGES_BY_REASON))
def test_the_reasons_exist(reason: str) -> None:
    assert f"`{reason}`" in (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8")


def test_a_job_that_no_operator_has_seen() -> None:
    assert steps().startswith("`muster doctor`")


def test_jobs_that_have_ended() -> None:
    failed = steps(phase="Failed", conditions=condition("Failed", "S3AccessDenied"))
    assert failed.startswith("the reason S3AccessDenied is described in docs/s3-permissions.md#reasons\n")
    assert steps(phase="Succeeded", conditions=condition("Complete", "AllRanksSucceeded")).startswith("`kubectl delete")


def test_jobs_that_wait_for_the_user() -> None:
    assert "correct the spec" in steps(phase="Refused", conditions=condition("Accepted", "Invalid", "False"))
    assert "`muster resume vit`" in steps(phase="Suspended", conditions=condition("Suspended", "Suspended"))


def test_jobs_that_are_delayed() -> None:
    delays = "docs/reasons.md#what-keeps-a-job-from-starting"
    assert f"Unschedulable is described in {delays}" in steps(
        conditions=condition("Scheduled", "Unschedulable", "False")
    )
    assert f"ImagePull is described in {delays}" in steps(conditions=condition("Stalled", "ImagePull"))
    running: dict[str, JSON] = {"phase": "Running", "attempt": 1, "start_time": AT}
    hang = HangRecord.model_validate({"attempt": 1, "count": 1, "ranks": "0", "rank": 0, "since": AT})
    hung = steps(**running, conditions=condition("Stalled", "Hung"), hang=hang)
    assert "docs/hangs.md" in hung
    assert "`muster stacks vit`" in hung
    record = RestartRecord(attempt=1, reason="NodeLost", message="lost", counts_as="Disruption", at=AT)
    restarts = Restarts(total=1, failures=0, disruptions=1, replacement=0, is_pending=True, history=(record,))
    restarting = steps(
        phase="Restarting", attempt=2, restarts=restarts, conditions=condition("Running", "Restarting", "False")
    )
    assert "NodeLost is described in docs/node-failure.md" in restarting


def test_reasons_of_training_jobs() -> None:
    training: dict[str, JSON] = {
        "trainingJobName": "t",
        "attempt": 1,
        "restarts": 0,
        "region": "eu-west-1",
        "triedAt": AT,
    }
    status = Status(backend=BackendStatus.model_validate({"sagemaker": training}))
    assert find_failure_page("AlgorithmError", status) == "docs/reasons.md#aws-and-sagemaker"
