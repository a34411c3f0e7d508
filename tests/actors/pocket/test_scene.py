"""Scenes: what a prompt asks for is read as items, placed in time, and mixed; and the weights and the adapter around
them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from actors.pocket import english, scene, scene_change, scene_level, scene_people, scene_read, weights
from actors.pocket.adapter import Pocket
from torus_ray.heads import GenerateRequest, Host, Refused, operations_of


def kinds(prompt: str, audio_type: str) -> list[tuple[str, str]]:
    return [(item.kind, item.relation) for item in scene_read.read(prompt, audio_type).items]


@pytest.mark.parametrize(
    ("prompt", "audio_type", "expected"),
    [
        (
            'A woman says "go home" while rain falls in the background.',
            "speech",
            [("speech", "first"), ("sound", "background")],
        ),
        ("A man speaks over soft piano music: “Welcome.”", "speech", [("speech", "first"), ("music", "background")]),
        ("Three knocks, then a dog barks twice", "sound", [("sound", "first"), ("sound", "then")]),
        ("A slow waltz on accordion. The melody is cheerful.", "music", [("music", "first")]),
        ("A violin plays alone, then a cello joins", "music", [("music", "first")]),
        (
            '"Hello," says a girl. "Goodbye," replies an old man.',
            "speech",
            [("speech", "first"), ("speech", "next_sentence")],
        ),
        (
            "A bell rings. Then two seconds of silence. Then a door slams.",
            "sound",
            [("sound", "first"), ("silence", "then"), ("sound", "then")],
        ),
    ],
)
def test_items(prompt: str, audio_type: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(prompt, audio_type) == expected


def test_a_description_around_the_words_describes_the_line() -> None:
    (item,) = scene_read.read('A tired old man speaks slowly. He says "Good night." His voice is deep.', "speech").items
    assert item.quotes == ("Good night.",)
    assert item.speaker is not None
    assert (item.speaker.age, item.speaker.sex) == ("old", "male")
    assert "deep" in item.text


def test_a_word_to_stress_is_not_spoken() -> None:
    reading = scene_read.read('A man says "I want the red one", stressing the word "red".', "speech")
    assert reading.items[0].quotes == ("I want the red one",)
    assert reading.stressed == ("red",)


def onsets_s(wave: np.ndarray, apart_s: float = 0.15) -> list[float]:
    mono = np.pad(wave.mean(axis=0), (441, 0))  # so that a sound at the very start has an onset
    level = np.sqrt(np.convolve(mono**2, np.ones(441) / 441, "same"))
    loud = np.flatnonzero((level[1:] > 0.15 * level.max()) & (level[:-1] <= 0.15 * level.max())) / 44100
    return [t for i, t in enumerate(loud) if i == 0 or t - loud[i - 1] > apart_s]


def test_silence_delays_and_sequence_follows() -> None:
    clip = scene.render_scene("After two seconds of silence, a bell rings.", "sound", 0)
    assert onsets_s(clip.wave)[0] == pytest.approx(2.0, abs=0.2)
    clip = scene.render_scene("One knock on a door, then two seconds of silence, then one knock on a door.", "sound", 0)
    found = onsets_s(clip.wave, 0.6)
    assert len(found) == 2
    assert 1.9 < found[1] - found[0] < 3.2


def test_a_bed_lasts_as_long_as_the_speech_and_is_softer() -> None:
    prompt = 'A man says "The boat leaves at nine." while steady rain falls in the background.'
    both = scene.render_scene(prompt, "speech", 0)
    alone = scene.render_scene('A man says "The boat leaves at nine."', "speech", 0)
    assert both.duration_s > alone.duration_s
    tail = both.wave[:, int(alone.duration_s * 44100) + 4410 : -4410]
    rms = float(np.sqrt((tail**2).mean()))
    assert 0.003 < rms < 0.5 * float(np.sqrt((alone.wave**2).mean()))


def test_left_to_right() -> None:
    clip = scene.render_scene("A car drives past from left to right.", "sound", 0)
    assert clip.channels == 2
    half = clip.frames // 2
    power = (clip.wave**2).reshape(2, -1)
    left_first = power[0, :half].sum() / power[1, :half].sum()
    left_last = power[0, half:].sum() / power[1, half:].sum()
    assert left_first > 1 > left_last


@pytest.mark.parametrize("audio_type", ["speech", "sound", "music"])
def test_same_seed_same_bytes_at_most_ten_seconds(audio_type: str) -> None:
    prompt = (
        'Wind blows. A child whispers "over here" and soft guitar music starts, then a dog barks three times in a cave.'
    )
    one, two = (scene.render_scene(prompt, audio_type, 4) for _ in range(2))
    assert one.wave.tobytes() == two.wave.tobytes()
    assert 1 < one.duration_s <= 10
    assert 0.05 < np.abs(one.wave).max() <= 0.98 + 1e-6


def test_an_element_has_the_length_wanted() -> None:
    assert scene.render_element("steady rain", "sound", 0, seconds=3.0).duration_s == pytest.approx(3.0, abs=0.05)
    assert scene.render_element("soft piano music", "music", 0, seconds=4.0).duration_s == pytest.approx(4.0, abs=1.3)


@pytest.mark.parametrize(
    ("description", "wish", "expected"),
    [
        ('A woman says "I never said that."', 'Change "never" to "always".', 'A woman says "I always said that."'),
        ('A woman says "Hi."', "Make the speaker an old man.", 'An old man says "Hi."'),
        ("A piano melody at 80 bpm.", "Speed it up to 120 bpm.", "A piano melody at 120 bpm."),
        ("A piano melody in C major.", "Move it to D minor.", "A piano melody in D minor."),
        ("A slow piano melody.", "Replace the piano with a violin, keeping the rest.", "A slow violin melody."),
        (
            "Rain falls while thunder rumbles.",
            "Remove the thunder and add a cat meow at the end.",
            "Rain falls. Then a cat meow.",
        ),
    ],
)
def test_a_wish_changes_the_description(description: str, wish: str, expected: str) -> None:
    assert scene_change.resolve(f"{description}\n\nNow change it: {wish}") == expected
    assert scene_change.resolve(description) == description


def test_a_wrong_or_missing_weight_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORUS_CACHE", str(tmp_path))
    good = weights.WEIGHTS["speech.kokoro.vocabulary"]
    weights.path.cache_clear()
    for weight, told in (
        (weights.Weight(good.package, good.distribution, good.file, "0" * 64), "sha256 " + "0" * 64),
        (weights.Weight("no_such_package_here", "no-such==1", "x.onnx", good.sha256), "no such package"),
        (weights.Weight(good.package, good.distribution, "data/none.bin", good.sha256), "no such file"),
    ):
        monkeypatch.setitem(weights.WEIGHTS, "speech.kokoro.vocabulary", weight)
        with pytest.raises(weights.MissingWeights, match="torus env build pocket") as caught:
            weights.path("speech.kokoro.vocabulary")
        assert told in str(caught.value)
        assert "speech.kokoro.vocabulary" in str(caught.value)
    monkeypatch.undo()
    weights.path.cache_clear()
    assert weights.path("speech.kokoro.vocabulary").is_file()


def test_kokoro_is_joined_atomically(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORUS_CACHE", str(tmp_path))
    weights.kokoro_model.cache_clear()
    model = weights.kokoro_model()
    weights.kokoro_model.cache_clear()
    assert model.parent == tmp_path / "pocket"
    assert [p.name for p in model.parent.iterdir() if p.is_file()] == [model.name]


def test_the_adapter_speaks_for_all_heads() -> None:
    model = Pocket()
    model.load(Host())
    assert operations_of(model) == ["generate", "edit", "caption", "answer"]
    (reply,) = model.generate([GenerateRequest("a", "Two knocks on a door.", "sound", 0)])
    assert reply.id == "a"
    assert reply.clip.rate_hz == 44100
    with pytest.raises(Refused):
        model.generate([GenerateRequest("b", " ... ", "sound", 0)])


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ('A woman calls "Supper!" and then a man answers "In a minute."', "female male"),
        ('"Is it far?" asks a boy. "Very far," an old woman replies.', "male female"),
        ('Two voices: the first, a girl, says "Mine." The second, a man, says "Ours."', "female male"),
        ('A man and a woman argue. He says "Left." She says "Right." He says "Fine."', "male female male"),
        ('A lady and her son talk: "Ready?" "Nearly." "Hurry."', "female male female"),
        ('A woman and a man meet. The first says "Hi" and the second says "Bye".', "female male"),
        ('A grandmother tells a boy "Sit" and he says "No".', "female male"),
        ('"Run," a man shouts, "run now," and a woman whispers "quiet".', "male male female"),
    ],
)
def test_each_quote_has_its_speaker(prompt: str, expected: str) -> None:
    cast = scene_people.cast_of(english.mask(prompt))
    assert [cast.people[i].sex for i in cast.of_quote] == expected.split()  # type: ignore[union-attr]
    voices = {tuple(sorted({i for i, p in enumerate(cast.people) if p and p.sex == sex})) for sex in ("male", "female")}
    assert all(len(v) == 1 for v in voices)


@pytest.mark.parametrize(("how", "low_db", "high_db"), [("steady", 12, 24), ("faint", 24, 30), ("loud", 4, 8)])
def test_a_bed_has_its_level_under_the_voice(how: str, low_db: float, high_db: float) -> None:
    clip = scene.render_scene(f'A man says "The shop is shut." with {how} rain in the background.', "speech", 0)
    alone = scene.render_scene('A man says "The shop is shut."', "speech", 0)
    bed = clip.wave[:, int(3.5 * 44100) : int(4.5 * 44100)]
    under = scene_level.active_db(alone.wave) - scene_level.active_db(bed)
    assert low_db <= under <= high_db


def test_surroundings_of_a_speaker_sound() -> None:
    items = scene_read.read('A man stands next to a waterfall and says "Look down."', "speech").items
    assert [(i.kind, i.relation) for i in items] == [("speech", "first"), ("sound", "background")]
    assert len(scene_read.read('A man in a quiet street says "Look."', "speech").items) == 1


def test_a_rate_for_a_time() -> None:
    clip = scene.render_scene("Two clock ticks a second for five seconds.", "sound", 1)
    found = onsets_s(clip.wave)
    assert len(found) == 10
    assert np.diff(found) == pytest.approx(np.full(9, 0.5), abs=0.02)


def test_stated_silence_between_events() -> None:
    clip = scene.render_scene("Two raps on wood with a second and a half of silence between them.", "sound", 0)
    assert np.diff(onsets_s(clip.wave, 0.6)) == pytest.approx([1.56], abs=0.2)


def envelope(prompt: str, parts: int = 5) -> list[float]:
    wave = scene.render_scene(prompt, "sound", 0).wave.mean(axis=0)
    return [float(np.sqrt((p**2).mean())) for p in np.array_split(wave, parts)]


def test_levels_over_time() -> None:
    passing = envelope("An ambulance siren comes closer, passes and vanishes into the distance.")
    assert passing[2] > 2 * max(passing[0], passing[4])
    growing = envelope("A breeze slowly builds up.")
    assert growing == sorted(growing)
    assert growing[4] > 4 * growing[0]


@pytest.mark.parametrize(
    ("prompt", "sources"),
    [
        ("Shattering glass before thumps.", ["shatter", "thud"]),
        ("Thunder, rain and church bells.", ["thunder", "rain", "bell_large"]),
        ("She dropped her keys, coughed, and slammed the door.", ["jingle", "cough", "slam"]),
        ("A kettle sang, and behind it a clock ticked.", ["kettle", "clock"]),
    ],
)
def test_every_named_source_is_there_in_order(prompt: str, sources: list[str]) -> None:
    items = scene_read.read(prompt, "sound").items
    assert [scene_read.sound.match(i.text).source.name for i in items] == sources
