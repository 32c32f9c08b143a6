"""The client of the API server. Requests and responses are JSON objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

from muster.api.document import JSON
from muster.clients.kubernetes.access import find_cluster
from muster.clients.kubernetes.lines import LineSplitter
from muster.clients.kubernetes.request_settings import MAX_RESPONSE_BYTES, METADATA_ONLY, build_accept_header
from muster.clients.kubernetes.session import Request, ResponseTooLong, Session, always_true
from muster.clients.request_counter import RequestCounter
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError
from muster.objects.kubernetes.kinds import PODS, Kind, Object, ParseOptions
from muster.objects.kubernetes.responses import (
    build_status_error,
    parse_object,
    read_event_object,
    read_page,
    read_watch_event,
)

PAGE_SIZE = 500
"""The maximum number of objects in a page, which limits the memory in the API server and the delay in this process."""

PAGE_BYTES = 6 * 1024 * 1024
"""A larger page is requested again with fewer objects. 500 usual pods have five megabytes."""

_PAGE_SHRINK_FACTOR = 8
"""A page that is too large is divided by this factor."""

LARGE_BYTES = 128 * 1024
"""A thread parses larger objects of a watch, so that they don't block the event loop."""

WATCH_SECONDS = 290
"""The API server ends a watch after this time. The next watch may use another API server."""

MANAGER = "muster"

ChangeType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


@dataclass(frozen=True)
class Change:
    """A change, and the object after it; of DELETED the object before it. A BOOKMARK's object has only a version."""

    type: ChangeType
    object: Object


@dataclass(frozen=True)
class Listing:
    """The objects of a list, and its resource version, at which a watch can start."""

    items: tuple[Object, ...]
    resource_version: str


@dataclass(frozen=True)
class Page:
    """A page of a list. `items` parses one object after the other; iterate over it only once."""

    items: Iterable[Object]
    resource_version: str


@dataclass(frozen=True)
class LogOptions:
    """The options of a log request. `container` "": the pod's only container; `since_time` is in RFC 3339."""

    container: str = ""
    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_time: str | None = None


class Client:
    """The client of one cluster. Methods raise ApiError, with status NO_RESPONSE without a response, and don't retry.

    Requests that change objects are sent only while `is_change_allowed()` returns True.
    """

    def __init__(self, session: Session, is_change_allowed: Callable[[], bool] = always_true) -> None:
        self._session = session
        self._is_change_allowed = is_change_allowed

    @classmethod
    async def connect(cls, kubeconfig: str | None = None, context: str | None = None) -> Self:
        """Connect to the cluster of `kubeconfig`; None: to kubectl's cluster. `context` None: the current one.

        Raises NoCluster.
        """
        return cls(Session(await find_cluster(kubeconfig, context), kubeconfig, context))

    def restrict_changes(self, is_change_allowed: Callable[[], bool]) -> Client:
        """Return a client with the same connections. It sends changes only while `is_change_allowed()` returns True."""
        return Client(self._session, is_change_allowed)

    @property
    def request_counter(self) -> RequestCounter:
        """The number of requests so far, by verb, resource and code."""
        return self._session.request_counter

    @property
    def namespace(self) -> str:
        """The namespace of the kubeconfig's context or of the pod."""
        return self._session.namespace

    def has_waiting_requests(self, namespace: str) -> bool:
        """Whether requests of the namespace wait until others of it have ended."""
        return self._session.has_waiting_requests(namespace)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object:
        """Return an object. `namespace` is None for a cluster-scoped kind."""
        request = Request("GET", kind.build_path(namespace, name), accept=build_accept_header(kind, ""))
        return parse_object(await self._session.fetch_text(request), kind.parse_options)

    async def list(self, kind: Kind, namespace: str | None = None, *, labels: str = "", fields: str = "") -> Listing:
        """Return all objects that the selectors match, in one namespace or in all (None)."""
        items: list[Object] = []
        version = ""
        async for page in self.list_pages(kind, namespace, labels=labels, fields=fields):
            items += page.items
            version = page.resource_version
        return Listing(tuple(items), version)

    async def list_pages(
        self, kind: Kind, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> AsyncGenerator[Page, None]:
        """Yield the pages of a list, which are of the same resource version. Status 410: the version has expired."""
        query: dict[str, str | int] = {"labelSelector": labels, "fieldSelector": fields}
        limit, token = PAGE_SIZE, True
        while token:
            request = Request(
                "GET", kind.build_path(namespace), {**query, "limit": limit}, accept=build_accept_header(kind, "List")
            )
            try:
                text = await self._session.fetch_text(request, MAX_RESPONSE_BYTES if limit == 1 else PAGE_BYTES)
            except ResponseTooLong:
                if limit == 1:
                    raise
                limit = max(1, limit // _PAGE_SHRINK_FACTOR)
                continue
            page = read_page(text)
            yield Page((_add_type(kind, item) for item in page.parse_items(kind.parse_options)), page.resource_version)
            query["continue"] = page.continue_token
            token = bool(page.continue_token)

    async def create(self, kind: Kind, namespace: str | None, body: Object) -> Object:
        """Create an object; return it. The API server rejects unknown fields."""
        return parse_object(await self._create(kind, namespace, body), kind.parse_options)

    async def create_large(self, kind: Kind, namespace: str, body: Object) -> None:
        """Create an object that the caller needs not read: the API server returns only its metadata.

        The API server would compress a large response, which takes it longer than to create the object.
        """
        await self._create(kind, namespace, body, accept=METADATA_ONLY.format(""))

    async def dry_run_create(self, kind: Kind, namespace: str, body: Object) -> Object:
        """Check whether `create` would succeed, with quotas and admission."""
        return parse_object(await self._create(kind, namespace, body, dry_run="All"), kind.parse_options)

    async def merge(
        self, kind: Kind, namespace: str, name: str, patch: Object, subresource: str | None = None
    ) -> Object:
        """Apply a JSON merge patch; return the object."""
        path = kind.build_path(namespace, name, subresource)
        query, content_type = {"fieldManager": MANAGER}, "application/merge-patch+json"
        response = await self._change("PATCH", path, query, patch, content_type=content_type)
        return parse_object(response, kind.parse_options)

    async def apply(self, kind: Kind, namespace: str | None, name: str, body: Object) -> Object:
        """Create the object, or set the fields of `body` in it, even those that another client has set; return it.

        The API server rejects unknown fields.
        """
        query: dict[str, str | int] = {"fieldManager": MANAGER, "force": "true", "fieldValidation": "Strict"}
        path, content_type = kind.build_path(namespace, name), "application/apply-patch+yaml"
        response = await self._change("PATCH", path, query, body, content_type=content_type)
        return parse_object(response, kind.parse_options)

    async def replace(self, kind: Kind, namespace: str | None, name: str, body: Object) -> Object:
        """Replace an object; return it. It is a conflict if the object has another resourceVersion than `body`."""
        path = kind.build_path(namespace, name)
        return parse_object(await self._change("PUT", path, {"fieldManager": MANAGER}, body), kind.parse_options)

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None, grace_seconds: int | None = None
    ) -> None:
        """Delete the object (with this uid) and its dependants, unless it is already deleted or replaced."""
        options: dict[str, JSON] = {"propagationPolicy": "Background"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        try:
            await self._change("DELETE", kind.build_path(namespace, name), {}, options)
        except ApiError as error:
            # Only the message shows that the conflict is another uid.
            is_replaced = uid is not None and error.is_conflict and "uid" in error.message.lower()
            if not (error.is_not_found or is_replaced):
                raise

    async def watch(
        self, kind: Kind, namespace: str | None = None, *, resource_version: str, labels: str = "", fields: str = ""
    ) -> AsyncGenerator[Change, None]:
        """Yield changes after `resource_version`, until the API server ends the watch. Status 410: it is too old."""
        query: dict[str, str | int] = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": WATCH_SECONDS,
            "labelSelector": labels,
            "fieldSelector": fields,
        }
        lines, request = (
            LineSplitter(),
            Request("GET", kind.build_path(namespace), query, accept=build_accept_header(kind, "")),
        )
        async with aclosing(self._session.stream(request)) as chunks:
            async for chunk in chunks:
                for line in lines.feed(chunk):
                    if len(line) > LARGE_BYTES:
                        yield await asyncio.to_thread(_parse_change, line, kind)
                    else:
                        yield _parse_change(line, kind)

    async def read(self, path: str) -> str:
        """Read another path of the API server, such as its public keys."""
        return (await self._session.fetch_text(Request("GET", path))).decode()

    async def log(self, namespace: str, pod: str, options: LogOptions) -> AsyncGenerator[bytes, None]:
        """Yield chunks of a container's log, which may split lines. Status 400: the container hasn't started."""
        query: dict[str, str | int] = {
            "container": options.container,
            "follow": str(options.follow).lower(),
            "timestamps": str(options.timestamps).lower(),
            "tailLines": "" if options.tail_lines is None else options.tail_lines,
            "sinceTime": options.since_time or "",
        }
        async with aclosing(
            self._session.stream(Request("GET", PODS.build_path(namespace, pod, "log"), query))
        ) as chunks:
            async for chunk in chunks:
                yield chunk

    async def _create(
        self, kind: Kind, namespace: str | None, body: Object, *, dry_run: str = "", accept: str = Request.accept
    ) -> bytes:
        query = {"fieldManager": MANAGER, "fieldValidation": "Strict", "dryRun": dry_run}
        return await self._change("POST", kind.build_path(namespace), query, body, accept=accept)

    async def _change(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int],
        body: Object,
        *,
        content_type: str = "application/json",
        accept: str = Request.accept,
    ) -> bytes:
        request = Request(method, path, query, dict(body), content_type, self._is_change_allowed, accept)
        return await self._session.fetch_text(request)


def _add_type(kind: Kind, item: Object) -> Object:
    # In lists, the API server omits apiVersion and kind.
    return {"apiVersion": kind.api_version, "kind": kind.name, **item}


def _parse_change(line: bytes, kind: Kind) -> Change:
    event = read_watch_event(line)
    match event.type:
        case "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" as known:
            return Change(known, read_event_object(event, kind.parse_options))
        case "ERROR":
            raise build_status_error(read_event_object(event, ParseOptions()), NO_RESPONSE)
        case other:
            raise ApiError(NO_RESPONSE, "Malformed", f"a watch sent a change of unknown type {other!r}")
