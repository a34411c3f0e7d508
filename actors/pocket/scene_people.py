"""Who says which quote: each goes to the speaker described nearest to it, before or after."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from . import english
from .english import Masked, Speaker

SAYS = (
    r"(?:sa(?:ys|id|ying)|speak\w*|spoke|ask\w*|repl(?:y|ies|ied|ying)|answer\w*|whisper\w*|shout\w*|yell\w*|announc\w*|"
    r"read\w*|recit\w*|exclaim\w*|mutter\w*|murmur\w*|call\w*|tell\w*|told|add\w*|respond\w*|continu\w*|cr(?:y|ies|ied)|"
    r"greet\w*|explain\w*|beg\w*|count\w*|interrupt\w*|agree\w*|insist\w*|warn\w*|laugh\w*|snap\w*|sigh\w*|go(?:es)?|"
    r"scream\w*|mumbl\w*|chant\w*|sing\w*|order\w*|command\w*|declar\w*|report\w*|wonder\w*|plead\w*|growl\w*)"
)
_CLAUSE = re.compile(
    r"[.;!?:\n]+\s*|,?\s+(?:and then|and|then|but|while|before|after which|to which|until|as)\s+|,\s*(?=(?:an?|the|"
    r"he|she|his|her|"
    r"another|one|its|followed|answered)\b)",
    re.I,
)
_PRONOUN = re.compile(r"^(?:he|she|him|her|his|hers|himself|herself|they|it)$")
_OTHER = re.compile(r"\bthe other\b(?! (?:end|side|room|day|hand))", re.I)
_ORDINAL = re.compile(
    r"\bthe (first|second|third|fourth|former|latter|last)(?! (?:time|word|number|sentence|line|phrase|half|part|"
    r"second))",
    re.I,
)
_TOGETHER = re.compile(r"\s+(?:and|with|to|versus|vs)\s+|\bbetween\b|,", re.I)
_GROUP = re.compile(
    r"\b(?:talk|talking|conver\w+|dialogue|argu\w+|chat\w*|discuss\w*|exchange|speakers|voices|people|both|each|"
    r"take turns|"
    r"speak|meet)\b",
    re.I,
)


@dataclass(frozen=True)
class Cast:
    """people: those who speak, in order of appearance (None: nobody described). of_quote: the index into people of each
    quote of the masked text."""

    people: tuple[Speaker | None, ...]
    of_quote: tuple[int, ...]


def cast_of(masked: Masked) -> Cast:
    """Who says each quote of a prompt."""
    people: list[Speaker | None] = []
    found: list[int] = []
    gaps = _gaps(masked.text)
    introduced = _introduced(gaps[0], people) if len(gaps) > 1 else []
    heads, tails = _shared(gaps)
    for k in range(len(gaps) - 1):
        text = tails[k] or heads[k]
        speaker = _subject(tails[k]) or _subject(heads[k])
        number = _by_ordinal(tails[k], heads[k], introduced, found)
        grouped = k == 0 and len(introduced) > 1 and not tails[k] and _is_group(heads[k])
        if number is None and speaker is not None and not grouped:
            number = identify(speaker, people, text)
        if number is None:
            number = _unattributed(introduced, people, found)
        found.append(number)
        for other in _addressed(f"{heads[k]} {tails[k]}"):
            identify(other, people, "")
    return Cast(tuple(people), tuple(found))


def _gaps(text: str) -> list[str]:
    return re.split("[" + chr(0xE000) + "-" + chr(0xE000 + 6399) + "]", text)


def _shared(gaps: list[str]) -> tuple[list[str], list[str]]:
    """The words before each quote that belong to it, and those after it that do."""
    heads, tails = [gaps[0]], []
    for k in range(1, len(gaps)):
        gap = gaps[k]
        last = k == len(gaps) - 1
        tail = re.match(
            rf"^[\s,]*(?:(?:{SAYS})(?: \w+ly)? (?:an?|the|his|her|another|one)\b[^.;!?]*|(?:an?|the|his|her|"
            rf"another|he|she|one)\b[^.;!?,]*?"
            rf"\b{SAYS}\b[^.;!?]*|(?:{SAYS}) (?:he|she)\b[^.;!?]*)",
            gap,
            re.I,
        )
        own = _subject(heads[-1]) is not None and _leads(heads[-1])
        closes = last or re.search(r"[.;!?]", gap)
        if tail and not (own and not last and not closes) and not re.match(r"^\s*,?\s*(?:and|then|but)\b", gap, re.I):
            cut = re.search(
                r",?\s+(?:and|then|while|before|but)\b|[.;!?]|,\s*(?=(?:an?|the|another)\s)", tail.group().lstrip(" ,")
            )
            offset = len(tail.group()) - len(tail.group().lstrip(" ,"))
            end = offset + cut.start() if cut else len(tail.group())
            # "Q, she adds." after a quote that was led in by somebody else still belongs to that quote.
            tails.append(gap[:end] if not own else "")
            heads.append(gap[end:] if not own or not last else gap)
        else:
            tails.append("")
            heads.append(gap)
    return heads[:-1], tails


def _leads(text: str) -> bool:
    """Whether a stretch before a quote leads into it: it ends with a verb of saying, a colon or a comma near one."""
    last = re.split(r"[.;!?]\s+", text.strip())[-1]
    return bool(re.search(rf"\b{SAYS}\b", last, re.I)) or last.rstrip().endswith(":")


def _subject(text: str) -> Speaker | None:
    """Who acts in the clause nearest before the end of a text."""
    for clause in reversed([c for c in _CLAUSE.split(text) if c and c.strip()]):
        who = english.speaker(_without_owners(clause))
        if who is not None:
            return who
    return None


_TOLD = re.compile(
    r"\b(?:tell\w*|told|ask\w*|answer\w*|warn\w*|to|at)\s+((?:an?|the|his|her)\s+(?:[\w-]+\s+){0,2}?"
    r"(?:man|woman|boy|girl|child|friend|[\w-]+))",
    re.I,
)


def _addressed(text: str) -> list[Speaker]:
    """The people spoken to, who may answer."""
    return [s for m in _TOLD.finditer(text) if (s := english.speaker(_bare_owner(m.group(1)))) is not None]


def _without_owners(clause: str) -> str:
    """A clause without whose it is and to whom it is said: who is left acts."""
    told = _TOLD.search(clause)
    if told and english.speaker(_bare_owner(clause[: told.start()])) is not None:
        clause = clause[: told.start()] + clause[told.end() :]
    return _bare_owner(clause)


def _bare_owner(clause: str) -> str:
    return re.sub(r"\b(?:his|her|its|their|my|your)\s+(?=[a-z])(?!(?:own|voice)\b)", "", clause, flags=re.I)


def _introduced(text: str, people: list[Speaker | None]) -> list[int]:
    """The people named together before anybody speaks ("a man and a woman talk"), added to `people`."""
    found: list[Speaker] = []
    for sentence in re.split(r"[.;!?:]\s*", text):
        pieces = [s for p in _TOGETHER.split(sentence) if p and (s := english.speaker(_without_owners(p))) is not None]
        named = [s for s in pieces if not _PRONOUN.match(s.label) and s.label not in ("speaker", "voice", "voices")]
        if len(named) >= 2 and (_GROUP.search(sentence) or not re.search(rf"\b{SAYS}\b", sentence, re.I)):
            found += named
    if len(found) < 2 or len({(s.sex, s.age, s.label) for s in found}) < 2:
        return []
    return [identify(s, people, "") for s in found]


def _is_group(head: str) -> bool:
    """Whether the sentence before a quote names two together and no one of them as the speaker of it."""
    last = re.split(r"[.;!?]\s+", head.strip())[-1]
    return len([p for p in _TOGETHER.split(last) if p and english.speaker(_without_owners(p))]) > 1 and bool(
        _GROUP.search(last)
    )


def _by_ordinal(tail: str, head: str, introduced: list[int], found: list[int]) -> int | None:
    for text in (tail, head[-90:]):
        last = re.split(r"[.;!?]\s+", text.strip())[-1]
        if english.speaker(_without_owners(last)) is not None and not re.search(r"speaker|voice|person|one\b", last):
            continue
        match = _ORDINAL.search(last)
        if match and introduced:
            word = match.group(1).lower()
            at = {"former": 0, "latter": -1, "last": -1}.get(word, (english.ordinal(word) or 1) - 1)
            if -len(introduced) <= at < len(introduced):
                return introduced[at]
        if _OTHER.search(last) and introduced and found:
            return next((n for n in introduced if n != found[-1]), introduced[-1])
    return None


def _unattributed(introduced: list[int], people: list[Speaker | None], found: list[int]) -> int:
    """A quote that nobody is said to say: the next of a dialogue, else whoever spoke last."""
    if len(introduced) > 1:
        before = introduced.index(found[-1]) if found and found[-1] in introduced else -1
        return introduced[(before + 1) % len(introduced)]
    if found:
        return found[-1]
    people.append(None)
    return len(people) - 1


def identify(speaker: Speaker | None, people: list[Speaker | None], text: str) -> int:
    """The number of a speaker among those met so far; a new one is added."""
    if speaker is None and people:
        return len(people) - 1
    if speaker is not None and people:
        other = re.search(
            rf"\b(?:another|second|other|different|third|new)\b[\w\s-]{{0,20}}{re.escape(speaker.label)}", text.lower()
        )
        pronoun = bool(_PRONOUN.match(speaker.label))
        loose = pronoun or speaker.label in ("voice", "speaker", "person", "someone", "somebody")
        for i in () if other else range(len(people) - 1, -1, -1):
            known = people[i]
            if known is None or (speaker.sex and known.sex and speaker.sex != known.sex):
                continue
            if loose and (pronoun or re.search(rf"\bthe (?:same )?{speaker.label}\b", text.lower())):
                if known.sex is None and speaker.sex:
                    people[i] = replace(known, sex=speaker.sex)
                return i
            same = known.label == speaker.label and known.age == speaker.age
            if same and (known.register == speaker.register or not speaker.register):
                return i
    people.append(speaker)
    return len(people) - 1
