import json

import pytest

from muster.ranks.keys import read_keys
from muster.ranks.refusal import Reason, Refused
from muster.ranks.tokens import LEEWAY_SECONDS, LocalIssuer, PodClaim, Verifier

ISSUER, AUDIENCE = "https://issuer.test", "muster-collector"
NOW = 1_700_000_000.0
POD = PodClaim("default", "digits-0", "uid-0")


def make() -> tuple[LocalIssuer, Verifier]:
    issuer = LocalIssuer(ISSUER, AUDIENCE)
    return issuer, Verifier(ISSUER, AUDIENCE, read_keys(issuer.jwks()))


def test_a_token_names_its_pod() -> None:
    issuer, verifier = make()

    assert verifier.verify(issuer.issue(POD, NOW, 600.0), NOW) == POD


@pytest.mark.parametrize("at", [NOW - LEEWAY_SECONDS - 1, NOW + 600 + LEEWAY_SECONDS])
def test_a_token_is_good_for_its_time_only_also_when_it_is_remembered(at: float) -> None:
    issuer, verifier = make()
    token = issuer.issue(POD, NOW, 600.0)
    verifier.verify(token, NOW)

    with pytest.raises(Refused) as refused:
        verifier.verify(token, at)

    assert refused.value.reason is Reason.EXPIRED
    assert verifier.recall(token, at) is None


def test_only_good_tokens_are_remembered() -> None:
    _, verifier = make()
    stranger = LocalIssuer(ISSUER, AUDIENCE).issue(POD, NOW, 600.0)
    with pytest.raises(Refused):
        verifier.verify(stranger, NOW)

    assert not verifier._verified


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": 1}', '{"keys": [1]}', "null", '{"keys": []}'])
def test_what_is_no_key_document_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ValueError, match="not a JWKS document"):
        read_keys(text)


def test_symmetric_keys_and_those_for_encryption_are_left_out() -> None:
    document = json.loads(LocalIssuer(ISSUER, AUDIENCE).jwks())
    (good,) = document["keys"]
    encryption = {**good, "kid": "enc", "use": "enc"}
    symmetric = {"kty": "oct", "kid": "oct", "k": "c2VjcmV0", "alg": "HS256"}

    assert list(read_keys(json.dumps({"keys": [good, encryption, symmetric]}))) == [good["kid"]]
