// One test on the page: as it reads, or as the form that it is edited in.

import { drawArms, drawClip } from "./clips.js";
import { $, drawFlags, h, notice, page, pairs, STATES, words } from "./elements.js";
import { editQuestion, editSpec, field, mark } from "./form.js";
import { markCurrent } from "./list.js";
import { ask } from "./server.js";

export async function open(id, { keepPlace = false } = {}) {
  page.shown = await ask(`/api/tests/${encodeURIComponent(id)}`);
  page.draft = null;
  page.problems = [];
  if (!keepPlace) page.stage = 0;
  notice("");
  draw();
  markCurrent();
  if (!keepPlace) {
    window.scrollTo({ top: 0 });
    $("title").focus({ preventScroll: true });
  }
}

export function draw() {
  const { shown, draft } = page;
  const test = draft ?? shown.test;
  document.title = `${shown.id} – ${page.bank.title}`;
  $("judging").hidden = draft !== null;
  $("editing").hidden = draft === null;
  for (const id of ["accept", "edit", "reject"]) $(id).disabled = test === null;
  const inside = $("test").contains(document.activeElement);
  $("test").replaceChildren(
    draft ? h("h1", { id: "title", tabindex: "-1", text: `Edit ${shown.id}` }) : h("h1", { id: "title", tabindex: "-1", text: shown.title }),
    h("p", { class: "about" }, h("span", { class: `chip ${shown.state}`, text: STATES[shown.state] }),
      shown.by.length > 0 && h("span", { text: `${shown.state === "changed" ? "which was by" : "by"} ${shown.by.join(", ")}` }), h("span", { text: shown.id }), h("span", { text: shown.audio_type ?? "" })),
    ...(test ? drawTest(test) : [broken(shown)]));
  if (inside) $("title").focus({ preventScroll: true });
  mark(page.problems);
}

function broken(shown) {
  const lines = shown.problems.map((p) => h("li", { text: [p.at, p.message, p.expected && `expected ${p.expected}`, p.mend].filter(Boolean).join("; ") }));
  return h("div", { class: "notice bad" }, h("p", { text: "The file of this test cannot be read as it is now on disk. Mend it there; the page follows." }), h("ul", { class: "lines" }, lines));
}

function drawTest(test) {
  const { shown, draft } = page;
  const flags = shown.flags.filter((flag) => !flag.stage);
  return [
    shown.reason && h("p", { class: "notice" }, h("b", { text: `${shown.state === "rejected" ? "Rejected" : "Edited"} by ${shown.by.join(", ")}: ` }), shown.reason),
    drawFlags(flags),
    draft && field(["title"], "Title"),
    h("details", { open: draft !== null },
      h("summary", { text: "The idea it grew from" }),
      draft ? h("div", {}, Object.keys(test.seed).map((name) => field(["seed", name], words(name))))
        : pairs(Object.entries(test.seed).map(([name, value]) => [words(name), value]))),
    shown.history.length > 0 && h("details", {},
      h("summary", { text: `Verdicts so far: ${shown.history.length}` }),
      h("ol", { class: "history" }, shown.history.map((verdict) => h("li", {},
        h("time", { datetime: verdict.at, text: new Date(verdict.at).toLocaleString() }),
        h("span", { text: `${verdict.reviewer}: ${verdict.decision}` }), verdict.reason && h("span", { class: "soft", text: verdict.reason }))))),
    drawArms(),
    ...page.bank.stages.map((name, number) => drawStage(name, number, test.stages[name])),
    h("p", { class: "soft", text: `Written by ${test.provenance.author}, ${test.provenance.written}.${test.provenance.notes ? ` ${test.provenance.notes}` : ""}` }),
  ].filter(Boolean);
}

function drawStage(name, number, stage) {
  const path = ["stages", name];
  const title = words(name);
  const flags = page.shown.flags.filter((flag) => flag.stage === name && !flag.question);
  return h("section", { class: "stage", "aria-labelledby": `stage-${name}` },
    h("h2", { id: `stage-${name}` }, h("span", { class: "number", text: number + 1 }), title[0].toUpperCase() + title.slice(1)),
    h("div", { class: "prompt" }, page.draft ? field([...path, "prompt"], "Prompt") : h("blockquote", { text: stage.prompt }), drawFlags(flags)),
    h("div", { class: "render" }, drawClip(name), page.draft ? editSpec([...path, "spec"], stage) : drawSpec(stage)),
    h("div", { class: "questions" }, stage.questions.map((question, index) => drawQuestion(name, index, question))));
}

const seconds = (value) => `${Number(value.toFixed(2))} s`;

function drawSpec(stage) {
  const { spec } = stage;
  return h("div", { class: "spec" },
    h("div", {}, h("h3", { text: "A perfect clip" }), h("p", { text: spec.summary }), h("p", { class: "facts", text: `${seconds(spec.duration_s)}, ${spec.room}` })),
    h("table", {}, h("thead", {}, h("tr", {}, ["Source", "When", "Level", "Place"].map((text) => h("th", { scope: "col", text })))),
      h("tbody", {}, spec.sources.map((source) => h("tr", {}, h("td", { text: source.what }), h("td", { class: "when" }, ...when(source, spec.duration_s)), h("td", { text: source.level }), h("td", { text: source.place }))))),
    spec.voices.length > 0 && h("div", {}, h("h3", { text: "Voices" }), h("ul", { class: "lines" },
      spec.voices.map((voice) => h("li", {}, `${voice.who}: “${voice.words}” `, h("span", { class: "soft", text: voice.delivery }))))),
    spec.music && h("div", {}, h("h3", { text: "Music" }), pairs([["tempo", `${spec.music.tempo_bpm} bpm`], ["key", spec.music.key], ["meter", spec.music.meter], ["instruments", spec.music.instruments.join(", ")], ["form", spec.music.form]])),
    spec.unchanged.length > 0 && h("div", {}, h("h3", { text: "Unchanged" }), h("ul", { class: "lines" }, spec.unchanged.map((text) => h("li", { text })))),
    stage.transcript && h("div", {}, h("h3", { text: "Transcript" }), h("p", { text: stage.transcript })));
}

function when(source, total) {
  const bar = h("i");
  bar.style.left = `${100 * Math.min(1, Math.max(0, source.onset_s / total))}%`;
  bar.style.width = `${100 * Math.min(1 - Math.min(1, source.onset_s / total), source.duration_s / total)}%`;
  return [`${Number(source.onset_s.toFixed(2))} – ${seconds(source.onset_s + source.duration_s)}`, h("div", { class: "span", "aria-hidden": "true" }, bar)];
}

function drawQuestion(stage, index, question) {
  const path = ["stages", stage, "questions", index];
  const flags = page.shown.flags.filter((flag) => flag.stage === stage && flag.question === question.id);
  if (page.draft) return editQuestion(path, question, flags);
  const options = page.shown.shown[stage][index].map((at) => question.options[at]);
  return h("section", { class: "question", "aria-labelledby": `${stage}-${question.id}` },
    h("p", { class: "family", text: `${question.id} · ${words(question.family)}` }),
    h("h3", { class: "stem", id: `${stage}-${question.id}`, text: question.text }),
    h("ol", { class: "options" }, options.map((option, at) => h("li", { class: option === question.answer && "right" },
      h("span", { class: "letter", text: "ABCDEF"[at] }), h("span", { text: option }),
      option === question.answer && h("span", {}, h("span", { "aria-hidden": "true", text: "✓" }), h("span", { class: "unseen", text: " (right)" }))))),
    h("p", { class: "key" }, "Key: ", question.key.attribute, " = ", h("b", { text: question.key.value })),
    drawFlags(flags));
}
