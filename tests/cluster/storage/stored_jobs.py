"""Jobs of a restricted namespace with all files in S3."""

from __future__ import annotations

from cluster.reasons.stage import template
from cluster.shared import Manifest
from cluster.storage.pod_identity import ACCOUNT

USER = 1000


def restricted(**pod: object) -> Manifest:
    """Return a template that satisfies the namespace's policy, with further fields in the pod."""
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
"""The ranks of the first start write a snapshot and wait; ranks that find one print it and end."""

PLACES = """
import os
from pathlib import Path

CHECKPOINTS = Path(os.environ["MUSTER_CHECKPOINT_DIR"])
MODEL = Path(os.environ["SM_MODEL_DIR"])
TRAIN = Path(os.environ["SM_CHANNEL_TRAIN"])
"""
