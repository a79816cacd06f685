/** What a person sends: text, answers, corrections, files and voice. */

import { quote } from "./bubbles.js";
import { at, hear, make, post, showError, tell } from "./dom.js";
import { follow, jump, renderLog } from "./conversation.js";
import { asItReads, state } from "./state.js";
import { words } from "./words.js";

const LARGEST_FILE = 5 * 1024 * 1024;
const DOCUMENTS = "pdf|msword|vnd\\.ms-(excel|powerpoint)|vnd\\.openxmlformats-officedocument\\..+";
const FILE_TYPES = new RegExp(
  `^(image/(jpeg|png|webp)|audio/(aac|amr|mpeg|mp4|ogg)|video/(mp4|3gpp)|text/.+|application/(${DOCUMENTS}))$`,
);
const VOICE_TYPES = ["audio/ogg;codecs=opus", "audio/mp4;codecs=mp4a.40.2", "audio/mp4;codecs=opus", "audio/mp4"];

let recorder = null;

/** Sends as the current person, or as the one it was written by. True unless the server refuses it as it is. */
export async function send(message, person = state.current) {
  follow();
  try {
    await post("send", { person, ...message });
    showError("");
  } catch (error) {
    if (!error.status) { keepUnsent(message, person); return true; }
    showError(`${words().notSent} ${error.message}`);
    return false;
  }
  return true;
}

/** What did not reach the server stays in the conversation, marked; it is sent again by hand. */
function keepUnsent(message, person) {
  if (["reaction", "edit", "revoke"].includes(message.type)) { showError(words().notSent); return; }
  const id = `unsent-${Date.now()}-${Math.random()}`;
  state.unsent.set(id, {
    id, person, by: "person", at: Date.now() / 1000, quoted: message.quoted || "", draft: message,
    ...contentOf(message),
  });
  if (person === state.current) renderLog();
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
  if (recorder) { recorder.stop(); return; }
  const text = at("text").value.trim();
  if (!text) return;
  const { quoting, editing } = state;
  const plain = { type: "text", text, ...(quoting ? { quoted: quoting } : {}) };
  const message = editing ? { type: "edit", original: editing, text } : plain;
  write("");
  setContext();
  if (await send(message)) return;
  write(text);
  setContext({ quoting, editing });
}

export function write(text) {
  at("text").value = text;
  fitText();
}

/** Which message the next one quotes or corrects. */
export function setContext({ quoting = "", editing = "" } = {}) {
  Object.assign(state, { quoting, editing });
  const id = quoting || editing;
  at("quoting").hidden = !id;
  const label = editing ? make("b", { class: "editing" }, words().editing) : "";
  at("quoting-text").replaceChildren(...[label, id && quote(id, () => jump(id))].filter(Boolean));
}

function startEditing(id) {
  setContext({ editing: id });
  write(asItReads(state.messages.get(id)).content.body);
  at("text").focus();
}

function leave() {
  if (recorder) { recorder.isDropped = true; recorder.stop(); }
  if (state.editing) write("");
  setContext();
  at("text").focus();
}

async function previewFile(file) {
  if (!file) return;
  const fault = faultOf(file);
  if (fault) { showError(words()[fault]); return; }
  const bare = file.type.split(";")[0];
  const type = bare === "image/webp" ? "sticker" : /^(image|audio|video)\//.exec(bare)?.[1] || "document";
  const message = { type, data: await base64(file) };
  message.mime_type = bare.startsWith("text/") ? "text/plain" : bare;
  if (type === "document") message.filename = file.name;
  tell("preview", { message, name: file.name });
}

function faultOf({ size, type }) {
  if (!size) return "empty";
  if (size > LARGEST_FILE) return "tooLarge";
  return FILE_TYPES.test(type.split(";")[0]) ? "" : "wrongType";
}

function base64(blob) {
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.readAsDataURL(blob);
  });
}

/** Records until it is sent or cancelled, in a form that Meta takes; where there is none the sample goes instead. */
async function record() {
  const mimeType = VOICE_TYPES.find((type) => globalThis.MediaRecorder?.isTypeSupported(type));
  if (!mimeType) { await send({ type: "voice" }); return; }
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  } catch {
    showError(words().noMicrophone);
    return;
  }
  const pieces = [];
  const started = Date.now();
  recorder = new MediaRecorder(stream, { mimeType });
  const tick = () => {
    const passed = new Date(Date.now() - started).toISOString().slice(15, 19);
    at("recording").textContent = `${words().recording} ${passed}`;
  };
  const clock = setInterval(tick, 1000);
  recorder.ondataavailable = ({ data }) => pieces.push(data);
  recorder.onstop = async () => {
    const { isDropped } = recorder;
    recorder = null;
    clearInterval(clock);
    stream.getTracks().forEach((track) => track.stop());
    showRecording(false);
    if (isDropped) return;
    const data = await base64(new Blob(pieces));
    await send({ type: "voice", data, mime_type: mimeType.split(";")[0] });
  };
  tick();
  showRecording(true);
  recorder.start();
}

function showRecording(isOn) {
  at("recording").hidden = !isOn;
  at("text").hidden = isOn;
  at("quoting").hidden = !isOn && !state.quoting && !state.editing;
  (isOn ? at("send") : at("text")).focus();
}

function fitText() {
  const text = at("text");
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight + 2}px`;
}

at("composer").addEventListener("submit", submit);
at("composer").addEventListener("keydown", (event) => { if (event.key === "Escape") leave(); });
at("text").addEventListener("input", fitText);
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
});
at("file").addEventListener("change", () => { previewFile(at("file").files[0]); at("file").value = ""; });
at("quoting-end").addEventListener("click", leave);
hear("say", (message) => send(message));
hear("again", sendAgain);
hear("edit", startEditing);
hear("record", record);
hear("quote", (id) => { setContext({ quoting: id }); at("text").focus(); });
