/** The sheet that comes up in the phone: attaching, a list's rows, what can be done with a message. */

import { at, hear, icon, make, tell } from "./dom.js";
import { asItReads, isMine, person, reactionsTo, state } from "./state.js";
import { words } from "./words.js";

const EMOJIS = ["👍", "❤️", "😂", "😮", "🙏"];
const PLACES = {
  es: { latitude: 19.432608, longitude: -99.133209, name: "Zócalo", address: "Centro Histórico, Ciudad de México" },
  pt: { latitude: -23.561414, longitude: -46.655881, name: "Avenida Paulista", address: "Bela Vista, São Paulo" },
  en: { latitude: 37.795491, longitude: -122.393738, name: "Ferry Building", address: "San Francisco, CA" },
};
const CONTACT = {
  name: { formatted_name: "Elena Prado", first_name: "Elena", last_name: "Prado" },
  phones: [{ phone: "+1 555 010 0199", type: "CELL" }],
};

/** Opens it; it stays in the phone wherever that stands. */
function openSheet(title, ...content) {
  at("sheet-title").textContent = title;
  at("sheet-body").replaceChildren(...content.filter(Boolean));
  placeSheet();
  at("sheet").showModal();
  at("sheet-body").querySelector("button, input")?.focus();
}

function placeSheet() {
  const { left, right, bottom, height } = at("phone").getBoundingClientRect();
  const edge = at("phone").clientLeft;
  const place = {
    left: left + edge, right: innerWidth - right + edge, bottom: innerHeight - bottom + edge, height: height - 2 * edge,
  };
  for (const [name, pixels] of Object.entries(place)) at("sheet").style.setProperty(`--phone-${name}`, `${pixels}px`);
}

function option(symbol, title, detail, press) {
  const text = make("span", {}, title, detail ? make("small", {}, detail) : "");
  const onclick = () => { at("sheet").close(); press(); };
  return make("button", { class: "option", type: "button", onclick }, symbol ? icon(symbol) : "", text);
}

function openAttach() {
  const say = words();
  const place = PLACES[person().language] || PLACES.en;
  openSheet(
    say.attach,
    option("file", say.file, "", () => at("file").click()),
    option("voice", say.record, "", () => tell("record")),
    option("voice", say.sample, "0:03", () => tell("say", { type: "voice" })),
    option("place", say.place, place.name, () => tell("say", { type: "location", location: place })),
    option("person", say.contact, CONTACT.name.formatted_name, () => {
      tell("say", { type: "contacts", contacts: [CONTACT] });
    }),
  );
}

function openList(message) {
  const parts = message.content.action.sections.flatMap((section) => [
    section.title ? make("h3", {}, section.title) : null,
    ...section.rows.map(({ id, title, description }) => option("", title, description, () => tell("say", {
      type: "list", reply: { id, title, ...(description ? { description } : {}) }, quoted: message.id,
    }))),
  ]);
  openSheet(message.content.action.button || words().choose, ...parts);
}

function openActions(id) {
  const say = words();
  const message = asItReads(state.messages.get(id));
  const given = reactionsTo(id).find(([by]) => by === "person")?.[1];
  const react = (emoji) => {
    at("sheet").close();
    tell("say", { type: "reaction", reaction: { message_id: id, emoji: emoji === given ? "" : emoji } });
  };
  const emojis = EMOJIS.map((emoji) => make("button", {
    class: "emoji", type: "button", "aria-pressed": String(emoji === given), "aria-label": emoji,
    onclick: () => react(emoji),
  }, emoji));
  const isOwn = isMine(message) && message.type !== "revoked";
  const facts = `${say.details}: ${say[message.status] || message.status}`;
  openSheet(
    say.actions,
    make("div", { class: "emojis" }, ...emojis),
    option("reply", say.reply, "", () => tell("quote", id)),
    isOwn && message.type === "text" ? option("edit", say.edit, "", () => tell("edit", id)) : null,
    isOwn ? option("bin", say.revoke, "", () => tell("say", { type: "revoke", original: id })) : null,
    make("p", { class: "facts" }, facts),
  );
}

/** A chosen file before it is sent: the picture, or its name, and a caption where the kind has one. */
function openPreview({ message, name }) {
  const say = words();
  const isPicture = message.mime_type.startsWith("image/");
  const shown = isPicture
    ? make("img", { src: `data:${message.mime_type};base64,${message.data}`, alt: name })
    : make("p", {}, icon("file"), ` ${name}`);
  const takesCaption = ["image", "video", "document"].includes(message.type);
  const submit = async (event) => {
    event.preventDefault();
    at("sheet").close();
    const caption = new FormData(event.target).get("caption")?.trim();
    tell("say", caption ? { ...message, caption } : message);
  };
  openSheet(say.preview, make(
    "form", { class: "preview fields", autocomplete: "off", onsubmit: submit },
    shown,
    takesCaption ? field("caption", say.caption, { maxLength: 1024 }) : null,
    make("button", { class: "act main", type: "submit" }, say.send),
  ));
}

function field(name, title, properties) {
  return make("label", {}, title, make("input", { name, ...properties }));
}

at("attach").addEventListener("click", openAttach);
at("sheet-close").addEventListener("click", () => at("sheet").close());
at("sheet").addEventListener("click", (event) => { if (event.target === at("sheet")) at("sheet").close(); });
hear("list", openList);
hear("here", (quoted) => {
  const place = PLACES[person().language] || PLACES.en;
  tell("say", { type: "location", location: { latitude: place.latitude, longitude: place.longitude }, quoted });
});
hear("actions", openActions);
hear("preview", openPreview);
new ResizeObserver(placeSheet).observe(at("phone"));
addEventListener("resize", placeSheet);
