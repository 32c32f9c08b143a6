"""One replica of the operator, with all its components. A standby runs all of them except the leader's tasks."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from muster.api.spec.template_ref import TemplateRef
from muster.backends.kubernetes.kube_node_taints import KubeNodeTaints
from muster.backends.kubernetes.pod_index import PodIndex
from muster.clients.aws.client import Aws
from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.election import POLL_SECONDS
from muster.collector.collector import Collector
from muster.collector.server.refusal import RefusalReason
from muster.collector.server.refusal_counter import log_refusals
from muster.collector.store import RankStore
from muster.collector.trust.certificate import ServingCertificate
from muster.controller.backends import OperatorServices, check_job, make_backends
from muster.controller.health import HealthCheck
from muster.controller.leader.election import LeaderElection
from muster.controller.leader_tasks import LeaderDependencies, LeaderTasks
from muster.controller.metrics import endpoint
from muster.controller.metrics.recorder import MetricsRecorder
from muster.controller.metrics.snapshot import MetricSources
from muster.controller.options import DEFAULT_WEBHOOK_HOST, OperatorOptions
from muster.controller.startup import check_cluster, run_with_retries
from muster.controller.supervision import supervise
from muster.controller.trust.ca_bundle import CaBundleUpdater
from muster.controller.trust.collector_endpoints import CollectorEndpoints
from muster.controller.trust.trust import TrustManager, TrustSettings
from muster.controller.watch.informers import make_informers
from muster.controller.webhook.connections import open_listening_socket
from muster.controller.webhook.server import WebhookServer
from muster.controller.webhook.template_merger import ReadTemplate, TemplateMerger
from muster.controller.webhook.webhook import Webhook
from muster.distribution import get_version
from muster.engine.steady_clock import create_steady_clock
from muster.objects.kubernetes.kinds import CLUSTER_TRAINING_TEMPLATES, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Object
from muster.objects.kubernetes.names import build_agent_name
from muster.render.agent_archive import build_agent_archive
from muster.render.kubernetes.pod_settings import PodSettings
from muster.render.training_template.admission import get_kind


@dataclass
class Replica:
    """One replica. `run` runs until it is cancelled, or until a component fails permanently.

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
        self._recorder = MetricsRecorder(self._clock, time.monotonic)
        self._store = RankStore()
        self._pods = PodIndex(self._handle_pod_change, self._clock)
        self._taints = KubeNodeTaints(self.options.config.disruptions.taints, self._handle_taints, self._clock)
        self._informers = make_informers(
            self.client, self.options.namespaces, self.options.shard, self._pods, self._taints
        )

    async def run(self) -> None:
        """Run the replica. Raises `StartupError`, and an `ExceptionGroup` if a component fails."""
        async with AsyncExitStack() as stack:
            self._start_health_checks(stack)
            await check_cluster(
                self.client, self.options.namespaces, random.random, reads_nodes=bool(self._taints.keys)
            )
            trust = TrustManager(self.client, self._make_trust_settings(), self._use_certificate, self._clock)
            await run_with_retries("the collector's certificates and the cluster's keys", trust.start, random.random)
            collector = await self._open_collector(stack, trust)
            self._open_webhook(stack, trust)
            aws = self._open_aws(stack)
            await self._open_metrics(stack, collector, aws)
            dependencies = self._make_dependencies(trust, collector, aws)
            async with asyncio.TaskGroup() as tasks:
                # A standby also watches pods, so that it can take over at once.
                for name, informer in self._informers.items():
                    self._start_task(tasks, f"the watch of {name}", informer.run)
                self._start_task(tasks, "the renewal of certificates", trust.run)
                self._start_task(tasks, "the collector's leader status", lambda: self._publish_leader(collector))
                if self.options.webhook is not None:
                    configuration = self.options.names.build_webhook_configuration(self._namespace)
                    for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
                        bundle = CaBundleUpdater(self.client, kind, configuration, trust.get_ca_bundle)
                        self._start_task(tasks, f"the caBundle of the {kind.name}", bundle.run)
                self._start_task(tasks, "the log of refused reports", lambda: log_refusals(collector.refusals))
                self._is_ready = True
                await self.election.run(lambda leader_term: self._lead(dependencies, leader_term))

    def _start_task(self, tasks: asyncio.TaskGroup, name: str, work: Callable[[], Awaitable[None]]) -> None:
        tasks.create_task(supervise(name, work, random.random), name=name)

    @property
    def _namespace(self) -> str:
        return self.options.names.namespace or self.client.namespace

    @property
    def _collector_url(self) -> str:
        return self.options.collector_url or self.options.make_default_collector_url(self._namespace)

    def _make_trust_settings(self) -> TrustSettings:
        hosts = [urlsplit(self._collector_url).hostname or ""]
        if self.options.webhook is not None:
            hosts.append(self.options.webhook.address or DEFAULT_WEBHOOK_HOST.format(namespace=self._namespace))
        return TrustSettings(self._namespace, self.options.names.secret, tuple(hosts))

    def _start_health_checks(self, stack: AsyncExitStack) -> None:
        liveness_checks = (
            HealthCheck(
                "the watch of jobs has ended", lambda: self._leader_tasks is None or self._leader_tasks.is_healthy
            ),
        )
        readiness_checks = (
            HealthCheck("the operator is still starting", lambda: self._is_ready),
            HealthCheck(
                "the lists of pods and Kubernetes nodes are not complete yet",
                lambda: all(informer.synced.is_set() for informer in self._informers.values()),
            ),
        )
        self.election.start(liveness_checks, readiness_checks)
        stack.callback(asyncio.create_task(self.election.send_heartbeats(), name="heartbeats").cancel)

    async def _open_collector(self, stack: AsyncExitStack, trust: TrustManager) -> Collector:
        self._collector = Collector(
            store=self._store,
            verifier=trust.verifier,
            directory=self._pods,
            certificate=trust.get_certificate(),
            clock=self._clock,
        )
        await self._collector.start(self.options.host, self.options.collector_port)
        stack.push_async_callback(self._collector.close)
        return self._collector

    def _open_webhook(self, stack: AsyncExitStack, trust: TrustManager) -> None:
        options = self.options.webhook
        if options is None:
            return
        listening_socket = open_listening_socket(self.options.host, options.port)
        stack.callback(listening_socket.close)
        accept = partial(check_job, config=self.options.config)
        merger = TemplateMerger(self._make_template_reader())
        server = WebhookServer(listening_socket, trust.get_certificate(), merger)
        self._webhook = Webhook(server, accept, random.random)
        self._webhook.start()
        stack.callback(self._webhook.stop)

    def _make_template_reader(self) -> ReadTemplate:
        loop = asyncio.get_running_loop()

        async def read(reference: TemplateRef, namespace: str) -> Object:
            # The webhook has a thread of its own, and the client belongs to this one.
            kind = get_kind(reference)
            scope = None if kind == CLUSTER_TRAINING_TEMPLATES else namespace
            request = asyncio.run_coroutine_threadsafe(self.client.get(kind, scope, reference.name), loop)
            return await asyncio.wrap_future(request)

        return read

    def _open_aws(self, stack: AsyncExitStack) -> Aws:
        # Use one client for all terms, because the same quotas apply to them.
        aws = Aws(self.options.config.sagemaker.endpoints, is_change_allowed=self.election.holds_lease)
        stack.push_async_callback(aws.close)
        return aws

    async def _open_metrics(self, stack: AsyncExitStack, collector: Collector, aws: Aws) -> None:
        port = self.options.metrics_port
        if port is None:
            return
        sources = MetricSources(
            version=get_version(),
            is_leader=lambda: self._leader_tasks is not None,
            resources=lambda: () if self._leader_tasks is None else self._leader_tasks.get_resources(),
            waiting_jobs=lambda: () if self._leader_tasks is None else self._leader_tasks.get_waiting_jobs(),
            refusals=lambda: {reason: collector.refusal_counts[reason] for reason in RefusalReason},
            connections=lambda: collector.open_connections,
            api_requests=self.client.request_counter.counts,
            aws_requests=aws.request_counter.counts,
        )
        listening_socket = endpoint.open_listening_socket(self.options.host, port)
        await stack.enter_async_context(endpoint.serve_metrics(listening_socket, self._recorder, sources))

    def _make_dependencies(self, trust: TrustManager, collector: Collector, aws: Aws) -> LeaderDependencies:
        options, config = self.options, self.options.config
        client = self.client.restrict_changes(self.election.holds_lease)
        pod_settings = PodSettings(
            cluster_domain=options.cluster_domain,
            collector_url=self._collector_url,
            agent_config_map=build_agent_name(build_agent_archive(), options.shard.suffix),
            shard=options.shard.index,
            agent_image=options.images.agent,
            pull_policy=options.images.pull_policy,
            storage_image=options.images.storage,
            s3_endpoint=config.storage.s3_endpoint or "",
        )
        services = OperatorServices(
            *(client, config, self._pods, self._store, pod_settings, trust.get_ca_bundle, trust.get_seed),
            *(aws, self._clock, self._taints),
        )
        return LeaderDependencies(
            client=client,
            namespaces=self.options.namespaces,
            informers=tuple(self._informers.values()),
            store=self._store,
            collector=collector,
            endpoints=self._make_endpoints(),
            make_backends=partial(make_backends, services),
            identity=self.identity,
            holds_lease=self.election.holds_lease,
            clock=self._clock,
            config=config,
            recorder=self._recorder,
            shard=options.shard,
        )

    def _make_endpoints(self) -> CollectorEndpoints | None:
        options = self.options
        if not options.collector_addresses:
            return None
        return CollectorEndpoints(
            self._namespace, options.names.collector_service, options.collector_addresses, options.collector_port
        )

    async def _lead(self, dependencies: LeaderDependencies, leader_term: int) -> None:
        self._leader_tasks = LeaderTasks(dependencies, leader_term)
        try:
            await self._leader_tasks.run()
        finally:
            self._leader_tasks = None

    async def _publish_leader(self, collector: Collector) -> None:
        """Tell a standby's collector the leader's identity, which its responses contain."""
        published_holder: str | None = ""
        while True:
            holder = self.election.holder
            if self._leader_tasks is None and holder != published_holder:
                collector.step_down(holder)
            published_holder = holder if self._leader_tasks is None else ""
            await asyncio.sleep(POLL_SECONDS)

    def _use_certificate(self, certificate: ServingCertificate) -> None:
        self._collector.use_certificate(certificate)
        if self._webhook is not None:
            self._webhook.server.use_certificate(certificate)

    def _handle_pod_change(self, job_uid: str) -> None:
        if self._leader_tasks is not None:
            self._leader_tasks.wake(job_uid)

    def _handle_taints(self, kube_node: str) -> None:
        for job_uid in self._pods.find_jobs_on(kube_node):
            self._handle_pod_change(job_uid)
