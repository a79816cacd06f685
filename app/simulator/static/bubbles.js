/** One row of the conversation: a bubble with what it holds, its ticks, reactions and choices. */

import { icon, make, tell } from "./dom.js";
import { formatted } from "./formatting.js";
import { answerTo, asItReads, errorOf, isMine, reactionsTo, state } from "./state.js";
import { locale, words } from "./words.js";

const ELSEWHERE = { target: "_blank", rel: "noopener noreferrer" };
const FILES = ["image", "sticker", "video", "audio", "document"];

export function row(original, startsTurn) {
  const message = asItReads(original);
  const mine = isMine(message);
  const quoted = message.type === "revoked" ? null : quote(message.quoted, () => tell("jump", message.quoted));
  const bubble = make("div", { class: "bubble" }, quoted, ...body(message));
  (bubble.querySelector(":scope > .text:last-child > .plain:last-child") || bubble).append(meta(message));
  const classes = `row${mine ? " mine" : ""}${startsTurn ? " turn" : ""}`;
  const shown = make(
    "div", { class: classes, role: "group", tabIndex: -1, "aria-label": mine ? words().you : "Recado" },
    make("div", { class: "holder" }, bubble, message.draft ? null : more(message)),
    failure(message), reactions(message), choices(message), message.draft ? retry(message) : null,
  );
  shown.dataset.id = message.id;
  return shown;
}

function more(message) {
  return make("button", {
    class: "more", type: "button", tabIndex: -1, "aria-haspopup": "dialog",
    "aria-label": `${words().actions}: ${gist(message).slice(0, 60)}`, onclick: () => tell("actions", message.id),
  }, icon("more"));
}

function retry(message) {
  const press = () => tell("again", message);
  return make("button", { class: "retry", type: "button", onclick: press }, words().again);
}

/** A send that the stand-in refused: the person's phone knows nothing of it, the one who tests does. */
export function refusal({ code, details, times }) {
  const count = times > 1 ? ` · ${times} ${words().times}` : "";
  return make(
    "div", { class: "refusal" }, make("b", {}, `${words().refused}: ${code}${count}`), ...meaning(code, details),
  );
}

/** What an error asks for, in the page's language, and how Meta puts it. */
function meaning(code, details = "") {
  const { consequence, title } = errorOf(code);
  const original = [title, details === title ? "" : details].filter(Boolean).join(" · ");
  return [
    make("span", {}, words().meanings[consequence] || ""),
    make("small", { lang: "en" }, original && `Meta: ${original}`),
  ];
}

/** A message in one line, for quotes and for screen readers. */
function gist(message) {
  const { type, content } = message;
  const say = words();
  if (type === "text") return formatted(content.body).textContent;
  if (type === "interactive") {
    return (content.button_reply || content.list_reply)?.title || formatted(content.body?.text || "").textContent;
  }
  if (type === "location") return `${say.place}: ${content.name || `${content.latitude}, ${content.longitude}`}`;
  if (type === "contacts") return `${say.contact}: ${content.map((each) => each.name?.formatted_name).join(", ")}`;
  if (type === "image" || type === "sticker") return content.caption || say.picture;
  if (type === "video") return content.caption || say.video;
  if (type === "audio") return say.voice;
  if (type === "document") return content.caption || content.filename || say.document;
  if (type === "template") return `${say.template}: ${content.name}`;
  return type === "revoked" ? say.revoked : say.unsupported;
}

export function quote(id, press) {
  const quoted = state.messages.get(id);
  if (!quoted) return null;
  const name = make("b", {}, isMine(quoted) ? words().you : "Recado");
  const text = gist(asItReads(quoted)).slice(0, 160);
  return make("button", { class: "quote", type: "button", onclick: press }, name, text);
}

export function ticks(message) {
  if (message.draft) return make("span", { class: "unsent" }, words().unsent);
  const status = words()[message.status] ? message.status : "sent";
  const shown = make("span", { class: status, role: "img", "aria-label": words()[status] });
  shown.append(icon(status === "sent" ? "tick" : "ticks"));
  return shown;
}

function meta(message) {
  const date = new Date(message.at * 1000);
  const time = date.toLocaleTimeString(locale(), { hour: "numeric", minute: "2-digit" });
  return make(
    "span", { class: "meta" },
    message.isEdited ? make("span", {}, words().edited) : null,
    make("time", { dateTime: date.toISOString() }, time),
    isMine(message) ? ticks(message) : null,
  );
}

function failure({ failed }) {
  if (!failed) return null;
  return make("div", { class: "failure" }, make("b", {}, `${words().failed} · ${failed}`), ...meaning(failed));
}

function body(message) {
  const { type, content } = message;
  const say = words();
  if (type === "text") return [formatted(content.body)];
  if (type === "interactive") return interactive(content);
  if (type === "location") return [place(content)];
  if (type === "contacts") {
    const phones = (each) => (each.phones || []).map(({ phone }) => phone).join(", ");
    return content.map((each) => card("person", each.name?.formatted_name, phones(each)));
  }
  if (FILES.includes(type)) return [media(type, content), content.caption ? formatted(content.caption) : null];
  if (type === "template") return [make("p", { class: "heading" }, say.template), formatted(content.name)];
  return [make("em", { class: "footing" }, gist(message))];
}

function interactive(content) {
  const reply = content.button_reply || content.list_reply;
  if (reply) return [chosen(reply)];
  return [
    content.header?.text ? make("p", { class: "heading" }, content.header.text) : null,
    formatted(content.body?.text || ""),
    content.footer?.text ? make("p", { class: "footing" }, content.footer.text) : null,
  ];
}

function chosen({ title, description }) {
  if (!description) return make("div", { class: "text" }, make("div", { class: "plain" }, title));
  return make("div", { class: "text" }, make("div", {}, title), make("div", { class: "plain footing" }, description));
}

function place({ latitude, longitude, name, address }) {
  const map = `https://www.openstreetmap.org/?mlat=${Number(latitude)}&mlon=${Number(longitude)}&zoom=16`;
  const shown = card("place", name || words().place, address || `${latitude}, ${longitude}`, "a");
  Object.assign(shown, { href: map, ...ELSEWHERE });
  return make("div", { class: "place" }, drawnMap(Number(latitude), Number(longitude)), shown);
}

/** A map without network: lines of the nearest hundredths of a degree, and a pin. */
function drawnMap(latitude, longitude) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 240 110");
  svg.setAttribute("class", "map");
  svg.setAttribute("aria-hidden", "true");
  const draw = (name, attributes) => {
    const part = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
    svg.append(part);
  };
  const offset = (degrees, step) => ((((degrees * 100) % 1) + 1) % 1) * step;
  for (let x = -offset(longitude, 60); x < 240; x += 60) draw("path", { d: `M${x} 0V110` });
  for (let y = offset(latitude, 40) - 40; y < 110; y += 40) draw("path", { d: `M0 ${y}H240` });
  draw("path", { class: "pin", d: "M120 62c-9-13-14-19-14-26a14 14 0 0 1 28 0c0 7-5 13-14 26z" });
  draw("circle", { class: "hole", cx: 120, cy: 36, r: 5 });
  return svg;
}

function card(symbol, title, detail, tag = "div") {
  const text = make("span", {}, title || "", detail ? make("small", {}, detail) : "");
  return make(tag, { class: "card" }, icon(symbol), text);
}

function media(type, content) {
  const name = content.filename || gist({ type, content: {} });
  if (!content.id && !content.link) return make("em", {}, name);
  if (!content.id) {
    const href = /^https?:/.test(content.link) ? content.link : "#";
    return make("a", { href, ...ELSEWHERE }, content.link || "");
  }
  const lost = (event) => event.target.replaceWith(make("em", { class: "footing" }, `${name} – ${words().gone}`));
  const source = { src: `/simulator/api/media/${encodeURIComponent(content.id)}`, onerror: lost };
  const player = { controls: true, preload: "metadata", "aria-label": name, ...source };
  if (type === "image" || type === "sticker") {
    return make("img", { class: "picture", alt: content.caption || name, onload: () => tell("grown"), ...source });
  }
  if (type === "audio") return make("audio", player);
  if (type === "video") return make("video", { class: "picture", ...player });
  const shown = card("file", name, content.mime_type, "a");
  Object.assign(shown, { href: source.src, download: content.filename || "file" });
  return shown;
}

function reactions(message) {
  const given = reactionsTo(message.id);
  if (!given.length) return null;
  return make("div", { class: "reactions" }, ...given.map(([by, emoji]) => {
    const label = `${by === "person" ? words().you : "Recado"}: ${words().reacted} ${emoji}`;
    return make("span", { class: "reaction", role: "img", "aria-label": label }, emoji);
  }));
}

function choices(message) {
  const action = message.type === "interactive" && !isMine(message) && message.content.action;
  if (!action) return null;
  if (action.name === "cta_url") {
    const link = { class: "choice", href: action.parameters.url, ...ELSEWHERE };
    return make("div", { class: "choices" }, make("a", link, action.parameters.display_text));
  }
  if (action.name === "send_location") {
    const press = () => tell("here", message.id);
    const shown = { class: "choice", type: "button", onclick: press };
    return make("div", { class: "choices" }, make("button", shown, icon("place"), words().sendPlace));
  }
  const answer = answerTo(message.id);
  if (action.sections) {
    return make("div", { class: "choices" }, make("button", {
      class: "choice", type: "button", disabled: Boolean(answer), "aria-haspopup": "dialog",
      onclick: () => tell("list", message),
    }, icon("list"), action.button));
  }
  return make("div", { class: "choices" }, ...action.buttons.map(({ reply }) => make("button", {
    class: "choice", type: "button", disabled: Boolean(answer), "aria-pressed": String(answer?.id === reply.id),
    onclick: () => tell("say", { type: "button", reply: { id: reply.id, title: reply.title }, quoted: message.id }),
  }, reply.title)));
}
