"""How each metric is made of measures: one maker a metric, in the table MAKERS (METRICS 3-7, 11)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torus_ray.metrics import kl as kl_metric
from torus_ray.metrics import modality, sets
from torus_ray.metrics.convention import Convention
from torus_ray.metrics.frechet import frechet_distance
from torus_ray.metrics.kernel import kernel_distance
from torus_ray.metrics.wer import CLIP_MEAN, POOLED, normaliser, wer, word_errors
from torus_ray.report.measured import Measured, Place
from torus_ray.report.number import IS_REFERENCE, Number
from torus_ray.stats.clips import estimate_clips
from torus_ray.stats.intervals import Estimate
from torus_ray.stats.jackknife import jackknife

KL_LEAST_S = 0.15
"""A clip no longer than this has no window, so no KL (METRICS 4, 11)."""
Transcripts = Mapping[tuple[str, str], str]
"""By (test, stage): the words that should be said; stages without any are absent."""
Maker = Callable[[Measured, Measured | None, Transcripts | None, str, str], list[Number]]
"""Numbers of an arm's measures, a reference, the transcripts, the name of the measure and of the stages."""


def _why(measured: Measured, measure: str, places: Sequence[Place]) -> dict[str, int]:
    """What became of places without a measure."""
    reasons: Counter[str] = Counter()
    for place in places:
        row, facts = measured.row(measure, place), measured.clips[place]
        if row is not None and row["status"] == "ok":
            continue
        if facts.rendered and facts.clip is None:
            reasons["no_clip"] += 1
        elif not facts.rendered:
            reasons["not_rendered"] += 1
        else:
            reasons[str(row["reason"] or row["status"]) if row else "not_measured"] += 1
    return dict(sorted(reasons.items()))


def _base(measured: Measured, measure: str, places: Sequence[Place]) -> dict[str, Any]:
    why = _why(measured, measure, places)
    return {"expected": len(places), "failed": sum(why.values()), "details": {"why": why} if why else {}}


def _interval(found: Estimate | None, scale: float = 1.0) -> dict[str, Any]:
    if found is None or found.percentile is None:
        return {}
    limits = found.recommended or found.percentile
    return {
        "half_width": found.percentile.half_width * scale,
        "lo": limits.lo * scale,
        "hi": limits.hi * scale,
        "method": limits.method,
    }


# --- one maker a metric -----------------------------------------------------------------------------------------------


def _wer(
    measured: Measured, reference: Measured | None, transcripts: Transcripts | None, measure: str, stages: str
) -> list[Number]:
    """A clip that is missing has said nothing; one that could not be measured is left out and counted."""
    if transcripts is None:
        return [Number(POOLED.column(measure), POOLED.title, measure, stages, None, 0, 0, 0, reason="no_transcripts")]
    places = [place for place in sorted(measured.clips) if place[:2] in transcripts]
    base = _base(measured, measure, places)
    counted = [p for p in places if measured.no_clip(measure, p) or measured.text(measure, p) is not None]
    errors = [
        word_errors(reference=transcripts[place[:2]], hypothesis=measured.text(measure, place)) for place in counted
    ]
    found = wer(errors, backbone=measure)
    spoken = [(each, place[0]) for each, place in zip(errors, counted, strict=True) if each.words]
    tests = [test for _, test in spoken]
    limits = (0.0, float("inf"))
    pooled = estimate_clips([e.errors for e, _ in spoken], [e.words for e, _ in spoken], tests, bounds=limits)
    mean = estimate_clips([e.errors / e.words for e, _ in spoken], [1] * len(spoken), tests, bounds=limits)
    details = {
        **base["details"],
        "normaliser": normaliser(),
        "words": found.words,
        "errors": found.errors,
        "insertion_share": found.insertion_share,
        "above_one_share": found.above_one_share,
        "empty_share": found.empty_share,
        "looped": found.looped,
        "pooled_unlooped": found.pooled_unlooped.value,
        "clip_mean_unlooped": found.clip_mean_unlooped.value,
    }
    expected = len(places) - found.no_words
    common = {**base, "expected": expected, "details": details, "measure": measure, "stages": stages}
    return [
        Number(
            convention=each.column,
            metric=convention.title,
            value=each.value,
            reason=each.reason if len(places) == len(counted) or each.value is not None else "not_measured",
            n=each.n,
            **common,
            **_interval(interval),
        )
        for each, convention, interval in (
            (found.pooled, POOLED, pooled),
            (found.clip_mean, CLIP_MEAN, mean),
        )
    ]


def _cm(convention: Convention) -> Maker:
    def make(
        measured: Measured, reference: Measured | None, transcripts: Transcripts | None, measure: str, stages: str
    ) -> list[Number]:
        """`values` are scores of speech, music, sound and noise; a clip that is missing is a miss."""
        places = sorted(measured.clips)
        labels: list[str | None] = []
        counted = []
        for place in places:
            scores = measured.frames(measure, place)
            if scores is not None:
                labels.append(modality.class_labels(scores=scores[:1], groups=modality.LABELS)[0])
                counted.append(place)
            elif measured.no_clip(measure, place):
                labels.append(None)
                counted.append(place)
        asked = [measured.clips[place].audio_type for place in counted]
        found = modality.modality_check(labels=labels, expected=asked, convention=convention, backbone=measure)
        hits = [float(label == want) for label, want in zip(labels, asked, strict=True)]
        interval = estimate_clips(hits, [1.0] * len(hits), [place[0] for place in counted], bounds=(0, 1))
        base = _base(measured, measure, places)
        confusion = {f"{c.expected}>{c.label or 'none'}": c.clips for c in found.confusion if c.clips}
        return [
            Number(
                convention=found.column,
                metric="CM",
                measure=measure,
                stages=stages,
                value=found.value if counted else None,
                reason=None if counted else "not_measured",
                n=len(counted),
                **{**base, "details": {**base["details"], "hits": found.hits, "confusion": confusion}},
                **_interval(interval, 100.0),
            )
        ]

    return make


def _kl(
    measured: Measured, reference: Measured | None, transcripts: Transcripts | None, measure: str, stages: str
) -> list[Number]:
    """Pairs on the same test and stage; the other readings of the convention stand in the details."""
    places = sorted(measured.clips)
    base = _base(measured, measure, places)
    empty = _without_reference(measured, reference, kl_metric.REF_GEN, measure, stages, base)
    if empty or reference is None:
        return empty
    at = {place[:2]: place for place in reference.clips}
    ours = [_windows(measured, measure, place) for place in places]
    theirs = [_windows(reference, measure, at[p[:2]]) if p[:2] in at else None for p in places]
    found = kl_metric.kl_from_logits(reference=theirs, generated=ours, backbone=measure)
    pairs = [(value, place[0]) for value, place in zip(found.per_clip, places, strict=True) if value is not None]
    width = max((each.shape[1] for each in ours if each is not None), default=0)
    interval = estimate_clips(
        [value for value, _ in pairs],
        [1.0] * len(pairs),
        [test for _, test in pairs],
        bounds=(-kl_metric.EPS * width, -math.log(kl_metric.EPS)),
    )
    others = {
        each.column: each.value if each.value is not None else each.reason
        for each in (
            kl_metric.kl_from_logits(reference=theirs, generated=ours, convention=convention, backbone=measure)
            for convention in kl_metric.CONVENTIONS[1:]
        )
    }
    return [
        Number(
            convention=found.column,
            metric=kl_metric.REF_GEN.title,
            measure=measure,
            stages=stages,
            value=found.value,
            reason=found.reason,
            n=found.n,
            reference=reference.name,
            reference_n=sum(each is not None for each in theirs),
            **{**base, "details": {**base["details"], "others": others}},
            **_interval(interval),
        )
    ]


def _windows(side: Measured, measure: str, place: Place) -> Any:
    duration = side.clips[place].duration_s
    return None if duration is not None and duration <= KL_LEAST_S else side.frames(measure, place)


def _set_distances(convention: Convention) -> Maker:
    def make(
        measured: Measured, reference: Measured | None, transcripts: Transcripts | None, measure: str, stages: str
    ) -> list[Number]:
        """The Frechet distance with its jackknife and floor, and the kernel distance of the same embeddings."""
        base = _base(measured, measure, sorted(measured.clips))
        empty = _without_reference(measured, reference, convention, measure, stages, base)
        if empty or reference is None:
            return empty
        ours, theirs = _clip_set(measured, measure), _clip_set(reference, measure)
        found = sets.frechet(generated=ours, reference=theirs, convention=convention, backbone=measure)
        beside = sets.mmd(generated=ours, reference=theirs, backbone=measure)
        floor = sets.distance_floor(reference=theirs, tests=len(set(ours.tests)) or None)
        common = {
            **base,
            "measure": measure,
            "stages": stages,
            "n": found.n,
            "reference": reference.name,
            "reference_n": found.reference_n,
        }
        facts = {"rows": [found.rows, found.reference_rows], "dimensions": found.dimensions, "low_rank": found.low_rank}
        whole = {**base["details"], **facts}
        if floor.reason:
            whole["no_floor"] = floor.reason
        # Over the frames of whole clips the kernel's own jackknife would take longer than all else together.
        kernel_interval = _jackknife(beside, ours, theirs, sets.MMD2, kernel_distance) if convention is sets.FD else {}
        return [
            Number(
                convention=found.column,
                metric=convention.title,
                value=found.value,
                reason=found.reason,
                floor=floor.value,
                **{**common, "details": whole},
                **_jackknife(found, ours, theirs, convention, frechet_distance),
            ),
            Number(
                convention=beside.column,
                metric=sets.MMD2.title,
                value=beside.value,
                reason=beside.reason,
                **{**common, "details": {**base["details"], **facts}},
                **kernel_interval,
            ),
        ]

    return make


def _clip_set(side: Measured, measure: str) -> sets.ClipSet:
    places = sorted(side.clips)
    return sets.clip_set(
        [side.frames(measure, place) for place in places],
        tests=[place[0] for place in places],
        clips=["/".join(map(str, place)) for place in places],
    )


def _jackknife(
    found: sets.SetDistance, ours: sets.ClipSet, theirs: sets.ClipSet, convention: Convention, distance: sets.Distance
) -> dict[str, Any]:
    if found.value is None:
        return {}
    left = sets.without_each_test(generated=ours, reference=theirs, distance=distance)
    spread = jackknife(found.value, left, bounds=convention.bounds)
    if spread is None or spread.interval is None:
        return {}
    limits = spread.interval
    return {"half_width": limits.half_width, "lo": limits.lo, "hi": limits.hi, "method": limits.method}


def is_itself(measured: Measured, reference: Measured) -> bool:
    """Whether an arm is taken to its own clips: those of another run of the same arm are a reference like any other."""
    return measured.name == reference.name and all(
        reference.clips[place].clip == facts.clip for place, facts in measured.clips.items() if place in reference.clips
    )


def _without_reference(
    measured: Measured,
    reference: Measured | None,
    convention: Convention,
    measure: str,
    stages: str,
    base: Mapping[str, Any],
) -> list[Number]:
    """Why there is no distance; empty where there can be one."""
    reason = None
    info, theirs = measured.measures[measure], reference.measures.get(measure) if reference else None
    if reference is None:
        reason = "no_reference"
    elif is_itself(measured, reference):
        reason = IS_REFERENCE
    elif theirs is None:
        reason = "reference_not_measured"
    elif theirs.fingerprint != info.fingerprint:
        reason = "reference_by_another_head"
    if reason is None:
        return []
    n = sum(measured.frames(measure, place) is not None for place in measured.clips)
    name = reference.name if reference else None
    return [
        Number(
            convention.column(measure),
            convention.title,
            measure,
            stages,
            None,
            n,
            reason=reason,
            reference=name,
            **base,
        )
    ]


SET_METRICS = ("kl", "fad", "fd")
MAKERS: Mapping[str, Maker] = {
    "wer": _wer,
    "cm.argmax4": _cm(modality.NEAREST),
    "cm.class_argmax4": _cm(modality.CLASSES),
    "kl": _kl,
    "fad": _set_distances(sets.FAD),
    "fd": _set_distances(sets.FD),
}
