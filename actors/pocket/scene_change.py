"""A description and a wish to change it ("... Now change it: ..."), brought to one description, in words alone.

For a chain in which the clip was described and only the description can be changed. The change is made where the
description has its place: quoted words are exchanged, named things taken out, exchanged or added; what cannot be placed
follows as one more sentence.
"""

from __future__ import annotations

import re

from . import english

_ASK = re.compile(r"\n\s*\n\s*now change it:\s*", re.IGNORECASE)
_STOP_WORDS = frozenset(
    [
        "the",
        "a",
        "an",
        "of",
        "to",
        "and",
        "in",
        "on",
        "at",
        "with",
        "by",
        "for",
        "it",
        "its",
        "that",
        "this",
        "from",
        "into",
        "all",
        "any",
        "some",
        "sound",
        "sounds",
    ]
)


def resolve(prompt: str) -> str:
    """The prompt as one description; a prompt without a wish for change is returned as it is."""
    parts = _ASK.split(prompt, maxsplit=1)
    if len(parts) < 2:
        return prompt
    description, wish = parts[0].strip(), parts[1].strip()
    for sentence in _wishes(wish):
        description = _applied(description, sentence)
    return description


def _wishes(wish: str) -> list[str]:
    """One wish each: sentences, cut where another imperative follows ("..., and add ...")."""
    masked = english.mask(wish)
    verbs = (
        r"add|insert|remove|delete|replace|change|make|turn|swap|drop|mute|keep|raise|lower|slow|speed|put|"
        r"introduce|let|have|shift|move|"
        r"increase|decrease|fade|bring|switch|take|leave"
    )
    cuts = rf"(?:,\s*|\s+)(?:and|then|but|while)\s+(?:then\s+|also\s+)?(?=(?:{verbs})(?:ing)?\b)|,\s*(?=(?:{verbs})\b)"
    return [
        masked.unmask(p) for s in english.sentences(masked.text) for p in re.split(cuts, s, flags=re.IGNORECASE) if p
    ]


_REPLACE = re.compile(
    r"\b(?:replace|swap|substitute|change|turn|switch)\w*\s+(.+?)\s+(?:with|by|for|to|into|in(?:to)?)\s+(.+)$",
    re.IGNORECASE,
)
_INSTEAD = re.compile(r"^(.+?)\s+instead of\s+(.+)$", re.IGNORECASE)
_REMOVE = re.compile(
    r"\b(?:remove|delete|take out|drop|mute|silence|get rid of|cut out|omit|strip)\w*\s+(.+)$", re.IGNORECASE
)
_ADD = re.compile(r"\b(?:add|insert|include|mix in|introduce|bring in|overlay|put)\w*\s+(.+)$", re.IGNORECASE)
_KEEP = re.compile(
    r"^(?:keep|leave|everything else|the rest|without changing|do not change|preserve|maintain|nothing else|all "
    r"else)\b",
    re.IGNORECASE,
)


def _applied(description: str, wish: str) -> str:
    if _KEEP.match(wish):
        return description
    wish = re.sub(
        r"(?:[,;]\s*|\s+(?:but|and|while)\s+)(?:but\s+|and\s+|while\s+)?(?:keep|leav|preserv|maintain)\w*\s.*$",
        "",
        wish,
        flags=re.IGNORECASE,
    )
    spoken = english.quotes(wish)
    said = english.quotes(description)
    if spoken and said:
        return _respoken(description, wish, spoken, said)
    person = _person(wish)
    if person and not english.is_masked_quote(person[0]):
        return _spoken_by(description, person)
    changed = _retuned(description, wish)
    if changed is not None:
        return changed
    match = _REPLACE.search(wish)
    instead = _INSTEAD.search(wish)
    if instead or match:
        old, new = (instead.group(2), instead.group(1)) if instead else (match.group(1), match.group(2))  # type: ignore[union-attr]
        new = re.sub(r"^(?:make it|use|have|play)\s+", "", new, flags=re.IGNORECASE)
        return _exchanged(description, old, new)
    match = _REMOVE.search(wish)
    if match:
        return _removed(description, match.group(1))
    match = _ADD.search(wish)
    if match:
        before = re.search(r"^(.+?)\s+(?:right |just |immediately )?before\s+\S.*$", match.group(1), re.IGNORECASE)
        if before:
            return f"{_capital(before.group(1))}. Then {description}"
        return f"{_stopped(description)} {_capital(_addition(match.group(1)))}."
    return f"{_stopped(description)} {_plain(wish)}."


_BPM = re.compile(rf"\b({english.NUMBER})\s*-?(?:bpm|beats? per minute)\b", re.IGNORECASE)


def _retuned(description: str, wish: str) -> str | None:
    """Another tempo or key where the description names one; None when the wish is not about these."""
    tempo, now = english.tempo(wish), _BPM.search(description)
    if now:
        bpm = english.number(now.group(1)) or 100.0
        wanted = tempo.bpm if tempo and tempo.exact else None
        for change in english.comparatives(wish):
            if (
                change.property == "speed"
                and wanted is None
                and not english.tempo_change(f"gradually {wish}" if "gradual" in wish else "")
            ):
                wanted = bpm * (
                    change.factor
                    or (1.0 + 0.35 * change.strength if change.direction > 0 else 1 / (1.0 + 0.4 * change.strength))
                )
        if wanted is not None:
            return f"{description[: now.start()]}{wanted:.0f} bpm{description[now.end() :]}"
    key, old = english.key(wish), english.key(description)
    if key and old:
        pattern = rf"\b{re.escape(old.name).replace(chr(92) + ' ', '[ -]')}\b"
        found = re.search(pattern, description, re.IGNORECASE)
        if found:
            return description[: found.start()] + key.name + description[found.end() :]
    return None


def _respoken(description: str, wish: str, spoken: tuple[english.Quote, ...], said: tuple[english.Quote, ...]) -> str:
    """New words for old: "change 'X' to 'Y'" inside the line, else the last quote of the wish for the line it resembles
    most."""
    old, new = spoken[0].text, spoken[-1].text
    lowered = wish.lower()
    if re.match(r"\W*(?:add|insert|then|after|append|also|finish|end)\b", lowered) or re.search(
        r"\bthen (?:says?|adds?)\b|\breplies\b", lowered
    ):
        added = re.sub(r"^(?:add|insert|append)\s+", "", wish, flags=re.IGNORECASE)
        return f"{_stopped(description)} {_capital(_addition(added))}."
    if len(spoken) > 1:
        for quote in said:
            position = quote.text.lower().find(old.lower().strip(".!?"))
            if position >= 0:
                stem = old.strip(".!?")
                replaced = quote.text[:position] + new + quote.text[position + len(stem) :]
                return f'{description[: quote.start]}"{replaced}"{description[quote.end :]}'
    if re.search(r"\b(?:remove|delete|omit|drop|cut)\b", lowered):
        for quote in said:
            if old.lower() in quote.text.lower():
                position = quote.text.lower().find(old.lower())
                rest = (quote.text[:position] + quote.text[position + len(old) :]).strip(" ,")
                return f'{description[: quote.start]}"{rest or quote.text}"{description[quote.end :]}'
    best = max(said, key=lambda q: (len(_words(q.text) & _words(new)), -q.start))
    changed = f'{description[: best.start]}"{new}"{description[best.end :]}'
    rest = "".join(" " if english.is_masked_quote(c) else c for c in english.mask(wish).text).strip(" .:,")
    return f"{_stopped(changed)} {_plain(rest)}." if english.manners(rest) or english.speaker(rest) else changed


def _words(text: str) -> set[str]:
    return {w for w in re.findall(r"[a-z']+", text.lower()) if w not in _STOP_WORDS}


def _stem(word: str) -> str:
    return re.sub(r"(?:ings?|es|s|ed)$", "", word)[:6]


def _exchanged(description: str, old: str, new: str) -> str:
    """`new` where the description names `old`; where it does not, a sentence that says so."""
    old_words = [w for w in re.findall(r"[a-z']+", old.lower()) if w not in _STOP_WORDS]
    new = new.strip(" .")
    phrase = re.search(rf"\b{re.escape(old.strip(' .'))}\b", description, re.IGNORECASE)
    if phrase:
        return description[: phrase.start()] + new + description[phrase.end() :]
    for word in reversed(old_words):
        for match in re.finditer(r"[A-Za-z'-]+", description):
            if _stem(match.group().lower()) == _stem(word) and len(word) > 2:
                bare = re.sub(r"^(?:a|an|the)\s+", "", new)
                return description[: match.start()] + bare + description[match.end() :]
    return f"{_stopped(description)} {_capital(new)}."


_PEOPLE = r"(?:man|woman|child|boy|girl|lady|gentleman|grandmother|grandfather|teenager|robot|person|guy|speaker|voice)"


def _person(wish: str) -> str | None:
    """The new speaker of a wish about who speaks ("make the speaker an old man", "have a child say it"), as a noun
    phrase."""
    if not re.search(r"\b(?:speak\w*|voice|say\w*|said|spoken|read|man|woman|narrator)\b", wish, re.IGNORECASE):
        return None
    if not re.match(
        r"^(?:please\s+)?(?:now\s+)?(?:make|change|turn|have|let|replace|switch|swap|use)\b", wish, re.IGNORECASE
    ):
        return None
    found = re.findall(rf"\b(an?\s+(?:[\w-]+\s+){{0,3}}?{_PEOPLE})\b", wish, re.IGNORECASE)
    found = [f for f in found if english.speaker(f) is not None]
    return found[-1] if found else None


def _spoken_by(description: str, person: str) -> str:
    masked = english.mask(description)
    match = re.search(rf"\b(?:an?|the)\s+(?:[\w-]+\s+){{0,3}}?{_PEOPLE}\b", masked.text, re.IGNORECASE)
    if match is None:
        return f"{_stopped(description)} The speaker is {person}."
    text = masked.text[: match.start()] + _capital(person) + masked.text[match.end() :]
    return masked.unmask(text)


_JOINTS = {"then": ", then ", "together": " while ", "during": ", interrupted by ", "background": " with "}


def _removed(description: str, gone: str) -> str:
    """Without the clause that names what goes; a sentence that loses a clause is put together again from the others."""
    words = {_stem(w) for w in _words(re.split(r"\b(?:from|in|so)\b", gone)[0])}
    masked = english.mask(description)
    kept: list[str] = []
    hit = False
    for sentence in english.sentences(masked.text):
        members = [(part, e.relation) for e in english.split(sentence) for part in english.coordinated(e.text)]
        left = [(part, relation) for part, relation in members if not words & {_stem(w) for w in _words(part)}]
        hit = hit or len(left) < len(members)
        if len(left) == len(members):
            kept.append(sentence)
        elif left:
            text = left[0][0]
            for part, relation in left[1:]:
                text += _JOINTS.get(relation, ", and ") + part
            kept.append(_capital(text))
    if hit and kept:
        return masked.unmask(". ".join(kept)) + "."
    bare = re.sub(r"^(?:the|all|any|both)\s+(?:of the\s+)?", "", gone.strip(" ."), flags=re.IGNORECASE)
    return f"{_stopped(description)} No {bare}."


def _addition(text: str) -> str:
    text = text.strip(" .")
    at_end = re.search(r"\b(?:at the (?:very )?end|after (?:it|that|everything|this))\b", text, re.IGNORECASE)
    at_start = re.search(r"\b(?:at the (?:very )?(?:start|beginning))\b", text, re.IGNORECASE)
    if at_end:
        return "Then " + (text[: at_end.start()] + text[at_end.end() :]).strip(" ,")
    if at_start:
        return (text[: at_start.start()] + text[at_start.end() :]).strip(" ,")
    under = re.search(r"\b(?:in the background|underneath|behind|throughout|under)\b", text, re.IGNORECASE)
    return (
        text
        if under or not re.search(r"\b(?:rain|wind|music|traffic|hum|noise|crowd|ambience|static)\b", text.lower())
        else f"{text} in the background"
    )


def _plain(wish: str) -> str:
    return _capital(re.sub(r"^(?:please\s+)?(?:now\s+)?", "", wish.strip(" ."), flags=re.IGNORECASE))


def _stopped(text: str) -> str:
    text = text.strip()
    return text if text[-1:] in '.!?"”' else f"{text}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
