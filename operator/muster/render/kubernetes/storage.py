"""Add the containers that download a job's files to a pod, and upload its results. Pure.

They use the operator's image, and access S3 as the pod's service account: EKS provides the account's role to each
container (IRSA, Pod Identity). So the pod's spec contains no credentials.
"""

from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.core.problem import Problem
from muster.objects.kubernetes.names import STORAGE_KEY, build_children_name
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.muster_containers import (
    SAME_RESOURCES_REASON,
    get_trainer_resources,
    make_restricted_security_context,
)
from muster.render.kubernetes.not_renderable import STORAGE_IMAGE_NOT_SET, NotRenderable
from muster.render.kubernetes.opt_ml import CHECKPOINTS, CODE, RESULTS, ROOT, get_channel_folder
from muster.render.kubernetes.pod_patch import (
    PodPatch,
    get_entries,
    get_pod_spec,
    get_trainer,
    wrap_in_spec,
    wrap_in_trainer,
)
from muster.render.kubernetes.pod_settings import PodSettings
from muster.render.storage.git_token import GIT_TOKEN_VARIABLE
from muster.render.storage.storage_plan import StoragePlan, make_storage_plan

DOWNLOAD = "muster-download"
UPLOAD = "muster-upload"
CONTAINERS = (DOWNLOAD, UPLOAD)

_DATA = "muster-data"
_DATA_FOLDER = "/muster-data"
_PLAN = "muster-storage"
_PLAN_FOLDER = "/muster-storage"
_CONFIG_MAP = "muster-source"
_CONFIG_MAP_FOLDER = "/muster-source"
_ENDPOINT = "AWS_ENDPOINT_URL_S3"
_SYNC = "sync"
_SYNC_FOLDER = "/muster-sync"

SYNC_SOCKET = f"{_SYNC_FOLDER}/socket"
"""The socket on which the agent requests uploads."""

_UPLOAD_REQUESTS: Fields = {"cpu": "100m", "memory": "512Mi"}
_UPLOAD_LIMITS: Fields = {"cpu": "1", "memory": "1Gi"}
"""The resources of the upload container, which runs beside the ranks and uploads several parts of 16 MiB at once."""


def make_storage_folder_patches(job: Job) -> tuple[PodPatch, ...]:
    """Return the ranks' folders with downloaded files, and the command's working directory."""
    plan = make_storage_plan(job)
    if plan is None:
        return ()
    data: Fields = {"volumes": [{"name": _DATA, "emptyDir": {}}]}
    patches = [
        PodPatch(wrap_in_spec(data), _get_source_field(plan), "contains downloaded files and the ranks' results")
    ]
    for channel in plan.channels:
        mount = _make_mount(get_channel_folder(channel.name), f"input/{channel.name}", read_only=True)
        patches.append(PodPatch(mount, f"spec.inputs[{channel.index}].s3", "the ranks read the channel here"))
    if plan.checkpoint is not None:
        mount = _make_mount(CHECKPOINTS, "checkpoints")
        patches.append(PodPatch(mount, "spec.checkpoint.s3", "checkpoints are downloaded from S3, and uploaded to it"))
    if plan.output is not None:
        for name in RESULTS:
            mount = _make_mount(f"{ROOT}/{name}", name)
            patches.append(PodPatch(mount, "spec.output.s3", "uploaded to S3 after the ranks have ended"))
    if plan.code is not None:
        patches.append(PodPatch(_make_mount(CODE, "code"), "spec.source", "the code, writable as on SageMaker"))
        patches.append(
            PodPatch(wrap_in_trainer({"workingDir": CODE}), "spec.source", "the command runs in the folder of the code")
        )
    return tuple(patches)


def _make_mount(path: str, folder: str, *, read_only: bool = False) -> Fields:
    mount: Fields = {"name": _DATA, "mountPath": path, "subPath": folder}
    return wrap_in_trainer({"volumeMounts": [{**mount, "readOnly": True} if read_only else mount]})


def make_transfer_containers(job: Job, node: int, pod: Fields, pod_settings: PodSettings) -> tuple[PodPatch, ...]:
    """Return the download and upload containers for `pod`.

    They run before the user's init containers, which may need the data. Raises `NotRenderable` if the operator's image
    is unknown.
    """
    plan = make_storage_plan(job)
    if plan is None:
        return ()
    if not pod_settings.storage_image:
        field = _get_source_field(plan)
        message = f"{field} needs a container with the operator's image, but the operator doesn't know its image"
        remedy = "start the operator with --storage-image (the chart does)"
        raise NotRenderable(Problem(STORAGE_IMAGE_NOT_SET, f"{message}: {remedy}"))
    context = _ContainerContext(plan, pod, pod_settings)
    download = _make_command("download", "--node", str(node))
    if plan.code is not None and plan.code.config_map is not None:
        download += ["--config-map", _CONFIG_MAP_FOLDER]
    patches = _make_container_patches(
        DOWNLOAD, download, context, "downloads code, data and checkpoints before the ranks start"
    )
    patches += _make_git_token_patches(job)
    resources = get_trainer_resources(pod)
    if resources:
        patches.append(context.make_patch(DOWNLOAD, {"resources": resources}, SAME_RESOURCES_REASON))
    if plan.has_uploads:
        upload = _make_command("upload", "--socket", f"{_DATA_FOLDER}/{_SYNC}/socket")
        patches += _make_container_patches(
            UPLOAD, upload, context, "uploads checkpoints to S3 while the ranks run, and results after them"
        )
        patches.append(
            context.make_patch(UPLOAD, {"restartPolicy": "Always"}, "runs beside the ranks, and ends after them")
        )
        patches.append(
            context.make_patch(UPLOAD, {"resources": _make_upload_resources(pod)}, "for several concurrent uploads")
        )
    return tuple(patches)


def make_storage_volume_patches(job: Job) -> tuple[PodPatch, ...]:
    """Return the volumes with the containers' arguments, and the agent's mount of the upload socket."""
    plan = make_storage_plan(job)
    if plan is None:
        return ()
    fields: Fields = {
        "name": build_children_name(job.metadata.name),
        "items": [{"key": STORAGE_KEY, "path": STORAGE_KEY}],
    }
    volumes: list[JSON] = [{"name": _PLAN, "configMap": fields}]
    if plan.code is not None and plan.code.config_map is not None:
        volumes.append({"name": _CONFIG_MAP, "configMap": {"name": plan.code.config_map}})
    patches = [
        PodPatch(wrap_in_spec({"volumes": volumes}), _get_source_field(plan), "the plan of downloads and uploads")
    ]
    if plan.has_uploads:
        reason = "the socket on which the agent requests uploads"
        patches.append(PodPatch(_make_mount(_SYNC_FOLDER, _SYNC), _get_upload_field(plan), reason))
    return tuple(patches)


def _make_command(verb: str, *more: str) -> list[JSON]:
    return ["muster", "storage", verb, "--plan", f"{_PLAN_FOLDER}/{STORAGE_KEY}", "--root", _DATA_FOLDER, *more]


@dataclass(frozen=True)
class _ContainerContext:
    """The job's storage plan, and the pod without these containers."""

    plan: StoragePlan
    pod: Fields
    pod_settings: PodSettings

    def make_patch(self, name: str, fields: Fields, reason: str) -> PodPatch:
        """Return a patch of one of the containers."""
        source = _get_upload_field(self.plan) if name == UPLOAD else _get_source_field(self.plan)
        return PodPatch(wrap_in_spec({"initContainers": [{"name": name, **fields}]}), source, reason)


def _make_container_patches(name: str, command: list[JSON], context: _ContainerContext, reason: str) -> list[PodPatch]:
    container: Fields = {
        "image": context.pod_settings.storage_image,
        "command": command,
        "volumeMounts": _make_mounts(name, context.plan),
        # The last line of output becomes the job's message if the container fails.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if context.pod_settings.pull_policy:
        container["imagePullPolicy"] = context.pod_settings.pull_policy
    security: Fields = {"securityContext": _make_security_context(context.pod)}
    patches = [
        context.make_patch(name, container, reason),
        context.make_patch(name, security, "can read the ranks' files, and is equally restricted"),
    ]
    aws_variables = [
        variable for variable in get_entries(get_trainer(context.pod), "env") if _is_aws_variable(variable)
    ]
    # The job's own endpoint replaces the operator's.
    if context.pod_settings.s3_endpoint and all(variable.get("name") != _ENDPOINT for variable in aws_variables):
        endpoint: list[JSON] = [{"name": _ENDPOINT, "value": context.pod_settings.s3_endpoint}]
        patches.append(context.make_patch(name, {"env": endpoint}, "the S3 endpoint of the operator's configuration"))
    if aws_variables:
        variables: list[JSON] = [*aws_variables]
        patches.append(context.make_patch(name, {"env": variables}, "the AWS variables of container trainer"))
    return patches


def _is_aws_variable(variable: Fields) -> bool:
    return str(variable.get("name")).startswith("AWS_")


def _make_git_token_patches(job: Job) -> list[PodPatch]:
    """Return the patch that passes the token to the container that downloads the code."""
    git = None if job.spec.source is None else job.spec.source.git
    if git is None or git.secret_key_ref is None:
        return []
    ref: Fields = {"name": git.secret_key_ref.name, "key": git.secret_key_ref.key}
    variable: Fields = {"name": GIT_TOKEN_VARIABLE, "valueFrom": {"secretKeyRef": ref}}
    return [
        PodPatch(
            wrap_in_spec({"initContainers": [{"name": DOWNLOAD, "env": [variable]}]}),
            "spec.source.git.secretKeyRef",
            "the token for the git host; no other container gets it",
        )
    ]


def _make_mounts(name: str, plan: StoragePlan) -> list[JSON]:
    mounts: list[JSON] = [
        {"name": _DATA, "mountPath": _DATA_FOLDER},
        {"name": _PLAN, "mountPath": _PLAN_FOLDER, "readOnly": True},
    ]
    if name == DOWNLOAD and plan.code is not None and plan.code.config_map is not None:
        mounts.append({"name": _CONFIG_MAP, "mountPath": _CONFIG_MAP_FOLDER, "readOnly": True})
    return mounts


def _make_security_context(pod: Fields) -> Fields:
    """Return a restricted security context, which can read all files unless the ranks' container has a user."""
    context = make_restricted_security_context()
    pod_context = read_mapping(get_pod_spec(pod).get("securityContext"))
    security = {**pod_context, **read_mapping(get_trainer(pod).get("securityContext"))}
    if "runAsUser" in security:
        # Use the ranks' user, so that the containers can read each other's files.
        context.update({name: security[name] for name in ("runAsUser", "runAsGroup") if name in security})
    elif security.get("runAsNonRoot") is True:
        context["runAsNonRoot"] = True
    else:
        # The ranks' user is unknown, and libraries write checkpoints that only that user can read.
        context.update({"runAsUser": 0, "capabilities": {"drop": ["ALL"], "add": ["DAC_OVERRIDE"]}})
    return context


def _make_upload_resources(pod: Fields) -> Fields:
    """Return the upload container's resources. They don't change the pod's QoS class."""
    limits = read_mapping(read_mapping(get_trainer(pod).get("resources")).get("limits"))
    resources: Fields = {name: value for name, value in _UPLOAD_LIMITS.items() if name in limits}
    requests: Fields = {**_UPLOAD_REQUESTS, **resources}
    return {"requests": requests, **({"limits": resources} if resources else {})}


def _get_source_field(plan: StoragePlan) -> str:
    """Return the first field that requires these containers."""
    if plan.channels:
        return f"spec.inputs[{plan.channels[0].index}].s3"
    return _get_upload_field(plan) if plan.has_uploads else "spec.source"


def _get_upload_field(plan: StoragePlan) -> str:
    """Return the field that requires uploads."""
    return "spec.checkpoint.s3" if plan.checkpoint is not None else "spec.output.s3"
