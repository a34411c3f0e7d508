// The review page: shows one test, sends verdicts, never calls anything saved before the server has said so.
// All text reaches the page as text nodes and properties, never as markup.
const POLL_MS = 4000;
const MARKS = { unreviewed: "○", accepted: "✓", rejected: "✕", edited: "✎", changed: "↻", broken: "!" };
const STATES = {
  unreviewed: "unreviewed", accepted: "accepted", rejected: "rejected", edited: "edited, to be looked at again",
  changed: "changed since its last verdict", broken: "cannot be read",
};
const FILTERS = {
  all: () => true,
  unreviewed: (entry) => !entry.reviewed,
  flagged: (entry) => entry.flagged > 0,
  accepted: (entry) => entry.state === "accepted",
  rejected: (entry) => entry.state === "rejected",
};

const page = {
  bank: null, // what /api/bank said last
  tag: "", // its ETag
  shown: null, // what /api/tests/ID said of the test on the page
  draft: null, // the test as it is being edited; null outside an edit
  problems: [], // what was wrong with the draft when it was last sent
  arm: 0,
  stage: 0, // whose clip the space bar plays
  busy: false,
};

const $ = (id) => document.getElementById(id);
const words = (name) => name.replaceAll("_", " ");

/** An element. Properties: class, text, data, on (listeners), anything else an attribute; null and false are left out. */
function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else if (name === "text") element.textContent = value;
    else if (name === "value") element.value = value;
    else if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// --- the server ------------------------------------------------------------------------------------------------------

class Refusal extends Error {
  constructor(status, told) {
    super([told.error, told.mend].filter(Boolean).join(" – "));
    Object.assign(this, { status, told });
  }
}

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Refusal(0, { error: "the server does not answer, so nothing was saved", mend: "start `torus bank review` again, then repeat" });
  }
  if (response.status === 304) return null;
  const told = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Refusal(response.status, told);
  if (path === "/api/bank") page.tag = response.headers.get("ETag") ?? "";
  return told;
}

async function judge(decision, more) {
  const { id, version } = page.shown;
  const send = () => ask(`/api/tests/${encodeURIComponent(id)}/verdicts`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Review-Token": page.bank.token },
    body: JSON.stringify({ decision, version, reviewer: $("reviewer").value, ...more }),
  });
  try {
    return await send();
  } catch (error) {
    if (!error.told?.token) throw error;
    // The server was started anew; the verdict still holds, since it names the version that was judged.
    page.bank = await ask("/api/bank");
    return await send();
  }
}

async function refresh() {
  const told = await ask("/api/bank", { headers: page.tag ? { "If-None-Match": page.tag } : {} });
  if (told === null) return;
  page.bank = told;
  drawList();
  const entry = told.tests.find((test) => test.id === page.shown?.id);
  if (!entry || entry.version === page.shown.version || page.busy) return;
  const what = `${entry.id} is now ${STATES[entry.state]}${entry.by.length ? `, by ${entry.by.join(", ")}` : ""}`;
  if (page.draft) {
    conflict(`This test was changed while you edit it: ${what}. Your text stays here, but it cannot be saved over the newer one.`);
  } else {
    await open(entry.id, { keepPlace: true });
    say(`Changed elsewhere: ${what}.`);
  }
}

// --- what the page says ----------------------------------------------------------------------------------------------

function say(text, kind = "") {
  $("status").className = kind;
  $("status").textContent = text;
}

function notice(kind, ...children) {
  $("notice").className = `notice ${kind}`;
  $("notice").replaceChildren(...children);
  $("notice").hidden = children.length === 0;
}

function conflict(text) {
  const load = async () => {
    page.draft = null;
    await open(page.shown.id);
  };
  notice("bad", h("p", { text }), h("button", { type: "button", id: "load-newer", text: "Load the newer version", on: { click: load } }));
  $("notice").focus();
}

function fieldProblem(id, text) {
  $(id).setAttribute("aria-invalid", text ? "true" : "false");
  $(id).setAttribute("aria-describedby", `${id}-problem`);
  $(`${id}-problem`).textContent = text;
  $(`${id}-problem`).hidden = !text;
  if (text) $(id).focus();
}

// --- the list --------------------------------------------------------------------------------------------------------

function listed() {
  const fits = FILTERS[$("filter-state").value];
  const type = $("filter-type").value;
  return page.bank.tests.filter((entry) => fits(entry) && (type === "all" || entry.audio_type === type));
}

function drawList() {
  const { bank } = page;
  $("bank-title").textContent = bank.title;
  $("bank-folder").textContent = bank.folder;
  const done = bank.tests.filter((entry) => entry.reviewed).length;
  $("progress").max = bank.tests.length;
  $("progress").value = done;
  $("progress-text").textContent = `${done} of ${bank.tests.length} reviewed`;
  if ($("filter-type").options.length === 1) {
    $("filter-type").append(...bank.audio_types.map((type) => h("option", { value: type, text: type[0].toUpperCase() + type.slice(1) })));
  }
  const entries = listed();
  $("tests").replaceChildren(...entries.map((entry) => h("li", {},
    h("a", { href: `#${entry.id}`, "aria-current": entry.id === page.shown?.id && "page" },
      h("span", { class: `mark ${entry.state}`, "aria-hidden": "true", text: MARKS[entry.state] }),
      h("span", { class: "name", text: entry.title }),
      entry.flagged > 0 && h("span", { class: "count", title: `${entry.flagged} flags` }, "⚑", h("span", { "aria-hidden": "true", text: ` ${entry.flagged}` }), h("span", { class: "unseen", text: ` ${entry.flagged} flags` })),
      h("span", { class: "id" }, entry.id, h("span", { class: "unseen", text: `, ${STATES[entry.state]}` }))))));
  $("no-tests").hidden = entries.length > 0;
  markCurrent();
}

function markCurrent() {
  for (const link of $("tests").querySelectorAll("a")) {
    const current = link.hash === `#${page.shown?.id}`;
    if (current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    if (current) link.scrollIntoView({ block: "nearest" });
  }
}

function neighbour(step) {
  const order = page.bank.tests.map((entry) => entry.id);
  const at = order.indexOf(page.shown?.id);
  const ids = listed().map((entry) => entry.id);
  return step > 0 ? ids.find((id) => order.indexOf(id) > at) : ids.findLast((id) => order.indexOf(id) < at);
}

async function move(step) {
  const id = neighbour(step);
  if (!id) return say(step > 0 ? "This is the last test of the list." : "This is the first test of the list.");
  location.hash = id; // hashchange opens it
}

// --- one test --------------------------------------------------------------------------------------------------------

async function open(id, { keepPlace = false } = {}) {
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

function draw() {
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

const pairs = (entries) => h("dl", { class: "pairs" }, entries.map(([name, value]) => [h("dt", { text: name }), h("dd", { text: value })]));

function drawFlags(flags) {
  if (flags.length === 0) return null;
  return h("ul", { class: "flags", "aria-label": "Flags" }, flags.map((flag) => h("li", {}, h("b", { text: `${flag.source}: ` }), flag.message)));
}

function drawArms() {
  const { arms } = page.bank;
  if (arms.length === 0) return null;
  const choose = (event) => chooseArm(Number(event.target.value));
  return h("fieldset", { class: "arms" }, h("legend", { text: "Clips of" }), arms.map((name, number) => h("label", {},
    h("input", { type: "radio", name: "arm", value: number, checked: number === page.arm, on: { change: choose } }), name)));
}

function chooseArm(number) {
  page.arm = number;
  for (const radio of document.getElementsByName("arm")) radio.checked = Number(radio.value) === number;
  page.bank.stages.forEach((name) => $(`clip-${name}`)?.replaceWith(drawClip(name)));
  say(`Clips of ${page.bank.arms[number]}.`);
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

function drawClip(name) {
  const { arms, stages } = page.bank;
  if (arms.length === 0) return null;
  const clip = page.shown.clips[name][page.arm];
  const box = h("div", { class: "clip", id: `clip-${name}` });
  if (!clip) box.append(h("p", { class: "none", text: "No clip: this arm has not rendered the stage." }));
  else if (!clip.url) box.append(h("p", { class: "none", text: `No clip: ${clip.status}${clip.reason ? ` (${words(clip.reason)})` : ""}.` }));
  else {
    const began = (event) => {
      page.stage = stages.indexOf(name);
      for (const other of document.querySelectorAll("audio")) if (other !== event.target) other.pause();
    };
    const failed = () => box.append(h("p", { class: "remark", text: "This clip cannot be played: its file is gone or damaged." }));
    box.append(h("audio", { controls: true, preload: "metadata", src: clip.url, "aria-label": `${words(name)} clip of ${arms[page.arm]}`, on: { play: began, error: failed } }));
    if (clip.flags.length) box.append(h("p", { class: "remark", text: `The clip is ${clip.flags.map(words).join(", ")}.` }));
  }
  if (clip?.other_prompt) box.append(h("p", { class: "remark", text: `Made from another prompt: ${clip.other_prompt}` }));
  return box;
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

// --- the edit --------------------------------------------------------------------------------------------------------

const showPath = (path) => path.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`)).join("").replace(/^\./, "");
const idOf = (path) => `field-${showPath(path)}`;
const at = (path) => path.reduce((value, step) => value?.[step], page.draft);
const put = (path, value) => { at(path.slice(0, -1))[path.at(-1)] = value; };

/** A labelled control for the value at a path of the draft. kind: text, number or nullable (empty is null). */
function field(path, label, { kind = "text", control = null } = {}) {
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

function editSpec(path, stage) {
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

function editQuestion(path, question, flags) {
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

function mark(problems) {
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

function unsaved() {
  return page.draft !== null && JSON.stringify(page.draft) !== JSON.stringify(page.shown.test);
}

function edit() {
  if (!page.shown?.test || page.draft) return;
  const before = [...document.querySelectorAll(".stage")].findIndex((stage) => stage.getBoundingClientRect().bottom > 120);
  const top = document.querySelectorAll(".stage")[before]?.getBoundingClientRect().top ?? 0;
  page.draft = structuredClone(page.shown.test);
  notice("");
  draw();
  const stage = document.querySelectorAll(".stage")[before];
  if (window.scrollY > 60 && stage) window.scrollBy(0, stage.getBoundingClientRect().top - top);
  (window.scrollY > 60 ? stage : document).querySelector("textarea[data-path]").focus({ preventScroll: true });
  say("Editing. Ctrl ↵ saves, Esc leaves.");
}

/** Ask before text is lost; true when the edit may be left. */
async function mayLeave() {
  if (!unsaved()) return true;
  $("leave-dialog").returnValue = "";
  $("leave-dialog").showModal();
  await new Promise((done) => $("leave-dialog").addEventListener("close", done, { once: true }));
  return $("leave-dialog").returnValue === "leave";
}

async function leaveEdit() {
  if (!page.draft || !(await mayLeave())) return;
  page.draft = null;
  page.problems = [];
  notice("");
  await open(page.shown.id, { keepPlace: true });
  $("title").focus({ preventScroll: true });
  say("Left the edit; nothing was changed.");
}

// --- verdicts --------------------------------------------------------------------------------------------------------

async function send(decision, more = {}) {
  if (page.busy || !page.shown?.test) return false;
  if (!$("reviewer").value.trim()) {
    if ($("reject-dialog").open) $("reject-dialog").close();
    fieldProblem("reviewer", "Write your name first: every verdict has one.");
    return false;
  }
  fieldProblem("reviewer", "");
  page.busy = true;
  say("Saving…");
  try {
    page.shown = await judge(decision, more);
    page.draft = null;
    page.problems = [];
    notice("");
    draw();
    const done = { accept: "accepted", edit: "edited", reject: "rejected" }[decision];
    say(`Saved: ${page.shown.id} ${done} by ${$("reviewer").value.trim()} at ${new Date(page.shown.history.at(-1).at).toLocaleTimeString()}.`, "saved");
    if (decision === "edit") $("title").focus({ preventScroll: true });
    return true;
  } catch (error) {
    await refused(error);
    return false;
  } finally {
    page.busy = false;
    refresh().catch(() => {});
  }
}

async function refused(error) {
  if (!(error instanceof Refusal)) throw error;
  say(`Not saved. ${error.status === 422 ? "" : error.message}`, "bad");
  if (error.status === 409 && page.draft) {
    conflict(`${error.message}. Your text stays here, but it cannot be saved over the newer one.`);
  } else if (error.status === 409) {
    await open(page.shown.id, { keepPlace: true });
    notice("bad", h("p", { text: `Not saved: ${error.message}. This is the newer version.` }));
  } else if (error.status === 422) {
    const { problems } = error.told;
    const own = problems.find((problem) => problem.at === "reviewer" || problem.at === "reason");
    if (own) fieldProblem(own.at, `${own.message}; expected ${own.expected}`);
    else if (page.draft) {
      page.problems = problems;
      draw();
    } else notice("bad", ...problems.map((problem) => h("p", { text: [problem.at, problem.message].filter(Boolean).join(": ") })));
  }
}

function askReason() {
  if (!page.shown?.test) return;
  fieldProblem("reason", "");
  $("reason").value = "";
  $("reject-dialog").showModal();
  $("reason").focus();
}

async function reject(event) {
  event.preventDefault();
  if (!$("reason").value.trim()) return fieldProblem("reason", "A rejection needs a reason.");
  if (await send("reject", { reason: $("reason").value })) $("reject-dialog").close();
  return undefined;
}

// --- clips -----------------------------------------------------------------------------------------------------------

function play(stage, { fromStart = false } = {}) {
  const audio = document.querySelector(`#clip-${page.bank.stages[stage]} audio`);
  if (!audio) return say(page.bank.arms.length ? "There is no clip here." : "No clips: start with --run to listen.");
  page.stage = stage;
  if (fromStart) audio.currentTime = 0;
  if (audio.paused || fromStart) audio.play().catch((error) => say(`The clip cannot be played: ${error.message}`, "bad"));
  else audio.pause();
  return undefined;
}

// --- keys ------------------------------------------------------------------------------------------------------------

const KEYS = {
  j: () => move(1), ArrowRight: () => move(1), k: () => move(-1), ArrowLeft: () => move(-1),
  a: () => send("accept"), e: edit, r: askReason, "?": () => $("help-dialog").showModal(),
  " ": () => play(page.stage), 1: () => play(0, { fromStart: true }), 2: () => play(1, { fromStart: true }), 3: () => play(2, { fromStart: true }),
  m: () => page.bank.arms.length > 1 && chooseArm((page.arm + 1) % page.bank.arms.length),
};
const TYPING = "input:not([type=radio], [type=checkbox]), textarea, select";
const PRESSING = "button, a, summary, audio, input, select, textarea";

function onKey(event) {
  if (event.isComposing || event.defaultPrevented) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    if ($("reject-dialog").open) reject(event);
    else if (page.draft && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      send("edit", { test: page.draft });
    }
    return;
  }
  if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && page.draft) {
    event.preventDefault();
    leaveEdit();
    return;
  }
  if (event.key === "Escape" && event.target.matches(TYPING)) event.target.blur();
  if (page.draft || !page.shown || !$("single-keys").checked || event.target.matches(TYPING)) return;
  const action = KEYS[event.key];
  const native = (event.key === " " && event.target.matches(PRESSING)) || (event.key.startsWith("Arrow") && event.target.matches("audio, input"));
  if (!action || native) return;
  event.preventDefault();
  // A held key must not accept test after test.
  if (!event.repeat || event.key === "j" || event.key === "k" || event.key.startsWith("Arrow")) attempt(action);
}

/** Run something that asks the server, and tell what went wrong. */
async function attempt(action) {
  try {
    await action();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    say(error.message, "bad");
  }
}

async function onHash() {
  const id = decodeURIComponent(location.hash.slice(1));
  if (!id || id === page.shown?.id || !page.bank.tests.some((entry) => entry.id === id)) return;
  if (!(await mayLeave())) {
    history.replaceState(null, "", `#${page.shown.id}`);
    return;
  }
  await open(id);
  const entries = listed();
  const place = entries.findIndex((entry) => entry.id === id);
  say(place >= 0 ? `Test ${place + 1} of ${entries.length}.` : "");
}

async function start() {
  $("single-keys").checked = localStorage.getItem("single-keys") !== "off";
  page.bank = await ask("/api/bank");
  $("reviewer").value = sessionStorage.getItem("reviewer") ?? page.bank.reviewer;
  drawList();
  const wanted = decodeURIComponent(location.hash.slice(1));
  const first = page.bank.tests.find((entry) => entry.id === wanted) ?? page.bank.tests.find((entry) => !entry.reviewed) ?? page.bank.tests[0];
  await open(first.id);
  history.replaceState(null, "", `#${first.id}`);
  say("? shows the keys.");
}

const click = (id, action) => $(id).addEventListener("click", () => attempt(action));
click("previous", () => move(-1));
click("next", () => move(1));
click("accept", () => send("accept"));
click("edit", edit);
click("reject", askReason);
click("help", () => $("help-dialog").showModal());
click("save", () => send("edit", { test: page.draft }));
click("cancel", leaveEdit);
click("reject-no", () => $("reject-dialog").close());
$("reject-form").addEventListener("submit", (event) => attempt(() => reject(event)));
$("reviewer").addEventListener("input", () => {
  // A tab has its own reviewer, so that two can work side by side in one browser.
  sessionStorage.setItem("reviewer", $("reviewer").value);
  $("reviewer-problem").hidden = true;
  $("reviewer").removeAttribute("aria-invalid");
});
$("single-keys").addEventListener("change", () => localStorage.setItem("single-keys", $("single-keys").checked ? "on" : "off"));
for (const id of ["filter-state", "filter-type"]) $(id).addEventListener("change", drawList);
window.addEventListener("hashchange", () => attempt(onHash));
window.addEventListener("beforeunload", (event) => { if (unsaved()) event.preventDefault(); });
document.addEventListener("keydown", onKey);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh().catch(() => {}); });
setInterval(() => { if (!document.hidden && page.bank) refresh().catch(() => {}); }, POLL_MS);
attempt(start);
