"""A fake API server that stores jobs in memory: versions, preconditions, merge patches, finalizers. For virtual
time.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from fakes.api_server import merge_patch
from muster.api.timestamps import format_timestamp
from muster.clients.kubernetes.client import Change
from muster.clients.kubernetes.request_settings import MAX_RESPONSE_BYTES
from muster.clients.kubernetes.session import Request
from muster.objects.kubernetes.errors import ApiError


def copy_document(value: Any) -> Any:
    """Return a copy of a JSON value. This is several times faster than `copy.deepcopy`."""
    return json.loads(json.dumps(value))


Type = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass
class JobStore:
    """`now` returns Unix seconds; `tell` is called for each change, like a watch.

    `statuses` has the statuses of each uid in their order, `written` all of them with times and job names.
    """

    now: Callable[[], float]
    tell: Callable[[Change], None]
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    statuses: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    written: list[tuple[float, str, dict[str, Any]]] = field(default_factory=list)
    _version: int = 100
    _uids: int = 0

    def create(self, name: str, spec: dict[str, Any]) -> None:
        """A user applies a job."""
        self._uids += 1
        metadata = {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{self._uids}",
            "generation": 1,
            "creationTimestamp": format_timestamp(self.now()),
        }
        kind = {"apiVersion": "muster.dev/v1alpha1", "kind": "DistributedTrainingJob"}
        self.kept[name] = {**kind, "metadata": metadata, "spec": spec}
        self._notify_change(name, "ADDED")

    def change(self, name: str, **spec: Any) -> None:
        """A user changes a job's spec."""
        resource = self.kept[name]
        resource["spec"] = merge_patch(resource["spec"], spec)
        resource["metadata"]["generation"] += 1
        self._notify_change(name, "MODIFIED")

    def annotate(self, name: str, **annotations: str) -> None:
        """A user annotates a job."""
        metadata = self.kept[name]["metadata"]
        metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
        self._notify_change(name, "MODIFIED")

    def forge(self, name: str, finalizers: list[str], **status: Any) -> None:
        """A user writes fields that only muster should write."""
        resource = self.kept[name]
        resource["metadata"]["finalizers"] = finalizers
        resource["status"] = merge_patch(resource.get("status", {}), status)
        self._notify_change(name, "MODIFIED")

    def remove_status(self, name: str) -> None:
        """A user removes the whole status."""
        del self.kept[name]["status"]
        self._notify_change(name, "MODIFIED")

    def delete(self, name: str) -> None:
        """A user deletes a job."""
        metadata = self.kept[name]["metadata"]
        metadata.setdefault("deletionTimestamp", format_timestamp(self.now()))
        self._notify_change(name, "MODIFIED")

    def read(self, name: str) -> dict[str, Any] | None:
        """Return the stored job."""
        result: dict[str, Any] | None = copy_document(self.kept.get(name))
        return result

    def answer(self, request: Request) -> dict[str, Any]:
        """Answer as the API server. Raises ApiError."""
        body: Any = request.body
        if request.method == "POST":
            return self._make_event(body)
        name = next((part for part in request.path.split("/") if part in self.kept), "")
        if not name:
            raise ApiError(404, "NotFound", "there is none")
        resource = self.kept[name]
        if request.method == "PATCH":
            self._patch(name, body, is_status=request.path.endswith("/status"))
        if request.method == "DELETE":
            self.delete(name)
        result: dict[str, Any] = copy_document(resource)
        return result

    def _patch(self, name: str, body: Any, *, is_status: bool) -> None:
        resource = self.kept[name]
        current, asked = resource["metadata"], dict(body["metadata"])
        if (asked.pop("uid"), asked.pop("resourceVersion")) != (current["uid"], current["resourceVersion"]):
            raise ApiError(409, "Conflict", "the object has been modified")
        if is_status:
            resource["status"] = merge_patch(resource.get("status", {}), body["status"])
            self.statuses.setdefault(current["uid"], []).append(copy_document(resource["status"]))
            self.written.append((self.now(), name, copy_document(resource["status"])))
        else:
            resource["metadata"] = merge_patch(current, asked)
        self._notify_change(name, "MODIFIED")

    def _notify_change(self, name: str, kind: Type) -> None:
        self._version += 1
        resource = self.kept[name]
        metadata = resource["metadata"]
        metadata["resourceVersion"] = str(self._version)
        is_gone = "deletionTimestamp" in metadata and not metadata.get("finalizers")
        if is_gone:
            del self.kept[name]
        self.tell(Change("DELETED" if is_gone else kind, copy_document(resource)))

    def _make_event(self, body: Any) -> dict[str, Any]:
        if any(one["metadata"]["name"] == body["metadata"]["name"] for one in self.events):
            raise ApiError(409, "AlreadyExists", "it is there")
        self.events.append(body)
        return dict(body)


Ask = Callable[[Request], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Session:
    """The part of a session that a client uses: `ask` answers each request."""

    ask: Ask

    async def fetch_text(self, request: Request, most: int = MAX_RESPONSE_BYTES) -> bytes:
        """Return the answer as the API server serialises it."""
        text = json.dumps(await self.ask(request)).encode()
        assert len(text) <= most
        return text
