"""Resources as the API server sends them."""

from muster.api.document import JSON
from muster.objects.kubernetes.kinds import Object

CREATED = "2026-11-21T04:05:19Z"


def resource(
    name: str = "vit",
    *,
    uid: str = "u-1",
    version: int = 100,
    generation: int = 1,
    spec: dict[str, JSON] | None = None,
    status: dict[str, JSON] | None = None,
    metadata: dict[str, JSON] | None = None,
) -> Object:
    """Return a valid job of one node with one rank unless `spec` says otherwise."""
    written: dict[str, JSON] = {"launcher": {"direct": {}}, "procsPerNode": 1, "command": ["true"], "image": "i"}
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": uid,
            "resourceVersion": str(version),
            "generation": generation,
            "creationTimestamp": CREATED,
            "managedFields": [],
            **(metadata or {}),
        },
        "spec": {**written, **(spec or {})},
        **({} if status is None else {"status": status}),
    }
