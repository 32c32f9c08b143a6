import json
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import pytest
from kubernetes.aio.config import incluster_config

from muster.clients.kubernetes.access import NoCluster, find_cluster
from muster.collector.trust.certificate import make_authority


class InAMinute(datetime):
    """A clock that is a minute ahead."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return super().now(tz) + timedelta(seconds=60)


def kubeconfig(**changes: object) -> str:
    by_key = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me", "namespace": "team"}}],
        "clusters": [{"name": "lab", "cluster": {"server": "https://lab.example:6443/"}}],
        "users": [{"name": "me", "user": {"token": "t0ken"}}],
    }
    return json.dumps(by_key | changes)


async def refusal(text: str, folder: Path) -> NoCluster:
    file = folder / "config"
    file.write_text(text)
    with pytest.raises(NoCluster) as caught:
        await find_cluster(str(file))
    return caught.value


async def test_a_kubeconfig_names_server_namespace_and_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(kubeconfig())
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'absent'}:{tmp_path / 'config'}")
    access = await find_cluster(None)
    assert (access.url, access.namespace) == ("https://lab.example:6443", "team")
    assert await access.configuration.get_api_key_with_prefix("BearerToken") == "Bearer t0ken"
    await access.close()


async def test_a_plug_in_is_asked_for_the_token(tmp_path: Path) -> None:
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "fresh"}}
    plug_in = {"apiVersion": answer["apiVersion"], "command": "echo", "args": [json.dumps(answer)]}
    (tmp_path / "config").write_text(kubeconfig(users=[{"name": "me", "user": {"exec": plug_in}}]))
    access = await find_cluster(str(tmp_path / "config"))
    assert await access.configuration.get_api_key_with_prefix("BearerToken") == "Bearer fresh"
    await access.close()


async def test_a_context_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    error = await refusal(kubeconfig(**{"current-context": "home"}), tmp_path)
    assert 'has no context "home"' in error.message
    assert error.remedy.endswith("there are: lab.")


async def test_another_context_than_the_current_one(tmp_path: Path) -> None:
    contexts = [{"name": name, "context": {"cluster": "lab", "user": "me", "namespace": name}} for name in ("lab", "b")]
    (tmp_path / "config").write_text(kubeconfig(contexts=contexts))
    access = await find_cluster(str(tmp_path / "config"), "b")
    assert access.namespace == "b"
    await access.close()
    with pytest.raises(NoCluster, match='has no context "c"'):
        await find_cluster(str(tmp_path / "config"), "c")


async def test_no_context_chosen(tmp_path: Path) -> None:
    assert "has no current context" in (await refusal(kubeconfig(**{"current-context": ""}), tmp_path)).message


@pytest.mark.parametrize("text", ["", "words", "- a list", ": [", kubeconfig(clusters=[]), kubeconfig(contexts=3)])
async def test_a_file_that_is_no_kubeconfig(text: str, tmp_path: Path) -> None:
    error = await refusal(text, tmp_path)
    assert "not usable" in error.message
    assert "object" not in error.message or "Expected object" in error.message


async def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NoCluster, match="does not exist"):
        await find_cluster(str(tmp_path / "absent"))


async def test_no_cluster_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(NoCluster, match="No Kubernetes cluster is configured"):
        await find_cluster(None)


async def test_a_pods_token_is_read_again_for_the_kubelet_changes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("HOST", "10.0.0.1"), ("PORT", "443")):
        monkeypatch.setenv(f"KUBERNETES_SERVICE_{name}", value)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("namespace", "token", "ca.crt"):
        (tmp_path / name).write_text("old")
    monkeypatch.setattr("muster.clients.kubernetes.access._POD_NAMESPACE", tmp_path / "namespace")
    (tmp_path / "ca.crt").write_text(make_authority(time.time(), 60.0).certificate)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    access = await find_cluster(None)
    (tmp_path / "token").write_text("new")
    assert await access.configuration.get_api_key_with_prefix("BearerToken") == "bearer old"
    monkeypatch.setattr(incluster_config, "datetime", SimpleNamespace(datetime=InAMinute, timedelta=timedelta))
    assert await access.configuration.get_api_key_with_prefix("BearerToken") == "bearer new"
    await access.close()


async def test_a_pod_without_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(NoCluster, match="token"):
        await find_cluster(None)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"https_proxy": "http://user:secret@proxy.example:3128"}, "http://user:secret@proxy.example:3128"),
        ({"HTTPS_PROXY": "http://proxy.example:3128"}, "http://proxy.example:3128"),
        ({"http_proxy": "http://proxy.example:3128"}, None),
        ({"https_proxy": "http://proxy.example:3128", "no_proxy": ".lab.example,lab.example"}, None),
    ],
)
async def test_the_environment_sets_the_proxy(
    environment: dict[str, str], expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "config").write_text(kubeconfig())
    access = await find_cluster(str(tmp_path / "config"))
    assert access.configuration.proxy == expected
    await access.close()


async def test_the_proxy_of_the_kubeconfig_is_used_before_the_environment_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://other.example:3128")
    cluster = {"server": "https://lab.example:6443/", "proxy-url": "http://proxy.example:3128"}
    (tmp_path / "config").write_text(kubeconfig(clusters=[{"name": "lab", "cluster": cluster}]))
    access = await find_cluster(str(tmp_path / "config"))
    assert access.configuration.proxy == "http://proxy.example:3128"
    await access.close()
