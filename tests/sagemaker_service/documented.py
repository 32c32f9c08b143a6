"""The policy that the documentation tells people to give the operator."""

import json

from muster_dev.places import ROOT
from sagemaker_service.policy import Policy

FILE = ROOT / "docs" / "sagemaker-iam-policy.json"


def documented_policy() -> Policy:
    return Policy(json.loads(FILE.read_text(encoding="utf-8")))
