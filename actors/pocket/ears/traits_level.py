"""Traits of change and spacing: loudness, pitch, pace, regularity, how it begins and ends."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .events import shape_scores
from .reading import Asked
from .signal import HOP_S, smooth
from .traits import Span, Trait, normal

if TYPE_CHECKING:
    from .listen import Evidence

_THEN = r"[^.]*?(?:\bthen\b|\band\b|\bbefore\b|,|\bto\b)[^.]*?"
_UP = (
    r"louder|stronger|more intense|more powerful|crescendo|swell\w*|builds?\b|building|"
    r"grow\w*|increas\w*|strengthen\w*|intensif\w*|(?:soft|quiet|faint)\w* to loud\w*|gains? "
    r"(?:strength|volume|force|level)|surges?"
)
_DOWN = (
    r"softer|quieter|less intense|fad(?:es?|ing)\w*|dies? (?:away|down|out)|dying away|"
    r"diminuendo|decrescendo|decreas\w*|weak\w+|shrinks?|loud\w* to (?:soft|quiet|faint)\w*|"
    r"dwindl\w*|diminish\w*|tapers?\w*|fainter|subsid\w*|ebbs?"
)
_SAME = (
    r"steady\b|(?:stays?|remains?|keeps?|holds?|about) (?:\w+ )?(?:same|even|level|constant|"
    r"steady)|constant\w*|unchang\w*|no (?:real |clear )?change|uniform\w*|does not change|"
    r"equally loud|(?:one|same|even) (?:level|loudness|volume)"
)
_RISE = r"ris(?:es?|ing)|ascend\w*|climb\w*|upwards?|goes up|moves up|higher"
_FALL = r"fall(?:s|ing)?|descend\w*|drop\w*|downwards?|goes down|moves down|lower|sink\w*"


def level_course(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    scene = evidence.scene
    whole = abs(span[0] - scene.span_s[0]) + abs(span[1] - scene.span_s[1]) < 0.1
    contour = scene.level_five if whole else scene.five(scene.level, *span, peak=True)
    return shape_scores([max(v, max(contour) - 24.0) for v in contour], 1.7, 2.5)


def pitch_five(evidence: Evidence, span: Span) -> list[float]:
    """Pitch in semitones over five parts of a span: the voice's F0, the tune's top line, or the sound's own pitch
    or brightness.
    """
    start, stop = span
    if evidence.kind == "music" and len([n for n in evidence.music.top_line if start <= n.start_s <= stop]) >= 4:
        return evidence.music.contour
    f0, clear = evidence.pitch
    frames = min(len(f0), len(evidence.scene.active))
    a, b = int(start / HOP_S), max(min(int(stop / HOP_S), frames), int(start / HOP_S) + 1)
    good = (clear[a:b] > 0.7) & evidence.scene.active[a:b]
    if good.sum() >= 12 and good.mean() > 0.15:
        times, tones = np.flatnonzero(good), 12 * np.log2(f0[a:b][good] / 100.0)
        middle = np.median(tones)
        if evidence.speech.present:
            keep = np.abs(tones - middle) < 10
            times, tones = times[keep], tones[keep]
        edges = np.linspace(times[0], times[-1] + 1, 6)
        parts = [tones[(times >= low) & (times < high)] for low, high in pairwise(edges)]
        return [float(np.median(p)) if len(p) else float(middle) for p in parts]
    return [6 * float(np.log2(max(v, 50.0) / 100.0)) for v in evidence.scene.five(evidence.scene.centroid, start, stop)]


def pitch_course(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    contour = pitch_five(evidence, span)
    scores = shape_scores(contour, 1.2, 1.8)
    turns = np.sign(np.diff(contour)) * (np.abs(np.diff(contour)) > 1.5)
    moves = [t for t in turns if t]
    changes = sum(a != b for a, b in pairwise(moves))
    scores["waver"] = -0.5 if changes >= 2 else -2.5
    return scores


def pace_course(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    if evidence.speech.present and len(evidence.speech.words) >= 6:
        words = evidence.speech.words
        steps = np.log2(
            np.maximum([w.stop_s - w.start_s for w in words], 0.05) / [0.7 + len(w.text) * 0.2 for w in words]
        )
        contour = [-float(np.mean(part)) for part in np.array_split(steps, 5)]
        return shape_scores(contour, 0.35, 0.35)
    return shape_scores(evidence.scene.rate_five(), 0.14, 0.22)


def regularity(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    scene = evidence.scene
    uneven = scene.spacing_irregularity()
    course = shape_scores(scene.rate_five(), 0.14, 0.22)
    gaps = np.log2(np.maximum(np.diff(scene.onsets_s), 0.05)) if len(scene.onsets_s) > 3 else np.zeros(2)
    # A pace that changes steadily leaves little once its trend is taken out; scattered sounds keep their scatter.
    steps = np.arange(len(gaps))
    scatter = float(np.std(gaps - np.polyval(np.polyfit(steps, gaps, 1), steps))) if len(gaps) > 2 else 0.0
    moving = max(course["up"], course["down"]) - course["steady"]
    grouped = len(scene.groups) >= 2 and max(len(g) for g in scene.groups) >= 2
    return {
        "regular": normal(uneven, 0.04, 0.12),
        "irregular": normal(uneven, 0.55, 0.2) - (0.8 if grouped or (moving > 1 and scatter < 0.3) else 0.0),
        "faster": course["up"] + min(moving, 0.0) - 0.2 - 0.5 * (scatter / 0.3) ** 2,
        "slower": course["down"] + min(moving, 0.0) - 0.2 - 0.5 * (scatter / 0.3) ** 2,
        "groups": -0.3 if grouped and uneven > 0.3 else -3.5,
        "single": 0.0 if len(scene.onsets_s) <= 1 else -4.0,
        "continuous": 0.0 if not scene.gaps and scene.struck_share < 0.3 else -2.5,
    }


def suddenness(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    level = smooth(np.maximum(evidence.scene.level, evidence.scene.peak_db - 40), 15)
    a, b = (int(t / HOP_S) for t in evidence.scene.span_s)
    track = level[a + 15 : max(b - 15, a + 46)]
    if len(track) < 31:
        return {"sudden": -0.7, "gradual": -0.7}
    total = float(np.ptp(smooth(track, 51)))
    jump = float(np.abs(track[30:] - track[:-30]).max())
    ratio = jump / max(total, 3.0)
    return {"sudden": normal(ratio, 1.0, 0.3), "gradual": normal(ratio, 0.35, 0.25)}


def ending(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    """Seconds from the last strong moment to 30 dB below it, and whether the clip stops before that."""
    scene = evidence.scene
    level = smooth(scene.level, 5)
    strong = np.flatnonzero(level > scene.peak_db - 10)
    last = int(strong[-1]) if len(strong) else 0
    quiet = np.flatnonzero(level[last:] < scene.peak_db - 32)
    fall = (int(quiet[0]) if len(quiet) else len(level) - last) * HOP_S
    cut = not len(quiet)
    course = scene.level_five
    faded = course[-1] < course[1] - 6 and course[-1] < course[2] - 4
    return {
        "abrupt": normal(float(np.log2(max(fall, 0.03))), -4.0, 1.2) if not cut else normal(fall, 0.0, 0.4),
        "fade": (0.0 if faded else -2.0) + normal(float(np.log2(max(fall, 0.03))), 0.5, 1.5),
        "ring": normal(float(np.log2(max(fall, 0.03))), -0.2, 0.9) - (0.7 if faded else 0.0) - (0.6 if cut else 0.0),
    }


def opening(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    """Seconds from the first sound to 3 dB under the first stretch's peak."""
    scene = evidence.scene
    start = int(span[0] / HOP_S)
    level = smooth(scene.level, 3)[start : max(int(span[1] / HOP_S), start + 5)]
    top = float(level.max()) if len(level) else 0.0
    early = level[: max(5, len(level) // 2)]
    rise = int(np.flatnonzero(early > min(top - 4, early.max() - 1))[0]) * HOP_S if len(early) else 0.0
    return {
        "sudden": normal(float(np.log2(rise + 0.02)), -4.5, 1.3),
        "gradual": normal(float(np.log2(rise + 0.02)), -0.3, 1.2),
    }


def loudness(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    a, b = int(span[0] / HOP_S), int(span[1] / HOP_S) + 1
    part = evidence.scene.level[a:b]
    db = float(np.percentile(part, 90)) if len(part) else -60.0
    return {"loud": normal(db, -14, 5), "medium": normal(db, -24, 5), "soft": normal(db, -36, 7)}


def continuity(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    scene = evidence.scene
    gaps = [b - a for a, b in scene.gaps if b - a > 0.15]
    return {
        "continuous": 0.0 if not gaps else -1.0 - min(len(gaps), 3),
        "interrupted": 0.0 if len(gaps) == 1 else (-0.7 if gaps else -3.0),
        "separate": 0.0 if len(gaps) >= 2 else (-1.2 if gaps else -3.0),
    }


def length(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    pieces = [b - a for a, b in evidence.scene.segments if a < span[1] and b > span[0]] or [span[1] - span[0]]
    typical = float(np.log2(max(float(np.median(pieces)), 0.03)))
    return {
        "short": normal(typical, -2.6, 1.0),
        "medium": normal(typical, -0.3, 0.9),
        "long": normal(typical, 1.6, 1.0),
    }


TRAITS = (
    Trait(
        "loudness course",
        r"loud|level|volume|dynamic|intensit|strength|get (soft|quiet)|energy|amplitude",
        {
            "hump": rf"(?:{_UP}){_THEN}(?:{_DOWN}|softer|back down|falls? (?:back|away)|shrink\w*)",
            "valley": rf"(?:{_DOWN}|dips?){_THEN}(?:{_UP}|returns?|recovers?|comes? back)",
            "up": _UP,
            "down": _DOWN,
            "steady": r"steady (?:level|loudness|volume)|equally loud|(?:same|even|constant) (?:loudness|level|volume)",
        },
        {
            "hump": rf"(?:{_RISE}|peaks?){_THEN}(?:{_FALL}|{_DOWN})|peaks? (?:in the middle|midway|halfway)",
            "valley": rf"(?:{_FALL}|dips?){_THEN}(?:{_RISE}|{_UP}|returns?)",
            "up": rf"{_RISE}|starts? (?:soft|quiet)\w*",
            "down": rf"{_FALL}|recedes?|starts? loud",
            "steady": rf"{_SAME}|\bsame\b|\beven\b|\blevel\b|\bflat\b",
        },
        level_course,
    ),
    Trait(
        "pitch course",
        r"pitch|melod|tune|contour|intonation|glide|\bline\b|notes? (move|go)|\btone\b (move|change)|inflect|direction",
        {
            "waver": (
                r"waver\w*|wobbl\w*|oscillat\w*|warbl\w*|up and down (?:repeatedly|again)|(?:back and "
                r"forth|alternat\w*) between"
            ),
            "hump": (
                r"up(?:ward)? (?:and )?then (?:back )?down|ris\w+ (?:and )?then (?:fall|sink|drop|"
                r"descend)\w*|ascend\w*,? (?:and )?then descend\w*|arch\w*"
            ),
            "valley": (
                r"down(?:ward)? (?:and )?then (?:back )?up|(?:fall|sink|drop|descend)\w* (?:and )?then "
                r"(?:ris|climb|ascend)\w*"
            ),
            "up": r"ris(?:es?|ing) (?:in pitch|scale)|ascend\w*|glid\w+ up\w*|climb\w*|upward\w*",
            "down": r"fall(?:s|ing) in pitch|descend\w*|glid\w+ down\w*|downward\w*",
            "steady": r"(?:same|one|single|steady|constant|fixed) (?:pitch|note)|repeated note|monoton\w*",
        },
        {
            "hump": rf"(?:{_RISE}|up){_THEN}(?:{_FALL}|down)",
            "valley": rf"(?:{_FALL}|down){_THEN}(?:{_RISE}|\bup)",
            "up": rf"{_RISE}|\bup\b",
            "down": rf"{_FALL}|\bdown\b",
            "steady": rf"{_SAME}|\bsame\b|\blevel\b|\bflat\b|\beven\b|not move",
        },
        pitch_course,
    ),
    Trait(
        "pace course",
        r"tempo|\bpace\b|speed|pulse|\brate\b|rhythm|spacing|\bgaps?\b|intervals?|quick|timing|beat",
        {
            "hump": rf"(?:faster|speeds? up|accelerat\w*|quicken\w*){_THEN}(?:slow\w*|decelerat\w*)",
            "valley": rf"(?:slow\w*|decelerat\w*){_THEN}(?:faster|speeds? up|accelerat\w*|quicken\w*)",
            "up": (
                r"faster|accelerat\w*|speed(?:s|ing)? up|quicken\w*|closer together|accelerando|more "
                r"rapid\w*|gaps? (?:get|grow|become)s? shorter|hurries"
            ),
            "down": (
                r"slow(?:s|er|ing)\b(?: down)?|decelerat\w*|ritard\w*|rallent\w*|(?:far|fur)ther apart|"
                r"spread\w* out|gaps? (?:get|grow|become)s? (?:longer|wider)|drags?"
            ),
            "steady": r"(?:steady|same|constant|even|unchanging) (?:tempo|pace|speed|pulse|rate|beat|rhythm)",
        },
        {
            "up": r"shorter|tighter|shrink\w*|quicker",
            "down": r"longer|wider|widen\w*",
            "steady": rf"{_SAME}|\bsame\b|\beven(?:ly)?\b|regular\w*|equal\w*",
        },
        pace_course,
    ),
    Trait(
        "regularity",
        r"spac(?:ed|ing)|\bpace\b|rhythm|regular|pattern|timing|pulse|repeat|interval|arrang|distribut|gaps?",
        {
            "irregular": (
                r"irregular\w*|uneven\w*|random\w*|scattered|erratic\w*|haphazard\w*|unpredictab\w*|"
                r"ragged\w*|no (?:fixed|clear|steady) (?:pattern|rhythm|beat)"
            ),
            "faster": r"closer (?:and closer )?together|accelerat\w*|faster and faster|gather\w* speed|speed\w* up",
            "slower": r"(?:far|fur)ther (?:and (?:far|fur)ther )?apart|slow\w* down|spread\w* out",
            "groups": r"in (?:pairs|twos|threes|groups|bursts|clusters)|pairs of|groups of|bursts|clusters?",
            "regular": r"regular\w*|even(?:ly)?\b(?: spaced)?|equal\w*|metronom\w*|like a clock|periodic\w*|steady",
            "continuous": r"continuous\w*|unbroken|without (?:a )?(?:break|pause|gap)s?",
            "single": r"(?:only|just) (?:once|one)|a single",
        },
        {},
        regularity,
    ),
    Trait(
        "suddenness",
        r"how (?:does|do|is)|change|come|onset|arriv|shift",
        {
            "sudden": r"sudden\w*|abrupt\w*|all at once|jumps?|in one step|instant\w*",
            "gradual": r"gradual\w*|slowly|little by little|bit by bit|smoothly|step by step",
        },
        {},
        suddenness,
    ),
    Trait(
        "ending",
        r"\bends?\b|ending|finish|stops?\b|close\b|conclu|tail|cease|final|last",
        {
            "abrupt": (
                r"abrupt\w*|cuts? (?:off|out|short)|stops? (?:dead|short|suddenly|at once)|sudden\w* "
                r"(?:stop|silence|end)\w*|clipped|clean stop"
            ),
            "ring": (
                r"ring\w*|reverb\w*|linger\w*|echo\w*|resonat\w*|held (?:note|tone|chord)|long tail|"
                r"hangs? (?:in|on)"
            ),
            "fade": r"fad\w+|dies? away|dwindl\w*|trails? off|tapers?|gradual\w*|dissolv\w*",
        },
        {"abrupt": r"sudden\w*|hard|dead"},
        ending,
    ),
    Trait(
        "opening",
        r"\bstarts?\b|\bbegins?\b|opening|attack|onset|enter|come in|first",
        {
            "sudden": (
                r"sudden\w*|abrupt\w*|(?:sharp|hard|instant|crisp) (?:attack|onset|start)|at full "
                r"(?:level|volume)|with a (?:bang|hit|strike)"
            ),
            "gradual": (
                r"gradual\w*|fad\w+ in|slow (?:attack|swell|onset)|soft(?:ly)? (?:attack|onset|start)|"
                r"creeps? in|from (?:nothing|silence)"
            ),
        },
        {},
        opening,
    ),
    Trait(
        "loudness",
        r"how loud|loudness|volume|level|dynamic",
        {},
        {
            "loud": r"\bloud\b|fort(?:e|issimo)|full (?:volume|force)|strong",
            "medium": r"moderate|medium|mezzo",
            "soft": r"\bsoft\b|quiet|pian(?:o|issimo)\b|faint|barely",
        },
        loudness,
    ),
    Trait(
        "continuity",
        r"continu|break|pause|silence|interrupt|gap|how is .* (?:spread|laid)|unfold",
        {
            "continuous": (
                r"continuous\w*|unbroken|without (?:a |any )?(?:break|pause|gap|stop)\w*|no (?:gap|break|"
                r"pause|silence)s?|uninterrupted"
            ),
            "interrupted": (
                r"(?:one|a|single|brief|long|short) (?:\w+ )?(?:gap|break|pause|silence)\b|interrupted "
                r"once|stops and (?:starts|resumes)"
            ),
            "separate": (
                r"separate|several (?:gap|pause|burst|piece)s?|on and off|in (?:short )?bursts|many "
                r"(?:gap|pause)s|stop[- ]start"
            ),
        },
        {},
        continuity,
    ),
    Trait(
        "length",
        r"how long|duration|length|\blast",
        {},
        {
            "short": r"\bshort\b|brief|momentary|clipped|instant|tiny",
            "medium": r"medium|moderate",
            "long": r"\blong\b|sustained|drawn[- ]out|prolonged|lengthy|held",
        },
        length,
    ),
)
