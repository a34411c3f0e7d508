"""The checks of one head: a table of functions, each asking for itself and telling what came."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torus_ray.answers.letters import read_letter
from torus_ray.audio import SILENT_PEAK, TOO_SHORT_S
from torus_ray.contract.asking import Asker, content, told, traceback_of, was_served
from torus_ray.contract.findings import Result, failed, ok, skipped
from torus_ray.contract.material import BROKEN, FORMS, LONG_S, OTHER_SEED, SHORT_S, Head, quiet, tone
from torus_ray.heads import Request, request_from_wire, request_to_wire
from torus_ray.protocol.executor import Outcome

Check = Callable[[Head, Asker], Result]

BIGGEST_BATCH = 8
"""Requests handed over at once where a head takes more."""


# --- one plain request ------------------------------------------------------------------------------------------------


def shape(head: Head, asker: Asker) -> Result:
    """A plain request of each kind that the card claims: a reply that can be stored and read."""
    seen = []
    for kind in head.kinds:
        outcome = asker.once(head.request(kind))
        if outcome.status != "ok" or outcome.reply is None:
            return failed(
                f"{kind or 'a plain request'}: {told(outcome)}",
                "a reply" + (f" for every one of {', '.join(head.kinds)}" if kind else ""),
                "mend what raises; a type that it cannot do leaves audio_types in the card",
                traceback_of(outcome),
            )
        wrong = _SHAPES[head.operation](outcome.reply, head.request(kind))
        if wrong:
            return failed(f"{kind or 'a plain request'}: {told(outcome)}: {wrong}", *_SHAPE_MEND[head.operation])
        seen.append(f"{kind}: {told(outcome)}" if kind else told(outcome))
    return ok("; ".join(seen))


def _clip_wrong(reply: Mapping[str, Any], _request: Request) -> str:
    clip = reply["clip"]
    if clip["frames"] / clip["rate_hz"] < TOO_SHORT_S:
        return f"shorter than {TOO_SHORT_S:g} s"
    if clip["peak"] < SILENT_PEAK:
        return "silent"
    if clip["clipped_samples"]:
        return f"{clip['clipped_samples']} samples above 1 (peak {clip['peak']:.2f})"
    return ""


def _text_wrong(reply: Mapping[str, Any], _request: Request) -> str:
    return "" if reply["text"].strip() else "no text"


def _texts_wrong(reply: Mapping[str, Any], request: Any) -> str:
    options = [question.options for question in request.questions]
    read = [read_letter(text, shown) for text, shown in zip(reply["texts"], options, strict=True)]
    reasons = [reading.reason or "" for reading in read if reading.letter is None]
    return f"no letter is read from it ({', '.join(reasons)})" if reasons else ""


def _values_wrong(reply: Mapping[str, Any], _request: Request) -> str:
    numbers = [value for value in _flat(reply["values"].values()) if isinstance(value, float)]
    if not reply["values"]:
        return "no value"
    return "" if all(map(math.isfinite, numbers)) else "NaN or infinity among the values"


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value


_SHAPES: Mapping[str, Callable[[Mapping[str, Any], Request], str]] = {
    "generate": _clip_wrong,
    "edit": _clip_wrong,
    "caption": _text_wrong,
    "answer": _texts_wrong,
    "measure": _values_wrong,
}
_SHAPE_MEND = {
    "generate": ("sound of 0.1 s or more, within [-1, 1]", "return the model's float wave at its own rate, scaled"),
    "edit": ("sound of 0.1 s or more, within [-1, 1]", "return the model's float wave at its own rate, scaled"),
    "caption": ("a description", "return the decoded text, without the prompt"),
    "answer": ("one of the letters A to F", "send question.prompt as it is, return the raw reply without the prompt"),
    "measure": ("finite numbers, strings, lists of numbers", "look at the model's output for this clip"),
}


def rates(head: Head, asker: Asker) -> Result:
    """One rate and one channel count for all that is generated; any rate and channels heard."""
    if not head.hears:
        clips = [
            outcome.reply["clip"]
            for kind in head.kinds
            for number in (0, 1)
            if (outcome := asker.once(head.request(kind, number=number))).reply is not None
        ]
        found = sorted({(clip["rate_hz"], clip["channels"]) for clip in clips})
        listed = ", ".join(f"{rate} Hz x {channels}" for rate, channels in found)
        # A system may route types to models of other rates, but one head of one host is one model.
        return ok(listed) if clips else failed("no clip came", "clips", "see the check `shape`")
    return _serves(
        head,
        asker,
        {f"{rate} Hz x {channels}": tone(0, 2.0, rate, channels) for rate, channels in FORMS},
        "take the clip at any rate and channel count: torus_ray.audio.mono(clip, rate), .resample, .downmix",
    )


# --- several at once --------------------------------------------------------------------------------------------------


def order(head: Head, asker: Asker) -> Result:
    """Different requests at once: a reply to each, in its place; equal to those given alone where the class says so."""
    described = asker.described()
    asynchronous = described["style"] == "async"
    largest = described["max_in_flight"] if asynchronous else described["max_batch"].get(head.operation, 1)
    if largest < 2:
        return skipped("the class takes one at a time")
    requests = [
        head.request(kind, number=number, seed=seed) for seed in (0, 1) for kind in head.kinds for number in (0, 1)
    ]
    requests = requests[: min(largest, BIGGEST_BATCH)]
    outcomes = asker.together(requests)
    bad = [outcome for outcome in outcomes if not was_served(outcome)]
    if bad:
        return failed(
            f"{len(bad)} of {len(outcomes)} asked at once: {told(bad[0])}",
            "as many replies as requests, in their order, each made by its request's reply()",
            "pad the batch and take it apart again request by request",
            traceback_of(bad[0]),
        )
    if _was_split(outcomes):
        return failed(
            f"the batch of {len(requests)} raised and was asked again in smaller ones: {_first_error(outcomes)}",
            "a batch as large as max_batch says",
            "lower max_batch, or mend what raises",
            next(filter(None, map(traceback_of, outcomes)), ""),
        )
    held = len(outcomes) if asynchronous else max(outcome.attempts[-1].batch for outcome in outcomes)
    if held < 2:
        return skipped("this executor sends one at a time (leave --inline out)")
    if not (described["batch_invariant"] and head.card.seeded):
        return ok(f"{held} at once, in order; not compared with single ones: the class does not say batch_invariant")
    differ = [r for r, outcome in zip(requests, outcomes, strict=True) if content(outcome) != content(asker.once(r))]
    if differ:
        return failed(
            f"{len(differ)} of {len(requests)} differ from what they are alone",
            "equal replies: the class says batch_invariant",
            "seed, pad and mask each request of a batch for itself, or take batch_invariant out",
        )
    return ok(f"{held} at once, in order, each equal to the one given alone")


def _was_split(outcomes: Iterable[Outcome]) -> bool:
    return any(attempt.status == "failed" for outcome in outcomes for attempt in outcome.attempts)


def _first_error(outcomes: Iterable[Outcome]) -> str:
    tries = (attempt for outcome in outcomes for attempt in outcome.attempts if attempt.status == "failed")
    attempt = next(tries)
    return f"{attempt.kind}: {str(attempt.message)[:200]}"


def seed(head: Head, asker: Asker) -> Result:
    """The same request twice gives the same; another seed another clip, where the card says that a seed is taken."""
    if not head.card.seeded:
        return skipped("the card says seeded = false")
    for kind in head.kinds:
        request = head.request(kind)
        if content(asker.once(request)) != content(asker.alone(request)):
            return failed(
                f"{kind or 'the same request'} twice: two different replies",
                "the same bytes for the same request and seed",
                "seed every random generator from request.seed in each call, or say seeded = false in the card",
            )
    if not head.renders:
        return ok("the same twice")
    changed = [
        kind
        for kind in head.kinds
        if content(asker.once(head.request(kind))) != content(asker.alone(head.request(kind, seed=OTHER_SEED)))
    ]
    if changed:
        return ok(f"the same twice; another seed changes {', '.join(changed)}")
    if head.operation == "edit":
        return ok("the same twice; another seed changes nothing: these edits draw nothing")
    return failed(
        "another seed gives the same bytes",
        "another clip: the card says that a seed is taken (seeded)",
        "hand request.seed to the model; of a model that draws nothing, say seeded = false in the card",
    )


# --- clips at the edges -----------------------------------------------------------------------------------------------


def silent_clip(head: Head, asker: Asker) -> Result:
    return _serves(
        head, asker, {"5 s of digital silence": quiet()}, "guard against dividing by the peak or by no speech"
    )


def short_clip(head: Head, asker: Asker) -> Result:
    return _serves(head, asker, {f"{SHORT_S:g} s": tone(0, SHORT_S)}, "pad short clips to what the model's frames need")


def long_clip(head: Head, asker: Asker) -> Result:
    return _serves(head, asker, {f"{LONG_S:g} s": tone(0, LONG_S)}, "take what the model takes, in windows or cut")


def _serves(head: Head, asker: Asker, clips: Mapping[str, bytes], how: str) -> Result:
    seen = []
    for name, clip in clips.items():
        outcome = asker.alone(head.request(clip=clip))
        if not was_served(outcome):
            return failed(
                f"{name}: {told(outcome)}",
                "a reply, or heads.Refused with a reason",
                how + "; or raise torus_ray.heads.Refused",
                traceback_of(outcome),
            )
        seen.append(f"{name}: {told(outcome)}")
    return ok("; ".join(seen))


# --- a request that raises --------------------------------------------------------------------------------------------


def raising(head: Head, asker: Asker) -> Result:
    """A request that cannot be served: it comes back as a failure, and the same process goes on as before."""
    plain = head.request()
    wrong: dict[str, Any] = {"clip_bytes": BROKEN} if head.hears else {"prompt": None, "words": None}
    bad = request_from_wire({**request_to_wire(plain), **wrong})
    what = "a clip that is none" if head.hears else "no prompt at all"
    before = asker.once(plain)
    outcome = asker.alone(bad)
    if outcome.status == "timeout" or outcome.reason in ("worker_died", "deadline"):
        return failed(
            f"{what}: {told(outcome)}",
            "an exception, which becomes the row's failure",
            "let the exception out of the method: no exit, no endless retry",
        )
    after = asker.alone(plain)
    if after.status != "ok" or (head.card.seeded and content(after) != content(before)):
        return failed(
            f"after {what}, a plain request is answered otherwise than before: {told(after)}",
            "the same reply as before",
            "leave no state behind when a request raises",
            traceback_of(after),
        )
    if before.attempts[-1].pid != after.attempts[-1].pid:
        return failed(f"after {what} another process answers", "the same process", "see its stderr in `attempts`")
    came = "did not raise, and was answered" if outcome.status == "ok" else f"came back as {told(outcome)}"
    return ok(f"{what} {came}; the next request is served as before")


CHECKS: Mapping[str, Check] = {
    "shape": shape,
    "rates": rates,
    "order": order,
    "seed": seed,
    "raises": raising,
}
"""In the order asked; where `shape` fails the others of that head are skipped."""

HEARING_CHECKS: Mapping[str, Check] = {
    "silence": silent_clip,
    "0.1 s clip": short_clip,
    "60 s clip": long_clip,
}
"""After them, of heads that hear."""


def checks_of(head: Head) -> Mapping[str, Check]:
    return {**CHECKS, **HEARING_CHECKS} if head.hears else CHECKS
