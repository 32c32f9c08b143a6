"""The rules about mpirun's options are the same in Python and in the CRD's CEL."""

import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.launchers import mpi
from muster.api.validation.rules.mpi.options import (
    HYDRA_FAMILY,
    OPEN_MPI_FAMILY,
    is_option,
    list_exit_options,
    list_remote_options,
    list_world_options,
)
from muster.api.validation.rules.mpi.rules import MPI_RULES
from muster_worker.contract.mpi import Mpi

KINDS = (list_world_options, list_remote_options, list_exit_options)
OPTIONS = sorted({option for kind in KINDS for option in kind(Mpi.AUTO)})
WORDS = st.builds(
    "{}{}{}".format,
    st.sampled_from(("", "-", "--", "---")),
    st.sampled_from(OPTIONS) | st.from_regex(r"[a-zA-Z_=-]{0,6}", fullmatch=True),
    st.sampled_from(("", "=", "=4", "x")),
)
PATTERN = re.compile(r"!\(self\.implementation in (\[[^]]*\])\) \|\| !arg\.matches\('([^']*)'\)")


def refused_by_cel(rule: str, implementation: str, argument: str) -> bool:
    """Evaluate the rule's expression for one argument, as the API server does."""
    checks = PATTERN.findall(rule)
    assert len(checks) == 2
    return any(
        implementation in known.strip("[]").replace("'", "").split(", ") and re.search(pattern, argument)
        for known, pattern in checks
    )


@pytest.mark.parametrize("number", range(len(KINDS)))
@given(implementation=st.sampled_from(Mpi.ALL), argument=WORDS)
def test_both_refuse_the_same_options(number: int, implementation: str, argument: str) -> None:
    rule = MPI_RULES[number].cel
    assert rule is not None

    assert refused_by_cel(rule, implementation, argument) == is_option(argument, KINDS[number](implementation))


def test_an_option_of_the_other_family_is_its_own() -> None:
    """In Hydra -map-by binds to cores, in Open MPI it places ranks on nodes."""
    assert is_option("-map-by", list_world_options(Mpi.OPEN_MPI))
    assert is_option("--map-by=core", list_world_options(Mpi.AUTO))
    assert not is_option("-map-by", list_world_options(Mpi.MPICH))
    assert not is_option("-launcher", list_remote_options(Mpi.OPEN_MPI))


def test_the_resource_has_the_agents_implementations() -> None:
    assert get_args(mpi.Mpi.model_fields["implementation"].annotation) == Mpi.ALL


def test_every_implementation_is_of_a_family() -> None:
    assert {*OPEN_MPI_FAMILY, *HYDRA_FAMILY} == set(Mpi.ALL)
