"""The policy that the documentation tells people to give the operator."""

import json

from fakes.sagemaker_service.policy import Policy
from muster_dev.places import ROOT

FILE = ROOT / "docs" / "sagemaker-iam-policy.json"


def documented_policy() -> Policy:
    return Policy(json.loads(FILE.read_text(encoding="utf-8")))
