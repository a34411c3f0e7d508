// What a screen reader or weak eyes would miss on the page as it is now: by kind, what is wrong; empty lists are good.
const all = (css) => [...document.querySelectorAll(css)];
const short = (element) => element.outerHTML.slice(0, 120);

const named = (e) =>
  e.labels?.length || e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim();
const nameless = all("input, select, textarea, button, a, audio, progress, dialog, nav, summary, [role=group]")
  .filter((e) => !named(e)).map(short);

const ids = all("[id]").map((e) => e.id);
const twice = ids.filter((id, at) => ids.indexOf(id) !== at);
const references = ["aria-describedby", "aria-labelledby", "for"];
const dangling = all(references.map((name) => `[${name}]`).join())
  .flatMap((e) => references.flatMap((name) => (e.getAttribute(name) ?? "").split(" ").filter(Boolean)))
  .filter((id) => !document.getElementById(id));

const order = all("[tabindex]").filter((e) => e.tabIndex > 0).map(short);
const levels = all("article :is(h1, h2, h3)").map((e) => Number(e.tagName[1]));
const jumps = levels.filter((level, at) => at && level > levels[at - 1] + 1);
const titles = all("h1").length === 1 && document.documentElement.lang === "en" ? [] : ["one h1, lang=en"];

// WCAG 2 contrast of every visible text against the nearest opaque background around it.
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const rgba = (color) => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const linear = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const color = rgba(getComputedStyle(e).backgroundColor);
    if (color[3] > 230) return color;
  }
  return [255, 255, 255, 255];
};
const faint = [];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const e = texts.currentNode.parentElement;
  if (!texts.currentNode.data.trim() || !e.checkVisibility() || e.closest(":disabled, noscript, option")) continue;
  const [a, b] = [light(rgba(getComputedStyle(e).color)), light(behind(e))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) faint.push(`${short(e)} ${ratio.toFixed(2)}`);
}
return { nameless, twice, dangling, order, jumps, titles, faint };
