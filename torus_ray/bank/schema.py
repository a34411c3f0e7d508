"""What a self-coherence test holds (paper 3.1, 3.2; BANK.md): three stages, three six-option questions a stage.

Everything a head may see is `Stage.prompt` and, of a question, `text` and `options`. All else is sealed: it stays in
the driver.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StringConstraints

from torus_ray.bank.characters import NO_CONTROLS

AudioType = Literal["speech", "sound", "music"]
StageName = Literal["generation", "edit", "counterfactual"]
Family = Literal["physical_causality", "source_composition", "scene_acoustics", "temporal_ordering", "expression"]

AUDIO_TYPES: tuple[AudioType, ...] = ("speech", "sound", "music")
STAGES: tuple[StageName, ...] = ("generation", "edit", "counterfactual")
FAMILIES: tuple[Family, ...] = (
    "physical_causality",
    "source_composition",
    "scene_acoustics",
    "temporal_ordering",
    "expression",
)
LETTERS = "ABCDEF"
QUESTIONS_PER_STAGE = 3

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, pattern=NO_CONTROLS)]
Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)]


class _Frozen(BaseModel):
    # Only keys repeat enough among tests for a table of strings seen to be worth its time.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, cache_strings="keys")


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field's annotation such as ``Annotated[tuple[Source, ...], ...] | None`` holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for arg in get_args(annotation) if (model := model_in(arg))), None)


class Key(_Frozen):
    """The sealed attribute that a question asks for, and its value in a faithful clip."""

    attribute: Text
    value: Text


class Question(_Frozen):
    """One six-option question. `answer` is the text of the right option; `options` are in the author's order, never
    shown so."""

    id: Id
    family: Family
    text: Text
    options: Annotated[tuple[Text, ...], Field(min_length=6, max_length=6)]
    answer: Text
    key: Key


class Source(_Frozen):
    """One source of an ideal clip. onset_s, duration_s: seconds from the start of the clip."""

    what: Text
    onset_s: FiniteFloat
    duration_s: FiniteFloat
    level: Text
    place: Text


class Music(_Frozen):
    """What an ideal music clip has. tempo_bpm: beats a minute."""

    tempo_bpm: FiniteFloat
    key: Text
    meter: Text
    instruments: tuple[Text, ...]
    form: Text


class Voice(_Frozen):
    """Who speaks how in an ideal speech clip; `words` are what that voice says."""

    who: Text
    delivery: Text
    words: Text


class Spec(_Frozen):
    """The ideal clip of a stage, from which alone every question of the stage can be answered.

    unchanged: what must be as in the stage before (empty for the generation stage).
    """

    summary: Text
    duration_s: Annotated[FiniteFloat, Field(gt=0, le=10)]
    room: Text
    sources: Annotated[tuple[Source, ...], Field(min_length=1)]
    voices: tuple[Voice, ...] = ()
    music: Music | None = None
    unchanged: tuple[Text, ...] = ()


class Stage(_Frozen):
    """One render and its three questions. transcript: the words heard, in order, in a stage with speech; else None."""

    prompt: Text
    spec: Spec
    transcript: Text | None
    questions: Annotated[tuple[Question, ...], Field(min_length=3, max_length=3)]


class Seed(_Frozen):
    """The human idea that a test grows from (paper 3.2)."""

    scene: Text
    intervention: Text
    acoustic_outcome: Text
    altered_attribute: Text
    counterfactual_outcome: Text


class Stages(_Frozen):
    generation: Stage
    edit: Stage
    counterfactual: Stage


class Provenance(_Frozen):
    """Who wrote the test with what, and who has verified it: null until a person has listened and read."""

    author: Text
    written: Text
    human_verified_by: Text | None = None
    notes: Text | None = None


class Test(_Frozen):
    """A self-coherence test: three stages, nine questions."""

    id: Id
    audio_type: AudioType
    title: Text
    seed: Seed
    stages: Stages
    provenance: Provenance

    def stage(self, name: StageName) -> Stage:
        stage: Stage = getattr(self.stages, name)
        return stage


class BankCard(_Frozen):
    """bank.json: what the folder of tests is. order_seed: the seed of the option order, the bank's own (METRICS 1b)."""

    name: Id
    title: Text
    order_seed: int
    licence: Text
    about: Text
    language: Literal["en"] = "en"
