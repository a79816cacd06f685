/** The log of one person's conversation: rows, days, typing dots, keys and swipes. */

import { refusal, row, ticks } from "./bubbles.js";
import { at, hear, make, tell } from "./dom.js";
import { isMine, person, shownItems, state } from "./state.js";
import { locale, words } from "./words.js";

const SWIPE = 56;
const rowOf = (id) => at("log").querySelector(`[data-id="${CSS.escape(id)}"]`);
let follows = true;

export function renderLog() {
  const log = at("log");
  const items = shownItems();
  log.setAttribute("aria-live", "off");
  log.replaceChildren();
  if (!items.length) log.append(welcome());
  items.forEach((item, index) => append(item, items[index - 1]));
  renderTyping();
  toBottom();
  requestAnimationFrame(() => log.setAttribute("aria-live", "polite"));
}

/** Shows what came last, below what is there. */
export function renderNew(item) {
  const items = shownItems();
  const last = items.at(-1);
  if (last?.id !== item.id || (item.code && last.times > 1)) { renderLog(); return; }
  follows = follows || isMine(item);
  at("log").querySelector(".welcome")?.remove();
  at("log").querySelector(".typing")?.remove();
  append(last, items.at(-2));
  if (item.quoted) refresh(item.quoted);
  renderTyping();
  if (!follows) at("latest").hidden = false;
}

export function refresh(id) {
  const message = state.messages.get(id);
  const shown = message && rowOf(id);
  if (!shown) return;
  const focused = shown.contains(document.activeElement);
  const fresh = row(message, shown.classList.contains("turn"));
  shown.replaceWith(fresh);
  if (focused) fresh.focus();
  keepBottom();
}

export function renderTicks(id) {
  const message = state.messages.get(id);
  const old = isMine(message) && rowOf(id)?.querySelector(".meta [role=img]");
  if (old) old.replaceWith(ticks(message));
}

export function renderTyping() {
  const until = state.typing.get(state.current) || 0;
  const isTyping = state.connected && until > Date.now();
  at("log").querySelector(".typing")?.remove();
  at("presence").textContent = !state.connected ? words().offline : isTyping ? words().writing : words().online;
  if (isTyping) {
    const dots = make("div", { class: "bubble" }, make("i"), make("i"), make("i"));
    const holder = make("div", { class: "holder" }, dots);
    at("log").append(make("div", { class: "row turn typing", "aria-hidden": "true" }, holder));
    setTimeout(renderTyping, until - Date.now() + 50);
  }
  keepBottom();
}

export function jump(id) {
  const target = rowOf(id);
  if (!target) return;
  target.scrollIntoView({ block: "center" });
  target.focus();
  target.classList.add("flash");
  setTimeout(() => target.classList.remove("flash"), 1300);
}

export function follow() {
  follows = true;
}

function append(item, before) {
  const log = at("log");
  const day = new Date(item.at * 1000).toDateString();
  const isNewDay = !before || new Date(before.at * 1000).toDateString() !== day;
  if (isNewDay) log.append(make("div", { class: "day" }, dayName(item.at)));
  log.append(item.code ? refusal(item) : row(item, isNewDay || before.by !== item.by));
}

function dayName(seconds) {
  const date = new Date(seconds * 1000);
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / 86400000);
  if (days === 0) return words().today;
  if (days === 1) return words().yesterday;
  return date.toLocaleDateString(locale(), { weekday: "long", day: "numeric", month: "long" });
}

function welcome() {
  const say = words();
  const ideas = say.ideas.map((idea) => make("button", {
    class: "chip", type: "button", onclick: () => { tell("say", { type: "text", text: idea }); at("text").focus(); },
  }, idea));
  return make("div", { class: "welcome" }, make("p", {}, say.welcome(person().name)), ...ideas);
}

const isAtBottom = () => at("log").scrollHeight - at("log").scrollTop - at("log").clientHeight < 90;

function toBottom() {
  at("log").scrollTop = at("log").scrollHeight;
  at("latest").hidden = true;
  follows = true;
}

function keepBottom() {
  if (follows) toBottom();
}

/** The keys: from row to row, and what can be done with one. */
function walk(event) {
  const rows = [...at("log").querySelectorAll(".row[data-id]")];
  const here = rows.indexOf(document.activeElement.closest(".row"));
  const last = rows.length - 1;
  const next = { ArrowUp: here < 0 ? last : here - 1, ArrowDown: here + 1, Home: 0, End: last }[event.key];
  if (next !== undefined && rows[next]) {
    event.preventDefault();
    rows[next].focus();
  } else if (event.key === "Enter" && document.activeElement === rows[here] && !rows[here].querySelector(".retry")) {
    event.preventDefault();
    tell("actions", rows[here].dataset.id);
  }
}

/** A finger that pulls a bubble aside quotes it. */
function swipe(start) {
  const pulled = start.target.closest?.(".row[data-id]");
  if (start.pointerType === "mouse" || !pulled || pulled.querySelector(".retry")) return;
  let distance = 0;
  const move = (event) => {
    distance = Math.max(0, Math.min(80, event.clientX - start.clientX));
    pulled.style.translate = `${distance}px`;
  };
  const end = (event) => {
    for (const [name, listener] of listeners) removeEventListener(name, listener);
    pulled.style.translate = "";
    if (event.type === "pointerup" && distance > SWIPE) tell("quote", pulled.dataset.id);
  };
  const listeners = [["pointermove", move], ["pointerup", end], ["pointercancel", end]];
  for (const [name, listener] of listeners) addEventListener(name, listener);
}

at("log").addEventListener("keydown", walk);
at("log").addEventListener("pointerdown", swipe);
at("log").addEventListener("scroll", () => { follows = isAtBottom(); if (follows) at("latest").hidden = true; });
at("latest").addEventListener("click", toBottom);
new ResizeObserver(keepBottom).observe(at("log"));
hear("grown", keepBottom);
hear("jump", jump);

