// The review page: shows one test, sends verdicts, never calls anything saved before the server has said so.

import { chooseArm, play } from "./clips.js";
import { $, fieldProblem, h, notice, page, say, STATES } from "./elements.js";
import { unsaved } from "./form.js";
import { drawList, listed, move } from "./list.js";
import { ask, judge, Refusal } from "./server.js";
import { draw, open } from "./test.js";

const POLL_MS = 4000;

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

/** Look for news. A server that does not answer is told once something is asked of it. */
function poll() {
  return refresh().catch((error) => {
    if (!(error instanceof Refusal)) throw error;
  });
}

function conflict(text) {
  const load = async () => {
    page.draft = null;
    await open(page.shown.id);
  };
  notice("bad", h("p", { text }), h("button", { type: "button", id: "load-newer", text: "Load the newer version", on: { click: load } }));
  $("notice").focus();
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
    poll();
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
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
setInterval(() => { if (!document.hidden && page.bank) poll(); }, POLL_MS);
attempt(start);
