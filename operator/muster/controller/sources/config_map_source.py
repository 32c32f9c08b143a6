"""Read a job's code from a ConfigMap in its namespace."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from muster.api.json_fields import read_mapping, read_string
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CONFIG_MAPS
from muster.render.storage.errors import SOURCE_REFUSED, StorageError
from muster.render.storage.source_files import SourceFile, SourceFiles


@dataclass(frozen=True)
class ConfigMapSource:
    """Reads ConfigMaps. Call it with a namespace and a name."""

    client: Client

    async def __call__(self, namespace: str, name: str) -> SourceFiles:
        """Return the ConfigMap's entries as files. Raises `ApiError`, and `StorageError` if it doesn't exist."""
        try:
            config_map = await self.client.get(CONFIG_MAPS, namespace, name)
        except ApiError as error:
            if not error.is_not_found:
                raise
            raise StorageError(
                SOURCE_REFUSED,
                f"spec.source.configMap: namespace {namespace} has no ConfigMap {name}",
                is_retryable=True,
            ) from error
        texts = {
            path: SourceFile(read_string(text).encode()) for path, text in read_mapping(config_map.get("data")).items()
        }
        binary = read_mapping(config_map.get("binaryData")).items()
        return {**texts, **{path: SourceFile(base64.b64decode(read_string(text))) for path, text in binary}}
