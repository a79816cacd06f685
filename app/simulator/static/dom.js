/** Building the page: every text becomes a text node, never markup. */

export const at = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-") && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${name}`);
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

/** Parts of the page speak to each other through events, so that none needs to know another. */
export const tell = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));
export const hear = (name, listener) => document.addEventListener(name, (event) => listener(event.detail));

export function showError(text, place = "alert") {
  at(place).textContent = text;
  at(place).hidden = !text;
}

/** Posts JSON; the answer's JSON, or an Error with the server's reason. */
export async function post(path, body) {
  const answer = await fetch(`/simulator/api/${path}`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  const told = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(told.error), { status: answer.status });
  return told;
}
