"""Read the token for a git host from a Secret in the job's namespace. The operator reads no other Secrets of users."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from http import HTTPStatus

from muster.api.json_fields import read_mapping, read_string
from muster.api.spec.source import SecretKeyRef
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import SECRETS
from muster.render.storage.errors import GIT_TOKEN_MISSING, StorageError
from muster.render.storage.git_token import parse_token

_FIELD = "spec.source.git.secretKeyRef"


@dataclass(frozen=True)
class GitTokenSource:
    """Reads Secrets. Call it with a namespace and a reference."""

    client: Client

    async def __call__(self, namespace: str, ref: SecretKeyRef) -> str:
        """Return the token. Raises `ApiError`, and `StorageError` if the token is missing or not readable."""
        try:
            secret = await self.client.get(SECRETS, namespace, ref.name)
        except ApiError as error:
            if error.status == HTTPStatus.FORBIDDEN:
                problem = (
                    f"the operator may not read Secret {namespace}/{ref.name}; ask the operator's administrator to "
                    "list it in the chart's value gitSecrets"
                )
                raise StorageError(GIT_TOKEN_MISSING, f"{_FIELD}: {problem}", is_retryable=True) from error
            if not error.is_not_found:
                raise
            problem = f"namespace {namespace} has no Secret {ref.name}"
            raise StorageError(GIT_TOKEN_MISSING, f"{_FIELD}.name: {problem}", is_retryable=True) from error
        encoded = read_mapping(secret.get("data")).get(ref.key)
        if encoded is None:
            problem = f"Secret {namespace}/{ref.name} has no key {ref.key}"
            raise StorageError(GIT_TOKEN_MISSING, f"{_FIELD}.key: {problem}", is_retryable=True)
        return parse_token(base64.b64decode(read_string(encoded)), _FIELD)
