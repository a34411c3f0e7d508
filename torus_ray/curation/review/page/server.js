// What the server is asked; a refusal is an error with its words.

import { $, page } from "./elements.js";

export class Refusal extends Error {
  constructor(status, told) {
    super([told.error, told.mend].filter(Boolean).join(" – "));
    Object.assign(this, { status, told });
  }
}

export async function ask(path, options = {}) {
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

export async function judge(decision, more) {
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
