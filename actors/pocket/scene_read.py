"""From a prompt to the things that sound: spoken lines, sound events and music, each with its words and its place in
time."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from . import english, music_names, music_styles, scene_ambience, scene_people, sound
from .english import Element, Masked, Speaker

KINDS = ("speech", "sound", "music", "silence")


@dataclass(frozen=True)
class Item:
    """One thing that sounds (or a silence).

    kind: of KINDS. text: the words about it, quotes masked out. quotes: what is spoken, speech only. relation: as
    english.Element. speaker: of the line, None where nobody is described. flexible: it can last as long as is wanted
    (music, textures). who: the number of the speaker of each quote, an index into :attr:`Reading.people`.
    """

    kind: str
    text: str
    relation: str
    quotes: tuple[str, ...] = ()
    speaker: Speaker | None = None
    flexible: bool = False
    who: tuple[int, ...] = ()


_SPEAKS = (
    r"\b(?:say(?:s|ing)?|said|speak(?:s|ing)?|spoken|talk(?:s|ing)?|tell(?:s|ing)?|ask(?:s|ing)?|repl(?:y|ies|ying)|"
    r"answer(?:s|ing)?|whisper(?:s|ing|ed)?|shout(?:s|ing)?|"
    r"yell(?:s|ing)?|announc(?:es?|ing|ement)|narrat\w+|read(?:s|ing)?|recit(?:es?|ing)|exclaim\w*|mutter\w*|"
    r"murmur\w*|call(?:s|ing)? out|voice|speech|greet\w*|explain\w*|"
    r"introduc\w+|monologue|dialogue|conversation|lectur\w*|weather report|newscast|counts?|counting)\b"
)
_CROWD = (
    r"\b(?:crowd|audience|people|chatter\w*|babble|murmur of|voices in the (?:background|distance)|murmuring crowd|"
    r"children (?:play|laugh)\w*|guests|diners)\b"
)
_SILENCE = r"\b(?:silence|pause|quiet|gap)\b"
_STRESS = re.compile(
    r"(?:stress\w*|emphas\w+|accent\w*|with (?:strong |heavy )?emphasis)(?:\s+(?:is|falls|placed|put|laid|heavily|"
    r"strongly|clearly))*\s*(?:on)?\s*(?:the)?\s*(?:word)?\s*$",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"(?:after|before|between|the words?|the phrase|pausing (?:after|before)|the name)\s*$", re.IGNORECASE
)


@dataclass(frozen=True)
class Reading:
    """items in order of time; stressed: words said to be stressed; whole: the text without its quotes, for what
    concerns everything; people: the speakers of the quotes, None for one nobody describes."""

    items: tuple[Item, ...]
    stressed: tuple[str, ...]
    whole: str
    people: tuple[Speaker | None, ...] = ()


def read(prompt: str, audio_type: str, words: str | None = None) -> Reading:
    """The items of a prompt. words: what must be said when the prompt quotes nothing."""
    masked = english.mask(prompt)
    text, stressed = _without_labels(masked)
    cast = scene_people.cast_of(masked)
    items = _with_colon_quotes(_classified(masked, cast, english.split(text), audio_type))
    items = _described_once(items)
    items = _music_joined(items)
    items = _with_ambience(_continued(items))
    if words and not any(item.quotes for item in items):
        items = _with_words(items, words)
    items = [item for item in items if item.kind != "speech" or item.quotes or _says_something(item)]
    if not items:
        items = [_only(text, audio_type)]
    return Reading(tuple(items), stressed, _bare(text), cast.people)


def _bare(text: str) -> str:
    return "".join(" " if english.is_masked_quote(c) else c for c in text).strip()


def _without_labels(masked: Masked) -> tuple[str, tuple[str, ...]]:
    """The masked text without quotes that name words rather than speak them ("stressing the word 'blue'"), and the
    stressed words."""
    kept, stressed = [], []
    for index, char in enumerate(masked.text):
        if not english.is_masked_quote(char):
            kept.append(char)
            continue
        before = masked.text[:index]
        quote = masked.quotes_in(char)[0].text
        if _STRESS.search(before):
            stressed += quote.lower().split()
        elif re.search(
            rf"\b{scene_people.SAYS}\s+(?:out\s+)?the (?:\w+ )?(?:words?|phrase|name)s?\s*$", before, re.IGNORECASE
        ) or not (_LABEL.search(before) and len(quote.split()) <= 3 and len(masked.quotes) > 1):
            kept.append(char)
    text = "".join(kept)
    match = re.search(
        r"(?:stress(?:es|ing)?|emphasi[sz](?:es|ing)|emphasis) (?:is )?(?:on )?the (?:(\w+) word|word (\w+))",
        text,
        re.IGNORECASE,
    )
    if match:
        word = match.group(2)
        place = english.ordinal(match.group(1)) if match.group(1) else None
        spoken = masked.quotes[0].text.split() if masked.quotes else []
        if place is not None and spoken and -len(spoken) <= place <= len(spoken):
            word = spoken[place - 1 if place > 0 else place]
        if word:
            stressed.append(re.sub(r"\W", "", word.lower()))
    return text, tuple(stressed)


def kind_of(text: str, audio_type: str) -> str | None:
    """What a clause is: speech, music, sound, silence; None when it only says more about something else."""
    if any(map(english.is_masked_quote, text)):
        return "speech"
    said, _ = english.without(text)
    lowered = said.lower()
    named = sound.match_by_words(said)
    firm = named is not None and not named.source.weak
    musical = music_names.is_music(said)
    if musical and (audio_type == "music" or not firm or _musically(lowered)):
        return "music"
    if re.search(_SPEAKS, lowered) and english.speaker(said) and not re.search(_CROWD, lowered):
        return "speech"
    if audio_type == "music" and (music_names.find(said) or music_styles.style(said)):
        return "music"
    if named is not None and (firm or audio_type == "sound") and not _only_place(lowered, named.said):
        return "sound"
    if re.search(_SILENCE, lowered) and len(lowered.split()) <= 8:
        return "silence"
    if audio_type != "music" and music_styles.style(said) and re.search(r"\bplay|\bmusic", lowered):
        return "music"
    return None


def _musically(text: str) -> bool:
    return bool(
        re.search(
            r"\b(?:music|melody|tune|song|chords?|plays|playing|bpm|beat|solo|major|minor|theme|riff|jazz|waltz)\b",
            text,
        )
    )


def _only_place(text: str, said: str) -> bool:
    """Whether the words that name a sound only say where ("in the rain", "at the door")."""
    pronoun = re.match(
        r"^(?:he|she|it|they|his|her|its|their|the (?:speaker|voice|recording|sound|tempo|music|melody|piece))\b", text
    )
    return bool(
        pronoun
        and re.search(rf"\b(?:in|at|on|from|near|by|inside)\s+(?:the|a|an)?\s*(?:\w+\s+)?{re.escape(said)}", text)
    )


def _classified(masked: Masked, cast: scene_people.Cast, elements: tuple[Element, ...], audio_type: str) -> list[Item]:
    items: list[Item] = []
    for element in elements:
        for part, relation in _members(element, audio_type):
            kind = kind_of(part, audio_type)
            if kind is None and items:
                items[-1] = replace(items[-1], text=f"{items[-1].text}. {part}")
                continue
            said = part if kind != "sound" else english.without(part)[0]
            quotes = tuple(q.text for q in masked.quotes_in(part))
            who = tuple(cast.of_quote[ord(c) - english.FIRST_MASK] for c in part if english.is_masked_quote(c))
            text = _bare(said)
            speaker = english.speaker(text) if kind in ("speech", None) else None
            # An opening clause that names nothing that sounds sets the scene for what follows.
            items.append(Item(kind or "setting", text, relation, quotes, speaker, _flexible(kind, text), who))
    return _settings_spread(items)


def _flexible(kind: str | None, text: str) -> bool:
    if kind == "music":
        return True
    if kind != "sound":
        return False
    found = sound.match(text)
    repeated = english.repetition(text)
    if repeated is not None:
        return repeated.count is None
    return found.source.kind != "shot" and english.count(text) is None


def _members(element: Element, audio_type: str) -> list[tuple[str, str]]:
    """A list of several sounds as one member each; anything else whole."""
    parts = _by_source(english.coordinated(element.text), audio_type)
    kinds = [kind_of(part, audio_type) for part in parts]
    whole = kind_of(element.text, audio_type)
    if len(parts) < 2 or (whole == "music" and all(k in ("music", None) for k in kinds)):
        return [(element.text, element.relation)]
    found: list[tuple[str, str]] = []
    for part, kind in zip(parts, kinds):
        first = not found
        if first or kind is None or kind == "silence":
            if first:
                found.append((part, element.relation))
            else:
                found[-1] = (f"{found[-1][0]} and {part}", found[-1][1])
            continue
        if kind == "sound" and kind_of(found[-1][0], audio_type) == "sound" and _same_source(found[-1][0], part):
            found[-1] = (f"{found[-1][0]} and {part}", found[-1][1])
            continue
        previous_flexible = _flexible(kind_of(found[-1][0], audio_type), _bare(found[-1][0]))
        together = previous_flexible or _flexible(kind, part) or element.relation == "background"
        acts = re.match(r"\w+ed\b(?! \w+s\b)", part) is not None  # somebody does one thing after another
        together = together and not acts
        found.append((part, ("background" if element.relation == "background" else "together") if together else "then"))
    return found


_LISTED = re.compile(r"\s*[,;]\s*(?:and\s+|plus\s+|then\s+)?|\s+(?:and|plus|with|as well as)\s+", re.IGNORECASE)


def _by_source(parts: tuple[str, ...], audio_type: str) -> tuple[str, ...]:
    """Lists cut further where each side names a sound of its own ("thunder, rain and church bells")."""
    found: list[str] = []
    for part in parts:
        if any(map(english.is_masked_quote, part)):
            found.append(part)
            continue
        at = len(found)
        for piece in (p for p in _LISTED.split(part) if p and p.strip()):
            named = sound.match_by_words(piece)
            firm = named is not None and not named.source.weak and kind_of(piece, audio_type) == "sound"
            alone = len(found) == at
            before = None if alone else sound.match_by_words(found[-1])
            if alone:
                found.append(piece)
            elif re.match(r"\w+ing\b", piece) and not re.match(r"\w+ing\b", found[at]):
                found[-1] = f"{found[-1]}, {piece}"
            elif firm and before is not None and not _same_source(found[-1], piece):
                found.append(piece)
            else:
                joint = part[part.find(found[-1]) + len(found[-1]) : part.rfind(piece)]
                found[-1] = f"{found[-1]}{joint if 0 < len(joint) < 12 else ' and '}{piece}"
    return tuple(found)


def _same_source(one: str, other: str) -> bool:
    a, b = sound.match_by_words(one), sound.match_by_words(other)
    return (
        a is not None
        and b is not None
        and a.source.name == b.source.name
        and not re.search(r"\banother\b", other.lower())
    )


def _settings_spread(items: list[Item]) -> list[Item]:
    found: list[Item] = []
    setting = ""
    for item in items:
        if item.kind == "setting":
            setting = f"{setting} {item.text}".strip()
            continue
        text = f"{item.text}. {setting}" if setting and item.kind != "silence" else item.text
        found.append(
            replace(item, text=text, relation="first" if not found and item.relation != "background" else item.relation)
        )
        setting = "" if item.kind != "sound" else setting
    if not found and setting:
        return []
    return found


def _with_colon_quotes(items: list[Item]) -> list[Item]:
    """In "A man speaks over music: 'Hello'" the quote belongs to the speaker, and the music is music."""
    found: list[Item] = []
    for item in items:
        previous = found[-1] if found else None
        background = item.kind == "speech" and item.relation == "background"
        if (
            background
            and previous
            and previous.kind == "speech"
            and not previous.quotes
            and item.quotes
            and english.speaker(item.text) is None
        ):
            found[-1] = replace(previous, quotes=item.quotes, who=item.who)
            kind = "music" if music_names.is_music(item.text) else "sound"
            found.append(Item(kind, item.text, "background", flexible=_flexible(kind, item.text)))
            continue
        found.append(item)
    return found


_GOES_ON = re.compile(
    r"^(?:and |then )?(?:the|it|its|this|that|they)\b.*\b(?:pass\w*|fad\w*|reced\w*|leav\w*|disappear\w*|approach\w*|"
    r"grow\w*|swell\w*|sink\w*|ris\w+|d(?:ies|ying)|subsid\w*|build\w*|gets?|becom\w*|quicken\w*|slow\w*|continu\w*|"
    r"speed\w*|drives? (?:away|off|past)|louder|quieter|softer|stops?)\b",
    re.IGNORECASE,
)


def _continued(items: list[Item]) -> list[Item]:
    """A sound told of again ("the siren then fades") is the same sound going on."""
    found: list[Item] = []
    for item in items:
        before = next((i for i in range(len(found) - 1, -1, -1) if found[i].kind == "sound"), None)
        told = item.kind == "sound" and before is not None and _GOES_ON.match(item.text)
        if told and before is not None and _same_source(found[before].text, item.text) and not english.count(item.text):
            found[before] = replace(found[before], text=f"{found[before].text}. {item.text}")
            continue
        found.append(item)
    return found


def _with_ambience(items: list[Item]) -> list[Item]:
    """What surrounds somebody who speaks ("beside a waterfall", "in a busy street") sounds under the words."""
    found = list(items)
    for phrase in (p for item in items if item.kind == "speech" for p in scene_ambience.around(item.text)):
        if not any(i.kind == "sound" and _same_source(i.text, phrase) for i in found):
            found.append(Item("sound", phrase, "background", flexible=True))
    return found


_PRONOUN = re.compile(r"^(?:he|she|they|him|her|his|their|herself|himself|the speaker|the voice|it)\b", re.IGNORECASE)


def _described_once(items: list[Item]) -> list[Item]:
    """Speech without words next to the same speaker's words only describes them; the description goes with the
    words."""
    if not any(item.quotes for item in items):
        return items
    found: list[Item] = []
    waiting: Item | None = None
    for item in items:
        if item.kind != "speech":
            found.append(item)
        elif not item.quotes:
            spoken = [i for i, f in enumerate(found) if f.kind == "speech"]
            if spoken and (
                item.speaker is None or _PRONOUN.match(item.text) or re.match(r"(?:the|both)\b", item.text.lower())
            ):
                last = spoken[-1]
                found[last] = replace(found[last], text=f"{found[last].text}. {item.text}")
            else:
                waiting = item if waiting is None else replace(waiting, text=f"{waiting.text}. {item.text}")
        else:
            if waiting is not None:
                own = item.speaker if item.speaker and not _PRONOUN.match(item.speaker.label) else waiting.speaker
                relation = waiting.relation if item.relation == "next_sentence" else item.relation
                item = replace(
                    item, text=f"{waiting.text}. {item.text}", speaker=own or item.speaker, relation=relation
                )
                waiting = None
            found.append(item)
    return found


def _music_joined(items: list[Item]) -> list[Item]:
    """Music after music is one piece: its form is the composer's business."""
    found: list[Item] = []
    at: int | None = None
    for item in items:
        if item.kind != "music":
            found.append(item)
            if item.relation in ("then",) and item.kind != "silence":
                at = None
            continue
        if at is None:
            at = len(found)
            found.append(item)
        else:
            joint = {"then": ", then ", "next_sentence": ". ", "during": ", then "}.get(item.relation, " with ")
            found[at] = replace(found[at], text=f"{found[at].text}{joint}{item.text}")
    return found


def _with_words(items: list[Item], words: str) -> list[Item]:
    spoken = [i for i, item in enumerate(items) if item.kind == "speech"]
    if not spoken:
        return [
            Item("speech", "", "first", (words,)),
            *(replace(i, relation="background") if n == 0 else i for n, i in enumerate(items)),
        ]
    items[spoken[0]] = replace(items[spoken[0]], quotes=(words,))
    return items


def _says_something(item: Item) -> bool:
    return bool(re.search(_SPEAKS, item.text.lower()) and not re.search(_CROWD, item.text.lower()))


def _only(text: str, audio_type: str) -> Item:
    bare = _bare(text) or text
    kind = "music" if audio_type == "music" else "sound" if audio_type == "sound" else "speech"
    return Item(kind, bare, "first", (), english.speaker(bare), kind == "music")
