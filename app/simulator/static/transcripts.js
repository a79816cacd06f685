/** Saving what happened, and playing it again. */

import { at, hear, make, post, showError, tell } from "./dom.js";
import { nameOf } from "./people.js";
import { state } from "./state.js";
import { locale, words } from "./words.js";

let since = 0;
let shown = [];
let verdict = "";

export function buildTranscripts() {
  const say = words();
  at("transcript-title").textContent = say.transcript;
  const whose = make("select", { id: "whose", onchange: renderLink });
  at("transcript-body").replaceChildren(
    make("p", { class: "help" }, say.transcriptHelp),
    make("label", { class: "line" }, say.whose, whose),
    make("p", { id: "since", class: "help" }),
    make("div", { class: "acts" },
      make("button", { class: "act", type: "button", onclick: startAfresh }, say.afresh),
      make("a", { class: "act", id: "save" }, say.save),
      make("button", { class: "act", type: "button", id: "play", onclick: choose }, say.play)),
    make("p", { id: "transcript-alert", class: "panel-alert", role: "alert", hidden: true }),
    make("p", { id: "verdict", class: "verdict", role: "status" }),
    make("ol", { id: "steps", class: "steps" }),
  );
  renderWhose();
  renderSteps();
}

function choose() {
  at("transcript-file").click();
}

export function renderWhose() {
  const chosen = at("whose").value || state.current;
  const options = state.people.map((each) => make("option", { value: each.id }, nameOf(each)));
  at("whose").replaceChildren(...options, make("option", { value: "" }, words().everyone));
  at("whose").value = chosen;
  renderLink();
}

export function followPerson() {
  showError("", "transcript-alert");
  if (at("whose").value) at("whose").value = state.current;
  renderLink();
}

function renderLink() {
  const time = new Date(since * 1000).toLocaleTimeString(locale(), { hour: "numeric", minute: "2-digit" });
  at("since").textContent = since ? `${words().since} ${time}` : words().whole;
  at("save").href = `/simulator/api/transcript?person=${encodeURIComponent(at("whose").value)}&since=${since}`;
  at("save").download = `${at("whose").value || "recado"}-${new Date().toISOString().slice(0, 10)}.json`;
}

function startAfresh() {
  since = Date.now() / 1000;
  renderLink();
}

async function play(file) {
  at("transcript-file").value = "";
  if (!file) return;
  const transcript = await parsed(file);
  showError(transcript ? "" : words().notTranscript, "transcript-alert");
  shown = [];
  verdict = transcript ? words().playing : "";
  renderSteps();
  if (!transcript) return;
  try {
    const { ok, steps, extra } = await post("replay", transcript);
    shown = [...steps, ...extra.map(({ got }) => ({ ok: false, extra: true, got }))];
    verdict = ok ? words().same(steps.length) : words().differs;
  } catch (error) {
    verdict = "";
    showError(error.message, "transcript-alert");
  }
  renderSteps();
}

/** The JSON of a file that may be a transcript, else null. */
async function parsed(file) {
  try {
    const value = JSON.parse(await file.text());
    return value?.recado_transcript ? value : null;
  } catch {
    return null;
  }
}

function renderSteps() {
  at("verdict").textContent = verdict;
  at("verdict").classList.toggle("bad", verdict === words().differs);
  at("steps").replaceChildren(...shown.map(step));
  at("steps").lastElementChild?.scrollIntoView({ block: "nearest" });
}

function step({ ok, event, got, extra }) {
  if (extra) return make("li", { class: "bad" }, `${words().extra}: ${inWords(got)}`);
  const { person, says, gets, refused, switches } = event;
  let what = `⚙ ${inWords(switches)}`;
  if (says) what = `→ ${inWords(says)}`;
  else if (gets) what = `← ${inWords(gets)}`;
  else if (refused) what = `⨯ ${refused}`;
  const line = make("li", { class: ok ? "good" : "bad" }, make("b", {}, person ? `${person} ` : ""), what);
  if (!ok) line.append(make("span", {}, `${words().came}: ${got ? inWords(got) : words().nothing}`));
  return line;
}

function inWords(value) {
  if (Array.isArray(value)) return value.map(inWords).join(" | ");
  if (typeof value !== "object") return String(value);
  if (value.text) return value.text;
  const { type, data, mime_type, ...rest } = value;
  return [type, ...Object.entries(rest).map(([key, each]) => `${key} ${inWords(each)}`)].filter(Boolean).join(", ");
}

at("transcript-file").addEventListener("change", () => play(at("transcript-file").files[0]));
hear("replay", ({ people, step: latest }) => {
  shown.push(latest);
  verdict = words().playing;
  renderSteps();
  const player = people[latest.event.person];
  if (player && player !== state.current) tell("choose", player);
});
