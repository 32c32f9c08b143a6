import json
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.collector.trust.authorities import (
    AUTHORITY_SECONDS,
    PROPAGATION_SECONDS,
    SERVING_SECONDS,
    choose_signing_authority,
    decode_authorities,
    encode_authorities,
    make_ca_bundle,
    rotate_authorities,
)
from muster.collector.trust.certificate import Authority, make_authority, sign_certificate
from support.searches import choose_example_count
from unit.collector.trust.test_certificate import shake_hands

DAY = 24 * 3600.0
T0 = 1_700_000_000.0


def make(now: float, lifetime: float) -> Authority:
    return Authority(f"<{now}>", "key", now, now + lifetime)


def made(*days: float) -> tuple[Authority, ...]:
    return tuple(make(T0 + day * DAY, AUTHORITY_SECONDS) for day in days)


@pytest.mark.parametrize(
    ("known", "day", "expected"),
    [
        pytest.param((), 0, (0,), id="the first"),
        pytest.param((0,), 239, (0,), id="young enough"),
        pytest.param((0,), 240, (0, 240), id="a third of its life is left"),
        pytest.param((0, 240), 241, (0, 240), id="its successor is there"),
        pytest.param((240, 0), 360, (240,), id="an expired one goes"),
        pytest.param((0,), 400, (400,), id="all expired"),
    ],
)
def test_a_successor_comes_in_time(known: tuple[float, ...], day: float, expected: tuple[float, ...]) -> None:
    assert rotate_authorities(made(*known), T0 + day * DAY, make) == made(*expected)


@pytest.mark.parametrize(
    ("known", "day", "expected"),
    [
        pytest.param((0,), 0, 0, id="there is no other"),
        pytest.param((0, 240), 240.9, 0, id="not every agent has heard of it"),
        pytest.param((0, 240), 241, 240, id="announced for a day"),
    ],
)
def test_a_new_one_signs_once_it_is_known(known: tuple[float, ...], day: float, expected: float) -> None:
    (chosen,) = made(expected)

    assert choose_signing_authority(made(*known), T0 + day * DAY) == chosen


@given(st.lists(st.floats(0.0, 30.0), min_size=1, max_size=100))
def test_an_agent_with_a_day_old_bundle_trusts_the_signer_at_any_time(pauses: list[float]) -> None:
    """Rotated at any times, at most 30 days apart."""
    now = T0
    allowed: tuple[Authority, ...] = ()
    heard: list[tuple[float, str]] = []
    for pause in pauses:
        now += pause * DAY
        allowed = rotate_authorities(allowed, now, make)
        heard.append((now, make_ca_bundle(allowed)))
        trusted = [text for at, text in heard if at <= now - PROPAGATION_SECONDS] or [heard[0][1]]
        chosen = choose_signing_authority(allowed, now)
        assert chosen.certificate in trusted[-1]
        assert chosen.expires_at >= now + SERVING_SECONDS


def test_what_is_read_is_what_was_written() -> None:
    current = (make_authority(T0, 60.0), make_authority(T0 + 1.5, 60.0))

    assert decode_authorities(encode_authorities(current)) == current
    assert decode_authorities(encode_authorities(current[::-1])) == current
    assert decode_authorities(encode_authorities(())) == ()


ONE = make_authority(T0, 60.0)
OTHER = make_authority(T0, 60.0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "authorities"),
        ("{}", "authorities"),
        ('{"authorities": [1]}', r"\[0\]: expected certificate, key, madeAt, expiresAt"),
        (encode_authorities([ONE]).replace("madeAt", "made"), r"\[0\]: expected certificate"),
        (encode_authorities([replace(ONE, made_at=True)]), r"\[0\].madeAt: expected float"),
        (encode_authorities([ONE, replace(ONE, key=OTHER.key)]), r"\[1\]: certificate and key are not a pair"),
        (encode_authorities([replace(ONE, key="words")]), r"\[0\]: certificate and key are not a pair"),
        (encode_authorities([replace(ONE, certificate=ONE.key)]), r"\[0\]: certificate and key are not a pair"),
    ],
)
def test_what_is_damaged_is_refused_without_telling_a_key(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        decode_authorities(text)

    assert "PRIVATE" not in str(refused.value)
    assert refused.value.__context__ is None or refused.value.__suppress_context__


@settings(max_examples=choose_example_count(50))
@given(st.text())
def test_no_text_is_more_than_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="it is not"):
        decode_authorities(text)


def test_an_agent_that_trusts_both_goes_on_when_the_new_one_signs() -> None:
    now = time.time()
    old, new = make_authority(now, 3600.0), make_authority(now, 3600.0)

    shake_hands(sign_certificate(new, ["localhost"], now, 60.0), make_ca_bundle((old, new)), "localhost")
    shake_hands(sign_certificate(old, ["localhost"], now, 60.0), make_ca_bundle((old, new)), "localhost")


def test_a_key_is_never_shown() -> None:
    assert "PRIVATE" not in repr(ONE)
    assert "PRIVATE" in json.loads(encode_authorities([ONE]))["authorities"][0]["key"]
