"""Render the request's instances, time limits and network. Pure."""

from muster.api.document import JSON
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.resources import InstanceGroup, Placement
from muster.api.spec.sagemaker.spec import SageMaker
from muster.render.sagemaker.request.training_request import Fields


def render_resources(spec: Spec, block: SageMaker) -> Fields:
    """Return the ResourceConfig."""
    optional: dict[str, JSON] = {
        "VolumeKmsKeyId": block.volume_kms_key,
        "KeepAlivePeriodInSeconds": block.keep_alive_seconds,
        "TrainingPlanArn": block.training_plan_arn,
        "InstancePlacementConfig": None if block.placement is None else _render_placement(block.placement),
    }
    return {
        "VolumeSizeInGB": block.volume_size_gb,
        **_render_instances(spec, block),
        **{name: value for name, value in optional.items() if value is not None},
    }


def render_stopping_condition(block: SageMaker) -> Fields:
    """Return the StoppingCondition."""
    fields: Fields = {"MaxRuntimeInSeconds": block.max_run_seconds}
    if block.spot is not None and block.spot.max_wait_seconds is not None:
        fields["MaxWaitTimeInSeconds"] = block.spot.max_wait_seconds
    if block.max_pending_seconds is not None:
        fields["MaxPendingTimeInSeconds"] = block.max_pending_seconds
    return fields


def render_networking(block: SageMaker) -> Fields:
    """Return the VpcConfig and the network options."""
    fields: Fields = {}
    if block.vpc is not None:
        fields["VpcConfig"] = {
            "Subnets": list(block.vpc.subnets),
            "SecurityGroupIds": list(block.vpc.security_group_ids),
        }
    if block.encrypt_inter_container_traffic:
        fields["EnableInterContainerTrafficEncryption"] = True
    if block.network_isolation:
        fields["EnableNetworkIsolation"] = True
    return fields


def _render_instances(spec: Spec, block: SageMaker) -> Fields:
    if block.instance_groups:
        return {"InstanceGroups": [_render_instance_group(group) for group in block.instance_groups]}
    return {"InstanceCount": spec.nodes, "InstanceType": block.instance_type}


def _render_instance_group(group: InstanceGroup) -> Fields:
    return {
        "InstanceGroupName": group.name,
        "InstanceType": group.instance_type,
        "InstanceCount": group.instance_count,
    }


def _render_placement(placement: Placement) -> Fields:
    fields: Fields = {}
    if placement.multiple_jobs is not None:
        fields["EnableMultipleJobs"] = placement.multiple_jobs
    if placement.ultra_servers:
        fields["PlacementSpecifications"] = [
            {
                **({} if server.ultra_server_id is None else {"UltraServerId": server.ultra_server_id}),
                "InstanceCount": server.instance_count,
            }
            for server in placement.ultra_servers
        ]
    return fields
