"""A git host's token from a Secret of a job's namespace: the one kind of Secret of theirs that the operator reads."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from http import HTTPStatus

from muster.api.json_fields import mapping, string
from muster.api.spec.source import SecretKeyRef
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import SECRETS
from muster.render.storage.errors import GIT_TOKEN_MISSING, StorageError
from muster.render.storage.git_token import checked_token

_FIELD = "spec.source.git.secretKeyRef"


@dataclass(frozen=True)
class GitTokenSource:
    """Called with a namespace and a reference."""

    client: Client

    async def __call__(self, namespace: str, ref: SecretKeyRef) -> str:
        """The token. Raises `StorageError` when it can't be had, and `ApiError`."""
        try:
            secret = await self.client.get(SECRETS, namespace, ref.name)
        except ApiError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                words = (
                    f"the operator may not read Secret {namespace}/{ref.name}; ask the operator's administrator to "
                    "list it in the chart's value gitSecrets"
                )
                raise StorageError(GIT_TOKEN_MISSING, f"{_FIELD}: {words}", may_pass=True) from error
            if not error.is_not_found:
                raise
            words = f"namespace {namespace} has no Secret {ref.name}"
            raise StorageError(GIT_TOKEN_MISSING, f"{_FIELD}.name: {words}", may_pass=True) from error
        encoded = mapping(secret.get("data")).get(ref.key)
        if encoded is None:
            words = f"Secret {namespace}/{ref.name} has no key {ref.key}"
            raise StorageError(GIT_TOKEN_MISSING, f"{_FIELD}.key: {words}", may_pass=True)
        return checked_token(base64.b64decode(string(encoded)), _FIELD)
