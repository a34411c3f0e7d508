"""Places, distance, side and motion are heard in the signal."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy")
pytest.importorskip("tokenizers")

import numpy as np

from actors.pocket import space

RATE = space.RATE


def burst(seconds: float = 0.4) -> np.ndarray:
    rng = np.random.default_rng(3)
    wave = np.zeros(int(seconds * RATE))
    wave[: RATE // 20] = 0.3 * rng.standard_normal(RATE // 20)
    return wave


def steady(seconds: float = 2.0) -> np.ndarray:
    return 0.2 * np.random.default_rng(4).standard_normal(int(seconds * RATE))


def rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def centroid(x: np.ndarray) -> float:
    power = np.abs(np.fft.rfft(x)) ** 2
    return float((power * np.fft.rfftfreq(len(x), 1 / RATE)).sum() / power.sum())


def decay_s(x: np.ndarray) -> float:
    """Seconds until 95 % of the energy has come."""
    energy = np.cumsum(x**2)
    return float(np.searchsorted(energy, 0.95 * energy[-1]) / RATE)


@pytest.mark.parametrize(
    ("text", "room"),
    [
        ("as if it were recorded in a vast cathedral", "cathedral"),
        ("heard through a closed door", "next room"),
        ("a dog barking in the next room", "next room"),
        ("over a bad telephone line", "telephone"),
        ("in a tiled bathroom", "bathroom"),
        ("in a small kitchen", "kitchen"),
        ("inside a parked car", "car"),
        ("deep under water", "underwater"),
        ("through a megaphone", "megaphone"),
        ("without any reverb", "dry"),
        ("a cat meows twice", None),
    ],
)
def test_a_place_is_read_from_words(text: str, room: str | None) -> None:
    assert space.room_of(text) == room


def test_bigger_rooms_ring_longer() -> None:
    lengths = [
        decay_s(space.place(burst(), 1.0, room)[0].astype(float)) for room in ("dry", "room", "hall", "cathedral")
    ]
    assert lengths == sorted(lengths)
    assert lengths[-1] > 4 * lengths[1]


def test_a_wall_takes_highs_and_level() -> None:
    near, behind = (
        space.place(steady(), 1.0, "dry", tail=False)[0],
        space.place(steady(), 1.0, "next room", tail=False)[0],
    )
    assert centroid(behind) < 0.15 * centroid(near)
    assert rms(behind) < 0.5 * rms(near)


def test_a_telephone_is_a_narrow_band() -> None:
    power = np.abs(np.fft.rfft(space.place(steady(), 1.0, "telephone")[0])) ** 2
    hz = np.fft.rfftfreq(len(steady()), 1 / RATE)
    assert power[(hz > 300) & (hz < 3600)].sum() > 0.97 * power.sum()


def test_farther_is_softer_and_duller() -> None:
    near, far = space.place(steady(), "near", tail=False)[0], space.place(steady(), "far", tail=False)[0]
    assert rms(far) < 0.4 * rms(near)
    assert centroid(far) < 0.6 * centroid(near)


def test_a_side_is_louder() -> None:
    left = space.place(steady(), pan=-0.9)
    assert rms(left[0]) > 4 * rms(left[1])
    centre = space.place(steady(), pan=0.0)
    assert np.allclose(centre[0], centre[1])
    assert rms(centre[0]) == pytest.approx(rms(steady()), rel=1e-3)


def test_motion_is_in_level_and_side() -> None:
    n = len(steady())
    coming = space.place(steady(), movement="approaching", tail=False)[0]
    assert rms(coming[3 * n // 4 :]) > 3 * rms(coming[: n // 4])
    going = space.place(steady(), movement="receding", tail=False)[0]
    assert rms(going[3 * n // 4 :]) < rms(going[: n // 4]) / 3
    crossing = space.place(steady(), movement="left to right", tail=False)
    assert rms(crossing[0, : n // 4]) > 2 * rms(crossing[1, : n // 4])
    assert rms(crossing[1, -n // 4 :]) > 2 * rms(crossing[0, -n // 4 :])


def test_passing_is_loudest_in_the_middle_and_bends_the_pitch() -> None:
    t = np.arange(3 * RATE) / RATE
    out = space.place(0.3 * np.sin(2 * np.pi * 1000 * t), movement="passing", tail=False).sum(axis=0)
    third = len(out) // 3
    assert rms(out[third : 2 * third]) > 2 * max(rms(out[:third]), rms(out[2 * third :]))
    before, after = (
        np.argmax(np.abs(np.fft.rfft(part))) / len(part) * RATE
        for part in (out[: third // 2 * 2], out[2 * third : 3 * third // 2 * 2])
    )
    assert before > after * 1.02


def test_the_same_place_gives_the_same_samples() -> None:
    assert np.array_equal(space.place(burst(), 5.0, "cave", 0.3), space.place(burst(), 5.0, "cave", 0.3))
