"""What `muster doctor` reads of a cluster: the operator's Deployments, and objects that may be missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.json_fields import read_integer, read_mapping, read_mappings, read_string
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import Kind, Object

NAME = "muster"
DEPLOYMENTS = Kind("apps", "v1", "deployments", "Deployment")
_LABELS = f"app.kubernetes.io/name={NAME}"


@dataclass(frozen=True)
class Deployment:
    """A Deployment of the operator. `namespaces` are those whose jobs it runs; empty: all."""

    name: str
    version: str
    namespaces: tuple[str, ...]
    replicas: int
    available: int

    @property
    def suffix(self) -> str:
        """The end of the names of the shard's objects; "" for the first shard."""
        return self.name.removeprefix(NAME)


@dataclass(frozen=True)
class Cluster:
    """The cluster, the user's namespace, and the namespace of the operator.

    `deployments` are those of the operator; None if the user may not read them.
    """

    client: Client
    namespace: str
    operator_namespace: str
    deployments: tuple[Deployment, ...] | None

    @property
    def other_namespaces(self) -> tuple[str, ...]:
        """The namespaces that the operator serves instead of the user's; empty if it serves the user's."""
        served = self.deployments[0].namespaces if self.deployments else ()
        return () if self.namespace in served else served

    async def find(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """Return an object; None if it does not exist. Raises `ApiError`."""
        try:
            return await self.client.get(kind, namespace, name)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise


async def find_deployments(client: Client, namespace: str) -> tuple[Deployment, ...]:
    """Return the Deployments of the operator in this namespace. Raises `ApiError`."""
    items = (await client.list(DEPLOYMENTS, namespace, labels=_LABELS)).items
    return tuple(sorted(map(_read_deployment, items), key=lambda entry: entry.name))


def _read_deployment(item: Object) -> Deployment:
    metadata = read_mapping(item.get("metadata"))
    return Deployment(
        name=read_string(metadata.get("name")),
        version=read_string(read_mapping(metadata.get("labels")).get("app.kubernetes.io/version")),
        namespaces=tuple(_read_namespaces(item)),
        replicas=_read_count(item, "spec", "replicas"),
        available=_read_count(item, "status", "availableReplicas"),
    )


def _read_namespaces(item: Object) -> Iterator[str]:
    template = read_mapping(read_mapping(item.get("spec")).get("template"))
    for container in read_mappings(read_mapping(template.get("spec")).get("containers")):
        arguments = container.get("args")
        for argument in arguments if isinstance(arguments, list) else ():
            option, _, value = read_string(argument).partition("=")
            if option == "--namespace":
                yield value


def _read_count(item: Mapping[str, JSON], part: str, field: str) -> int:
    return read_integer(read_mapping(item.get(part)).get(field)) or 0
