"""What an edit instruction asks for, in words: its clauses, the thing it names, where, and what is to stay.

"Imagine that the steps had been on snow", "add a bell at the end" and "make it louder" all become clauses in plain
wording. Quotes are
masked (english.mask) before anything is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import english

_STAY = re.compile(
    r"[,;]?\s*\b(?:and |but |while |whilst |with )?(?:please )?(?:(?:keep|leav|preserv|maintain|retain)(?:e|es|"
    r"ing)?\b(?! only| just| nothing but|[^.;]* out\b)|without (?:changing|altering|touching|affecting)|"
    r"do(?:es)? not (?:change|alter|touch)|don't (?:change|alter|touch)|(?:everything|all|anything) else|all other|"
    r"the rest\b(?! of)|otherwise|nothing else)[^.;]*",
    re.I,
)
_LEAD = re.compile(
    r"^\s*(?:please |now |next |also |then |and |so |but |in addition,? |additionally,? |finally,? |(?:can|could|"
    r"would) you )*"
    r"(?:(?:imagine|suppose|assume|pretend|picture|consider|say|envision)(?: now| instead)?(?: that| if| how| what|"
    r" the same| a (?:version|world|case|scenario)(?: of[\w ]*?)?(?: where| in which)?)*\b"
    r"|what (?:if|would (?:it|this|that|the \w+|happen)(?: \w+){0,4}? (?:if|had))\b|how would (?:it|this|"
    r"the [\w ]{1,30}?)(?: sound| change| have sounded)?(?: differently)? (?:if|had)\b|"
    r"(?:had|if|were|should)\b|as (?:if|though)\b|let(?:'s| us) (?:imagine|say|suppose)(?: that)?\b|"
    r"(?:in )?a (?:world|version|scenario) (?:where|in which)\b)?[\s,:]*",
    re.I,
)
_VERB = (
    r"(?:add|insert|include|overlay|mix|layer|introduce|put|place|play|append|prepend|remove|delete|take|cut|drop|"
    r"erase|eliminate|mute|silence|replace|swap|"
    r"substitute|exchange|switch|change|turn|make|convert|transform|apply|give|raise|lower|increase|decrease|reduce|"
    r"boost|slow|speed|pitch|shift|transpose|"
    r"reverse|flip|move|shift|fade|repeat|loop|extend|trim|shorten|lengthen|pan|filter|muffle|let|have|double|halve|"
    r"stretch|set|bring|keep|leave|end|start|begin)"
)
_CUT = re.compile(
    rf"\s*(?:;|,\s*(?:and\s+)?(?:then\s+|also\s+)?(?={_VERB}\b)|,?\s+and\s+(?:then\s+|also\s+|"
    rf"finally\s+)?(?={_VERB}\b)|,?\s+then\s+(?={_VERB}\b))\s*",
    re.I,
)


@dataclass(frozen=True)
class Clause:
    """One wish. text: lower case, quotes masked, without lead-in and without what is to stay. supposed: it was put
    as a supposition."""

    text: str
    supposed: bool


def clauses(masked: str) -> tuple[Clause, ...]:
    """The clauses of a masked instruction, in order; those that only say what is to stay are left out."""
    found = []
    text = _STAY.sub("", " ".join(masked.replace("’", "'").split()))
    for sentence in english.sentences(text):
        for piece in _CUT.split(sentence):
            lowered = piece.strip(" ,.?!").lower()
            lead = _LEAD.match(lowered)
            said = lowered[lead.end() :].strip(" ,") if lead else lowered
            supposed = bool(
                re.search(
                    r"\b(?:if|imagine|suppose|assume|pretend|as though|would|had|picture|were|consider)\b", lowered
                )
            )
            if len(said) > 2:
                found.append(Clause(_outcome_trimmed(said), supposed))
    return tuple(found)


def _outcome_trimmed(text: str) -> str:
    """Without "..., what would it sound like": the question that a supposition ends in."""
    return re.sub(
        r",?\s*(?:what|how) (?:would|does|might|will)\b.*$|,?\s*(?:the|this|that) (?:recording|clip|audio|scene|"
        r"result) would\b.*$",
        "",
        text,
    ).strip(" ,")


_ARTICLES = re.compile(
    r"^(?:(?:the|a|an|some|any|that|this|those|these|all|of|its|their|his|her|same|original|existing|current|every|"
    r"each|both|sounds?|noises?|in|just)\s+)+(?=\w)"
)
_TAIL = re.compile(
    r"\s*(?:,.*|\b(?:from|in|at|on) (?:the |this )?(?:clip|recording|audio|scene|track|mix|background|foreground|"
    r"beginning|start|end|song|piece|sample|sound)\b.*|"
    r"\b(?:entirely|completely|altogether|instead|too|as well|please|so that|such that|again|also|throughout|"
    r"underneath|together with it)\b.*)$"
)


def thing(text: str) -> str:
    """The bare name of a sound: "the sound of the barking dog from the clip" -> "barking dog"."""
    out = _TAIL.sub("", text.strip(" ,.")).strip()
    out = re.sub(r"^(?:the |a |an )?(?:sounds?|noises?) of (?:the |a |an )?", "", out)
    previous = None
    while previous != out:
        previous, out = out, _ARTICLES.sub("", out).strip()
    return out


@dataclass(frozen=True)
class Spot:
    """Where something goes.

    where: start, end, under (throughout), after, before, over, at, between, or None. of: the thing that
    after/before/over refer to.
    order: 1-based number of that thing's occurrence, -1 the last, or None. seconds: for `at`. text: the clause
    without these words.
    """

    where: str | None
    of: str
    order: int | None
    seconds: float | None
    text: str


_SPOTS: tuple[tuple[str, str], ...] = (
    (
        "under",
        r"\b(?:in (?:the )?background|underneath(?: (?:it|everything|the [\w ]+))?|under (?:it|everything|"
        r"the [\w ]+)|throughout(?: the [\w ]+)?|behind (?:it|everything|the [\w ]+)|as (?:a )?(?:background|"
        r"backdrop)(?: [\w ]+)?|(?:the )?(?:whole|entire) time|beneath [\w ]+|all along)",
    ),
    (
        "end",
        r"\b(?:(?:right |just )?(?:at|to|near|towards?) the (?:very )?end(?: of (?:the|this) [\w ]+)?|at the finish|"
        r"as (?:a|the) (?:ending|last sound|finale)|to finish|to close|finally|afterwards?|after (?:it|that|"
        r"everything|this)(?: ends?)?)\b",
    ),
    (
        "start",
        r"\b(?:(?:right |just )?(?:at|to|near|in|before) the (?:very )?(?:start|beginning|opening|"
        r"front)(?: of (?:the|this) [\w ]+)?|as (?:an?|the) (?:opening|intro\w*|first sound)|to (?:begin|start|"
        r"open) with|first of all|beforehand|before (?:it|everything|that)(?: (?:starts|begins))?)\b",
    ),
    ("between", r"\b(?:in )?between (?:the )?(?P<of>[\w '\-]+)"),
    (
        "after",
        r"\b(?:right |just |immediately |shortly |directly )?(?:after|following) (?:the |each |"
        r"every )?(?P<of>[\w '\-]+)",
    ),
    ("before", r"\b(?:right |just |immediately |shortly |directly )?(?:before|preceding) (?:the )?(?P<of>[\w '\-]+)"),
    (
        "over",
        r"\b(?:over|on top of|during|while|at the same time as|together with|along with|"
        r"alongside) (?:the )?(?P<of>[\w '\-]+)",
    ),
    ("middle", r"\b(?:in the middle|half ?way(?: through)?|midway)\b(?: of the \w+)?"),
)


def spot(text: str) -> Spot:
    """Where a clause puts something, and the clause without it."""
    moment = english.moment(text)
    if moment is not None and not moment.from_end and not re.search(r"\b(?:middle|half ?way|midway|midpoint)\b", text):
        rest = re.sub(
            r"\b(?:at|after|around|about)? ?(?:the |about |around )?[\w.\-]+[- ]seconds?(?: mark| in| into|"
            r" later)?(?: of the \w+| the \w+)?\b",
            "",
            text,
        )
        return Spot("at", "", None, moment.seconds, rest.strip(" ,"))
    for where, pattern in _SPOTS:
        found = re.search(pattern, text)
        if found:
            of = found.groupdict().get("of") or ""
            orders = english.ordinals(f"the {of}") if of else ()
            rest = (text[: found.start()] + text[found.end() :]).strip(" ,")
            return Spot(where, without_order(of), orders[0] if orders else None, None, rest)
    return Spot(None, "", None, None, text)


def without_order(text: str) -> str:
    """A name without its ordinal and articles."""
    return thing(
        re.sub(r"\b(?:first|second|third|fourth|fifth|sixth|seventh|eighth|last|final|\d+(?:st|nd|rd|th))\b", "", text)
    )


@dataclass(frozen=True)
class Part:
    """A part of time: [start_s, stop_s) from the beginning, or from the end when from_end; or a share of the clip."""

    start: float
    stop: float
    share: bool
    from_end: bool = False


def part(text: str) -> Part | None:
    """ "the second half", "the last two seconds", "between 2 and 4 seconds", "from second 3 on"; None when none is
    named."""
    half = re.search(r"\b(first|second|last|final|latter) (half|third|quarter)\b", text)
    if half:
        size = {"half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4}[half.group(2)]
        start = {"first": 0.0, "second": size}.get(half.group(1), 1 - size)
        return Part(start, start + size, True)
    edge = re.search(rf"\b(first|opening|last|final|closing) ({english.NUMBER}|couple of|few)?[ -]?seconds?\b", text)
    if edge:
        length = english.number(edge.group(2)) if edge.group(2) else 1.0
        seconds = length or {"couple of": 2.0, "few": 3.0}.get(edge.group(2) or "", 1.0)
        return Part(0.0, seconds, False, edge.group(1) in ("last", "final", "closing"))
    span = re.search(
        rf"\b(?:between|from) (?:second )?({english.NUMBER}) ?(?:s|seconds?)? (?:and|to|"
        rf"until) (?:second )?({english.NUMBER}) ?(?:s\b|seconds?)?",
        text,
    )
    if span and "second" in span.group(0):
        return Part(english.number(span.group(1)) or 0.0, english.number(span.group(2)) or 0.0, False)
    return None


def span_of(named: Part, frames: int, rate: int) -> tuple[int, int]:
    """[start, end) in frames of a part of a clip."""
    scale = float(frames) if named.share else float(rate)
    a, b = int(named.start * scale), int(named.stop * scale)
    return (max(0, frames - b), frames - a) if named.from_end else (max(0, a), min(b, frames))
