"""One replica of the operator, with all its components. A standby runs all of them except the leader's tasks."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

from muster.api.config.operator import OperatorConfig
from muster.api.names import JOB_UID_LABEL
from muster.backends.kubernetes.pod_index import PodIndex
from muster.clients.aws.client import Aws
from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.election import POLL_SECONDS
from muster.clients.kubernetes.informer import Informer
from muster.clients.kubernetes.object_versions import Untracked
from muster.collector.collector import Collector
from muster.collector.server.refusal import Reason
from muster.collector.server.refusal_counter import log_refusals
from muster.collector.store import RankStore
from muster.collector.trust.certificate import ServingCertificate
from muster.controller.backends import OperatorServices, check_job, make_backends
from muster.controller.health import Check
from muster.controller.leader.election import LeaderElection
from muster.controller.leader_tasks import LeaderDependencies, LeaderTasks
from muster.controller.metrics import endpoint
from muster.controller.metrics.recorder import Recorder
from muster.controller.metrics.snapshot import Sources
from muster.controller.startup import check_cluster, with_retries
from muster.controller.supervision import supervise
from muster.controller.trust.ca_bundle import CaBundle
from muster.controller.trust.collector_endpoints import CollectorEndpoints
from muster.controller.trust.trust import Trust, TrustSetting
from muster.controller.webhook.connections import listen
from muster.controller.webhook.server import WebhookServer
from muster.controller.webhook.webhook import Webhook
from muster.distribution import version
from muster.engine.steady_clock import create_steady_clock
from muster.objects.kubernetes.pods import JOB_PODS
from muster.objects.kubernetes.warnings import POD_WARNINGS
from muster.render.kubernetes.pod_settings import PodSettings

DEFAULT_COLLECTOR = "https://muster-collector.{namespace}.svc:{port}"
"""The collector's URL for agents, through the chart's Service."""


DEFAULT_WEBHOOK = "muster-webhook.{namespace}.svc"
"""The webhook's host for the API server, through the chart's Service."""


@dataclass(frozen=True)
class WebhookOptions:
    """`address` is the webhook's host for the API server; None: the chart's Service."""

    port: int
    address: str | None


@dataclass(frozen=True)
class ImageOptions:
    """The images that muster adds to jobs' pods, "" for none, and their pull policy, "" for that of Kubernetes."""

    agent: str
    storage: str
    pull_policy: str


@dataclass(frozen=True)
class OperatorOptions:
    """`namespaces` empty: all namespaces. `lease_namespace` None: the operator's own namespace.

    `metrics_port` None: /metrics is not served.
    """

    namespaces: tuple[str, ...]
    host: str
    collector_port: int
    collector_url: str | None
    collector_addresses: tuple[str, ...]
    health_port: int
    cluster_domain: str
    images: ImageOptions
    lease_namespace: str | None
    lease_name: str
    webhook: WebhookOptions | None = None
    metrics_port: int | None = None
    config: OperatorConfig = field(default_factory=OperatorConfig)


@dataclass
class Replica:
    """One replica. `run` runs until it is cancelled, or until a component fails for good.

    `identity` is this process' name in the Lease, which `election` holds.
    """

    client: Client
    options: OperatorOptions
    identity: str
    election: LeaderElection
    _leader_tasks: LeaderTasks | None = None
    _is_ready: bool = False
    _webhook: Webhook | None = None

    def __post_init__(self) -> None:
        self._clock = create_steady_clock(time.time(), time.monotonic)
        self._recorder = Recorder(self._clock, time.monotonic)
        self._store = RankStore()
        self._pods = PodIndex(self._pod_changed, self._clock)
        self._informers = self._make_informers()

    async def run(self) -> None:
        """Run the replica. Raises `StartupError`, and an `ExceptionGroup` if a component fails."""
        async with AsyncExitStack() as stack:
            self._open_health(stack)
            await check_cluster(self.client, self.options.namespaces, random.random)
            trust = Trust(self.client, self._trust_setting(), self._use_certificate, self._clock)
            await with_retries("the collector's certificates and the cluster's keys", trust.start, random.random)
            collector = await self._open_collector(stack, trust)
            self._open_webhook(stack, trust)
            aws = self._open_aws(stack)
            await self._open_metrics(stack, collector, aws)
            dependencies = self._dependencies(trust, collector, aws)
            async with asyncio.TaskGroup() as tasks:
                # A standby also watches pods, so that it can take over at once.
                for name, informer in zip(("pods", "warnings"), self._informers, strict=True):
                    self._start_task(tasks, f"the watch of {name}", informer.run)
                self._start_task(tasks, "the renewal of certificates", trust.run)
                self._start_task(tasks, "the collector's leader status", lambda: self._publish_leader(collector))
                if self.options.webhook is not None:
                    configuration = f"{self.options.lease_name}-{self._namespace}"
                    bundle = CaBundle(self.client, configuration, trust.bundle)
                    self._start_task(tasks, "the webhook's caBundle", bundle.run)
                self._start_task(tasks, "the log of refused reports", lambda: log_refusals(collector.refusals))
                self._is_ready = True
                await self.election.run(lambda leader_term: self._lead(dependencies, leader_term))

    def _start_task(self, tasks: asyncio.TaskGroup, name: str, work: Callable[[], Awaitable[None]]) -> None:
        tasks.create_task(supervise(name, work, random.random), name=name)

    @property
    def _namespace(self) -> str:
        return self.options.lease_namespace or self.client.namespace

    @property
    def _collector_url(self) -> str:
        default = DEFAULT_COLLECTOR.format(namespace=self._namespace, port=self.options.collector_port)
        return self.options.collector_url or default

    def _make_informers(self) -> tuple[Informer, ...]:
        namespaces = self.options.namespaces
        return (
            Informer(self.client, JOB_PODS, namespaces, self._pods.handle_change, labels=JOB_UID_LABEL),
            Informer(
                self.client,
                POD_WARNINGS,
                namespaces,
                self._pods.handle_event,
                fields="involvedObject.kind=Pod,type=Warning",
                versions=Untracked,
            ),
        )

    def _trust_setting(self) -> TrustSetting:
        hosts = [urlsplit(self._collector_url).hostname or ""]
        if self.options.webhook is not None:
            hosts.append(self.options.webhook.address or DEFAULT_WEBHOOK.format(namespace=self._namespace))
        return TrustSetting(self._namespace, f"{self.options.lease_name}-collector", tuple(hosts))

    def _open_health(self, stack: AsyncExitStack) -> None:
        alive = (
            Check("the watch of jobs has ended", lambda: self._leader_tasks is None or self._leader_tasks.is_healthy),
        )
        ready = (
            Check("it is still starting", lambda: self._is_ready),
            Check(
                "the list of pods is not complete yet",
                lambda: all(informer.synced.is_set() for informer in self._informers),
            ),
        )
        self.election.start(alive, ready)
        stack.callback(asyncio.create_task(self.election.send_heartbeats(), name="heartbeats").cancel)

    async def _open_collector(self, stack: AsyncExitStack, trust: Trust) -> Collector:
        self._collector = Collector(
            store=self._store,
            verifier=trust.verifier,
            directory=self._pods,
            certificate=trust.certificate(),
            clock=self._clock,
        )
        await self._collector.start(self.options.host, self.options.collector_port)
        stack.push_async_callback(self._collector.close)
        return self._collector

    def _open_webhook(self, stack: AsyncExitStack, trust: Trust) -> None:
        options = self.options.webhook
        if options is None:
            return
        listening = listen(self.options.host, options.port)
        stack.callback(listening.close)
        accept = partial(check_job, config=self.options.config)
        self._webhook = Webhook(WebhookServer(listening, trust.certificate()), accept, random.random)
        self._webhook.start()
        stack.callback(self._webhook.stop)

    def _open_aws(self, stack: AsyncExitStack) -> Aws:
        # Use one client for all terms, because the same quotas apply to them.
        aws = Aws(self.options.config.sagemaker.endpoints, may_change=self.election.holds_lease)
        stack.push_async_callback(aws.close)
        return aws

    async def _open_metrics(self, stack: AsyncExitStack, collector: Collector, aws: Aws) -> None:
        port = self.options.metrics_port
        if port is None:
            return
        sources = Sources(
            version=version(),
            is_leader=lambda: self._leader_tasks is not None,
            resources=lambda: () if self._leader_tasks is None else self._leader_tasks.resources(),
            waiting=lambda: () if self._leader_tasks is None else self._leader_tasks.waiting_jobs(),
            refusals=lambda: {reason: collector.refused[reason] for reason in Reason},
            connections=lambda: collector.open_connections,
            api_requests=self.client.requests.counts,
            aws_requests=aws.requests.counts,
        )
        listening = endpoint.listen(self.options.host, port)
        await stack.enter_async_context(endpoint.serve_metrics(listening, self._recorder, sources))

    def _dependencies(self, trust: Trust, collector: Collector, aws: Aws) -> LeaderDependencies:
        options, config = self.options, self.options.config
        client = self.client.restricted_by(self.election.holds_lease)
        pod_settings = PodSettings(
            cluster_domain=options.cluster_domain,
            collector_url=self._collector_url,
            agent_image=options.images.agent,
            pull_policy=options.images.pull_policy,
            storage_image=options.images.storage,
            s3_endpoint=config.storage.s3_endpoint or "",
        )
        services = OperatorServices(
            client, config, self._pods, self._store, pod_settings, trust.bundle, trust.seed, aws, self._clock
        )
        return LeaderDependencies(
            client=client,
            namespaces=self.options.namespaces,
            informers=self._informers,
            store=self._store,
            collector=collector,
            endpoints=self._endpoints(),
            backends=partial(make_backends, services),
            identity=self.identity,
            holds_lease=self.election.holds_lease,
            clock=self._clock,
            config=config,
            recorder=self._recorder,
        )

    def _endpoints(self) -> CollectorEndpoints | None:
        options = self.options
        if not options.collector_addresses:
            return None
        service = f"{options.lease_name}-collector"
        return CollectorEndpoints(self._namespace, service, options.collector_addresses, options.collector_port)

    async def _lead(self, dependencies: LeaderDependencies, leader_term: int) -> None:
        self._leader_tasks = LeaderTasks(dependencies, leader_term)
        try:
            await self._leader_tasks.run()
        finally:
            self._leader_tasks = None

    async def _publish_leader(self, collector: Collector) -> None:
        """Tell a standby's collector the leader's identity, which its responses contain."""
        published: str | None = ""
        while True:
            holder = self.election.holder
            if self._leader_tasks is None and holder != published:
                collector.step_down(holder)
            published = holder if self._leader_tasks is None else ""
            await asyncio.sleep(POLL_SECONDS)

    def _use_certificate(self, certificate: ServingCertificate) -> None:
        self._collector.use(certificate)
        if self._webhook is not None:
            self._webhook.server.use(certificate)

    def _pod_changed(self, job_uid: str) -> None:
        if self._leader_tasks is not None:
            self._leader_tasks.wake(job_uid)
