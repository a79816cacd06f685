/** What the page knows, and the questions it asks of that. */

export const state = {
  people: [], messages: new Map(), refused: [], typing: new Map(),
  unsent: new Map(), unread: new Map(), drafts: new Map(),
  faults: {}, off: {}, errors: {}, current: "", quoting: "", editing: "", connected: true,
};

const ABOUT_ANOTHER = ["reaction", "edit", "revoke"];

export const person = () => state.people.find((each) => each.id === state.current) || state.people[0];
export const isMine = (message) => message.by === "person";

/** The message that a reaction, a correction or a deletion is about. */
export function about({ type, content }) {
  return ABOUT_ANOTHER.includes(type) ? content.message_id || content.original_message_id : "";
}

/** Messages and refused sends of the current person in order; refusals in a row with one code are one. */
export function shownItems() {
  const messages = [...state.messages.values(), ...state.unsent.values()].filter((message) => !about(message));
  const items = [...messages, ...state.refused].filter((item) => item.person === state.current);
  items.sort((one, two) => one.at - two.at);
  return items.reduce((shown, item) => {
    const last = shown.at(-1);
    if (item.code && last?.code === item.code) last.times += 1;
    else shown.push(item.code ? { ...item, times: 1 } : item);
    return shown;
  }, []);
}

/** A message as it reads now: corrected or taken back. */
export function asItReads(message) {
  let now = message;
  for (const each of state.messages.values()) {
    if (each.person !== message.person || about(each) !== message.id) continue;
    if (each.type === "edit") now = { ...now, content: each.content.message.text, isEdited: true };
    if (each.type === "revoke") now = { ...now, type: "revoked", isEdited: false };
  }
  return now;
}

export function reactionsTo(id) {
  const given = new Map();
  for (const each of state.messages.values()) {
    if (each.type === "reaction" && each.content.message_id === id) given.set(each.by, each.content.emoji);
  }
  return [...given].filter(([, emoji]) => emoji);
}

/** The button or row with which a person answered. */
export function answerTo(id) {
  for (const each of state.messages.values()) {
    if (each.quoted === id && isMine(each) && each.type === "interactive") {
      return each.content.button_reply || each.content.list_reply;
    }
  }
  return null;
}

/** Meta's title for a code, and what kind of answer it asks for; empty where the code is unknown. */
export function errorOf(code) {
  const [consequence, codes] = Object.entries(state.errors).find(([, known]) => known[code]) || ["", {}];
  return { consequence, title: codes[code] || "" };
}

const GROUPS = [
  [/^52(1?)(\d{2})(\d{4})(\d{4})$/, "+52 $1 $2 $3 $4"],
  [/^55(\d{2})(\d{4,5})(\d{4})$/, "+55 $1 $2 $3"],
  [/^1(\d{3})(\d{3})(\d{4})$/, "+1 $1 $2 $3"],
];

/** A person's number as one reads it, else their username. */
export function address(each) {
  if (!each.phone) return `@${each.username}`;
  const [form, shape] = GROUPS.find(([known]) => known.test(each.phone)) || [/^/, "+"];
  return each.phone.replace(form, shape).replace("  ", " ");
}
