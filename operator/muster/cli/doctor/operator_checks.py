"""The checks of `muster doctor` that concern the CRD and the operator."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from muster.api.crd import PLURALS, build_crds
from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_mappings, read_string
from muster.api.names import API_VERSION, GROUP, KIND, PLURAL
from muster.api.plurals import pluralize
from muster.cli.crds.version import is_newer, read_crd_version
from muster.cli.doctor.finding import ASK_ADMINISTRATOR, Finding, has_failed, is_ok, is_unknown
from muster.cli.doctor.installation import NAME, Cluster
from muster.clients.kubernetes.election import LEASE_SECONDS
from muster.distribution import get_version
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import CRDS, ENDPOINT_SLICES, JOBS, LEASES, VALIDATING_WEBHOOKS, Object

WEBHOOK = f"jobs.{GROUP}"

_UPDATE_CRD = "`muster apply-crds`"
_NO_OPERATOR = "there is no operator in the namespace"
_INSTALL = "install it: docs/install.md"


async def check_crd(cluster: Cluster) -> Finding:
    """Check that the CRDs are installed, and that they are those of this command's version."""
    version = get_version()
    for plural, expected in zip(PLURALS, build_crds(), strict=True):
        crd = await cluster.find(CRDS, None, f"{plural}.{GROUP}")
        if crd is None:
            return has_failed(f"{plural}.{GROUP} is not installed", f"{_INSTALL}, or {_UPDATE_CRD}")
        if _read_schema(crd) == _read_schema(expected):
            continue
        crd_version = read_crd_version(crd)
        if is_newer(crd_version, version):
            return is_ok(f"{plural}.{GROUP} is of muster {crd_version}, which is newer than this command")
        return has_failed(
            f"{plural}.{GROUP} is not the one of muster {version}, which this command is",
            f"update it by {_UPDATE_CRD} if the operator is of the same version, or install the operator's version "
            "here",
        )
    return is_ok(f"{PLURAL}.{GROUP} and those of its templates are the ones of muster {version}")


def _read_schema(crd: Object) -> JSON:
    versions = read_mappings(read_mapping(crd.get("spec")).get("versions"))
    schema = read_mapping(versions[0].get("schema")).get("openAPIV3Schema") if len(versions) == 1 else None
    return _remove_empty_properties(schema)


def _remove_empty_properties(schema: JSON) -> JSON:
    """Remove `properties: {}`, which the API server does not store."""
    if isinstance(schema, list):
        return [_remove_empty_properties(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _remove_empty_properties(value)
        for key, value in schema.items()
        if not (key == "properties" and value == {})
    }


async def check_operator(cluster: Cluster) -> Finding:
    """Check that the Deployments of the operator are available, and of this command's version."""
    place = cluster.operator_namespace
    if cluster.deployments is None:
        return is_unknown(f"you may not list the Deployments of the namespace {place}", ASK_ADMINISTRATOR)
    if not cluster.deployments:
        return has_failed(
            f"there is no Deployment of muster in the namespace {place}",
            f"{_INSTALL}, or name its namespace with --operator-namespace",
        )
    for deployment in cluster.deployments:
        if deployment.available < max(1, deployment.replicas):
            return has_failed(
                f"{deployment.available} of {deployment.replicas} replicas of {place}/{deployment.name} are available",
                f"`kubectl describe pods -n {place} -l app.kubernetes.io/name={NAME}` says why",
            )
        if deployment.version not in ("", get_version()):
            return has_failed(
                f"{place}/{deployment.name} is of version {deployment.version}, this command of {get_version()}",
                "install the same version of both",
            )
    names = ", ".join(f"{place}/{deployment.name}" for deployment in cluster.deployments)
    return is_ok(f"all replicas of {names} are available")


async def check_namespace(cluster: Cluster) -> Finding:
    """Check that the operator runs the jobs of the user's namespace."""
    if not cluster.deployments:
        return is_unknown("without a Deployment of muster it is unknown which namespaces it serves")
    if cluster.other_namespaces:
        return has_failed(
            f"muster does not run the jobs of {cluster.namespace}, only those of {', '.join(cluster.other_namespaces)}",
            "choose one of them with --namespace, or add the namespace to the chart's value namespaces",
        )
    return is_ok(f"muster runs the jobs of {cluster.namespace}")


async def check_lease(cluster: Cluster) -> Finding:
    """Check that a replica of each shard renews its Lease now. This needs no clock that agrees with the cluster's."""
    if cluster.deployments == ():
        return is_unknown(_NO_OPERATOR)
    for name in _list_names(cluster, ""):
        lease = await cluster.find(LEASES, cluster.operator_namespace, name)
        if lease is None or not _read_lease_field(lease, "holderIdentity"):
            return has_failed(
                f"nobody holds the Lease {cluster.operator_namespace}/{name}",
                f"`kubectl logs -n {cluster.operator_namespace} deployment/{name}` says why",
            )
        if not await _is_renewed(cluster, name, lease):
            return has_failed(
                f"the Lease {cluster.operator_namespace}/{name} was not renewed for {LEASE_SECONDS} s",
                "the operator hangs or can't reach the API server: see its log",
            )
    return is_ok("the operator leads")


async def _is_renewed(cluster: Cluster, name: str, lease: Object) -> bool:
    version = read_string(read_mapping(lease.get("metadata")).get("resourceVersion"))
    changes = cluster.client.watch(
        LEASES, cluster.operator_namespace, resource_version=version, fields=f"metadata.name={name}"
    )
    try:
        async with asyncio.timeout(LEASE_SECONDS), aclosing(changes):
            async for change in changes:
                if _read_lease_field(change.object, "renewTime") not in ("", _read_lease_field(lease, "renewTime")):
                    return True
    except TimeoutError:
        pass
    return False


def _read_lease_field(lease: Object, field: str) -> str:
    return read_string(read_mapping(lease.get("spec")).get(field))


async def check_webhook(cluster: Cluster) -> Finding:
    """Check that the webhook answers, if it is installed: by a dry run of a job that only the webhook refuses."""
    name = f"{NAME}-{cluster.operator_namespace}"
    configuration = await cluster.find(VALIDATING_WEBHOOKS, None, name)
    if configuration is None:
        return is_unknown(
            "it is not installed, so bad jobs are refused only after `kubectl apply`",
            "to change that, set webhook.enabled in the chart's values",
        )
    webhooks = read_mappings(configuration.get("webhooks"))
    if not all(read_mapping(webhook.get("clientConfig")).get("caBundle") for webhook in webhooks):
        return has_failed(
            f"ValidatingWebhookConfiguration {name} has no caBundle, which the operator writes",
            f"`kubectl logs -n {cluster.operator_namespace} deployment/{NAME}` says why",
        )
    if cluster.other_namespaces:
        return is_unknown(f"it does not review the jobs of {cluster.namespace}")
    try:
        await cluster.client.dry_run_create(JOBS, cluster.namespace, _make_refused_job(cluster.namespace))
    except ApiError as error:
        if WEBHOOK in error.message:
            return is_ok("it answers")
        return is_unknown(f"a dry run in the namespace {cluster.namespace} did not reach it: {error.message}")
    return has_failed(
        "the API server stores jobs without its answer",
        "it must reach the operator's pods on the webhook's port: check security groups and NetworkPolicies",
    )


def _make_refused_job(namespace: str) -> Object:
    # No CEL rule of the CRD knows whether a regular expression is valid.
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "muster-doctor", "namespace": namespace},
        "spec": {"launcher": {"direct": {}}, "image": "x", "command": ["x"], "metrics": [{"name": "x", "regex": "("}]},
    }


async def check_collector(cluster: Cluster) -> Finding:
    """Check that the collector's Services have endpoints, to which the agents send their reports."""
    if cluster.deployments == ():
        return is_unknown(_NO_OPERATOR)
    for name in _list_names(cluster, "-collector"):
        slices = await cluster.client.list(
            ENDPOINT_SLICES, cluster.operator_namespace, labels=f"kubernetes.io/service-name={name}"
        )
        if not any(endpoint for item in slices.items for endpoint in read_mappings(item.get("endpoints"))):
            return has_failed(
                f"the Service {cluster.operator_namespace}/{name} has no endpoints, so no agent can report",
                "the leader writes them: see its log, and whether the check of the Lease passes",
            )
    count = len(_list_names(cluster, ""))
    return is_ok(f"{pluralize(count, 'Service')} with endpoints; whether pods reach them only a job shows")


def _list_names(cluster: Cluster, ending: str) -> tuple[str, ...]:
    """Return the names of an object of each shard."""
    suffixes = [deployment.suffix for deployment in cluster.deployments or ()] or [""]
    return tuple(f"{NAME}{ending}{suffix}" for suffix in suffixes)
