"""The variables with which rank 0 finds the agent's server."""

import pytest

from muster_worker.rank.trainer_variables import CA_CERT, TOKEN, TOKEN_FILE, URL, build_variables, remove_variables

VALUES = {URL: "http://127.0.0.1:40000/status", CA_CERT: "/run/muster/ca", TOKEN: f"/run/muster/{TOKEN_FILE}"}


def test_a_node_without_a_server_gets_none() -> None:
    assert build_variables({"http_proxy": "http://proxy"}, {}) == {}


def test_the_user_s_server_comes_first() -> None:
    assert build_variables({URL: "https://trainer.kubeflow"}, VALUES) == {}
    assert build_variables({TOKEN: "/mine"}, VALUES) == {name: VALUES[name] for name in (URL, CA_CERT)}


@pytest.mark.parametrize(
    ("environment", "hosts"),
    [
        ({}, None),
        ({"no_proxy": "localhost"}, None),
        ({"http_proxy": ""}, None),
        ({"http_proxy": "http://proxy"}, "127.0.0.1"),
        ({"ALL_PROXY": "http://proxy", "NO_PROXY": "localhost,.svc"}, "localhost,.svc,127.0.0.1"),
        ({"http_proxy": "http://proxy", "no_proxy": "localhost, 127.0.0.1"}, None),
        ({"http_proxy": "http://proxy", "no_proxy": "*"}, None),
    ],
)
def test_reports_do_not_go_through_a_proxy(environment: dict[str, str], hosts: str | None) -> None:
    added = build_variables(environment, VALUES)
    assert added == {**VALUES, **({} if hosts is None else {"no_proxy": hosts, "NO_PROXY": hosts})}


def test_other_ranks_keep_only_the_user_s() -> None:
    assert remove_variables({**VALUES, "A": "1"}) == {"A": "1"}
    assert remove_variables({TOKEN: "/mine", "A": "1"}) == {TOKEN: "/mine", "A": "1"}
