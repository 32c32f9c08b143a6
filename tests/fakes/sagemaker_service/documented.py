"""The IAM policy of the documentation for the operator."""

import json

from fakes.sagemaker_service.policy import Policy
from muster_dev.paths import ROOT

FILE = ROOT / "docs" / "sagemaker-iam-policy.json"


def read_documented_policy() -> Policy:
    return Policy(json.loads(FILE.read_text(encoding="utf-8")))
