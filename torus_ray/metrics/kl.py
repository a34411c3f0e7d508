"""KL divergence of a tagger's class laws, clip by clip against the reference system (METRICS 4).

    p(w) = softmax(logits of window w);  P = mean of p over a clip's windows;  KL = sum ref (log ref - log(gen + eps))

The direction, where windows are averaged and what turns logits into a law differ between tools: each way has a name.
eps stands only inside the second logarithm and nothing is renormalised, so equal laws give about -0.0005 (527 classes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from torus_ray.errors import InputError
from torus_ray.metrics.arrays import Array, read_array, same_length
from torus_ray.metrics.convention import Convention, Measure

EPS = 1e-6
_MOST = float(-np.log(EPS))


def _convention(name: str, says: str, source: str, most: float | None = _MOST, headline: bool = False) -> Convention:
    return Convention(name, "KL", "nats", "lower", (None, most), 1, says, f"METRICS 4; {source}", headline)


REF_GEN = _convention(
    "kl.clip_mean.ref_gen",
    "KL(reference || generated) of mean-over-windows softmax laws, mean over pairs of clips",
    "audiocraft metrics/kld.py `kld` where each clip is one window",
    headline=True,
)
GEN_REF = _convention(
    "kl.clip_mean.gen_ref",
    "the other direction, KL(generated || reference)",
    "audiocraft `kld_qp` at one window a clip",
)
BOTH = _convention("kl.clip_mean.both", "sum, not half, of both directions", "audiocraft `kld_both`", 2 * _MOST)
PAIRS = _convention(
    "kl.audiocraft_pairs",
    "KL(reference || generated) of paired windows, mean over all windows; needs clips of equally many windows",
    "audiocraft `kld`",
)
MEAN_LOGITS = _convention(
    "kl.mean_logits.gen_ref",
    "KL(generated || reference) of the softmax of logits averaged over windows",
    "stable-audio-metrics src/passt_kld.py, its pooling (its windows overlap and are peak-normalised)",
)
SIGMOID = _convention(
    "kl.sigmoid.ref_gen",
    "sum of ref (log ref - log(gen + eps)) over sigmoids of logits averaged over windows, which are no law",
    "audioldm_eval `kullback_leibler_divergence_sigmoid`",
    None,
)
CONVENTIONS = (REF_GEN, GEN_REF, BOTH, PAIRS, MEAN_LOGITS, SIGMOID)


@dataclass(frozen=True)
class Kl(Measure):
    """Mean over pairs. per_clip: the value of each pair, None where a clip of it is missing or has no window."""

    per_clip: tuple[float | None, ...]


def softmax(logits: ArrayLike) -> Array:
    """Softmax over the last axis, safe for any finite logits."""
    values = np.asarray(logits, dtype=np.float64)
    raised = np.exp(values - values.max(axis=-1, keepdims=True))
    law: Array = raised / raised.sum(axis=-1, keepdims=True)
    return law


def clip_probabilities(logits: ArrayLike) -> Array:
    """(classes,) law of a clip from its logits (windows, classes): softmax a window, mean over windows."""
    law: Array = softmax(read_array(logits, 2, "logits")).mean(axis=0)
    return law


def kl_divergence(p: ArrayLike, q: ArrayLike, *, eps: float = EPS) -> float:
    """sum p (log p - log(q + eps)) of two (classes,) arrays; classes with p = 0 add nothing.

    Raises InputError on shapes that differ, negative entries, or a value without limit (eps 0 where q is 0).
    """
    first, second = read_array(p, 1, "p"), read_array(q, 1, "q")
    if first.shape != second.shape or (first < 0).any() or (second < 0).any() or eps < 0:
        raise InputError(
            f"laws of {first.shape[0]} and {second.shape[0]} classes, least entries {first.min():.3g} and "
            f"{second.min():.3g}, eps {eps}",
            expected="equally many classes, nothing negative",
        )
    there = first > 0
    if eps == 0 and (second[there] == 0).any():
        raise InputError("q is 0 where p is not: without eps the divergence has no limit", expected="eps above 0")
    return float((first[there] * (np.log(first[there]) - np.log(second[there] + eps))).sum())


def kl(
    *,
    reference: Sequence[ArrayLike | None],
    generated: Sequence[ArrayLike | None],
    convention: Convention = REF_GEN,
    backbone: str = "",
) -> Kl:
    """KL over pairs of clips from their laws, (classes,) each, or None for a clip that is missing; pairs by position.

    convention: REF_GEN, GEN_REF or BOTH; the others need windows: :func:`kl_from_logits`.
    Raises InputError on lengths that differ, or on anything that is no law: entries below 0, a sum other than 1.
    """
    if convention not in _LAWS:
        raise InputError(
            f"{convention.name} needs the logits of windows",
            expected=f"one of {', '.join(each.name for each in _LAWS)}",
            mend="call kl_from_logits",
        )
    pairs = _paired(reference, generated, _law)
    values = [_LAWS[convention](*pair) if pair else None for pair in pairs]
    return _mean(values, convention, backbone)


def kl_from_logits(
    *,
    reference: Sequence[ArrayLike | None],
    generated: Sequence[ArrayLike | None],
    convention: Convention = REF_GEN,
    backbone: str = "",
) -> Kl:
    """KL over pairs of clips from the logits of their windows, (windows, classes) each, by any of CONVENTIONS.

    None, or no window, is a clip that is missing. PAIRS weighs windows alike and is None with the reason
    `windows_differ` where the clips of a pair have different numbers of them.
    """
    pairs = _paired(reference, generated, lambda values, what: read_array(values, 2, what))
    if convention is PAIRS:
        return _window_pairs(pairs, backbone)
    values = [_LOGITS[convention](*pair) if pair else None for pair in pairs]
    return _mean(values, convention, backbone)


Pair = tuple[Array, Array]


def _paired(
    reference: Sequence[ArrayLike | None],
    generated: Sequence[ArrayLike | None],
    read: Callable[[ArrayLike, str], Array],
) -> list[Pair | None]:
    same_length(reference=reference, generated=generated)
    pairs: list[Pair | None] = []
    for index, (theirs, ours) in enumerate(zip(reference, generated, strict=True)):
        if theirs is None or ours is None or not np.size(theirs) or not np.size(ours):
            pairs.append(None)
            continue
        ref, gen = read(theirs, f"clip {index}, reference,"), read(ours, f"clip {index}, generated,")
        if ref.shape[-1] != gen.shape[-1]:
            raise InputError(f"clip {index} has {ref.shape[-1]} classes in the reference, {gen.shape[-1]} generated")
        pairs.append((ref, gen))
    return pairs


def _law(values: ArrayLike, what: str) -> Array:
    law = read_array(values, 1, what)
    # Features that are no class law give small meaningless values: refuse them instead.
    if (law < 0).any() or abs(float(law.sum()) - 1) > 1e-3:
        raise InputError(
            f"{what} is no law over classes: least entry {law.min():.3g}, sum {law.sum():.6g}",
            expected="entries from 0 that sum to 1",
            mend="pass probabilities of a classifier, or its logits to kl_from_logits",
        )
    return law


def _mean(values: Sequence[float | None], convention: Convention, backbone: str) -> Kl:
    there = [value for value in values if value is not None]
    mean = float(np.mean(there)) if there else None
    measure = convention.measure(mean, len(there), len(values), backbone=backbone)
    return Kl(measure.column, measure.value, measure.n, measure.expected, measure.reason, tuple(values))


def _window_pairs(pairs: Sequence[Pair | None], backbone: str) -> Kl:
    windows: list[float] = []
    per_clip: list[float | None] = []
    differ = False
    for pair in pairs:
        if pair is None or len(pair[0]) != len(pair[1]):
            differ |= pair is not None
            per_clip.append(None)
            continue
        found = [kl_divergence(ref, gen) for ref, gen in zip(softmax(pair[0]), softmax(pair[1]), strict=True)]
        windows += found
        per_clip.append(float(np.mean(found)))
    n = sum(value is not None for value in per_clip)
    mean = float(np.mean(windows)) if windows and not differ else None
    reason = "windows_differ" if differ else ""
    measure = PAIRS.measure(mean, n, len(pairs), backbone=backbone, reason=reason)
    return Kl(measure.column, measure.value, n, measure.expected, measure.reason, tuple(per_clip))


_LAWS: Mapping[Convention, Callable[[Array, Array], float]] = MappingProxyType(
    {
        REF_GEN: kl_divergence,
        GEN_REF: lambda ref, gen: kl_divergence(gen, ref),
        BOTH: lambda ref, gen: kl_divergence(ref, gen) + kl_divergence(gen, ref),
    }
)


def _sigmoid(logits: Array) -> Array:
    scores: Array = np.exp(-np.logaddexp(0.0, -logits.mean(axis=0)))
    return scores


def _of_laws(convention: Convention) -> Callable[[Array, Array], float]:
    return lambda ref, gen: _LAWS[convention](clip_probabilities(ref), clip_probabilities(gen))


_LOGITS: Mapping[Convention, Callable[[Array, Array], float]] = MappingProxyType(
    {
        **{each: _of_laws(each) for each in _LAWS},
        MEAN_LOGITS: lambda ref, gen: kl_divergence(softmax(gen.mean(axis=0)), softmax(ref.mean(axis=0))),
        SIGMOID: lambda ref, gen: kl_divergence(_sigmoid(ref), _sigmoid(gen)),
    }
)
