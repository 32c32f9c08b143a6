"""The operator reads one key of one Secret, and explains what to do if it can't."""

from __future__ import annotations

import base64
import json
from typing import Any, cast

import pytest

from muster.api.spec.source import SecretKeyRef
from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.session import Request, Session
from muster.controller.sources.git_token_source import GitTokenSource
from muster.objects.kubernetes.errors import ApiError
from muster.render.storage.errors import StorageError

REF = SecretKeyRef(name="git-token", key="token")


class Answering:
    """An API server with one answer; `asked` are the requests."""

    def __init__(self, answer: dict[str, Any] | ApiError) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    async def fetch_text(self, request: Request) -> bytes:
        self.asked.append((request.method, request.path))
        if isinstance(self.answer, ApiError):
            raise self.answer
        return json.dumps(self.answer).encode()


def _secret(**data: bytes) -> dict[str, Any]:
    return {"data": {name: base64.b64encode(content).decode() for name, content in data.items()}}


async def test_the_key_of_the_secret_is_the_token() -> None:
    server = Answering(_secret(token=b"abc\n", other=b"x"))
    assert await GitTokenSource(Client(cast("Session", server)))("team", REF) == "abc"
    assert server.asked == [("GET", "/api/v1/namespaces/team/secrets/git-token")]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (ApiError(403, "Forbidden", "secrets is forbidden"), "list it in the chart's value gitSecrets"),
        (ApiError(404, "NotFound", "none"), "namespace team has no Secret git-token"),
        (_secret(password=b"abc"), "Secret team/git-token has no key token"),
        ({}, "Secret team/git-token has no key token"),
        (_secret(token=b"two words"), "not a token"),
    ],
)
async def test_what_to_do_is_said(answer: dict[str, Any] | ApiError, says: str) -> None:
    with pytest.raises(StorageError) as caught:
        await GitTokenSource(Client(cast("Session", Answering(answer))))("team", REF)
    assert caught.value.reason == "GitTokenMissing"
    assert says in caught.value.message
    assert caught.value.message.startswith("spec.source.git.secretKeyRef")


async def test_an_api_server_that_does_not_answer_is_not_the_secrets_fault() -> None:
    server = Answering(ApiError(503, "ServiceUnavailable", "later"))
    with pytest.raises(ApiError):
        await GitTokenSource(Client(cast("Session", server)))("team", REF)
