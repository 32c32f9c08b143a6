"""The containers' environment. Pure."""

from muster.api.spec.job import Spec
from muster.render.sagemaker.request.training_request import Fields


def environment(spec: Spec) -> Fields:
    """Environment: the job's variables, of which none comes from elsewhere (a rule of the api)."""
    return {variable.name: variable.value for variable in spec.env}
