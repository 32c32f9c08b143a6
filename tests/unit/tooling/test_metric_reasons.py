"""Metrics know each reason with which a job can end, so that none of muster's own counts as Other."""

import re
from types import ModuleType

import pytest

from muster.core import outcome, restarts
from muster.core.failure import ends, problems
from muster.core.metrics.reasons import REASONS
from muster.core.restarts import DISRUPTIONS
from muster.core.steps import hangs
from muster.diagnose.kubernetes import end_problems
from muster.objects.aws.errors import AwsError
from muster_dev.paths import ROOT
from muster_worker.contract.schema import EndReason

CAMEL_CASE = re.compile(r"[A-Z]\w*[a-z]\w*")
# Problems before the start, which don't end a job.
BEFORE_START = {"FetchingFiles", "NodeSilent", "QuotaExceeded", "SchedulingGated", "Unschedulable"}


@pytest.mark.parametrize("module", [end_problems, problems, ends, outcome, hangs, restarts])
def test_each_reason_of_the_code_is_known(module: ModuleType) -> None:
    constants = (value for name, value in vars(module).items() if name.isupper() and not name.startswith("_"))
    reasons = {value for value in constants if isinstance(value, str) and CAMEL_CASE.fullmatch(value)}
    assert reasons - BEFORE_START - REASONS == set()


def test_reasons_of_agents_of_aws_and_of_disruptions_are_known() -> None:
    assert {*EndReason.ALL, *(kind.reason for kind in AwsError.__subclasses__()), *DISRUPTIONS} <= REASONS


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        ("reasons.md", "## Why a job failed"),
        ("reasons.md", "## AWS and SageMaker"),
        ("s3-permissions.md", "## Reasons"),
    ],
)
def test_each_reason_of_the_pages_is_known(page: str, heading: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    section = text.partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    reasons = {reason for cell in cells for reason in re.findall(r"`(\w+)`", cell)}
    assert reasons
    assert reasons - REASONS == set()
