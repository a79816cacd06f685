/** Whose phone it is: the list beside it, the strip on a narrow page, and changing over. */

import { at, make, tell } from "./dom.js";
import { address, state } from "./state.js";
import { words } from "./words.js";

let inView = "";

export function renderPeople() {
  for (const id of ["people", "people-strip"]) {
    at(id).replaceChildren(...state.people.map(entry));
  }
  if (inView === state.current) return;
  inView = state.current;
  for (const one of document.querySelectorAll('.person[aria-current="true"]')) {
    one.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

function entry(each, index) {
  const say = words();
  const unread = state.unread.get(each.id) || 0;
  const note = index === 0 ? say.owner : each.phone ? "" : say.usernameOnly;
  const face = [...each.name][0].toUpperCase();
  const count = { class: "count", role: "img", "aria-label": `${unread} ${say.unread}` };
  return make(
    "button", {
      class: "person", type: "button", "data-id": each.id, "aria-current": String(each.id === state.current),
      onclick: () => tell("choose", each.id),
    },
    make("span", { class: `avatar tone${index % 6}`, "aria-hidden": "true" }, face),
    make(
      "span", { class: "words" },
      make("span", { class: "name" }, each.name),
      make("span", { class: "address" }, [address(each), note].filter(Boolean).join(" · ")),
    ),
    unread ? make("span", count, String(unread)) : null,
  );
}

/** Keeps the draft, changes over, and leaves the focus in the list where it was there. */
export function choosePerson(id, show) {
  if (!state.people.some((each) => each.id === id)) return;
  state.drafts.set(state.current, at("text").value);
  state.current = id;
  state.unread.delete(id);
  history.replaceState(null, "", `#${id}`);
  const focusedIn = document.activeElement?.closest("nav")?.id;
  show(state.drafts.get(id) || "");
  const current = focusedIn && at(focusedIn).querySelector('[aria-current="true"]');
  current?.focus();
}
