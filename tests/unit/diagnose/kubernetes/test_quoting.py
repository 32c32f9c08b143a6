"""Kubernetes' messages in a status: without credentials, and in time that doesn't depend on their author."""

import time

import pytest

from muster.diagnose.kubernetes.quoting import quote

TEXTS = 200
"""Of 4 KiB each: each of a pod's containers may have one."""


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("GET https://s3.example/layer?X-Amz-Signature=abc: 403", "GET https://s3.example/layer 403"),
        ("GET https://s3.example/layer: 403", "GET https://s3.example/layer: 403"),
        ("is it https://s3.example/? yes", "is it https://s3.example/? yes"),
        ("from https://me:word@host/x and http://host?a=b", "from https://host/x and http://host"),
        ('failed (pod: "vit-0-0", container: trainer)', "failed"),
        ('failed (pod: "vit-0-0")', "failed"),
    ],
)
def test_credentials_and_names_go(text: str, quoted: str) -> None:
    assert quote(text) == quoted


@pytest.mark.parametrize(
    "piece", ["https://", "https://a", "https://a:b", '(pod: "x", container: ', "bearer ", "read udp "]
)
def test_no_text_takes_long(piece: str) -> None:
    text = (piece * 4096)[:4096]
    began = time.thread_time()
    for _ in range(TEXTS):
        quote(text)
    assert time.thread_time() - began < 1.0
