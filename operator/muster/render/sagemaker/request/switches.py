"""What of a training job is on or off, and where it belongs. Pure."""

from muster.api.spec.sagemaker.resources import Experiment
from muster.api.spec.sagemaker.spec import SageMaker
from muster.render.sagemaker.request.training_request import Fields


def switches(block: SageMaker) -> Fields:
    """Spot instances, retries, checks, connections, and the experiment; nothing is said of what the job leaves open."""
    fields: Fields = {}
    if block.spot is not None:
        fields["EnableManagedSpotTraining"] = True
    if block.retry is not None:
        fields["RetryStrategy"] = {"MaximumRetryAttempts": block.retry.attempts}
    if block.remote_debug is not None:
        fields["RemoteDebugConfig"] = {"EnableRemoteDebug": block.remote_debug == "Enabled"}
    if block.infra_check is not None:
        fields["InfraCheckConfig"] = {"EnableInfraCheck": block.infra_check == "Enabled"}
    if block.session_tag_chaining is not None:
        fields["SessionChainingConfig"] = {"EnableSessionTagChaining": block.session_tag_chaining == "Enabled"}
    experiment = _experiment(block.experiment)
    return {**fields, "ExperimentConfig": experiment} if experiment else fields


def _experiment(experiment: Experiment | None) -> Fields:
    if experiment is None:
        return {}
    names = {
        "ExperimentName": experiment.experiment_name,
        "TrialName": experiment.trial_name,
        "TrialComponentDisplayName": experiment.trial_component_display_name,
        "RunName": experiment.run_name,
    }
    return {name: value for name, value in names.items() if value is not None}
