"""The environment of SageMaker's containers: host names, SM_* variables, configuration files. Pure.

Names and formats are those of sagemaker-training's `environment.py` (version 5.1.4) and of SageMaker's
/opt/ml/input/config.
"""

from __future__ import annotations

import json
import os.path
from dataclasses import dataclass
from typing import Dict, Mapping, Tuple

from muster_worker.contract.schema import Channel, Plan
from muster_worker.sagemaker.arguments import to_arguments, to_text

MAX_FAILURE_CHARS = 1024
"""Maximum length of output/failure. SageMaker truncates longer texts (API_DescribeTrainingJob, FailureReason)."""

MAX_VARIABLE_BYTES = 128 * 1024 - 1
"""Maximum length of a variable with its name. Linux rejects longer ones (MAX_ARG_STRLEN in execve(2))."""

_GROUP = "homogeneousCluster"


@dataclass(frozen=True)
class Host:
    """Properties of the machine for a script."""

    cpus: int
    gpus: int
    instance_type: str
    interface: str
    directory: str  # the working directory of the command
    memory_unreadable: bool = False  # processes can't read each other's memory
    members: Tuple[int, ...] = ()  # the nodes of the attempt, by node rank; empty: all nodes in order


def build_host_names(nodes: int) -> Tuple[str, ...]:
    """Return algo-1..algo-N in the order of nodes, so that a host's index is its node rank."""
    return tuple(f"algo-{node + 1}" for node in range(nodes))


def list_member_names(plan: Plan, host: Host) -> Tuple[str, ...]:
    """Return the host names of the attempt's nodes, by node rank: a pod keeps its name when its node rank changes."""
    if not host.members:
        return build_host_names(plan.nodes)
    names = build_host_names(max(host.members) + 1)
    return tuple(names[member] for member in host.members)


def build_resource_config(plan: Plan, node: int, host: Host) -> Dict[str, object]:
    """Return the content of resourceconfig.json: this host and its peers."""
    names = list(list_member_names(plan, host))
    group = {"instance_group_name": _GROUP, "instance_type": host.instance_type, "hosts": names}
    return {
        "current_host": names[node],
        "current_instance_type": host.instance_type,
        "current_group_name": _GROUP,
        "hosts": names,
        "instance_groups": [group],
        "network_interface_name": host.interface,
    }


def build_input_data_config(channels: Tuple[Channel, ...]) -> Dict[str, Dict[str, str]]:
    """Return the content of inputdataconfig.json: the input mode of each channel."""
    config = {}
    for channel in channels:
        config[channel.name] = {
            "TrainingInputMode": "File",
            "S3DistributionType": "ShardedByS3Key" if channel.is_sharded else "FullyReplicated",
            "RecordWrapperType": "None",
        }
        if channel.content_type is not None:
            config[channel.name]["ContentType"] = channel.content_type
    return config


def build_hyperparameter_file(plan: Plan) -> Dict[str, str]:
    """Return the content of hyperparameters.json: each value is JSON in a string, as the SageMaker SDK sends it."""
    return {name: json.dumps(value) for name, value in plan.hyperparameters.items()}


def build_sagemaker_variables(plan: Plan, node: int, host: Host, root: str) -> Dict[str, str]:
    """Return the SM_* variables of a node. `root` is SageMaker's /opt/ml.

    Values that are too long for a variable are only in the files of input/config, such as SM_RESOURCE_CONFIG of more
    than 5,000 nodes.
    """
    hyperparameters: Mapping[str, object] = dict(plan.hyperparameters)
    names = list_member_names(plan, host)
    values: Dict[str, object] = {
        "hosts": list(names),
        "current_host": names[node],
        "network_interface_name": host.interface,
        "current_instance_type": host.instance_type,
        "current_instance_group": _GROUP,
        "current_instance_group_hosts": list(names),
        "is_hetero": False,
        "resource_config": build_resource_config(plan, node, host),
        "input_data_config": build_input_data_config(plan.channels),
        "num_cpus": host.cpus,
        "num_gpus": host.gpus,
        "num_neurons": 0,
        "model_dir": os.path.join(root, "model"),
        "output_dir": os.path.join(root, "output"),
        "output_data_dir": os.path.join(root, "output", "data"),
        "output_intermediate_dir": os.path.join(root, "output", "intermediate"),
        "input_dir": os.path.join(root, "input"),
        "input_config_dir": os.path.join(root, "input", "config"),
        "module_dir": host.directory,
        "channels": sorted(channel.name for channel in plan.channels),
        "hps": hyperparameters,
        "user_args": list(to_arguments(plan.hyperparameters)),
        "framework_params": {},
        "log_level": 20,
    }
    for channel in plan.channels:
        values[f"channel_{channel.name}"] = os.path.join(root, "input", "data", channel.name)
    for name, value in hyperparameters.items():
        values[f"hp_{name}"] = value
    result = {f"SM_{name.upper()}": to_text(value) for name, value in values.items()}
    return {name: text for name, text in result.items() if len(f"{name}={text}".encode()) < MAX_VARIABLE_BYTES}
