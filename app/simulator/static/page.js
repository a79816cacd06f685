/** Ties the page together: what the server tells, the panel, languages and colours. */

import { setContext, write } from "./composer.js";
import { refresh, renderLog, renderNew, renderTicks, renderTyping } from "./conversation.js";
import { at, hear, make, showError } from "./dom.js";
import { choosePerson, renderPeople } from "./people.js";
import "./sheets.js";
import { about, isMine, person, state } from "./state.js";
import { buildSwitches, renderSwitches } from "./switches.js";
import { language, locale, speak, words, WORDS } from "./words.js";

const TEXTS = ["title", "lead", "people-title", "note", "text-label", "log-help", "panel-title", "looks-title", "skip"];
const LABELS = ["send", "attach", "sheet-close", "latest", "log", "quoting-end", "panel-close"];
const NAMED = {
  "people-title": "people", "text-label": "message", "log-help": "logHelp", "panel-title": "panel",
  "looks-title": "looks", "sheet-close": "close", "quoting-end": "cancel", "panel-close": "close",
};
const word = (id) => words()[NAMED[id] || id];

function render() {
  document.documentElement.lang = locale();
  document.title = `${person().name} – Recado`;
  for (const id of TEXTS) at(id).textContent = word(id);
  for (const id of LABELS) at(id).setAttribute("aria-label", word(id));
  at("text").placeholder = words().message;
  renderPeople();
  renderLog();
}

function build() {
  buildSwitches();
  const painted = localStorage.getItem("theme") || "";
  const languages = Object.entries(WORDS).map(([id, { name }]) => {
    return make("option", { value: id, lang: id, selected: id === language() }, name);
  });
  const themes = Object.entries(words().themes).map(([id, name]) => {
    return make("option", { value: id, selected: id === painted }, name);
  });
  at("looks-body").replaceChildren(
    picker(words().language, changeLanguage, languages),
    picker(words().theme, paint, themes),
  );
}

function picker(title, change, options) {
  const select = make("select", { onchange: () => change(select.value) }, ...options);
  return make("label", { class: "line" }, title, select);
}

function changeLanguage(chosen) {
  speak(chosen);
  render();
  build();
  at("looks-body").querySelector("select").focus();
}

function paint(theme) {
  localStorage.setItem("theme", theme);
  document.documentElement.dataset.theme = theme;
}

/** What the server tells, by the name of the event. */
const HANDLERS = {
  state(event) {
    const wanted = state.current || location.hash.slice(1);
    const isFirst = !state.current;
    const { people, faults, off, errors } = event;
    Object.assign(state, { people, faults, off, errors, connected: true });
    state.messages = new Map(event.messages.map((message) => [message.id, message]));
    state.typing = new Map(Object.entries(event.typing).map(([id, seconds]) => [id, Date.now() + seconds * 1000]));
    state.current = event.people.some((each) => each.id === wanted) ? wanted : event.people[0].id;
    showError("");
    render();
    if (isFirst) build();
    else renderSwitches();
  },
  message({ message }) {
    if (!isMine(message)) state.typing.delete(message.person);
    const isNew = !state.messages.has(message.id);
    state.messages.set(message.id, message);
    if (message.person !== state.current) {
      if (isNew && !isMine(message)) state.unread.set(message.person, (state.unread.get(message.person) || 0) + 1);
      renderPeople();
    } else if (about(message)) { refresh(about(message)); renderTyping(); }
    else if (isNew) renderNew(message);
    else refresh(message.id);
  },
  refused(note) {
    state.refused.push(note);
    state.typing.delete(note.person);
    if (note.person === state.current) renderNew(note);
  },
  status({ id, status }) {
    const message = state.messages.get(id);
    if (!message) return;
    message.status = status;
    if (status === "failed") refresh(id);
    else renderTicks(id);
  },
  typing(event) {
    state.typing.set(event.person, Date.now() + event.seconds * 1000);
    if (event.person === state.current) renderTyping();
  },
  forgotten({ person: id }) {
    for (const [wamid, message] of state.messages) if (message.person === id) state.messages.delete(wamid);
    state.refused = state.refused.filter((note) => note.person !== id);
    if (state.current === id) renderLog();
    renderPeople();
  },
  faults({ faults }) {
    state.faults = faults;
    renderSwitches();
  },
};

function listen() {
  const events = new EventSource("/simulator/api/events");
  events.onmessage = ({ data }) => {
    const event = JSON.parse(data);
    HANDLERS[event.event]?.(event);
  };
  events.onerror = () => {
    state.connected = false;
    if (state.current) renderTyping();
    showError(events.readyState === EventSource.CLOSED ? words().locked : words().away);
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  };
}

function choose(id) {
  choosePerson(id, (draft) => {
    setContext();
    write(draft);
    render();
  });
}

/** The panel is a drawer over the page, closed at first. */
function showPanel(isOpen) {
  at("panel").classList.toggle("open", isOpen);
  at("panel").inert = !isOpen;
  at("phone").inert = isOpen;
  at("shade").hidden = !isOpen;
  at("panel-open").setAttribute("aria-expanded", String(isOpen));
  if (isOpen) at("panel-close").focus();
}

function closePanel() {
  showPanel(false);
  at("panel-open").focus();
}

at("panel-open").addEventListener("click", () => showPanel(true));
at("panel-close").addEventListener("click", closePanel);
at("shade").addEventListener("click", closePanel);
at("panel").addEventListener("keydown", (event) => { if (event.key === "Escape") closePanel(); });
addEventListener("hashchange", () => { if (location.hash.slice(1) !== state.current) choose(location.hash.slice(1)); });
hear("choose", choose);
paint(localStorage.getItem("theme") || "");
showPanel(false);
listen();
