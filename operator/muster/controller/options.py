"""The options of the operator's process, and the names of its objects that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, field

from muster.api.config.operator import OperatorConfig
from muster.core.shard import Shard

DEFAULT_COLLECTOR_URL = "https://muster-collector{shard}.{namespace}.svc:{port}"
"""The URL at which agents reach the collector: the chart's Service."""


DEFAULT_WEBHOOK_HOST = "muster-webhook.{namespace}.svc"
"""The host at which the API server reaches the webhook: the chart's Service."""


@dataclass(frozen=True)
class WebhookOptions:
    """`address` is the host at which the API server reaches the webhook; None means the chart's Service."""

    port: int
    address: str | None


@dataclass(frozen=True)
class ImageOptions:
    """The images of the containers that muster adds to pods; "" for none.

    `pull_policy` "" means the default of Kubernetes.
    """

    agent: str
    storage: str
    pull_policy: str


@dataclass(frozen=True)
class ObjectNames:
    """The names of the operator's own objects. `namespace` None means the namespace of the operator's pod.

    `prefix` is the name of the first shard's Lease, and the start of all other names. `identity` is the name of this
    replica in the Lease, which no other process may have at the same time; "" means a random name.
    """

    namespace: str | None
    prefix: str
    shard: Shard
    identity: str = ""

    @property
    def lease(self) -> str:
        """The shard's Lease."""
        return f"{self.prefix}{self.shard.suffix}"

    @property
    def collector_service(self) -> str:
        """The Service of the shard's collector."""
        return f"{self.prefix}-collector{self.shard.suffix}"

    @property
    def secret(self) -> str:
        """The Secret with the collector's authorities, which all shards share."""
        return f"{self.prefix}-collector"

    def build_webhook_configuration(self, namespace: str) -> str:
        """Return the ValidatingWebhookConfiguration of the operator in this namespace. All shards share it."""
        return f"{self.prefix}-{namespace}"


@dataclass(frozen=True)
class OperatorOptions:
    """The options of `muster operator`. Empty `namespaces` means all namespaces.

    Without `metrics_port`, /metrics is not served.
    """

    namespaces: tuple[str, ...]
    host: str
    collector_port: int
    collector_url: str | None
    collector_addresses: tuple[str, ...]
    health_port: int
    cluster_domain: str
    images: ImageOptions
    names: ObjectNames
    webhook: WebhookOptions | None = None
    metrics_port: int | None = None
    config: OperatorConfig = field(default_factory=OperatorConfig)

    @property
    def shard(self) -> Shard:
        """The shard whose jobs the operator runs."""
        return self.names.shard

    def make_default_collector_url(self, namespace: str) -> str:
        """Return the collector's URL if the chart of this `namespace` has created its Service."""
        return DEFAULT_COLLECTOR_URL.format(shard=self.shard.suffix, namespace=namespace, port=self.collector_port)
