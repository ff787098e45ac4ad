// @ts-check
// Making elements, and a few ways of writing values that several parts share.

/**
 * @param {string} tag with classes: "div.card.wide"
 * @param {Record<string, any>} [attrs] functions listen, true is an empty attribute, false and null are none
 * @param {...(Node | string | null | undefined | false)} kids
 * @returns {any}
 */
export function h(tag, attrs = {}, ...kids) {
  const [name, ...classes] = tag.split('.');
  const el = document.createElement(name);
  if (classes.length) el.className = classes.join(' ');
  for (const [k, v] of Object.entries(attrs)) {
    if (typeof v === 'function') el.addEventListener(k, v);
    else if (v !== false && v != null) el.setAttribute(k, v === true ? '' : String(v));
  }
  for (const k of kids) if (k || k === '') el.append(k);
  return el;
}

/** @param {string} id @returns {any} */
export const $ = (id) => document.getElementById(id);

/** @param {string} text @returns {HTMLButtonElement} */
export function copyButton(text) {
  const b = h('button.copy', { type: 'button', click: copy }, 'Copy');
  async function copy() {
    b.textContent = await navigator.clipboard.writeText(text).then(() => 'Copied', () => 'Not allowed');
    setTimeout(() => { b.textContent = 'Copy'; }, 1500);
  }
  return b;
}

/** Indents JSON; returns anything else unchanged. @param {string} text */
export function pretty(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  } catch {
    return text;
  }
}

/** A program's name as people write it: "editedArgs", "edited_args" and "edited-args" become "Edited args". @param {string} name */
export function spaced(name) {
  const text = name.replace(/[_-]+/g, ' ').replace(/([a-z\d])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`).trim();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** @param {number | undefined} ms */
export function duration(ms) {
  if (ms === undefined || !(ms >= 0)) return '';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** @param {string} time @param {number} now */
export function ago(time, now) {
  const s = Math.max(0, (now - Date.parse(time)) / 1000);
  if (s < 45) return 'now';
  if (s < 3600) return `${Math.max(1, Math.round(s / 60))} min`;
  if (s < 86_400) return `${Math.round(s / 3600)} h`;
  return s < 7 * 86_400 ? `${Math.round(s / 86_400)} d` : new Date(time).toLocaleDateString();
}

/** randomUUID is missing on plain http outside localhost. */
export function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const b = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(b, (x) => x.toString(16).padStart(2, '0')).join('');
}
