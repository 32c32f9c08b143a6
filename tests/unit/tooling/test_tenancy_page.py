"""docs/tenancy.md and its links: its file is valid, its table is complete, and roles are assumed as described."""

import json
from pathlib import Path

from pydantic.alias_generators import to_camel

from muster.api.config.operator import read_config
from muster.api.config.tenancy_fields import ALLOWANCES
from muster.api.config.tenancy_spec import BucketGrant, Tenant
from muster.api.yaml.load import load_documents
from muster.backends.sagemaker.targets import make_namespace_access

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "tenancy.md").read_text(encoding="utf-8")
RIGHTS = (ROOT / "docs" / "sagemaker-iam.md").read_text(encoding="utf-8")


def test_the_configuration_on_the_page_is_one_with_all_fields() -> None:
    (document,) = load_documents(PAGE.split("```yaml\n")[1].split("```")[0], "tenancy.md")
    tenants = read_config(document).tenancy
    assert {name for tenant in tenants for name in tenant.model_fields_set} == set(Tenant.model_fields)
    assert {name for tenant in tenants for grant in tenant.buckets for name in grant.model_fields_set} == set(
        BucketGrant.model_fields
    )


def test_every_list_and_its_entries_are_documented() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    for name in Tenant.model_fields:
        assert any(row.startswith(f"| `{to_camel(name)}") for row in rows), name
    others = next(row for row in rows if row.startswith("| `awsResources`"))
    for field in (field for field, allowance in ALLOWANCES.items() if allowance == "awsResources"):
        assert f"`{field.removeprefix('sagemaker.').removesuffix('[]').partition('.')[0]}" in others, field


def test_a_trust_policy_as_on_the_page_lets_in_the_namespace_that_it_names() -> None:
    policy = json.loads(RIGHTS.split("```json\n")[1].split("```")[0])
    (statement,) = policy["Statement"]
    role = "arn:aws:iam::444455556666:role/muster"
    asked = make_namespace_access("us-west-2", role, "team-a")
    assert (asked.assume_role_arn, statement["Condition"]) == (
        role,
        {"StringEquals": {"sts:ExternalId": [asked.external_id]}},
    )
    assert make_namespace_access("us-west-2", None, "team-a").external_id == ""
