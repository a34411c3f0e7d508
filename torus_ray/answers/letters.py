"""Which option a free-text reply names (METRICS 1a): letters first, then an unambiguous option text, else nothing.

Reading is a pure function of the reply and the options shown. It never guesses: a reply that names no option, or two,
is unparsed and scores as wrong. Two readings are made side by side, `letter` (the headline) and `letter_strict`
(letters only).

A reply is read by the first rule that has something to say:

=====  ================================================================================================
R0     normalise: NFKC, no zero-width characters, no chat tokens, no thinking
R1     the whole reply is one letter
R2     a structured answer: a JSON field, ``\\boxed{}``, an <answer> tag
R3     an explicit statement ("the answer is B", "option B"); the last one counts
R4     a letter with a delimiter at the start
R5     the text of exactly one option (not in the strict reading)
R6     one distinct standalone capital in the prose, the article A not counted
R9     two or more letters or option texts, none of them stated last
R8     nothing there, or a refusal
R7     none of the above
=====  ================================================================================================
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from torus_ray.errors import InputError
from torus_ray.folding import fold

Reason = Literal["empty", "unclosed_thinking", "refusal", "ambiguous", "no_letter"]
LETTERS = "ABCDEF"


@dataclass(frozen=True)
class Reading:
    """What a reply says. letter, letter_strict: A-F or None. rule: that gave `letter`. reason: why `letter` is None."""

    letter: str | None
    letter_strict: str | None
    rule: str
    reason: Reason | None


@dataclass(frozen=True)
class _Reply:
    """A normalised reply and the folded texts of the options, A first."""

    text: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class _Said:
    """What a rule makes of a reply: a letter, or the reason why there is none."""

    rule: str
    letter: str | None = None
    reason: Reason | None = None


Rule = Callable[[_Reply], _Said | None]


def read_letter(reply: str | None, options: Sequence[str]) -> Reading:
    """Read a reply to a question whose six `options` were shown in this order. None is a reply that was never given.

    Raises InputError unless there are six options, and for no text whatever.
    """
    if len(options) != len(LETTERS):
        raise InputError(
            f"a question has {len(LETTERS)} options, got {len(options)}",
            expected="the option texts as they were shown, A first",
            mend="pass all of them",
        )
    if reply is not None and not isinstance(reply, str):
        raise InputError("the reply is no text", where=repr(reply)[:80], expected="a string, or None", mend="pass it")
    raw = (reply or "").strip()
    if raw in _BARE:
        return _BARE[raw]
    text, unclosed = normalise(raw)
    if unclosed:
        return Reading(None, None, "R0", "unclosed_thinking")
    read = _Reply(text, tuple(fold(option) for option in options))
    loose, strict = _first(_LOOSE, read), _first(_STRICT, read)
    touched = "R0+" if text != raw and loose.letter else ""
    return Reading(loose.letter, strict.letter, touched + loose.rule, loose.reason)


def _first(rules: Sequence[Rule], reply: _Reply) -> _Said:
    return next((said for rule in rules if (said := rule(reply))), _Said("R7", reason="no_letter"))


# --- R0 ---------------------------------------------------------------------------------------------------------------

_INVISIBLE = re.compile("[\u200b-\u200f\u2060-\u2064\ufeff\u00ad\u202a-\u202e]")
_CHAT_TOKEN = re.compile(r"<\|[^<>|\s]{1,40}\|>|</?s>|<(?:eos|bos|pad|unk|end_of_turn|start_of_turn)>|\[/?INST\]", re.I)
_THINKING = r"(?:think|thinking|thought|reasoning)"
_THINKING_TAG = re.compile(rf"<(/?){_THINKING}>", re.I)
_LATEX_TEXT = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathsf|textrm)\s*\{([^{}]*)\}")


def normalise(reply: str) -> tuple[str, bool]:
    """R0: the part of a reply that answers, and whether its thinking was cut off before there was any."""
    text = unicodedata.normalize("NFKC", reply)
    text = _CHAT_TOKEN.sub("", _INVISIBLE.sub("", text))
    kept, start, thinking = "", 0, False
    for tag in _THINKING_TAG.finditer(text):
        closing = bool(tag.group(1))
        # A closing tag without an opening one: the template opened the block, so all before it was thinking.
        if closing and not thinking:
            kept = ""
        elif not closing and not thinking:
            kept += text[start : tag.start()]
        start, thinking = tag.end(), not closing
    if thinking:
        return "", True
    return _LATEX_TEXT.sub(r"\1", kept + text[start:]).strip(), False


# --- what a letter looks like -----------------------------------------------------------------------------------------

_WRAP = r"[\s*_`\"'()\[\]{}<>$~\u201c\u201d\u2018\u2019\u00ab\u00bb\u300c\u300d]"
_OPEN = r"[\s*_`\"'(\[{<$~\u201c\u2018\u00ab\u300c]"
# Not a letter: C#, A-weighted, B's, U.S.A., B&B, 60 dB.
_NO_LETTER_AFTER = r"(?![\w#\u266f\u266d+&]|['\u2019\-.]\w)"
_NO_LETTER_BEFORE = r"(?<![\w#&'\u2019\-])(?<!\w\.)"
_KEY_NAME = re.compile(r"\s+(?:major|minor|flat|sharp|natural|maj|min|dorian|phrygian|lydian|mixolydian)\b", re.I)
_AFTER_ARTICLE = re.compile(r"[*_`\"'\u201c\u2018]*\s+[*_`\"'(\u201c\u2018]*(?=[\w])(\w+)")
# After the letter A these words go on with the sentence; after the article none of them can stand.
_NO_NOUN = re.compile(
    r"because|since|as|and|or|but|not|nor|if|when|while|so|then|than|though|although|however|instead|thus|therefore|hence"
    r"|is|was|are|has|had|can|could|would|will|should|must|may|might|seems|sounds|fits|matches|means|due|given"
    r"|for|from|to|by|at|in|on|of|with|without|the|this|that|these|those|there|its?|they|i|we|you|s?he|my|our|which|who"
    r"|where|also|best",
    re.I,
)
_NEGATED = re.compile(
    r"(?:\b(?:not|never|cannot|neither|nor|except|excluding|exclude|excludes|than|instead\s+of|without)|n['\u2019]t"
    r"|\brul(?:e|es|ed|ing)\s+out)"
    r"\s+(?:(?:be|the|option|choice|letter|answer|an?|choose|pick|select|go|with|[A-F]\s+or)\s+)*[^\w\s]*$",
    re.I,
)
_REJECTED = re.compile(
    rf"{_WRAP}{{0,4}}\s*(?:(?:is|was|seems|looks)\s+(?:\w+ly\s+|also\s+)?(?:wrong|incorrect|false|not|out|ruled|excluded"
    r"|eliminated|unlikely|impossible)\b|(?:is|was|does|did|can|could|would)n['\u2019]t\b|(?:cannot|can\s+not)\b|does\s+not\b)",
    re.I,
)


def _is_letter(reply: _Reply, at: int) -> bool:
    """Whether the A-F at offset `at` can be an option's letter: no article, key name or beginning of an option text."""
    text = reply.text
    if _KEY_NAME.match(text, at + 1):
        return False
    following = _AFTER_ARTICLE.match(text, at + 1)
    if text[at] in "Aa" and following and not _NO_NOUN.fullmatch(following.group(1)) and "\n" not in following.group():
        return False
    begun = [option for option in reply.options if len(option) > 1 and option[0] == text[at].lower()]
    rest = f"{fold(text[at : at + 200])} " if begun else ""
    return not any(rest.startswith(f"{option} ") for option in begun)


def _negated(text: str, at: int) -> bool:
    return bool(_NEGATED.search(text[max(0, at - 48) : at]))


def _rejected(text: str, end: int) -> bool:
    return bool(_REJECTED.match(text, end))


# --- R1, R2 -----------------------------------------------------------------------------------------------------------

_ONLY_LETTER = re.compile(rf"(?:{_WRAP}|[#\\])*([A-Fa-f])(?:{_WRAP}|[.,:;!?\\])*")
_LOOKALIKES = str.maketrans("\u0410\u0412\u0415\u0421\u0430\u0435\u0441\u0391\u0392\u0395", "ABECAECABE")
_KEYED = r"(?:final[_ ]?answer|correct[_ ]?answer|correct[_ ]?option|answer|choice|option|letter)"
_FIELD = re.compile(
    rf"(?:([\"']){_KEYED}\1|[{{,]\s*{_KEYED})\s*:\s*"
    r"(?:\"(?P<double>[^\"\n]*)\"|'(?P<single>[^'\n]*)'|\[(?P<list>[^\[\]]*)\]|(?P<bare>[^\s,}\]]+))",
    re.I,
)
_BOXED = re.compile(r"\\boxed\s*\{(?P<boxed>[^{}]*)\}")
_TAGGED = re.compile(r"<answer>(?P<tagged>[^<]*)(?:</answer>|$)", re.I)
_NULL = re.compile(r"(?:null|none|n/a)?", re.I)


def _only_letter(reply: _Reply) -> _Said | None:
    text = reply.text.translate(_LOOKALIKES) if len(reply.text) == 1 else reply.text
    found = _ONLY_LETTER.fullmatch(text)
    return _Said("R1", found.group(1).upper()) if found else None


def _structured(inner: Sequence[Rule]) -> Rule:
    """R2, the value of a field read by the `inner` rules. The last field that names an option counts."""

    def rule(reply: _Reply) -> _Said | None:
        values: list[_Said] = []
        for pattern in (_FIELD, _BOXED, _TAGGED):
            for found in pattern.finditer(reply.text):
                value = next((text for text in found.groupdict().values() if text is not None), "").strip()
                empty = _NULL.fullmatch(value)
                values.append(_Said("R8", reason="empty") if empty else _first(inner, _Reply(value, reply.options)))
        if not values:
            return None
        named = [said for said in values if said.letter]
        said = ([said for said in named if said.rule != "R5"] or named or values)[-1]
        return _Said("R2", said.letter) if said.letter else said

    return rule


# --- R3, R4 -----------------------------------------------------------------------------------------------------------

_SAYS = re.compile(
    r"(?P<strong>\banswers?\b(?:\s+(?:choice|option|letter)\b)?(?:\s+(?:to|for)\s+[^.:?!\n]{1,60}?)?" + _WRAP + r"{0,4}"
    r"(?:\s*(?:[:=]|->|\u2192)|\s+(?:is|was|would\s+be|should\s+be|must\s+be|will\s+be|seems\s+to\s+be|appears\s+to\s+be)\b)+"
    r"|\b(?:correct|right|best|final|matching)\s+(?:option|choice|letter|one)" + _WRAP + r"{0,4}(?:\s*[:=]|\s+is\b)"
    r"|\b(?:choose|chose|choosing|pick|picked|picking|select|selected|selecting|opt\s+for|opted\s+for"
    r"|go\s+with|going\s+with|went\s+with)\b\s*:?)"
    r"(?:\s+(?:most|likely|probably|clearly|therefore|definitely|indeed|simply|thus|then|that|of))*"
    r"(?:\s*\b(?:option|choice|letter|answer)\b)?"
    r"|\b(?:option|choice)\b",
    re.I,
)
_LETTER_HERE = re.compile(rf"{_OPEN}{{0,8}}([A-Fa-f]){_NO_LETTER_AFTER}")
_JOINED = re.compile(
    rf"{_WRAP}{{0,4}}[ \t]*(?:,|/|&|\band\b|\bor\b|\band/or\b)(?:[ \t]*(?:and|or)\b)?{_OPEN}{{0,4}}([A-F])\b"
    rf"(?!\s+(?:is|was|are|has|does|can|could)\b){_NO_LETTER_AFTER}"
)
_WRONG_LEAD = re.compile(r"(?:\b(?:wrong|incorrect|not|never|cannot)|n['\u2019]t)\s+(?:\w+\s+)?$", re.I)
_AT_START = re.compile(r"[\s*_`\"'(\[{#~\u201c]*([A-Fa-f])[*_`\"'\u201d]*")
_DELIMITER = re.compile(r"\s*[)\].:][*_`\"')\]]*(?!\w)|\s*[):\]]|\s+[-\u2013\u2014]\s|\s*\n|\s*$")
_LISTED = re.compile(r"(?:^|[\s;,(\[*])([A-F])[*_]{0,2}(?:[):\]]|\.(?=\s))[*_]{0,2}\s*\w")


def _stated(reply: _Reply) -> _Said | None:
    """R3. "Option B" alone is a mention: it counts where no answer is stated, and only if all mentions agree."""
    strong: list[_Said] = []
    weak: list[str] = []
    text = reply.text
    for lead in _SAYS.finditer(text):
        found = _LETTER_HERE.match(text, lead.end())
        if not found or not _is_letter(reply, found.start(1)):
            continue
        letter = found.group(1).upper()
        before = text[max(0, lead.start() - 24) : lead.start()]
        if lead.group("strong"):
            joined = _JOINED.match(text, found.end())
            if not _WRONG_LEAD.search(before):
                clash = joined and joined.group(1) != letter and _is_letter(reply, joined.start(1))
                strong.append(_Said("R9", reason="ambiguous") if clash else _Said("R3", letter))
        elif not (_negated(text, lead.start()) or _rejected(text, found.end()) or _WRONG_LEAD.search(before)):
            weak.append(letter)
    if strong:
        return strong[-1]
    # Letters that stand elsewhere in the prose may say otherwise: then it is for R6 to find that they disagree.
    agree = len(set(weak)) == 1 and set(weak) >= _capitals(reply)
    return _Said("R3", weak[0]) if agree else None


def _at_start(reply: _Reply) -> _Said | None:
    """R4. A list of several options, each under its letter, is an echo of the question."""
    text = reply.text
    found = _AT_START.match(text)
    if not found:
        return None
    letter, rest = found.group(1).upper(), text[found.end() :]
    named = len(set(_LISTED.findall(text))) > 1 or _JOINED.match(rest.lstrip(").:-"))
    delimiter = _DELIMITER.match(rest)
    own = rest[:1] == "-" and fold(rest[1:]) == reply.options[LETTERS.index(letter)]
    if named or not (delimiter or own) or _only_letter(_Reply(rest.lstrip(").:- \n"), ())):
        return None
    return None if found.group(1).islower() and delimiter and not delimiter.group().strip() else _Said("R4", letter)


# --- R5, R6 and what is left ------------------------------------------------------------------------------------------

_ARTICLE = re.compile(r"^(?:a|an|the) ")
_TEXT_NEGATED = re.compile(
    r"\b(?:not|no|never|neither|nor|without|than|instead of|(?:is|was|are|do|does|did|ca|could|would|has)nt)"
    r"(?: (?:a|an|the|be|any))* $"
)
_CAPITAL = re.compile(rf"{_NO_LETTER_BEFORE}([A-F]){_NO_LETTER_AFTER}")
_REFUSAL = re.compile(
    r"\b(?:can(?:not|\s+not|['\u2019]t)|could(?:\s+not|n['\u2019]t)|unable\s+to|not\s+able\s+to)\s+(?:\w+\s+){0,2}?"
    r"(?:determine|answer|tell|hear|listen|identify|process|access|say|know|provide|help|assist|be\s+determined|decide|analy[sz]e)"
    r"|\b(?:do\s+not|don['\u2019]t)\s+know\b|\bI(?:\s+a|['\u2019])m\s+(?:sorry|not\s+sure|unsure|unable)\b|\bsorry\b"
    r"|\bas\s+an\s+AI\b|\bno\s+(?:audio|sound|clip)\s+(?:was|is|has|file|provided|attached|given)|\bnot\s+enough\s+information\b",
    re.I,
)


def _texts_named(reply: _Reply) -> set[str]:
    """Letters of the options whose texts occur as whole words outside of longer ones and not negated."""
    words = f" {fold(reply.text)} "
    whole = words.strip()
    if whole in reply.options:
        return {LETTERS[reply.options.index(whole)]}
    bare = [LETTERS[i] for i, option in enumerate(reply.options) if _ARTICLE.sub("", option) == _ARTICLE.sub("", whole)]
    if len(bare) == 1:
        return set(bare)
    named = set()
    for i in sorted(range(len(reply.options)), key=lambda i: -len(reply.options[i])):
        phrase = f" {reply.options[i]} "
        if len(phrase) < 4:
            continue
        parts = words.split(phrase)
        if any(not _TEXT_NEGATED.search(f"{part} "[-32:]) for part in parts[:-1]):
            named.add(LETTERS[i])
        words = " | ".join(parts)
    return named


def _option_text(reply: _Reply) -> _Said | None:
    named = _texts_named(reply)
    return _Said("R5", named.pop()) if len(named) == 1 else None


def _capitals(reply: _Reply) -> set[str]:
    return {
        found.group(1)
        for found in _CAPITAL.finditer(reply.text)
        if _is_letter(reply, found.start(1))
        and not _negated(reply.text, found.start(1))
        and not _rejected(reply.text, found.end(1))
    }


def _one_capital(reply: _Reply) -> _Said | None:
    letters = _capitals(reply)
    if len(letters) > 1:
        return _Said("R9", reason="ambiguous")
    return _Said("R6", letters.pop()) if letters else None


def _several_texts(reply: _Reply) -> _Said | None:
    return _Said("R9", reason="ambiguous") if len(_texts_named(reply)) > 1 else None


def _nothing_said(reply: _Reply) -> _Said | None:
    if not any(char.isalnum() for char in reply.text):
        return _Said("R8", reason="empty")
    return _Said("R8", reason="refusal") if _REFUSAL.search(reply.text) else None


_PLAIN: tuple[Rule, ...] = (_only_letter, _stated, _at_start, _option_text, _one_capital, _several_texts, _nothing_said)
_LETTERS_ONLY: tuple[Rule, ...] = (_only_letter, _stated, _at_start, _one_capital, _nothing_said)
_LOOSE: tuple[Rule, ...] = (_only_letter, _structured(_PLAIN), *_PLAIN[1:])
_STRICT: tuple[Rule, ...] = (_only_letter, _structured(_LETTERS_ONLY), *_LETTERS_ONLY[1:])

_BARE = {shown: Reading(shown.upper(), shown.upper(), "R1", None) for shown in (*LETTERS, *LETTERS.lower())}
"""What most listeners say, read without more ado."""
