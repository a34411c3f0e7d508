// The list of tests at the side.

import { $, h, page, say, STATES } from "./elements.js";

const MARKS = { unreviewed: "○", accepted: "✓", rejected: "✕", edited: "✎", changed: "↻", broken: "!" };

const FILTERS = {
  all: () => true,
  unreviewed: (entry) => !entry.reviewed,
  flagged: (entry) => entry.flagged > 0,
  accepted: (entry) => entry.state === "accepted",
  rejected: (entry) => entry.state === "rejected",
};

export function listed() {
  const fits = FILTERS[$("filter-state").value];
  const type = $("filter-type").value;
  return page.bank.tests.filter((entry) => fits(entry) && (type === "all" || entry.audio_type === type));
}

export function drawList() {
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

export function markCurrent() {
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

export async function move(step) {
  const id = neighbour(step);
  if (!id) return say(step > 0 ? "This is the last test of the list." : "This is the first test of the list.");
  location.hash = id; // hashchange opens it
}
