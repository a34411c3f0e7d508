"""Traits of place and colour: room, distance, movement, what lies between, side, brightness, material."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .events import shape_scores
from .reading import Asked
from .signal import HOP_S
from .traits import Span, Trait, normal

if TYPE_CHECKING:
    from .listen import Evidence


def room(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    """By the log of T60: a padded booth 0.12 s, a living room 0.35 s, a hall 1.2 s, a cathedral 2.8 s; open air
    has no tail.
    """
    if evidence.space.decay_s <= 0:
        return {}
    place = float(np.log2(max(evidence.space.decay_s, 0.06)))
    return {
        "dry": normal(place, -3.0, 0.8),
        "small": normal(place, -1.4, 0.6),
        "medium": normal(place, -0.4, 0.6),
        "large": normal(place, 0.5, 0.6),
        "huge": normal(place, 1.5, 0.8),
        "outdoors": normal(place, -2.7, 0.9) - 0.4,
        "echo": -2.0 + 0.3 * min(place, 1.0),
    }


def far_score(evidence: Evidence) -> float:
    """0 near to 1 far: weak high frequencies, a long tail, a low level."""
    scene, space = evidence.scene, evidence.space
    dull = np.clip((-16 - space.brightest_db) / 20, 0, 1)
    tail = np.clip(np.log2(max(space.decay_s, 0.1) / 0.25) / 3, 0, 1)
    low = np.clip((-20 - scene.peak_db) / 25, 0, 1)
    return float(0.35 * dull + 0.25 * tail + 0.4 * low)


def distance(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    level = shape_scores(evidence.scene.level_five, 2.0, 3.0)
    far = far_score(evidence)
    still = level["steady"]
    return {
        "near": normal(far, 0.1, 0.2) + 0.3 * still,
        "middle": normal(far, 0.4, 0.2) + 0.3 * still,
        "far": normal(far, 0.75, 0.25) + 0.3 * still,
        "approach": level["up"],
        "recede": level["down"],
        "pass": level["hump"],
        "return": level["valley"],
        "still": still,
    }


def medium(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    """What lies between by bandwidth: a wall leaves only lows, a telephone only the middle."""
    bright = max(evidence.space.brightest_db, -45.0)
    power = (
        (evidence.scene.magnitude[evidence.scene.active] ** 2).sum(axis=0)
        if evidence.scene.active.any()
        else np.ones(257)
    )
    share_low = float(power[:9].sum() / max(power.sum(), 1e-12))
    thin = normal(share_low, 0.01, 0.06)
    return {
        "muffled": normal(bright, -34.0, 20.0 if bright < -34.0 else 7.0) - (1.5 if thin > -0.3 else 0.0),
        "telephone": thin + normal(bright, -14.0, 8.0),
        "clear": normal(max(bright, -28.0), -6.0, 9.0) - (2.0 if thin > -0.3 and bright < -8.0 else 0.0),
    }


def side(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    pan = np.asarray(evidence.space.pan)
    mean, change = float(pan.mean()), float(pan[-1] - pan[0])
    still = normal(change, 0.0, 0.3)
    alternating = int(np.sum(np.diff(np.sign(np.where(np.abs(pan) > 0.25, pan, 0))) != 0)) >= 2
    return {
        "left": normal(mean, -0.7, 0.3) + still,
        "right": normal(mean, 0.7, 0.3) + still,
        "centre": normal(mean, 0.0, 0.2) + still,
        "to right": normal(min(change, 1.2), 1.2, 0.45),
        "to left": normal(max(change, -1.2), -1.2, 0.45),
        "alternate": -0.3 if alternating else -3.0,
        "wide": -0.8 if evidence.space.width > 0.5 and abs(mean) < 0.3 else -3.0,
    }


def span_colour(evidence: Evidence, span: Span) -> tuple[float, float, float]:
    """(log2 of the centroid in Hz, flatness, seconds of decay) of a span."""
    scene = evidence.scene
    a, b = int(span[0] / HOP_S), int(span[1] / HOP_S) + 1
    mask = scene.active[a:b]
    weight = 10 ** (scene.level[a:b] / 20) * mask + 1e-9
    centroid = float(np.average(np.log2(np.maximum(scene.centroid[a:b], 60.0)), weights=weight))
    flat = float(np.average(scene.flatness[a:b], weights=weight))
    falls = [e.fall_db for e in scene.events if span[0] - 0.1 <= e.start_s <= span[1]]
    decay = 60.0 * 0.25 / max(float(np.median(falls)), 1.0) if falls else 2.0
    return centroid, flat, decay


def brightness(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    # What is darker than dark is dark: beyond the outermost values nothing is taken off.
    centroid = float(np.clip(span_colour(evidence, span)[0], 8.5, 11.6))
    return {
        "dark": normal(centroid, 8.7, 0.7),
        "medium": normal(centroid, 10.0, 0.6),
        "bright": normal(centroid, 11.4, 0.8),
    }


# Material: (log2 centroid in Hz, flatness, log2 of decay time in s), each with its usual place: physics of struck
# bodies.
_MATERIALS = {
    "metal": (11.3, 0.02, 0.9),
    "glass": (12.0, 0.05, -0.4),
    "wood": (9.8, 0.06, -2.0),
    "stone": (10.6, 0.2, -2.6),
    "plastic": (10.6, 0.1, -2.4),
    "cloth": (9.5, 0.25, -2.0),
    "water": (10.6, 0.2, 0.5),
    "gravel": (12.0, 0.45, -1.0),
    "skin": (8.0, 0.03, -1.2),
    "paper": (12.0, 0.5, -1.0),
}


def material(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    centroid, flat, decay = span_colour(evidence, span)
    place = float(np.log2(max(decay, 0.03)))
    return {
        name: normal(centroid, c, 0.9) + normal(np.log2(flat + 0.01), np.log2(f + 0.01), 1.4) + normal(place, d, 1.2)
        for name, (c, f, d) in _MATERIALS.items()
    }


def tonality(evidence: Evidence, span: Span, asked: Asked) -> dict[str, float]:
    _, flat, _ = span_colour(evidence, span)
    noisy = float(np.log2(flat + 0.003))
    return {
        "tone": normal(noisy, -7.0, 1.8),
        "noise": normal(noisy, -1.5, 1.3),
        "struck": 0.0 if evidence.scene.struck_share > 0.5 else -2.0,
        "held": 0.0 if evidence.scene.struck_share < 0.3 else -2.0,
    }


TRAITS = (
    Trait(
        "room",
        r"room|space|place|acoust|surround|setting|echo|reverb|where|environment|hall|indoor|\btail\b",
        {
            "dry": (
                r"\bdry\b|dead room|anechoic|(?:no|without(?: any)?) (?:echo\w*|reverb\w*|tail)|padded|"
                r"booth|closet|wardrobe|carpeted|heavily damped|close and dry"
            ),
            "huge": r"cathedral|cavern\w*|\bcave\b|huge|vast|enormous|canyon|very (?:large|long|big)",
            "large": (
                r"\blarge\b|\bhall\b|church|stairwell|tunnel|warehouse|gym\w*|\bbig\b|auditorium|concert "
                r"hall|empty (?:room|building)|factory|swimming pool|long (?:reverb\w*|tail|echo)"
            ),
            "medium": r"medium(?:-sized)?|classroom|moderate(?:ly)?|studio",
            "small": (
                r"\bsmall\b|bathroom|cupboard|tight|living room|office|kitchen|bedroom|inside a car|tiled|"
                r"short (?:reverb\w*|tail|echo)"
            ),
            "outdoors": r"outdoors?|open air|outside|open field|street|garden|meadow|forest|courtyard",
        },
        {"large": r"reverberant|echo\w*|roomy|spacious"},
        room,
    ),
    Trait(
        "distance",
        r"distance|\bfar\b|\bnear\b|close|how far|approach|position|move|moving|come from|placed|direction|travel",
        {
            "approach": (
                r"approach\w*|(?:comes?|coming|moves?|moving|gets?|getting|draws?) (?:steadily |slowly |"
                r"gradually |ever )?(?:closer|nearer)|towards? the (?:listener|microphone)|from far to "
                r"near"
            ),
            "recede": (
                r"reced\w*|mov\w+ (?:steadily |slowly |gradually )?(?:away|off)|goes away|(?:farther|"
                r"further) (?:and (?:farther|further) )?away|into the distance|from near to far|departs?|"
                r"leav(?:es|ing)"
            ),
            "return": (
                r"(?:away|reced\w*|leav\w*|off)[^.]*?(?:comes?|and|then) (?:back|returns?)|circl\w*|back " r"and forth"
            ),
            "pass": (
                r"pass(?:es|ing)?\b(?: by)?|(?:comes? )?near(?:er)? (?:and )?then (?:far|away)|"
                r"approach\w*[^.]*?(?:then|and) (?:reced|leav|depart|pass|mov)\w*"
            ),
            "near": (
                r"\bclose(?: up|-up| by)?\b|\bnear(?:by)?\b|right beside|next to|arm's length|intimate|up "
                r"close|at hand"
            ),
            "far": r"\bfar(?: away| off)?\b|distant\w*|remote|across (?:the|a) \w+|from afar|a long way",
            "middle": r"middle distance|a few (?:steps|metres|meters)|moderate distance|across the room",
            "still": (
                r"(?:stays?|remains?|keeps?) (?:\w+ )*(?:still|put|in place|where)|fixed|stationary|same "
                r"distance|does not move|(?:no|without) movement|constant distance"
            ),
        },
        {},
        distance,
    ),
    Trait(
        "medium",
        r"reach|through|behind|muffl|quality|filter|channel|bandwidth|medium|clear|sound .* like|barrier|heard",
        {
            "muffled": (
                r"muffl\w*|behind (?:a|the|\w+) (?:closed )?(?:door|wall|curtain|window)|underwater|under "
                r"water|blanket|next room|pillow|through (?:a|the) (?:wall|door|floor)|boxy and dull|"
                r"dull(?:ed)?\b|low-pass\w*"
            ),
            "telephone": (
                r"tele?phone|phone line|radio|tinny|\bthin\b|small speaker|megaphone|intercom|loudspeaker|" r"walkie"
            ),
            "clear": (
                r"\bclear\w*|unobstruct\w*|\bopen\b|full[- ](?:range|band\w*|spectrum)|\bcrisp\w*|"
                r"\bdirect\w*|natural\w*|undamped|in the same room"
            ),
        },
        {},
        medium,
    ),
    Trait(
        "side",
        r"side|left|right|stereo|channel|\bpan\w*|where|position|move|direction|\bears?\b",
        {
            "to right": (
                r"(?:from )?(?:the )?left (?:side )?(?:over )?(?:to|toward\w*) (?:the )?right|moves? "
                r"(?:to the )?right"
            ),
            "to left": (
                r"(?:from )?(?:the )?right (?:side )?(?:over )?(?:to|toward\w*) (?:the )?left|moves? "
                r"(?:to the )?left"
            ),
            "left": r"\bleft\b",
            "right": r"\bright\b(?! (?:beside|after|before|at|away))",
            "centre": r"cent(?:re|er)\w*|\bmiddle\b|straight ahead|both (?:sides|ears) (?:equally|evenly)|mono\b",
            "wide": r"\bwide\b|all around|both sides|everywhere|surround\w*",
            "alternate": r"alternat\w*|back and forth|from side to side|ping-?pong",
        },
        {},
        side,
    ),
    Trait(
        "brightness",
        r"timbre|\btone\b|bright|colou?r|quality|sound|character|frequenc|spectr",
        {
            "bright": (
                r"\bbright\w*|shrill|piercing|sharp|hissy|sizzl\w*|glitter\w*|sparkl\w*|trebl\w*|"
                r"high-pitched|tinkl\w*|crisp"
            ),
            "dark": r"\bdark\w*|\bdull\w*|boomy|bass-heavy|\bdeep\b|rumbl\w*|mellow|\blow-pitched|thud\w*|muddy|hollow",
            "medium": r"mid-?range|medium",
        },
        {},
        brightness,
    ),
    Trait(
        "material",
        r"material|surface|made of|struck|object|impact|\bhit\b|ground|floor|step|texture|against|what",
        {
            "metal": r"metal\w*|iron|steel|brass|tin\b|coin\w*|cymbal|anvil|clang\w*",
            "glass": r"glass\w*|crystal|ceramic|porcelain|china",
            "wood": r"wood\w*|timber|plank\w*|oak|log\b|board\w*",
            "stone": r"stone\w*|concrete|brick|rock|tiles?\b|marble|pavement|asphalt",
            "plastic": r"plastic",
            "cloth": r"cloth|fabric|carpet|cushion|pillow|rug|felt|grass|snow|sand|mud",
            "water": r"water\w*|puddle|liquid|splash\w*|\bwet\b",
            "gravel": r"gravel|pebbles|(?:dry |dead )leaves|rubble|shingle|crunch\w*",
            "skin": r"drum ?skin|membrane|drumhead|leather|rubber",
            "paper": r"paper|cardboard|foil|crisp packet",
        },
        {},
        material,
    ),
    Trait(
        "tonality",
        r"timbre|kind|character|quality|what|sound like|nature|describe",
        {
            "tone": r"pure tone|steady tone|\btone\b|whistl\w*|\bhum\w*|\bbeep\w*|\bring\w*|pitched",
            "noise": r"\bnoise\b|hiss\w*|\brush\w*|rustl\w*|static|crackl\w*|roar\w*|unpitched|whoosh\w*",
            "struck": r"\b(?:click|knock|tap|thud|strike|clap|hit|snap|pop|bang)\w*",
        },
        {},
        tonality,
    ),
)
