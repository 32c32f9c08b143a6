"""kopf gets every parsable job, and nothing that breaks its own parser."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from muster.controller.watch.kopf_session import make_response_class
from muster.objects.kubernetes.job_source import WATCHED_JOBS
from muster.objects.kubernetes.object_parser import read_missing_parts, read_object

DEEP = b'{"f:a":' * 9_000 + b"{}" + b"}" * 9_000
STATUS = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":410,"message":"too old"}'


def job(name: bytes, fields: bytes = b"[]", spec: bytes = b'{"nodes":1}') -> bytes:
    metadata = b'{"managedFields":%b,"name":"%b","namespace":"ns","resourceVersion":"7","uid":"%b"}' % (
        fields,
        name,
        name,
    )
    return b'{"apiVersion":"muster.dev/v1alpha1","kind":"DistributedTrainingJob","metadata":%b,"spec":%b}' % (
        metadata,
        spec,
    )


LIST = (
    b'{"apiVersion":"muster.dev/v1alpha1","items":[%b],"kind":"X","metadata":{"continue":"more","resourceVersion":"9"}}'
)
JOBS = {"good": job(b"good"), "fields": job(b"fields", DEEP), "deep": job(b"deep", DEEP, DEEP)}


class Asked:
    """The answers to kopf, and the skipped objects."""

    def __init__(self) -> None:
        self.skipped: list[str] = []

    @asynccontextmanager
    async def get(self, *chunks: bytes, status: int = 200) -> AsyncIterator[aiohttp.ClientResponse]:
        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(status=status, headers={"Content-Type": "application/json"})
            await response.prepare(request)
            for chunk in chunks:
                await response.write(chunk)
            return response

        app = web.Application()
        app.router.add_get("/", answer)
        read = make_response_class(lambda part: read_object(part, WATCHED_JOBS.parse_options), self.skipped.append)
        async with (
            TestServer(app) as server,
            aiohttp.ClientSession(response_class=read) as session,
            session.get(server.make_url("/")) as response,
        ):
            yield response


async def test_a_list_has_every_job() -> None:
    async with Asked().get(LIST % b",".join(JOBS.values())) as response:
        result = await response.json()
    assert result["metadata"] == {"continue": "more", "resourceVersion": "9"}
    assert [item["metadata"]["name"] for item in result["items"]] == list(JOBS)
    assert [list(read_missing_parts(item)) for item in result["items"]] == [[], [], ["spec"]]
    assert result["items"][0]["spec"] == '{"nodes":1}'


async def test_a_watch_goes_on_after_what_cannot_be_read() -> None:
    asked = Asked()
    lines = [b'{"type":"ADDED","object":%b}\n' % text for text in JOBS.values()]
    lines[1:1] = [b'{"type":"ADDED","object":3}\n', b'{"type":"ADD\n', b"\n"]
    bookmark = b'{"type":"BOOKMARK","object":{"kind":"X","metadata":{"resourceVersion":"8"}}}\n'
    text = b"".join(lines) + bookmark + b'{"type":"ERROR","object":%b}\n{"type":' % STATUS
    pieces = [text[at : at + 1000] for at in range(0, len(text), 1000)]
    async with asked.get(*pieces) as response:
        events = [json.loads(line) async for line in response.content.iter_chunked(1)]
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "ADDED", "BOOKMARK", "ERROR"]
    assert [event["object"]["metadata"].get("name") for event in events[:3]] == list(JOBS)
    assert (events[3]["object"]["metadata"], events[4]["object"]["code"]) == ({"resourceVersion": "8"}, 410)
    assert len(asked.skipped) == 2


@pytest.mark.parametrize("text", [b"<html>", b"", b'{"items":[', b'{"a":%b}' % DEEP])
async def test_what_kopf_cannot_be_given_is_no_json(text: bytes) -> None:
    async with Asked().get(text, status=500) as response:
        with pytest.raises(json.JSONDecodeError):
            await response.json()
        assert await response.text() == text.decode()


async def test_other_answers_are_as_they_are() -> None:
    async with Asked().get(STATUS, status=410) as response:
        assert await response.json() == json.loads(STATUS)
