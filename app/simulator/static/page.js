"use strict";

const WORDS = {
  es: {
    title: "Simulador de teléfonos",
    lead: "Escribe como si fuera tu teléfono. Cada mensaje recorre el mismo camino que uno de verdad.",
    people: "¿Quién escribe?",
    note: "Los números son ficticios. Nada sale de esta máquina.",
    owner: "dueña",
    online: "en línea", writing: "escribiendo…", offline: "sin conexión", as: "Escribes como", away: "Sin conexión. Reintentando…",
    message: "Mensaje", send: "Enviar", attach: "Adjuntar", close: "Cerrar", log: "Conversación con Recado",
    latest: "Ir al último mensaje", actions: "Opciones del mensaje", reply: "Responder", cancelQuote: "No responder a este mensaje",
    you: "Tú", today: "Hoy", yesterday: "Ayer", choose: "Elige una opción",
    place: "Ubicación", contact: "Contacto", file: "Foto o documento", voice: "Nota de voz",
    placeSent: "Ubicación", document: "Documento", picture: "Foto", video: "Video", template: "Plantilla", unsupported: "Mensaje no compatible", gone: "el archivo ya no está aquí",
    sent: "enviado", delivered: "entregado", read: "leído", unread: "sin leer", reacted: "reaccionó con",
    tooLarge: "El archivo es demasiado grande: aquí caben hasta 5 MB.", empty: "El archivo está vacío.", wrongType: "Aquí se envían fotos JPEG o PNG y documentos.",
    notSent: "No se pudo enviar.", unsent: "no enviado", again: "Reintentar",
    welcome: "Saluda o prueba con una de estas ideas.",
    ideas: ["¿Qué hora es en Tokio?", "¿Cuánto es 12% de 3,450?", "Guarda una nota: comprar pan"],
  },
  pt: {
    title: "Simulador de telefones",
    lead: "Escreva como se fosse o seu telefone. Cada mensagem faz o mesmo caminho de uma de verdade.",
    people: "Quem escreve?",
    note: "Os números são fictícios. Nada sai desta máquina.",
    owner: "dona",
    online: "online", writing: "escrevendo…", offline: "sem conexão", as: "Você escreve como", away: "Sem conexão. Tentando de novo…",
    message: "Mensagem", send: "Enviar", attach: "Anexar", close: "Fechar", log: "Conversa com Recado",
    latest: "Ir para a última mensagem", actions: "Opções da mensagem", reply: "Responder", cancelQuote: "Não responder a esta mensagem",
    you: "Você", today: "Hoje", yesterday: "Ontem", choose: "Escolha uma opção",
    place: "Localização", contact: "Contato", file: "Foto ou documento", voice: "Mensagem de voz",
    placeSent: "Localização", document: "Documento", picture: "Foto", video: "Vídeo", template: "Modelo", unsupported: "Mensagem não compatível", gone: "o arquivo não está mais aqui",
    sent: "enviada", delivered: "entregue", read: "lida", unread: "não lidas", reacted: "reagiu com",
    tooLarge: "O arquivo é grande demais: aqui cabem até 5 MB.", empty: "O arquivo está vazio.", wrongType: "Aqui se enviam fotos JPEG ou PNG e documentos.",
    notSent: "Não foi possível enviar.", unsent: "não enviada", again: "Tentar de novo",
    welcome: "Diga olá ou experimente uma destas ideias.",
    ideas: ["Que horas são em Lisboa?", "Quanto é 12% de 3.450?", "Salve uma nota: comprar pão"],
  },
  en: {
    title: "Phone simulator",
    lead: "Write as if this were your phone. Every message takes the same way as a real one.",
    people: "Who is writing?",
    note: "The numbers are fictional. Nothing leaves this machine.",
    owner: "owner",
    online: "online", writing: "writing…", offline: "offline", as: "Writing as", away: "Not connected. Trying again…",
    message: "Message", send: "Send", attach: "Attach", close: "Close", log: "Conversation with Recado",
    latest: "Go to the latest message", actions: "Message options", reply: "Reply", cancelQuote: "Do not reply to this message",
    you: "You", today: "Today", yesterday: "Yesterday", choose: "Choose an option",
    place: "Location", contact: "Contact", file: "Photo or document", voice: "Voice note",
    placeSent: "Location", document: "Document", picture: "Photo", video: "Video", template: "Template", unsupported: "Unsupported message", gone: "the file is no longer here",
    sent: "sent", delivered: "delivered", read: "read", unread: "unread", reacted: "reacted with",
    tooLarge: "The file is too large: 5 MB at most here.", empty: "The file is empty.", wrongType: "JPEG and PNG photos and documents can be sent here.",
    notSent: "It could not be sent.", unsent: "not sent", again: "Try again",
    welcome: "Say hello, or try one of these.",
    ideas: ["What time is it in Tokyo?", "What is 12% of 3,450?", "Save a note: buy bread"],
  },
};
const LOCALES = { es: "es", pt: "pt-BR", en: "en" };
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
const LARGEST_FILE = 5 * 1024 * 1024;
const FILE_TYPES = /^(image\/(jpeg|png)$|text\/|application\/|$)/;

const state = { people: [], messages: new Map(), typing: new Map(), unsent: new Map(), unread: new Map(), drafts: new Map(), current: "", quoting: "", connected: true };
const at = (id) => document.getElementById(id);
const person = () => state.people.find((each) => each.id === state.current) || state.people[0];
const words = () => WORDS[person()?.language] || WORDS.en;
const locale = () => LOCALES[person()?.language] || "en";

/* Building the page: every text becomes a text node, never markup. */

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-")) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${name}`);
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

/* WhatsApp's formatting */

const MARKS = { "*": "strong", "_": "em", "~": "s" };
const DEEPEST = 6;

function formatted(text) {
  const box = make("div", { class: "text" });
  String(text).split(/```([\s\S]+?)```/).forEach((part, index) => {
    if (index % 2) box.append(make("pre", {}, part.replace(/^\n|\n$/g, "")));
    else blocks(part, box);
  });
  return box;
}

function blocks(text, box) {
  const lines = text.replace(/^\n|\n$/g, "").split("\n");
  if (lines.length === 1 && !lines[0]) return;
  let index = 0;
  while (index < lines.length) {
    const kind = kindOf(lines[index]);
    const taken = [];
    do taken.push(lines[index++]); while (index < lines.length && continues(kind, lines[index - 1], lines[index]));
    box.append(block(kind, taken));
  }
}

function kindOf(line) {
  if (/^> ?\S/.test(line)) return "quote";
  if (/^[-*] \S/.test(line)) return "bullets";
  if (/^\d{1,3}\. \S/.test(line)) return "numbers";
  return "plain";
}

/** Whether a line belongs to the block of the one before: a list ends where the count or the mark begins anew. */
function continues(kind, before, line) {
  if (kindOf(line) !== kind) return false;
  if (kind === "bullets") return line[0] === before[0];
  return kind !== "numbers" || parseInt(line, 10) > parseInt(before, 10);
}

function block(kind, lines) {
  if (kind === "quote") return make("blockquote", {}, ...inline(lines.map((line) => line.replace(/^> ?/, "")).join("\n")));
  if (kind === "bullets") return make("ul", {}, ...lines.map((line) => make("li", {}, ...inline(line.slice(2)))));
  if (kind === "numbers") {
    const items = lines.map((line) => make("li", { value: parseInt(line, 10) }, ...inline(line.replace(/^\d+\. /, ""))));
    return make("ol", { class: `digits${String(items.at(-1).value).length}` }, ...items);
  }
  const text = lines.join("\n").replace(/^\n+|\n+$/g, "");
  return text ? make("div", { class: "plain" }, ...inline(text)) : "";
}

function inline(text, depth = 0) {
  const nodes = [];
  const hopeless = {};
  let plain = "";
  let index = 0;
  const put = (node, end) => {
    if (plain) nodes.push(plain);
    plain = "";
    nodes.push(node);
    index = end;
  };
  while (index < text.length) {
    const character = text[index];
    if (character === "`" && text[index - 1] !== "\u2060") {
      const end = text.indexOf("`", index + 1);
      const code = text.slice(index + 1, end);
      if (end > index + 1 && !code.includes("\n")) { put(make("code", {}, code), end + 1); continue; }
    } else if (MARKS[character] && depth < DEEPEST && !(index < hopeless[character]) && opens(text, index)) {
      const end = closing(text, index);
      if (end > 0) { put(make(MARKS[character], {}, ...inline(text.slice(index + 1, end), depth + 1)), end + 1); continue; }
      hopeless[character] = -end;
    } else if (character === "h" && !isWord(text[index - 1])) {
      const address = /^https?:\/\/[^\s<>"]+/.exec(text.slice(index, index + 2048))?.[0].replace(/[.,;:!?)*_~]+$/, "");
      if (address) { put(make("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, address), index + address.length); continue; }
    }
    plain += character;
    index += 1;
  }
  if (plain) nodes.push(plain);
  return nodes;
}

const isWord = (character) => character !== undefined && /[\p{L}\p{N}\u2060]/u.test(character);
const isSpace = (character) => character === undefined || /\s/.test(character);

function opens(text, index) {
  const next = text[index + 1];
  return !isWord(text[index - 1]) && text[index - 1] !== text[index] && !isSpace(next) && next !== text[index];
}

/** Where the mark that opens at `index` closes; else minus the end of its line: no later one closes either. */
function closing(text, index) {
  const mark = text[index];
  const newline = text.indexOf("\n", index);
  const end = newline < 0 ? text.length : newline;
  for (let here = index + 2; here < end; here += 1) {
    if (text[here] === mark && !isSpace(text[here - 1]) && !isWord(text[here + 1]) && text[here + 1] !== mark) return here;
  }
  return -end;
}

/* Messages */

const isMine = (message) => message.by === "person";
const mediaAddress = (media) => `/simulator/api/media/${encodeURIComponent(media.id)}`;

/** A message in one line, for quotes and for screen readers. */
function gist(message) {
  const { type, content } = message;
  const say = words();
  if (type === "text") return formatted(content.body).textContent;
  if (type === "interactive") return (content.button_reply || content.list_reply)?.title || formatted(content.body?.text || "").textContent;
  if (type === "location") return `${say.placeSent}: ${content.name || `${content.latitude}, ${content.longitude}`}`;
  if (type === "contacts") return `${say.contact}: ${content.map((each) => each.name?.formatted_name).join(", ")}`;
  if (type === "image" || type === "sticker") return content.caption || say.picture;
  if (type === "video") return content.caption || say.video;
  if (type === "audio") return say.voice;
  if (type === "document") return content.caption || content.filename || say.document;
  if (type === "template") return `${say.template}: ${content.name}`;
  return say.unsupported;
}

function body(message) {
  const { type, content } = message;
  const say = words();
  if (type === "text") return [formatted(content.body)];
  if (type === "interactive") return interactive(content);
  if (type === "location") return [place(content)];
  if (type === "contacts") {
    return content.map((each) => card("person", each.name?.formatted_name, (each.phones || []).map((phone) => phone.phone).join(", ")));
  }
  if (["image", "sticker", "video", "audio", "document"].includes(type)) return [media(type, content), content.caption ? formatted(content.caption) : null];
  if (type === "template") return [make("p", { class: "heading" }, say.template), formatted(content.name)];
  return [make("em", {}, say.unsupported)];
}

function interactive(content) {
  const reply = content.button_reply || content.list_reply;
  if (reply) return [make("div", { class: "text" }, reply.description ? make("div", {}, reply.title) : "", make("div", { class: reply.description ? "plain footing" : "plain" }, reply.description || reply.title))];
  return [
    content.header?.text ? make("p", { class: "heading" }, content.header.text) : null,
    formatted(content.body?.text || ""),
    content.footer?.text ? make("p", { class: "footing" }, content.footer.text) : null,
  ];
}

function place(content) {
  const address = `https://www.openstreetmap.org/?mlat=${Number(content.latitude)}&mlon=${Number(content.longitude)}&zoom=16`;
  const shown = card("place", content.name || words().placeSent, content.address || `${content.latitude}, ${content.longitude}`, "a");
  Object.assign(shown, { href: address, target: "_blank", rel: "noopener noreferrer" });
  return shown;
}

function card(symbol, title, detail, tag = "div") {
  return make(tag, { class: "card" }, icon(symbol), make("span", {}, title || "", detail ? make("small", {}, detail) : ""));
}

function media(type, content) {
  if (!content.id && !content.link) return make("em", {}, content.filename || gist({ type, content: {} }));
  if (!content.id) return make("a", { href: /^https?:/.test(content.link) ? content.link : "#", target: "_blank", rel: "noopener noreferrer" }, content.link || "");
  const lost = (event) => event.target.replaceWith(make("em", { class: "footing" }, `${gist({ type, content: {} })} – ${words().gone}`));
  const source = { src: mediaAddress(content), onerror: lost };
  if (type === "image" || type === "sticker") return make("img", { class: "picture", alt: content.caption || words().picture, onload: keepBottom, ...source });
  if (type === "audio") return make("audio", { controls: true, preload: "metadata", "aria-label": words().voice, ...source });
  if (type === "video") return make("video", { class: "picture", controls: true, preload: "metadata", ...source });
  const shown = card("file", content.filename || words().document, content.mime_type, "a");
  Object.assign(shown, { href: mediaAddress(content), download: content.filename || "file" });
  return shown;
}

function quote(id, press) {
  const quoted = state.messages.get(id);
  if (!quoted) return null;
  const name = make("b", {}, isMine(quoted) ? words().you : "Recado");
  return make("button", { class: "quote", type: "button", onclick: press }, name, gist(quoted).slice(0, 160));
}

function ticks(message) {
  if (message.draft) return make("span", { class: "unsent" }, words().unsent);
  const status = words()[message.status] ? message.status : "sent";
  const shown = make("span", { class: status, role: "img", "aria-label": words()[status] });
  shown.append(icon(status === "sent" ? "tick" : "ticks"));
  return shown;
}

function row(message, startsTurn) {
  const mine = isMine(message);
  const time = new Date(message.at * 1000);
  const meta = make(
    "span", { class: "meta" },
    make("time", { dateTime: time.toISOString() }, time.toLocaleTimeString(locale(), { hour: "numeric", minute: "2-digit" })),
    mine ? ticks(message) : null,
  );
  const bubble = make("div", { class: "bubble" }, quote(message.quoted, () => jump(message.quoted)), ...body(message));
  (bubble.querySelector(":scope > .text:last-child > .plain:last-child") || bubble).append(meta);
  const more = message.draft ? null : make("button", { class: "more", type: "button", "aria-haspopup": "dialog", "aria-label": `${words().actions}: ${gist(message).slice(0, 60)}`, onclick: () => openActions(message.id) }, icon("more"));
  const shown = make(
    "div", { class: `row${mine ? " mine" : ""}${startsTurn ? " turn" : ""}`, role: "group", tabIndex: -1, "aria-label": mine ? words().you : "Recado" },
    make("div", { class: "holder" }, bubble, more),
    reactions(message), choices(message), message.draft ? retry(message) : null,
  );
  shown.dataset.id = message.id;
  return shown;
}

function retry(message) {
  return make("button", { class: "retry", type: "button", onclick: () => sendAgain(message) }, words().again);
}

function reactions(message) {
  const given = new Map();
  for (const each of state.messages.values()) {
    if (each.type === "reaction" && each.content.message_id === message.id) given.set(each.by, each.content.emoji);
  }
  const shown = [...given].filter(([, emoji]) => emoji);
  if (!shown.length) return null;
  return make("div", { class: "reactions" }, ...shown.map(([by, emoji]) => {
    const who = by === "person" ? words().you : "Recado";
    return make("span", { class: "reaction", role: "img", "aria-label": `${who}: ${words().reacted} ${emoji}` }, emoji);
  }));
}

function choices(message) {
  const action = message.type === "interactive" && !isMine(message) && message.content.action;
  if (!action) return null;
  const answer = answerTo(message.id);
  if (action.sections) {
    return make("div", { class: "choices" }, make("button", { class: "choice", type: "button", disabled: Boolean(answer), "aria-haspopup": "dialog", onclick: () => openList(message) }, icon("list"), action.button));
  }
  return make("div", { class: "choices" }, ...action.buttons.map(({ reply }) => make("button", {
    class: "choice", type: "button", disabled: Boolean(answer), "aria-pressed": String(answer?.id === reply.id),
    onclick: () => send({ type: "button", reply: { id: reply.id, title: reply.title }, quoted: message.id }),
  }, reply.title)));
}

function answerTo(id) {
  for (const each of state.messages.values()) {
    if (each.quoted === id && isMine(each) && each.type === "interactive") return each.content.button_reply || each.content.list_reply;
  }
  return null;
}

/* The conversation */

const shownMessages = () => [...state.messages.values(), ...state.unsent.values()].filter((message) => message.person === state.current && message.type !== "reaction");
const rowOf = (id) => at("log").querySelector(`[data-id="${CSS.escape(id)}"]`);
const isAtBottom = () => at("log").scrollHeight - at("log").scrollTop - at("log").clientHeight < 90;
let follows = true;

function toBottom() {
  at("log").scrollTop = at("log").scrollHeight;
  at("latest").hidden = true;
  follows = true;
}

function keepBottom() {
  if (follows) toBottom();
}

function renderLog() {
  const log = at("log");
  const messages = shownMessages();
  log.setAttribute("aria-live", "off");
  log.replaceChildren();
  if (!messages.length) log.append(welcome());
  let last = null;
  for (const message of messages) {
    append(message, last);
    last = message;
  }
  renderTyping();
  toBottom();
  requestAnimationFrame(() => log.setAttribute("aria-live", "polite"));
}

function append(message, last) {
  const day = new Date(message.at * 1000).toDateString();
  const isNewDay = !last || new Date(last.at * 1000).toDateString() !== day;
  if (isNewDay) at("log").append(make("div", { class: "day" }, dayName(message.at)));
  at("log").append(row(message, isNewDay || last.by !== message.by));
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
  const ideas = say.ideas.map((idea) => make("button", { class: "chip", type: "button", onclick: () => send({ type: "text", text: idea }) }, idea));
  return make("div", { class: "welcome" }, make("p", {}, say.welcome), ...ideas);
}

function renderTyping() {
  const until = state.typing.get(state.current) || 0;
  const isTyping = state.connected && until > Date.now();
  at("log").querySelector(".typing")?.remove();
  at("presence").textContent = !state.connected ? words().offline : isTyping ? words().writing : words().online;
  if (isTyping) {
    at("log").append(make("div", { class: "row turn typing", "aria-hidden": "true" }, make("div", { class: "holder" }, make("div", { class: "bubble" }, make("i"), make("i"), make("i")))));
    setTimeout(renderTyping, until - Date.now() + 50);
  }
  keepBottom();
}

function refresh(id) {
  const message = state.messages.get(id);
  const shown = message && rowOf(id);
  if (!shown) return;
  const focused = shown.contains(document.activeElement);
  const fresh = row(message, shown.classList.contains("turn"));
  shown.replaceWith(fresh);
  if (focused) fresh.focus();
  keepBottom();
}

function renderTicks(id) {
  const message = state.messages.get(id);
  const old = isMine(message) && rowOf(id)?.querySelector(".meta [role=img]");
  if (old) old.replaceWith(ticks(message));
}

function jump(id) {
  const target = rowOf(id);
  if (!target) return;
  target.scrollIntoView({ block: "center" });
  target.focus();
  target.classList.add("flash");
  setTimeout(() => target.classList.remove("flash"), 1300);
}

/* People */

const GROUPS = [
  [/^52(1?)(\d{2})(\d{4})(\d{4})$/, "+52 $1 $2 $3 $4"],
  [/^55(\d{2})(\d{4,5})(\d{4})$/, "+55 $1 $2 $3"],
  [/^1(\d{3})(\d{3})(\d{4})$/, "+1 $1 $2 $3"],
];

function address(each) {
  if (!each.phone) return `@${each.username}`;
  const [form, shape] = GROUPS.find(([known]) => known.test(each.phone)) || [/^/, "+"];
  return each.phone.replace(form, shape).replace("  ", " ");
}

function renderPeople() {
  for (const id of ["people", "people-strip"]) {
    at(id).replaceChildren(...state.people.map((each, index) => {
      const unread = state.unread.get(each.id) || 0;
      const detail = index === 0 ? `${address(each)} · ${words().owner}` : address(each);
      return make(
        "button", { class: "person", type: "button", "aria-current": String(each.id === state.current), onclick: () => choosePerson(each.id) },
        make("span", { class: `avatar tone${index % 4}`, "aria-hidden": "true" }, each.name.slice(0, 1).toUpperCase()),
        make("span", { class: "words" }, make("span", { class: "name" }, each.name), make("span", { class: "address" }, detail)),
        unread ? make("span", { class: "count", "aria-label": `${unread} ${words().unread}` }, String(unread)) : null,
      );
    }));
  }
}

function choosePerson(id) {
  state.drafts.set(state.current, at("text").value);
  state.current = id;
  state.quoting = "";
  state.unread.delete(id);
  history.replaceState(null, "", `#${id}`);
  const focusedIn = document.activeElement?.closest("nav")?.id;
  at("text").value = state.drafts.get(id) || "";
  render();
  if (focusedIn) at(focusedIn).querySelector('[aria-current="true"]').focus();
}

function render() {
  const say = words();
  document.documentElement.lang = locale();
  document.title = `${person().name} – Recado`;
  for (const [id, text] of [["title", say.title], ["lead", say.lead], ["people-title", say.people], ["note", say.note], ["text-label", say.message]]) at(id).textContent = text;
  for (const [id, text] of [["send", say.send], ["attach", say.attach], ["sheet-close", say.close], ["latest", say.latest], ["log", say.log], ["quoting-end", say.cancelQuote]]) at(id).setAttribute("aria-label", text);
  at("text").placeholder = say.message;
  at("writer").textContent = `${say.as} ${person().name}`;
  renderPeople();
  renderQuoting();
  renderLog();
  fitText();
}

/* Sheets: attaching, a list's rows, what can be done with a message */

function openSheet(title, ...content) {
  at("sheet-title").textContent = title;
  at("sheet-body").replaceChildren(...content.filter(Boolean));
  placeSheet();
  at("sheet").showModal();
  at("sheet-body").querySelector("button")?.focus();
}

/** A dialog stands on top of the page; this puts it into the phone. */
function placeSheet() {
  const { left, right, bottom, height } = at("phone").getBoundingClientRect();
  const edge = at("phone").clientLeft;
  const place = { left: left + edge, right: innerWidth - right + edge, bottom: innerHeight - bottom + edge, height: height - 2 * edge };
  for (const [name, pixels] of Object.entries(place)) at("sheet").style.setProperty(`--phone-${name}`, `${pixels}px`);
}

function option(symbol, title, detail, press) {
  const words_ = make("span", {}, title, detail ? make("small", {}, detail) : "");
  return make("button", { class: "option", type: "button", onclick: () => { at("sheet").close(); press(); } }, symbol ? icon(symbol) : "", words_);
}

function openAttach() {
  const say = words();
  openSheet(
    say.attach,
    option("file", say.file, "", () => at("file").click()),
    option("place", say.place, PLACES[person().language]?.name, () => send({ type: "location", location: PLACES[person().language] || PLACES.en })),
    option("person", say.contact, CONTACT.name.formatted_name, () => send({ type: "contacts", contacts: [CONTACT] })),
    option("voice", say.voice, "0:03", () => send({ type: "voice" })),
  );
}

function openList(message) {
  const parts = message.content.action.sections.flatMap((section) => [
    section.title ? make("h3", {}, section.title) : null,
    ...section.rows.map((each) => option("", each.title, each.description, () => send({
      type: "list", reply: { id: each.id, title: each.title, ...(each.description ? { description: each.description } : {}) }, quoted: message.id,
    }))),
  ]);
  openSheet(message.content.action.button || words().choose, ...parts);
}

function openActions(id) {
  const given = [...state.messages.values()].filter((each) => each.type === "reaction" && isMine(each) && each.content.message_id === id).at(-1)?.content.emoji;
  const emojis = EMOJIS.map((emoji) => make("button", {
    class: "emoji", type: "button", "aria-pressed": String(emoji === given), "aria-label": emoji,
    onclick: () => { at("sheet").close(); send({ type: "reaction", reaction: { message_id: id, emoji: emoji === given ? "" : emoji } }); },
  }, emoji));
  openSheet(words().actions, make("div", { class: "emojis" }, ...emojis), option("reply", words().reply, "", () => startQuoting(id)));
}

function startQuoting(id) {
  state.quoting = id;
  renderQuoting();
  at("text").focus();
}

function renderQuoting() {
  at("quoting").hidden = !state.quoting;
  at("quoting-text").replaceChildren(...[state.quoting && quote(state.quoting, () => jump(state.quoting))].filter(Boolean));
}

/* Sending */

/** Sends as the current person, or as the one it was written by. True unless the server refuses it as it is. */
async function send(message, person_ = state.current) {
  follows = true;
  let answer;
  try {
    answer = await fetch("/simulator/api/send", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ person: person_, ...message }),
    });
  } catch {
    keepUnsent(message, person_);
    return true;
  }
  complain(answer.ok ? "" : `${words().notSent} (${answer.status})`);
  return answer.ok;
}

/** What did not reach the server stays in the conversation, marked; it is sent again by hand. */
function keepUnsent(message, person_) {
  if (message.type === "reaction") { complain(words().notSent); return; }
  const id = `unsent-${Date.now()}-${Math.random()}`;
  state.unsent.set(id, { id, person: person_, by: "person", at: Date.now() / 1000, quoted: message.quoted || "", draft: message, ...contentOf(message) });
  if (person_ === state.current) renderLog();
}

async function sendAgain({ id, person, draft }) {
  state.unsent.delete(id);
  renderLog();
  await send(draft, person);
}

/** A message to be sent as the history would keep it, as far as showing it goes. */
function contentOf({ type, text, reply, location, contacts, caption, filename }) {
  if (type === "text") return { type, content: { body: text } };
  if (type === "button" || type === "list") return { type: "interactive", content: { [`${type}_reply`]: reply } };
  if (type === "location") return { type, content: location };
  if (type === "contacts") return { type, content: contacts };
  return { type: type === "voice" ? "audio" : type, content: { caption, filename } };
}

async function submit(event) {
  event?.preventDefault();
  const text = at("text").value.trim();
  if (!text) return;
  const message = { type: "text", text, ...(state.quoting ? { quoted: state.quoting } : {}) };
  const kept = [at("text").value, state.quoting];
  at("text").value = "";
  state.quoting = "";
  renderQuoting();
  fitText();
  if (!(await send(message))) {
    [at("text").value, state.quoting] = kept;
    renderQuoting();
  }
  fitText();
}

async function sendFile(file) {
  if (!file) return;
  const fault = !file.size ? "empty" : file.size > LARGEST_FILE ? "tooLarge" : FILE_TYPES.test(file.type) ? "" : "wrongType";
  if (fault) { complain(words()[fault]); return; }
  const data = await new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.readAsDataURL(file);
  });
  const isPicture = ["image/jpeg", "image/png"].includes(file.type);
  const caption = at("text").value.trim().slice(0, 1024);
  const mime_type = file.type.startsWith("text/") ? "text/plain" : file.type || "application/octet-stream";
  const sent = await send({ type: isPicture ? "image" : "document", data, mime_type, caption, ...(isPicture ? {} : { filename: file.name }) });
  if (sent) { at("text").value = ""; fitText(); }
}

function complain(text) {
  at("alert").textContent = text;
  at("alert").hidden = !text;
}

function fitText() {
  const text = at("text");
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight + 2}px`;
}

/* What the server tells */

const HANDLERS = {
  state(event) {
    const wanted = state.current || location.hash.slice(1);
    state.people = event.people;
    state.messages = new Map(event.messages.map((message) => [message.id, message]));
    state.typing = new Map(Object.entries(event.typing).map(([id, seconds]) => [id, Date.now() + seconds * 1000]));
    state.current = event.people.some((each) => each.id === wanted) ? wanted : event.people[0].id;
    state.connected = true;
    complain("");
    render();
  },
  message({ message }) {
    if (!isMine(message)) state.typing.delete(message.person);
    const last = shownMessages().at(-1);
    const isNew = !state.messages.has(message.id);
    state.messages.set(message.id, message);
    if (message.person !== state.current) {
      if (isNew && !isMine(message)) state.unread.set(message.person, (state.unread.get(message.person) || 0) + 1);
      renderPeople();
      return;
    }
    if (message.type === "reaction") { refresh(message.content.message_id); return; }
    if (!isNew) { refresh(message.id); return; }
    follows = follows || isMine(message);
    at("log").querySelector(".welcome")?.remove();
    at("log").querySelector(".typing")?.remove();
    append(message, last);
    if (message.quoted) refresh(message.quoted);
    renderTyping();
    if (!follows) at("latest").hidden = false;
  },
  status({ id, status }) {
    const message = state.messages.get(id);
    if (!message) return;
    message.status = status;
    renderTicks(id);
  },
  typing(event) {
    state.typing.set(event.person, Date.now() + event.seconds * 1000);
    if (event.person === state.current) renderTyping();
  },
  told() {},
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
    complain(words().away);
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  };
}

at("composer").addEventListener("submit", submit);
at("text").addEventListener("input", fitText);
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
});
at("attach").addEventListener("click", openAttach);
at("file").addEventListener("change", () => { sendFile(at("file").files[0]); at("file").value = ""; });
at("sheet-close").addEventListener("click", () => at("sheet").close());
at("sheet").addEventListener("click", (event) => { if (event.target === at("sheet")) at("sheet").close(); });
at("quoting-end").addEventListener("click", () => { state.quoting = ""; renderQuoting(); at("text").focus(); });
at("latest").addEventListener("click", toBottom);
at("log").addEventListener("scroll", () => { follows = isAtBottom(); if (follows) at("latest").hidden = true; });
new ResizeObserver(keepBottom).observe(at("log"));
new ResizeObserver(placeSheet).observe(at("phone"));
addEventListener("resize", placeSheet);
addEventListener("hashchange", () => {
  const wanted = location.hash.slice(1);
  if (wanted !== state.current && state.people.some((each) => each.id === wanted)) choosePerson(wanted);
});
listen();
