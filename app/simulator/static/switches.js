/** The panel of faults: each switch with a line that says what it does. */

import { at, make, post, showError } from "./dom.js";
import { state } from "./state.js";
import { words } from "./words.js";

const UNITS = { clock_ahead: 3600 };
const unitOf = (name) => UNITS[name] || 1;

/** Builds the panel anew, in the page's language. */
export function buildSwitches() {
  const say = words();
  at("switches-title").textContent = say.switches;
  at("switches-body").replaceChildren(
    group(
      say.toRecado,
      number("duplicate"), number("batch"), toggle("shuffle"), toggle("hold_statuses"),
    ),
    group(
      say.fromGraph,
      errors(), number("delay"), number("drop_after_accept"), toggle("offline", "offline_switch"),
    ),
    group(say.clock, number("clock_ahead")),
    make("button", { class: "act", type: "button", id: "all-off", onclick: () => change(state.off) }, say.allOff),
  );
  renderSwitches();
}

/** Puts the values as they are into the controls. */
export function renderSwitches() {
  for (const [name, value] of Object.entries(state.faults)) {
    const control = at(`fault-${name}`);
    if (!control || name === "fail") continue;
    if (control.type === "checkbox") control.checked = value;
    else if (document.activeElement !== control) control.value = value / unitOf(name);
    control.closest(".switch").classList.toggle("on", isOn(name));
  }
  const waiting = state.faults.fail.length;
  at("fault-waiting").hidden = !waiting;
  at("fault-waiting").firstChild.textContent = `${waiting} ${words().waiting} `;
  at("fault-fail").closest(".switch").classList.toggle("on", waiting > 0);
  const on = Object.keys(state.faults).filter(isOn).length;
  for (const badge of document.querySelectorAll(".badge")) {
    badge.hidden = !on;
    badge.textContent = String(on);
  }
  at("panel-open").setAttribute("aria-label", on ? `${words().panel}, ${words().active(on)}` : words().panel);
}

/** Whether a switch is thrown; compared as JSON because one of them is a list. */
const isOn = (name) => JSON.stringify(state.faults[name]) !== JSON.stringify(state.off[name]);

async function change(changes) {
  try {
    state.faults = await post("faults", changes);
    showError("", "panel-alert");
  } catch (error) {
    showError(error.message, "panel-alert");
  }
  renderSwitches();
}

function group(title, ...rows) {
  return make("fieldset", {}, make("legend", {}, title), ...rows);
}

function line(name, key, control, unit = "") {
  const [title, help] = words()[key];
  const shownUnit = unit ? make("span", { class: "unit", "aria-hidden": "true" }, unit) : null;
  return make(
    "div", { class: "switch" },
    make("label", { htmlFor: `fault-${name}` }, title),
    make("span", { class: "control" }, control, shownUnit),
    make("p", { id: `help-${name}` }, help),
  );
}

function toggle(name, key = name) {
  const control = make("input", {
    id: `fault-${name}`, type: "checkbox", role: "switch", "aria-describedby": `help-${name}`,
    onchange: () => change({ [name]: control.checked }),
  });
  return line(name, key, control);
}

function number(name) {
  const control = make("input", {
    id: `fault-${name}`, type: "number", step: 1,
    "aria-describedby": `help-${name}`, onchange: set,
  });
  function set() {
    if (!control.reportValidity() || control.value === "") return;
    change({ [name]: Number(control.value) * unitOf(name) });
  }
  return line(name, name, control, words()[name][2]);
}

/** Codes by what they ask for, how they come, and for how many sends. */
function errors() {
  const say = words();
  const groups = Object.entries(state.errors).map(([consequence, known]) => {
    const options = Object.entries(known).map(([code, title]) => make("option", { value: code }, `${code} ${title}`));
    return make("optgroup", { label: say.consequences[consequence] }, ...options);
  });
  const codes = make("select", { id: "fault-fail", "aria-describedby": "help-fail" }, ...groups);
  codes.value = "131026";
  const how = make(
    "select", { "aria-label": say.how },
    make("option", { value: "refuse" }, say.howRefuse),
    make("option", { value: "accept" }, say.howFail),
  );
  const count = make("input", { type: "number", min: 1, max: 99, value: 1, "aria-label": say.howMany });
  const set = () => {
    if (!count.reportValidity()) return;
    const script = { code: Number(codes.value), ...(how.value === "accept" ? { accept: true } : {}) };
    change({ fail: Array(Number(count.value)).fill(script) });
  };
  const clear = () => change({ fail: [] });
  const shown = line("fail", "fail", codes);
  shown.classList.add("wide");
  shown.append(
    make(
      "div", { class: "script" }, how, count,
      make("button", { class: "act", type: "button", id: "fail-set", onclick: set }, say.apply),
    ),
    make(
      "p", { id: "fault-waiting", class: "waiting", role: "status" }, "",
      make("button", { class: "link", type: "button", onclick: clear }, say.clear),
    ),
  );
  return shown;
}
