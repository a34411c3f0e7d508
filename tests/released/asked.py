"""What every head is asked, and what has to hold of its replies whatever the weights are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.actors.serving import reply, results
from tests.released.cases import Say
from tests.systems.clips import answer, caption, heard, stored
from torus_ray.audio import Clip, encode
from torus_ray.engine.hosting import HeadServer
from torus_ray.heads import Request

QUESTIONS = ("What is heard? A. a dog B. rain", "How loud is it? A. loud B. soft", "How often? A. once B. twice")


def silence(seconds: float = 1.0, rate_hz: int = 44_100) -> bytes:
    return encode(Clip(np.zeros((2, round(seconds * rate_hz)), np.float32), rate_hz)).data


def noise(seconds: float = 1.0, rate_hz: int = 44_100) -> bytes:
    wave = 0.1 * np.random.default_rng(1).normal(size=(2, round(seconds * rate_hz)))
    return encode(Clip(wave.astype(np.float32), rate_hz)).data


def rendered(server: HeadServer, request: Request) -> tuple[Clip, str]:
    """The clip of a request served alone, and its notes."""
    (result,) = results(server, request)
    return heard(result), str(result["reply"]["notes"])


def same(one: Clip, other: Clip) -> bool:
    return one.wave.shape == other.wave.shape and bool(np.array_equal(one.wave, other.wave))


def renders(server: HeadServer, say: Say, make: Callable[[str, int], Request], rate_hz: int, channels: int) -> Clip:
    """make(prompt, seed) -> a request. The clip of seed 7 has the rate, the channels and finite samples; it comes again
    from the same seed and in a batch, and is another one from another seed and another prompt."""
    first, notes = rendered(server, make("a dog barks twice", 7))
    assert (first.rate_hz, first.channels) == (rate_hz, channels), (first.rate_hz, first.channels)
    assert np.isfinite(first.wave).all()
    assert np.abs(first.wave).max() > 0
    told = f"{first.channels} x {first.wave.shape[-1]} samples at {first.rate_hz} Hz ({first.duration_s:.2f} s)"
    say(f"{told}, peak {np.abs(first.wave).max():.3f}, notes {notes!r}")
    other, _ = rendered(server, make("a dog barks twice", 8))
    assert not same(first, other), "another seed came to the same clip"
    second, _ = rendered(server, make("rain on a tin roof", 7))
    assert not same(first, second), "another prompt came to the same clip"
    say("another seed and another prompt give another clip")
    both = [heard(result) for result in results(server, make("a dog barks twice", 7), make("rain on a tin roof", 7))]
    assert same(both[0], first), "the same request and seed came to another clip in a batch"
    assert same(both[1], second), "the second of a batch is not what it is alone"
    say("the same seed again, in a batch of two: to the last bit what each is alone")
    return first


def listens(server: HeadServer, say: Say, instruction: str, *, silent_caption: bool = True) -> None:
    """Captions and answers are texts, the same for the same seed; a question's answer does not hang on the others."""
    clip = stored(2.0)
    texts = [str(reply(server, caption(instruction, heard_clip))["text"]) for heard_clip in (clip, clip, noise(2.0))]
    assert texts[0] == texts[1], "the same clip and seed came to another caption"
    other = "another" if texts[2] != texts[0] else "the same"
    say(f"a caption of {len(texts[0])} characters, the same again; of another clip {other}")
    together = reply(server, answer(clip, *QUESTIONS))["texts"]
    alone = [reply(server, answer(clip, question))["texts"][0] for question in QUESTIONS]
    assert together == alone, "an answer hangs on the questions beside it"
    say(f"three answers, {len(set(together))} different, each as it is alone")
    none = reply(server, answer(None, QUESTIONS[0]))
    quiet = reply(server, answer(silence(), QUESTIONS[0]))
    lengths = [len(given["texts"][0]) for given in (none, quiet)]
    say(f"without a clip: {lengths[0]} characters, notes {none['notes']!r}; of silence: {lengths[1]}")
    if silent_caption:
        say(f"a caption of silence: {len(reply(server, caption(instruction, silence()))['text'])} characters")
