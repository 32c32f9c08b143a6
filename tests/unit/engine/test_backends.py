"""Every backend of the resource is in each of the code's tables."""

from typing import get_args

from muster.api import backends as traits
from muster.cli.backends import COMMANDS
from muster.controller import backends as operator


def test_each_table_has_every_backend() -> None:
    names = set(get_args(traits.BackendName))
    assert set(traits.BACKENDS) == names
    assert set(operator.BACKENDS) == names
    assert set(COMMANDS) == names


def test_a_finalizer_is_one_backends() -> None:
    finalizers = [each.finalizer for each in traits.BACKENDS.values() if each.finalizer is not None]
    assert len(finalizers) == len(set(finalizers))
    assert [traits.find_finalizing_backend(("example.com/theirs", one)) for one in finalizers] == ["SageMaker"]
    assert traits.find_finalizing_backend(("example.com/theirs",)) is None
