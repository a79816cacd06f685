/** The panel of faults: each switch with a line that says what it does. */

import { at, complain, make, post } from "./dom.js";
import { state } from "./state.js";
import { words } from "./words.js";

const HOUR = 3600;
const NUMBERS = {
  duplicate: { min: 1, max: 20 }, webhook_delay: { min: 0, max: 600 }, batch: { min: 1, max: 1000 },
  delay: { min: 0, max: 600 }, drop_after_accept: { min: -1, max: 1000 }, clock_ahead: { min: 0, max: 2000, unit: HOUR },
};
const OFF = {
  duplicate: 1, webhook_delay: 0, batch: 1, reorder: false, hold_statuses: false,
  fail: [], delay: 0, drop_after_accept: 0, offline: false, rates: false, clock_ahead: 0,
};

/** Builds the panel anew, in the page's language. */
export function buildSwitches() {
  const say = words();
  at("switches-title").textContent = say.switches;
  at("switches-body").replaceChildren(
    group(say.toRecado, number("duplicate"), number("webhook_delay"), number("batch"), toggle("reorder"), toggle("hold_statuses")),
    group(say.fromGraph, errors(), number("delay"), number("drop_after_accept"), toggle("offline", "offline_switch"), toggle("rates")),
    group(say.clock, number("clock_ahead")),
    make("button", { class: "act", type: "button", id: "all-off", onclick: () => change(OFF) }, say.allOff),
  );
  renderSwitches();
}

/** Puts the values as they are into the controls. */
export function renderSwitches() {
  for (const [name, value] of Object.entries(state.faults)) {
    const control = at(`fault-${name}`);
    if (!control || name === "fail") continue;
    if (!(name in NUMBERS)) control.checked = value;
    else if (document.activeElement !== control) control.value = value / (NUMBERS[name].unit || 1);
    control.closest(".switch").classList.toggle("on", value !== OFF[name]);
  }
  const waiting = state.faults.fail?.length || 0;
  at("fault-waiting").hidden = !waiting;
  at("fault-waiting").firstChild.textContent = `${waiting} ${words().waiting} `;
  at("fault-fail").closest(".switch").classList.toggle("on", waiting > 0);
  const on = Object.entries(OFF).filter(([name, off]) => name in state.faults && String(state.faults[name]) !== String(off)).length;
  for (const badge of document.querySelectorAll(".badge")) {
    badge.hidden = !on;
    badge.textContent = String(on);
  }
  at("panel-open").setAttribute("aria-label", on ? `${words().panel}, ${on} ${words().active}` : words().panel);
}

async function change(changes) {
  try {
    state.faults = await post("faults", changes);
    complain("", "panel-alert");
  } catch (error) {
    complain(error.message, "panel-alert");
  }
  renderSwitches();
}

function group(title, ...rows) {
  return make("fieldset", {}, make("legend", {}, title), ...rows);
}

function line(name, key, control, unit = "") {
  const [title, help] = words()[key];
  return make(
    "div", { class: "switch" },
    make("label", { htmlFor: `fault-${name}` }, title),
    make("span", { class: "control" }, control, unit ? make("span", { class: "unit", "aria-hidden": "true" }, unit) : null),
    make("p", { id: `help-${name}` }, help),
  );
}

function toggle(name, key = name) {
  const control = make("input", { id: `fault-${name}`, type: "checkbox", role: "switch", "aria-describedby": `help-${name}`, onchange: () => change({ [name]: control.checked }) });
  return line(name, key, control);
}

function number(name) {
  const { min, max, unit = 1 } = NUMBERS[name];
  const set = () => { if (control.reportValidity() && control.value !== "") change({ [name]: Number(control.value) * unit }); };
  const control = make("input", { id: `fault-${name}`, type: "number", min, max, step: 1, "aria-describedby": `help-${name}`, onchange: set });
  return line(name, name, control, words()[name][2]);
}

/** Codes by what they ask for, how they come, and for how many sends. */
function errors() {
  const say = words();
  const codes = make("select", { id: "fault-fail", "aria-describedby": "help-fail" }, ...Object.entries(state.errors).map(([consequence, known]) => make(
    "optgroup", { label: say.consequences[consequence] }, ...Object.entries(known).map(([code, title]) => make("option", { value: code }, `${code} ${title}`)),
  )));
  codes.value = "131026";
  const how = make("select", { "aria-label": say.how }, make("option", { value: "refuse" }, say.howRefuse), make("option", { value: "accept" }, say.howFail));
  const count = make("input", { type: "number", min: 1, max: 99, value: 1, "aria-label": say.howMany });
  const set = () => change({ fail: Array.from({ length: count.value }, () => ({ code: Number(codes.value), ...(how.value === "accept" ? { accept: true } : {}) })) });
  const shown = line("fail", "fail", codes);
  shown.classList.add("wide");
  shown.append(
    make("div", { class: "script" }, how, count, make("button", { class: "act", type: "button", id: "fail-set", onclick: () => { if (count.reportValidity()) set(); } }, say.apply)),
    make("p", { id: "fault-waiting", class: "waiting", role: "status" }, "", make("button", { class: "link", type: "button", onclick: () => change({ fail: [] }) }, say.clear)),
  );
  return shown;
}
