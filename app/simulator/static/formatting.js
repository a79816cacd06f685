/** WhatsApp's formatting: bold, italic, struck, code, quotes, lists, addresses. */

import { make } from "./dom.js";

const MARKS = { "*": "strong", "_": "em", "~": "s" };
const DEEPEST = 6;

export function formatted(text) {
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
  if (kind === "quote") {
    return make("blockquote", {}, ...inline(lines.map((line) => line.replace(/^> ?/, "")).join("\n")));
  }
  if (kind === "bullets") return make("ul", {}, ...lines.map((line) => make("li", {}, ...inline(line.slice(2)))));
  if (kind === "numbers") {
    const items = lines.map((line) => {
      return make("li", { value: parseInt(line, 10) }, ...inline(line.replace(/^\d+\. /, "")));
    });
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
      if (end > 0) {
        put(make(MARKS[character], {}, ...inline(text.slice(index + 1, end), depth + 1)), end + 1);
        continue;
      }
      hopeless[character] = -end;
    } else if (character === "h" && !isWord(text[index - 1])) {
      const found = /^https?:\/\/[^\s<>"]+/.exec(text.slice(index, index + 2048))?.[0];
      const href = found?.replace(/[.,;:!?)*_~]+$/, "");
      if (href) {
        put(make("a", { href, target: "_blank", rel: "noopener noreferrer" }, href), index + href.length);
        continue;
      }
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
    const next = text[here + 1];
    if (text[here] === mark && !isSpace(text[here - 1]) && !isWord(next) && next !== mark) return here;
  }
  return -end;
}
