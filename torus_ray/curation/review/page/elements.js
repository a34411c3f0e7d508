// The state of the page, and what everything on it is made with.
// All text reaches the page as text nodes and properties, never as markup.

export const STATES = {
  unreviewed: "unreviewed", accepted: "accepted", rejected: "rejected", edited: "edited, to be looked at again",
  changed: "changed since its last verdict", broken: "cannot be read",
};

export const page = {
  bank: null, // what /api/bank said last
  tag: "", // its ETag
  shown: null, // what /api/tests/ID said of the test on the page
  draft: null, // the test as it is being edited; null outside an edit
  problems: [], // what was wrong with the draft when it was last sent
  arm: 0,
  stage: 0, // whose clip the space bar plays
  busy: false,
};

export const $ = (id) => document.getElementById(id);
export const words = (name) => name.replaceAll("_", " ");

/** An element. Properties: class, text, data, on (listeners), anything else an attribute; null and false are left out. */
export function h(tag, properties = {}, ...children) {
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

export const pairs = (entries) => h("dl", { class: "pairs" }, entries.map(([name, value]) => [h("dt", { text: name }), h("dd", { text: value })]));

export function say(text, kind = "") {
  $("status").className = kind;
  $("status").textContent = text;
}

export function notice(kind, ...children) {
  $("notice").className = `notice ${kind}`;
  $("notice").replaceChildren(...children);
  $("notice").hidden = children.length === 0;
}

export function fieldProblem(id, text) {
  $(id).setAttribute("aria-invalid", text ? "true" : "false");
  $(id).setAttribute("aria-describedby", `${id}-problem`);
  $(`${id}-problem`).textContent = text;
  $(`${id}-problem`).hidden = !text;
  if (text) $(id).focus();
}

export function drawFlags(flags) {
  if (flags.length === 0) return null;
  return h("ul", { class: "flags", "aria-label": "Flags" }, flags.map((flag) => h("li", {}, h("b", { text: `${flag.source}: ` }), flag.message)));
}
