// The clips of the arms.

import { $, h, page, say, words } from "./elements.js";

export function drawArms() {
  const { arms } = page.bank;
  if (arms.length === 0) return null;
  const choose = (event) => chooseArm(Number(event.target.value));
  return h("fieldset", { class: "arms" }, h("legend", { text: "Clips of" }), arms.map((name, number) => h("label", {},
    h("input", { type: "radio", name: "arm", value: number, checked: number === page.arm, on: { change: choose } }), name)));
}

export function chooseArm(number) {
  page.arm = number;
  for (const radio of document.getElementsByName("arm")) radio.checked = Number(radio.value) === number;
  page.bank.stages.forEach((name) => $(`clip-${name}`)?.replaceWith(drawClip(name)));
  say(`Clips of ${page.bank.arms[number]}.`);
}

export function drawClip(name) {
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

export function play(stage, { fromStart = false } = {}) {
  const audio = document.querySelector(`#clip-${page.bank.stages[stage]} audio`);
  if (!audio) return say(page.bank.arms.length ? "There is no clip here." : "No clips: start with --run to listen.");
  page.stage = stage;
  if (fromStart) audio.currentTime = 0;
  if (audio.paused || fromStart) audio.play().catch((error) => say(`The clip cannot be played: ${error.message}`, "bad"));
  else audio.pause();
  return undefined;
}
