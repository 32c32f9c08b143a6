"""Jobs of a restricted namespace that have all they need from S3."""

from __future__ import annotations

from cluster.reasons.stage import template
from cluster.shared import Manifest
from cluster.storage.pod_identity import ACCOUNT

USER = 1000


def restricted(**pod: object) -> Manifest:
    """A template as the namespace wants it, with something more in the pod."""
    return template(
        {
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
        },
        serviceAccountName=ACCOUNT,
        securityContext={"runAsNonRoot": True, "runAsUser": USER, "seccompProfile": {"type": "RuntimeDefault"}},
        **pod,
    )


RESTRICTED = restricted()

TRAIN = """
import json, os, time
from places import CHECKPOINTS, MODEL, TRAIN

rank = os.environ["RANK"]
mine = CHECKPOINTS / f"rank-{rank}.pt"
if not mine.exists():
    mine.write_text("step 10")
    print("has written", flush=True)
    time.sleep(600)
told = {
    "host": os.environ["SM_CURRENT_HOST"],
    "user": os.getuid(),
    "inputs": sorted(str(file.relative_to(TRAIN)) for file in TRAIN.rglob("*") if file.is_file()),
    "snapshots": sorted(file.name for file in CHECKPOINTS.iterdir()),
}
(MODEL / f"rank-{rank}.json").write_text(json.dumps(told))
"""
"""The ranks of its first start write a snapshot and wait; those that find one tell what they see, and end."""

PLACES = """
import os
from pathlib import Path

CHECKPOINTS = Path(os.environ["MUSTER_CHECKPOINT_DIR"])
MODEL = Path(os.environ["SM_MODEL_DIR"])
TRAIN = Path(os.environ["SM_CHANNEL_TRAIN"])
"""
