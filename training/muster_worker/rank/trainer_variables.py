"""The environment variables of Kubeflow Trainer's progress protocol, which muster sets for rank 0. Pure.

Hugging Face Transformers and the Kubeflow SDK report the progress to the URL.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping

URL = "KUBEFLOW_TRAINER_SERVER_URL"
CA_CERT = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
TOKEN = "KUBEFLOW_TRAINER_SERVER_TOKEN"  # noqa: S105 - the name of a variable
NAMES = (URL, CA_CERT, TOKEN)
"""Variables with the URL, and with the paths of the authority's certificate and of the token."""

TOKEN_FILE = "trainer-token"  # noqa: S105 - the name of a file
"""The name of the file with the token of muster's server, in the run folder of rank 0's node."""

ADDRESS = "127.0.0.1"
"""The server's address: no other pod can connect to it."""

NO_PROXY = ("no_proxy", "NO_PROXY")
"""Variables with hosts that clients reach without a proxy. Libraries read one or the other."""

_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


def build_variables(environment: Mapping[str, str], values: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables to add: `values` of a server, if there is one, and if the user has not set another URL."""
    if not values or URL in environment:
        return {}
    added = {name: value for name, value in values.items() if name not in environment}
    return {**added, **_bypass_proxy(environment)}


def remove_variables(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment of a rank other than 0: without the variables of muster's server.

    An mpirun of the user's own gives rank 0's environment to the ranks of every node, so the token's path is in the
    run folder of another node. A server that the user has set keeps its variables.
    """
    if not environment.get(TOKEN, "").endswith(f"/{TOKEN_FILE}"):
        return environment
    return {name: value for name, value in environment.items() if name not in NAMES}


def _bypass_proxy(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return the variables that make clients reach `ADDRESS` without a proxy, if the user has set a proxy.

    The proxy would not answer. Each report would then delay the training by its time limit of 5 s.
    """
    if not any(environment.get(name) for name in _PROXIES):
        return {}
    hosts = next((environment[name] for name in NO_PROXY if environment.get(name)), "")
    if hosts.strip() == "*" or ADDRESS in hosts.replace(" ", "").split(","):
        return {}
    return dict.fromkeys(NO_PROXY, f"{hosts},{ADDRESS}" if hosts else ADDRESS)
