// A test as a form: a field for each path of the draft, and the problems that the server finds at them.

import { $, drawFlags, h, notice, page, words } from "./elements.js";

const showPath = (path) => path.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`)).join("").replace(/^\./, "");
const idOf = (path) => `field-${showPath(path)}`;
const at = (path) => path.reduce((value, step) => value?.[step], page.draft);
const put = (path, value) => { at(path.slice(0, -1))[path.at(-1)] = value; };

/** A labelled control for the value at a path of the draft. kind: text, number or nullable (empty is null). */
export function field(path, label, { kind = "text", control = null } = {}) {
  const id = idOf(path);
  const change = (event) => {
    const { value } = event.target;
    put(path, kind === "number" && value !== "" ? Number(value) : kind === "nullable" && value === "" ? null : value);
  };
  const common = { id, "data-path": showPath(path), "aria-describedby": `${id}-problem`, value: at(path) ?? "", on: { input: change } };
  const made = control ? control(common) : kind === "number" ? h("input", { type: "number", step: "any", ...common }) : h("textarea", { rows: 1, ...common });
  return h("div", { class: "field" }, h("label", { for: id, text: label[0].toUpperCase() + label.slice(1) }), made, problemSlot(id));
}

const problemSlot = (id) => h("p", { class: "problem", id: `${id}-problem`, hidden: true });

/** A list in the draft: each member in a box of its own with a button that takes it out, and one that adds another. */
function editList(path, title, one, blank, draw) {
  const id = idOf(path);
  const again = (focus) => {
    $(id).replaceWith(editList(path, title, one, blank, draw));
    $(focus)?.focus();
  };
  const add = () => {
    at(path).push(structuredClone(blank));
    again(`${id}[${at(path).length - 1}]${typeof blank === "string" ? "" : `.${Object.keys(blank)[0]}`}`);
  };
  const remove = (index) => () => {
    at(path).splice(index, 1);
    again(`${id}-add`);
  };
  return h("fieldset", { class: "group", id, "data-path": showPath(path), tabindex: "-1" }, h("legend", { text: title }),
    at(path).map((_, index) => h("div", { class: "item", role: "group", "aria-label": `${one} ${index + 1}` }, draw([...path, index], index),
      h("p", { class: "end" }, h("button", { type: "button", class: "small", "aria-label": `Remove ${one} ${index + 1}`, text: "Remove", on: { click: remove(index) } })))),
    problemSlot(id), h("p", {}, h("button", { type: "button", class: "small", id: `${id}-add`, text: `Add ${one}`, on: { click: add } })));
}

export function editSpec(path, stage) {
  const row = (...fields) => h("div", { class: "row" }, fields);
  const number = { kind: "number" };
  return h("div", { class: "spec" },
    h("div", {}, field([...path, "summary"], "a perfect clip: summary"), row(field([...path, "duration_s"], "duration, s", number), field([...path, "room"], "room"))),
    editList([...path, "sources"], "Sources", "source", { what: "", onset_s: 0, duration_s: 1, level: "", place: "" }, (p) => [
      field([...p, "what"], "what"),
      row(field([...p, "onset_s"], "onset, s", number), field([...p, "duration_s"], "duration, s", number), field([...p, "level"], "level")),
      field([...p, "place"], "place")]),
    editList([...path, "voices"], "Voices", "voice", { who: "", delivery: "", words: "" }, (p) => [field([...p, "who"], "who"), field([...p, "delivery"], "delivery"), field([...p, "words"], "words")]),
    stage.spec.music && h("fieldset", { class: "group" }, h("legend", { text: "Music" }),
      row(field([...path, "music", "tempo_bpm"], "tempo, beats a minute", number), field([...path, "music", "key"], "key"), field([...path, "music", "meter"], "meter")),
      field([...path, "music", "form"], "form"),
      editList([...path, "music", "instruments"], "Instruments", "instrument", "", (p, index) => field(p, `instrument ${index + 1}`))),
    editList([...path, "unchanged"], "Unchanged", "item", "", (p, index) => field(p, `unchanged ${index + 1}`)),
    field([...path.slice(0, -1), "transcript"], "transcript (empty: nobody speaks)", { kind: "nullable" }));
}

export function editQuestion(path, question, flags) {
  const id = idOf(path);
  const families = (common) => {
    const select = h("select", { ...common, value: null }, page.bank.families.map((name) => h("option", { value: name, text: words(name) })));
    select.value = question.family;
    return select;
  };
  const options = question.options.map((_, index) => {
    const optionPath = [...path, "options", index];
    const optionId = idOf(optionPath);
    const change = (event) => {
      // The answer is a text of its own in the file: it goes with the option that is marked as right.
      const right = $(`${id}-right-${index}`).checked;
      put(optionPath, event.target.value);
      if (right) put([...path, "answer"], event.target.value);
    };
    const choose = () => put([...path, "answer"], at(optionPath));
    return h("div", { class: "choice" },
      h("input", { type: "radio", name: `${id}-right`, id: `${id}-right-${index}`, checked: question.options[index] === question.answer, "aria-label": `Option ${index + 1} is the right one`, on: { change: choose } }),
      h("input", { id: optionId, "data-path": showPath(optionPath), "aria-label": `Option ${index + 1}`, "aria-describedby": `${optionId}-problem`, value: at(optionPath), on: { input: change } }),
      problemSlot(optionId));
  });
  return h("fieldset", { class: "group question", "data-path": showPath(path), id, tabindex: "-1" }, h("legend", { text: `Question ${question.id}` }),
    problemSlot(id), drawFlags(flags), field([...path, "text"], "question"), field([...path, "family"], "family", { control: families }),
    h("fieldset", { class: "group", id: `${id}.options`, "data-path": `${showPath(path)}.options`, tabindex: "-1" }, h("legend", { class: "heading", text: "Options, the right one marked" }), options, problemSlot(`${id}.options`)),
    h("div", { class: "row" }, field([...path, "key", "attribute"], "key: attribute"), field([...path, "key", "value"], "key: value")));
}

/** The control that a problem is about: the one at its path, or the nearest around it. */
function placeOf(path) {
  for (let place = path.replace(/\.answer$/, ".options"); place; place = place.replace(/(\.[^.[]+|\[\d+\])$|^[^.[]+$/, "")) {
    const found = document.querySelector(`[data-path="${CSS.escape(place)}"]`);
    if (found && $(`${found.id}-problem`)) return found;
  }
  return null;
}

export function mark(problems) {
  for (const problem of problems) {
    const found = placeOf(problem.at);
    if (!found) continue;
    const slot = $(`${found.id}-problem`);
    found.setAttribute("aria-invalid", "true");
    slot.textContent = [problem.message, problem.expected && `expected ${problem.expected}`].filter(Boolean).join("; ");
    slot.hidden = false;
  }
  if (problems.length === 0) return;
  const links = problems.map((problem) => {
    const found = placeOf(problem.at);
    const text = [problem.at, problem.message].filter(Boolean).join(": ");
    const go = (event) => { event.preventDefault(); found.focus(); };
    return h("li", {}, found ? h("a", { href: "#", text, on: { click: go } }) : text);
  });
  notice("bad", h("p", { text: `Not saved: ${problems.length === 1 ? "one thing is" : `${problems.length} things are`} wrong.` }), h("ul", { class: "lines" }, links));
  (placeOf(problems[0].at) ?? $("notice")).focus();
}

export function unsaved() {
  return page.draft !== null && JSON.stringify(page.draft) !== JSON.stringify(page.shown.test);
}
