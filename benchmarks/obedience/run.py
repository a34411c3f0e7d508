"""Examine a model: 30 prompts, 30 edits, 20 pairs of clips with opposite truth. Prints Markdown.

    python benchmarks/obedience/run.py --generator actors/pocket/adapter.py:Pocket [--only generate|edit|listen]
        [--ids TEXT] [--keep DIR] [--out FILE.md]

The class is loaded in this interpreter, constructed with no arguments and asked like any head. Whisper and Silero
(for words) and Kokoro, Piper and a MIDI synth (for known clips) must be installed here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from benchmarks.obedience import expect, scenes  # noqa: E402
from benchmarks.obedience.checks import RATE  # noqa: E402
from torus_ray import audio  # noqa: E402
from torus_ray.answers.letters import LETTERS, read_letter  # noqa: E402
from torus_ray.engine import hosting  # noqa: E402
from torus_ray.heads import AnswerRequest, EditRequest, GenerateRequest, Host, Question  # noqa: E402
from torus_ray.stats.intervals import Interval, wilson_interval  # noqa: E402

TEMPLATE = (
    "Listen to the clip and answer the question.\n\nQuestion: {text}\n{options}\n\nAnswer with one letter from A to F."
)


@dataclass(frozen=True)
class Finding:
    """One expectation held against one clip. part: generate, changed or stayed."""

    item: str
    part: str
    kind: str
    holds: bool
    wanted: str
    measured: str


@dataclass(frozen=True)
class Heard:
    """One pair: the right letter and the reply read for either clip."""

    item: str
    kind: str
    right: tuple[str, str]
    read: tuple[str | None, str | None]
    raw: tuple[str, str]


# --- loading ----------------------------------------------------------------------------------------------------------


def load_class(spec: str) -> type[Any]:
    """The class named by `path/to/file.py:Class`, as a host loads it. Raises SystemExit with the mend when the file or
    the class is not there."""
    path, _, name = spec.rpartition(":")
    file = Path(path).resolve()
    if not path or not file.is_file():
        raise SystemExit(f"--generator {spec}: no such file; expected PATH.py:CLASS")
    try:
        cls: type[Any] = hosting.load_class(str(file.parent), file.stem, name)
    except ImportError as error:
        raise SystemExit(f"--generator {spec}: {error}") from error
    return cls


def read_items(name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads((HERE / name).read_text())
    return items


def seed_of(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


# --- asking -----------------------------------------------------------------------------------------------------------


class Asker:
    """A loaded model and the clips it made, kept by prompt; the CPU seconds it took are in `cpu_s`."""

    def __init__(self, model: Any, keep: Path | None) -> None:
        self.model, self.keep = model, keep
        self.cpu_s: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self.made: dict[str, bytes] = {}

    def ask(self, operation: str, request: Any) -> Any:
        start = time.process_time()
        (reply,) = getattr(self.model, operation)([request])
        self.cpu_s[operation] += time.process_time() - start
        self.calls[operation] += 1
        if reply.id != request.id:
            raise SystemExit(f"{operation}: reply {reply.id!r} to request {request.id!r}")
        return reply

    def save(self, name: str, data: bytes) -> bytes:
        if self.keep is not None:
            (self.keep / f"{name}.flac").write_bytes(data)
        return data

    def generate(self, name: str, prompt: str, audio_type: str) -> bytes:
        if prompt not in self.made:
            reply = self.ask("generate", GenerateRequest(name, prompt, audio_type, seed_of(prompt)))
            self.made[prompt] = self.save(name, audio.encode(reply.clip).data)
        return self.made[prompt]

    def edit(self, name: str, prompt: str, base: bytes, audio_type: str) -> bytes:
        reply = self.ask("edit", EditRequest(name, prompt, base, audio_type, seed_of(prompt)))
        return self.save(name, audio.encode(reply.clip).data)

    def answer(self, name: str, text: str, options: list[str], clip: bytes) -> str:
        listed = "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=True))
        question = Question(text, tuple(options), TEMPLATE.format(text=text, options=listed))
        reply = self.ask("answer", AnswerRequest(name, (question,), clip, seed_of(name)))
        return str(reply.texts[0])


def known_clip(scene: Mapping[str, Any]) -> bytes:
    return audio.encode(audio.Clip(*scenes.build(scene))).data


def wave_of(data: bytes) -> Any:
    return audio.mono(data, RATE).astype(float)


def findings(item: str, part: str, expected: Iterable[Mapping[str, Any]], result: Any, base: Any) -> Iterator[Finding]:
    for e in expected:
        holds, measured = expect.judge(e, result, base)
        wanted = ", ".join(f"{k} {v}" for k, v in e.items() if k != "kind")
        yield Finding(item, part, e["kind"], bool(holds), wanted, measured)


def failed(item: str, parts: Mapping[str, list[Mapping[str, Any]]], error: Exception) -> Iterator[Finding]:
    """A model that raises obeys nothing: every expectation of the item counts, as not held."""
    told = f"raised {type(error).__name__}: {error}"[:200]
    for part, expected in parts.items():
        for e in expected:
            yield Finding(item, part, e["kind"], False, "", told)


def examine_generation(asker: Asker, items: list[dict[str, Any]]) -> Iterator[Finding]:
    for item in items:
        try:
            clip = asker.generate(item["id"], item["prompt"], item["type"])
        except Exception as error:  # a model may raise anything
            yield from failed(item["id"], {"generate": item["expect"]}, error)
            continue
        yield from findings(item["id"], "generate", item["expect"], wave_of(clip), None)


def examine_edits(asker: Asker, items: list[dict[str, Any]]) -> Iterator[Finding]:
    for item in items:
        name, parts = item["id"], {"changed": item["changed"], "stayed": item["stayed"]}
        try:
            if "scene" in item:
                base = asker.save(f"{name}-base", known_clip(item["scene"]))
            else:
                base = asker.generate(f"{name}-base", item["base"], item["type"])
            result = asker.edit(name, item["prompt"], base, item["type"])
        except Exception as error:  # a model may raise anything
            yield from failed(name, parts, error)
            continue
        for part, expected in parts.items():
            yield from findings(name, part, expected, wave_of(result), wave_of(base))


def examine_listening(asker: Asker, items: list[dict[str, Any]]) -> Iterator[Heard]:
    for item in items:
        options, raw, read = item["options"], [], []
        for side in ("a", "b"):
            clip = asker.save(f"{item['id']}-{side}", known_clip(item[side]["scene"]))
            try:
                reply = asker.answer(f"{item['id']}-{side}", item["question"], options, clip)
                letter = read_letter(reply, options).letter
            except Exception as error:  # a model may raise anything
                reply, letter = f"(raised {type(error).__name__}: {error})", None
            raw.append(reply)
            read.append(letter)
        right = tuple(LETTERS[options.index(item[side]["right"])] for side in ("a", "b"))
        yield Heard(item["id"], item["kind"], right, tuple(read), tuple(raw))  # type: ignore[arg-type]


# --- reporting --------------------------------------------------------------------------------------------------------


def rate(hits: int, n: int) -> str:
    interval = wilson_interval(hits / n, n) if n else Interval(0.0, 1.0, "wilson")  # nothing seen: it may be any share
    return f"{hits} of {n} | {100 * hits / max(n, 1):.1f} | {100 * interval.lo:.1f} to {100 * interval.hi:.1f}"


def table(title: str, rows: Iterable[tuple[str, int, int]]) -> list[str]:
    head = [f"### {title}", "", "| | held | % | Wilson 95 % |", "|---|---|---|---|"]
    return [*head, *(f"| {name} | {rate(hits, n)} |" for name, hits, n in rows), ""]


def grouped(found: list[Finding], by: str) -> list[tuple[str, int, int]]:
    names = sorted({getattr(f, by) for f in found})
    return [
        (n, sum(f.holds for f in found if getattr(f, by) == n), sum(getattr(f, by) == n for f in found)) for n in names
    ]


def whole_items(found: list[Finding]) -> tuple[int, int]:
    items = {f.item for f in found}
    return len(items - {f.item for f in found if not f.holds}), len(items)


def report_findings(title: str, found: list[Finding], parts: tuple[str, ...]) -> list[str]:
    lines = [f"## {title}", ""]
    lines += table("Items", [("every expectation holds", *whole_items(found))])
    for part in parts:
        of_part = [f for f in found if f.part == part]
        rows = [("all checks", sum(f.holds for f in of_part), len(of_part)), *grouped(of_part, "kind")]
        lines += table(f"Checks: {part}", rows)
    missed = [f for f in found if not f.holds]
    lines += ["### Not held", "", "| item | part | kind | expected | measured |", "|---|---|---|---|---|"]
    lines += [f"| {f.item} | {f.part} | {f.kind} | {f.wanted} | {f.measured.replace('|', '/')} |" for f in missed]
    return [*lines, ""]


def report_listening(heard: list[Heard]) -> list[str]:
    n = len(heard)
    both = sum(h.read == h.right for h in heard)
    flips = sum(h.read[0] != h.read[1] for h in heard)
    single = sum(a == b for h in heard for a, b in zip(h.read, h.right, strict=True))
    rows = [
        ("pairs: both right", both, n),
        ("pairs: the answer flips", flips, n),
        ("single answers right", single, 2 * n),
    ]
    lines = ["## Listening", "", *table("Pairs", rows)]
    lines += ["### Not both right", "", "| pair | about | right | read | replies |", "|---|---|---|---|---|"]
    for h in heard:
        if h.read != h.right:
            replies = " / ".join(" ".join(r.split())[:60].replace("|", "/") for r in h.raw)
            lines.append(
                f"| {h.item} | {h.kind} | {'/'.join(h.right)} | {'/'.join(x or '-' for x in h.read)} | {replies} |"
            )
    return [*lines, ""]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generator", required=True, metavar="FILE.py:CLASS")
    parser.add_argument("--only", choices=("generate", "edit", "listen"))
    parser.add_argument("--ids", default="", help="only items whose id contains this text")
    parser.add_argument("--keep", type=Path, help="a folder for the clips")
    parser.add_argument("--out", type=Path, help="also write the report here")
    chosen = parser.parse_args(arguments)
    if chosen.keep is not None:
        chosen.keep.mkdir(parents=True, exist_ok=True)
    start = time.process_time()
    model = load_class(chosen.generator)()
    model.load(Host(threads=1))
    asker = Asker(model, chosen.keep)
    lines = [f"# Obedience of {chosen.generator}", "", f"Loading: {time.process_time() - start:.1f} CPU s.", ""]

    def items(name: str) -> list[dict[str, Any]]:
        return [i for i in read_items(name) if chosen.ids in i["id"]]

    if chosen.only in (None, "generate"):
        lines += report_findings("Generation", list(examine_generation(asker, items("prompts.json"))), ("generate",))
    if chosen.only in (None, "edit"):
        lines += report_findings("Edits", list(examine_edits(asker, items("edits.json"))), ("changed", "stayed"))
    if chosen.only in (None, "listen"):
        lines += report_listening(list(examine_listening(asker, items("pairs.json"))))
    model.close()
    lines += ["## CPU seconds in the model", "", "| operation | calls | CPU s | a call |", "|---|---|---|---|"]
    lines += [
        f"| {o} | {n} | {asker.cpu_s[o]:.1f} | {asker.cpu_s[o] / n:.2f} |" for o, n in sorted(asker.calls.items())
    ]
    text = "\n".join(lines) + "\n"
    if chosen.out is not None:
        chosen.out.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
