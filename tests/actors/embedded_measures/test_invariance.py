"""The same sound gives the same numbers on the real embedded heads: in any format, any batch, any order, twice; and the
odd clips of METRICS 11. What is allowed stands in docs/metrics.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
import soxr

from tests.actors.embedded_measures import test_heads
from tests.actors.embedded_measures.test_heads import measure, stored

pytestmark = [test_heads.pytestmark, pytest.mark.timeout(300)]

MASTER_HZ, SECONDS = 48_000, 2
PLAIN = (16_000, 1, 16)
FORMATS = [(rate, 1, bits) for rate in (16_000, 44_100, 48_000) for bits in (16, 24)]
"""Two equal channels are exactly one (below), so that one is enough here."""
KL, FAD, FD = 0.03, 0.15, 0.04
"""How far the numbers of 9 clips against 9 may be from those of the plain format, as a share: the network takes its
input in 8 bits, so the last bit of a sample can turn a code."""
TAGS = ("yamnet521", "yamnet1024", "yamnet4")
Format = tuple[int, int, int]


@cache
def master(seed: int) -> Any:
    """Noise of a colour, a decaying chord, or clicks, in turn: content up to 20 kHz, never near full scale."""
    rng = np.random.default_rng(seed)
    time_s = np.arange(SECONDS * MASTER_HZ) / MASTER_HZ
    noise = rng.standard_normal(len(time_s))
    if seed % 3 == 0:
        smooth = int(rng.integers(1, 30))
        return 0.15 * np.convolve(noise, np.ones(smooth) / np.sqrt(smooth), mode="same").clip(-4, 4)
    if seed % 3 == 1:
        notes = 110 * 2 ** (rng.integers(0, 36, 4) / 12)
        rung = [np.sin(2 * np.pi * note * k * time_s) / k for note in notes for k in range(1, 12)]
        return 0.1 * np.exp(-2 * (time_s % 0.5)) * np.sum(rung, axis=0) / 2
    gaps = (time_s * rng.uniform(4, 12)) % 1
    return 0.2 * noise.clip(-4, 4) * np.exp(-60 * gaps)


def clip_of(wave: Any, kind: Format, rate_hz: int = MASTER_HZ) -> bytes:
    rate, channels, bits = kind
    moved = soxr.resample(wave, rate_hz, rate, quality="VHQ") if rate != rate_hz else wave
    return stored(np.tile(moved, (channels, 1)), rate, bits)


@pytest.fixture(scope="module")
def tags(tagger: Any) -> Callable[[Format, range], Mapping[str, list[Any]]]:
    """Of each measure, one array a clip."""

    @cache
    def of(kind: Format, seeds: range) -> Mapping[str, list[Any]]:
        clips = [clip_of(master(seed), kind) for seed in seeds]
        return {name: [np.array(measure(tagger, name, clip)["values"]) for clip in clips] for name in TAGS}

    return of


OURS, THEIRS = range(9), range(9, 18)


@pytest.mark.parametrize("kind", FORMATS[1:])
def test_kl_fad_fd_and_cm_are_those_of_the_clip_in_any_format(tags: Any, kind: Format) -> None:
    from torus_ray.metrics.frechet import frechet_distance
    from torus_ray.metrics.kl import kl_from_logits

    def numbers(of: Format) -> list[float]:
        ours, theirs = tags(of, OURS), tags(PLAIN, THEIRS)
        kl = kl_from_logits(reference=theirs["yamnet521"], generated=ours["yamnet521"]).value
        fad = frechet_distance(np.concatenate(ours["yamnet521"]), np.concatenate(theirs["yamnet521"]))
        fd = frechet_distance(np.stack(ours["yamnet1024"]), np.stack(theirs["yamnet1024"]))
        assert kl is not None
        return [kl, fad, fd]

    for found, expected, share in zip(numbers(kind), numbers(PLAIN), (KL, FAD, FD), strict=True):
        assert found == pytest.approx(expected, rel=share)
    for one, other in zip(tags(kind, OURS)["yamnet4"], tags(PLAIN, OURS)["yamnet4"], strict=True):
        assert np.argmax(one) == np.argmax(other)


@pytest.mark.parametrize("bits", [16, 24])
def test_two_equal_channels_are_exactly_one(tags: Any, bits: int) -> None:
    for name in TAGS:
        for one, two in zip(tags((48_000, 1, bits), OURS)[name], tags((48_000, 2, bits), OURS)[name], strict=True):
            assert np.array_equal(one, two)


def test_a_batch_in_any_order_gives_what_each_clip_alone_gives(tagger: Any, recogniser: Any) -> None:
    from torus_ray.heads import MeasureRequest

    clips = [clip_of(master(seed), PLAIN) for seed in range(2)]
    for model, names in ((tagger, TAGS), (recogniser, ("whisper-base",))):
        alone = {(at, name): measure(model, name, clip) for at, clip in enumerate(clips) for name in names}
        asked = [MeasureRequest(f"{at} {name}", name, clips[at], 0) for at, name in reversed(alone)]
        for reply in model.measure(asked):
            at, name = reply.id.split()
            assert dict(reply.values) == alone[int(at), name]


def test_a_clip_of_twelve_seconds_twice_gives_the_same_and_all_of_it(tagger: Any, recogniser: Any) -> None:
    clip = stored(np.concatenate([soxr.resample(master(seed), MASTER_HZ, 16_000) for seed in range(6)]))
    for model, names in ((tagger, TAGS), (recogniser, ("whisper-base",))):
        for name in names:
            assert measure(model, name, clip) == measure(model, name, clip)
    assert np.shape(measure(tagger, "yamnet521", clip)["values"]) == (12, 521)


def test_words_are_the_same_in_any_format(recogniser: Any) -> None:
    from actors.pocket.adapter import Pocket  # type: ignore[import-not-found]
    from torus_ray.audio import decode, encode, mono
    from torus_ray.heads import GenerateRequest, Host

    voice = Pocket()
    voice.load(Host())
    words = "The train to the city leaves at noon."
    (reply,) = voice.generate([GenerateRequest("1", f'A woman says "{words}"', "speech", 0, words)])
    clip = decode(encode(reply.clip).data)
    spoken = mono(clip, clip.rate_hz)
    kinds = [PLAIN, (16_000, 2, 24), (44_100, 1, 24), (48_000, 2, 16)]
    told = [measure(recogniser, "whisper-base", clip_of(spoken, kind, clip.rate_hz))["text"] for kind in kinds]
    assert told == [told[0]] * 4
    assert "train" in told[0].lower()


def test_a_set_against_itself_is_at_no_distance(tags: Any) -> None:
    from torus_ray.metrics.frechet import frechet_distance
    from torus_ray.metrics.kl import kl_from_logits

    ours = tags(PLAIN, OURS)
    assert frechet_distance(np.stack(ours["yamnet1024"]), np.stack(ours["yamnet1024"])) == pytest.approx(0, abs=1e-6)
    same = kl_from_logits(reference=ours["yamnet521"], generated=ours["yamnet521"])
    assert same.value is not None
    assert -521e-6 <= same.value < 0
