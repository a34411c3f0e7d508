"""What a head is: the requests it gets, the replies it gives, what it declares.

A *head* is one ability of a model (generate, edit, caption, answer, measure); a *model class* implements any of them
and is all that an adapter has to write::

    from torus_ray.heads import Model

    class MyModel(Model):
        def load(self, host):
            self.net = ...

        def generate(self, requests):
            return [request.reply(Clip(self.net(request.prompt), 44100)) for request in requests]

        def answer(self, requests):
            return [request.reply([self.ask(request.clip, q.prompt) for q in request.questions]) for request in
            requests]

Each method takes a list of requests and returns as many replies in the same order, each made by its request's `reply`
(which stamps it, so that a reply in the wrong place is found). A model whose backend keeps many requests in flight by
itself (vLLM, an API) sets `style = "async"` and writes the methods as coroutines over ONE request.

One of the two modules that an adapter may import, so: Python 3.9, numpy, soundfile, soxr. Between processes everything
travels as :meth:`to_wire` dicts of str, bytes, numbers and lists: numpy and torch types do not survive between
environments.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Dict, List, Mapping, Optional, Sequence, Tuple, Type, Union

from torus_ray.audio import Clip, StoredClip, decode, encode

OPERATIONS = ("generate", "edit", "caption", "answer", "measure")
AUDIO_TYPES = ("speech", "sound", "music")

Wire = Dict[str, Any]


class Refused(Exception):
    """Raised by a head for a request that it cannot serve and never will (a prompt beyond its limit, a type it does
    not do).

    The unit gets status `refused` with `reason` (snake_case, e.g. `prompt_too_long`); it is final, not a failure.
    """

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.reason = reason


class HeadStop(Exception):
    """Raised by a head that can serve no request any more (a wrong key, a spent budget, a dead server).

    The run stops there and says what, where, what was expected and the mend; the same command goes on from there.
    """

    def __init__(self, what: str, where: str, expected: str, mend: str) -> None:
        super().__init__(f"{what}\n  where: {where}\n  expected: {expected}\n  mend: {mend}")
        self.told = {"what": what, "where": where, "expected": expected, "mend": mend}


# --- replies ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RenderReply:
    """A clip, and whether the model stopped only because it hit its length limit.

    notes (here and below): what the adapter did beyond the request, in a few words for the row: the route taken, a clip
    cut to the model's length, tokens and cost. No part of the outcome: two runs may differ in it.
    """

    id: str
    clip: Clip
    hit_limit: bool = False
    notes: str = ""


@dataclass(frozen=True)
class CaptionReply:
    """A description of a clip."""

    id: str
    text: str
    notes: str = ""


@dataclass(frozen=True)
class AnswerReply:
    """The raw reply to each question, in the order asked."""

    id: str
    texts: Tuple[str, ...]
    notes: str = ""


@dataclass(frozen=True)
class MeasureReply:
    """Plain named values: numbers, strings, lists of numbers."""

    id: str
    values: Mapping[str, Any]


Reply = Union[RenderReply, CaptionReply, AnswerReply, MeasureReply]


# --- requests ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GenerateRequest:
    """Render a clip from words.

    prompt: what to render (in a self-caption arm: the filled self-caption prompt).
    audio_type: speech, sound or music.
    seed: the seed for this request, as the card's seed rule gives it.
    words: for a route that speaks words only (text-to-speech): the words to say; else None.
    """

    id: str
    prompt: str
    audio_type: str
    seed: int
    words: Optional[str] = None

    operation: ClassVar[str] = "generate"

    def reply(self, clip: Clip, hit_limit: bool = False, notes: str = "") -> RenderReply:
        return RenderReply(self.id, clip, hit_limit, notes)


@dataclass(frozen=True)
class EditRequest:
    """Change a clip as the prompt says. `clip_bytes` is the stored FLAC; `clip` decodes it. The rest as in
    GenerateRequest."""

    id: str
    prompt: str
    clip_bytes: bytes = field(repr=False)
    audio_type: str
    seed: int
    words: Optional[str] = None

    operation: ClassVar[str] = "edit"

    @property
    def clip(self) -> Clip:
        return decode(self.clip_bytes)

    def reply(self, clip: Clip, hit_limit: bool = False, notes: str = "") -> RenderReply:
        return RenderReply(self.id, clip, hit_limit, notes)


@dataclass(frozen=True)
class CaptionRequest:
    """Describe a clip. `instruction` is the versioned caption instruction; no prompt of the scene is ever shown."""

    id: str
    instruction: str
    clip_bytes: bytes = field(repr=False)
    seed: int

    operation: ClassVar[str] = "caption"

    @property
    def clip(self) -> Clip:
        return decode(self.clip_bytes)

    def reply(self, text: str, notes: str = "") -> CaptionReply:
        return CaptionReply(self.id, text, notes)


@dataclass(frozen=True)
class Question:
    """One question as a listener sees it.

    text: the stem. options: six texts, already in the order shown (A to F). prompt: both filled into the versioned
    six-option template, ready to be sent as it is.
    """

    text: str
    options: Tuple[str, ...]
    prompt: str


@dataclass(frozen=True)
class AnswerRequest:
    """Questions about ONE clip: independent conversations (none sees another or its answer); encode the clip once.

    clip_bytes: the stored FLAC, or None in the caption control, where `prompt` of each question carries the caption.
    """

    id: str
    questions: Tuple[Question, ...]
    clip_bytes: Optional[bytes] = field(repr=False)
    seed: int

    operation: ClassVar[str] = "answer"

    @property
    def clip(self) -> Optional[Clip]:
        return None if self.clip_bytes is None else decode(self.clip_bytes)

    def reply(self, texts: Sequence[str], notes: str = "") -> AnswerReply:
        if isinstance(texts, str):
            raise TypeError(f"reply takes a list with one text a question, got the text {texts!r:.40}")
        return AnswerReply(self.id, tuple(texts), notes)


@dataclass(frozen=True)
class MeasureRequest:
    """Measure a clip (transcribe it, tag it, embed it). `measure` names what is wanted of a head that measures
    several things."""

    id: str
    measure: str
    clip_bytes: bytes = field(repr=False)
    seed: int

    operation: ClassVar[str] = "measure"

    @property
    def clip(self) -> Clip:
        return decode(self.clip_bytes)

    def reply(self, values: Mapping[str, Any]) -> MeasureReply:
        return MeasureReply(self.id, values)


Request = Union[GenerateRequest, EditRequest, CaptionRequest, AnswerRequest, MeasureRequest]

REQUEST_TYPES: Dict[str, Type[Any]] = {
    t.operation: t for t in (GenerateRequest, EditRequest, CaptionRequest, AnswerRequest, MeasureRequest)
}


# --- what a model declares --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Host:
    """What a model is told when it loads: where it runs and what it may use.

    device: "cpu", or "cuda" when the host was given a GPU. threads: CPU threads to keep to.
    gpu_share: the share of one GPU that is this replica's, e.g. 0.5: what vLLM gets as its memory fraction.
    weights: local path by the name used in the card.
    """

    device: str = "cpu"
    threads: int = 1
    gpu_share: float = 0.0
    weights: Mapping[str, str] = field(default_factory=dict)


class Model:
    """Base of every adapter. Constructor keywords are the card's `settings`; `load` fills memory; `close` gives it
    back.

    style: "batch" (list in, list out) or "async" (coroutines over one request).
    max_batch: the largest batch for each operation, e.g. {"generate": 8}; 1 where nothing is said.
    max_in_flight: async only: how many requests one replica keeps in flight.
    batch_invariant: whether a request's reply never depends on what else is in its batch; if not, `--exact` sends one
    at a time.
    capabilities: audio types by operation, e.g. {"generate": ("speech",)}; every type where nothing is said.
    """

    style: ClassVar[str] = "batch"
    max_batch: ClassVar[Mapping[str, int]] = {}
    max_in_flight: ClassVar[int] = 8
    batch_invariant: ClassVar[bool] = False
    capabilities: ClassVar[Mapping[str, Sequence[str]]] = {}

    def load(self, host: Host) -> None:
        """Load weights. Called once, in the host's own process, before any request."""

    def observe(self) -> Mapping[str, Any]:
        """Settings that only loading shows (a generation config's defaults, say): plain data, kept in run.json.

        While its identity is the same it has to stay the same: a change stops the run.
        """
        return {}

    def close(self) -> None:
        """Give back memory and children. Called once, before the process ends."""


def operations_of(model: Any) -> List[str]:
    """The operations that a model class (or instance) implements."""
    return [name for name in OPERATIONS if callable(getattr(model, name, None))]


# --- the wire ---------------------------------------------------------------------------------------------------------


def request_to_wire(request: Request) -> Wire:
    """A request as a dict of str, bytes, numbers and lists."""
    wire: Wire = {"operation": request.operation}
    for name in request.__dataclass_fields__:
        value = getattr(request, name)
        if name == "questions":
            value = [{"text": q.text, "options": list(q.options), "prompt": q.prompt} for q in value]
        wire[name] = value
    return wire


def request_from_wire(wire: Wire) -> Request:
    """The request in a dict made by :func:`request_to_wire`."""
    fields = dict(wire)
    cls = REQUEST_TYPES[fields.pop("operation")]
    if "questions" in fields:
        fields["questions"] = tuple(Question(q["text"], tuple(q["options"]), q["prompt"]) for q in fields["questions"])
    request: Request = cls(**fields)
    return request


def clip_to_wire(stored: StoredClip) -> Wire:
    """A stored clip as plain data."""
    return {name: getattr(stored, name) for name in StoredClip.__dataclass_fields__}


def clip_from_wire(wire: Wire) -> StoredClip:
    return StoredClip(**wire)


def reply_to_wire(reply: Reply, bits: int = 16) -> Wire:
    """A reply as plain data, its clip encoded. Raises audio.BadClip for a clip that cannot be stored."""
    if isinstance(reply, RenderReply):
        clip = clip_to_wire(encode(reply.clip, bits))
        return {"id": reply.id, "hit_limit": bool(reply.hit_limit), "clip": clip, "notes": str(reply.notes)}
    if isinstance(reply, CaptionReply):
        return {"id": reply.id, "text": str(reply.text), "notes": str(reply.notes)}
    if isinstance(reply, AnswerReply):
        return {"id": reply.id, "texts": [str(text) for text in reply.texts], "notes": str(reply.notes)}
    if isinstance(reply, MeasureReply):
        return {"id": reply.id, "values": dict(reply.values)}
    raise TypeError(f"a reply is made by request.reply(...), got {type(reply).__name__}")
