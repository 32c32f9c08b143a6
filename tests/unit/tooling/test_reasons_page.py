"""The page of reasons, which programs rely on, names each reason of a failure or a delay."""

import re
from types import ModuleType

import pytest

from muster.api.status.status import SUSPENDED
from muster.core import outcome
from muster.core.failure import ends, problems
from muster.diagnose.kubernetes import end_problems, refusals, scheduling, start_problems
from muster.objects.aws.errors import AwsError
from muster.render.kubernetes import not_renderable
from muster_dev.paths import ROOT
from muster_worker.contract.schema import EndReason

PAGE = (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8")
NOT_BAD = {outcome.SUCCEEDED, SUSPENDED}
CAMEL_CASE = re.compile(r"[A-Z]\w*[a-z]\w*")


def reasons(module: ModuleType) -> set[str]:
    """Return the module's constants that are one CamelCase word."""
    result = (value for name, value in vars(module).items() if name.isupper() and not name.startswith("_"))
    return {value for value in result if isinstance(value, str) and CAMEL_CASE.fullmatch(value)}


@pytest.mark.parametrize(
    "module", [end_problems, start_problems, scheduling, refusals, not_renderable, problems, ends, outcome]
)
def test_the_page_has_every_reason(module: ModuleType) -> None:
    result = reasons(module) - NOT_BAD
    assert result
    assert {reason for reason in result if f"`{reason}`" not in PAGE} == set()


def test_the_page_has_every_reason_of_aws() -> None:
    result = {kind.reason for kind in AwsError.__subclasses__()}
    assert len(result) == 9
    assert {reason for reason in result if f"`{reason}`" not in PAGE} == set()


def test_the_page_has_every_reason_of_an_agent() -> None:
    assert {reason for reason in EndReason.ALL if f"`{reason}`" not in PAGE} == set()
