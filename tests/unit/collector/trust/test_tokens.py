import json

import pytest

from muster.collector.server.refusal import RefusalReason, RequestRefused
from muster.collector.trust.keys import read_keys
from muster.collector.trust.tokens import LEEWAY_SECONDS, LocalTokenIssuer, PodClaim, TokenVerifier

ISSUER, AUDIENCE = "https://issuer.test", "muster-collector"
NOW = 1_700_000_000.0
POD = PodClaim("default", "digits-0", "uid-0")


def make() -> tuple[LocalTokenIssuer, TokenVerifier]:
    issuer = LocalTokenIssuer(ISSUER, AUDIENCE)
    return issuer, TokenVerifier(ISSUER, AUDIENCE, read_keys(issuer.make_jwks()))


def test_a_token_names_its_pod() -> None:
    issuer, verifier = make()

    assert verifier.verify(issuer.issue(POD, NOW, 600.0), NOW) == POD


@pytest.mark.parametrize("at", [NOW - LEEWAY_SECONDS - 1, NOW + 600 + LEEWAY_SECONDS])
def test_a_token_is_good_for_its_time_only_also_when_it_is_remembered(at: float) -> None:
    issuer, verifier = make()
    token = issuer.issue(POD, NOW, 600.0)
    verifier.verify(token, NOW)

    with pytest.raises(RequestRefused) as refused:
        verifier.verify(token, at)

    assert refused.value.reason is RefusalReason.EXPIRED
    assert verifier.find_cached_claim(token, at) is None


def test_only_good_tokens_are_remembered() -> None:
    _, verifier = make()
    stranger = LocalTokenIssuer(ISSUER, AUDIENCE).issue(POD, NOW, 600.0)
    with pytest.raises(RequestRefused):
        verifier.verify(stranger, NOW)

    assert not verifier._verified_tokens


def test_a_token_is_not_recalled_once_its_key_is_removed() -> None:
    old, verifier = make()
    new = LocalTokenIssuer(ISSUER, AUDIENCE)
    token, younger = old.issue(POD, NOW, 600.0), new.issue(POD, NOW, 600.0)
    verifier.verify(token, NOW)

    verifier.replace_keys({**read_keys(old.make_jwks()), **read_keys(new.make_jwks())})
    assert verifier.find_cached_claim(token, NOW) == POD
    assert verifier.verify(younger, NOW) == POD

    verifier.replace_keys(read_keys(new.make_jwks()))
    assert verifier.find_cached_claim(token, NOW) is None
    assert verifier.find_cached_claim(younger, NOW) == POD
    with pytest.raises(RequestRefused) as refused:
        verifier.verify(token, NOW)
    assert refused.value.reason is RefusalReason.BAD_TOKEN


def test_a_token_is_not_recalled_once_another_key_has_its_keys_name() -> None:
    issuer, verifier = make()
    token = issuer.issue(POD, NOW, 600.0)
    verifier.verify(token, NOW)
    (name,) = read_keys(issuer.make_jwks())
    (other,) = read_keys(LocalTokenIssuer(ISSUER, AUDIENCE).make_jwks()).values()

    verifier.replace_keys({name: other})

    assert verifier.find_cached_claim(token, NOW) is None


def test_only_a_key_that_is_not_known_is_asked_for() -> None:
    asked: list[None] = []
    issuer = LocalTokenIssuer(ISSUER, AUDIENCE)
    verifier = TokenVerifier(ISSUER, AUDIENCE, read_keys(issuer.make_jwks()), lambda: asked.append(None))
    for token in ("words", issuer.issue(POD, NOW - 9000.0, 600.0), issuer.issue(POD, NOW, 600.0)[:-4]):
        with pytest.raises(RequestRefused):
            verifier.verify(token, NOW)
    assert not asked

    with pytest.raises(RequestRefused):
        verifier.verify(LocalTokenIssuer(ISSUER, AUDIENCE).issue(POD, NOW, 600.0), NOW)
    assert len(asked) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": 1}', '{"keys": [1]}', "null", '{"keys": []}'])
def test_what_is_no_key_document_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ValueError, match="not a JWKS document"):
        read_keys(text)


def test_symmetric_keys_and_those_for_encryption_are_left_out() -> None:
    document = json.loads(LocalTokenIssuer(ISSUER, AUDIENCE).make_jwks())
    (good,) = document["keys"]
    encryption = {**good, "kid": "enc", "use": "enc"}
    symmetric = {"kty": "oct", "kid": "oct", "k": "c2VjcmV0", "alg": "HS256"}

    assert list(read_keys(json.dumps({"keys": [good, encryption, symmetric]}))) == [good["kid"]]
