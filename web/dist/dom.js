
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
export const $ = (id) => document.getElementById(id);
export function copyButton(text) {
const b = h('button.copy', { type: 'button', click: copy }, 'Copy');
async function copy() {
b.textContent = await navigator.clipboard.writeText(text).then(() => 'Copied', () => 'Not allowed');
setTimeout(() => { b.textContent = 'Copy'; }, 1500);
}
return b;
}
export function pretty(text) {
try {
const value = JSON.parse(text);
return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
} catch {
return text;
}
}
export function spaced(name) {
const text = name.replace(/[_-]+/g, ' ').replace(/([a-z\d])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`).trim();
return text.charAt(0).toUpperCase() + text.slice(1);
}
export function duration(ms) {
if (ms === undefined || !(ms >= 0)) return '';
if (ms < 1000) return `${Math.round(ms)} ms`;
return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}
export function ago(time, now) {
const s = Math.max(0, (now - Date.parse(time)) / 1000);
if (s < 45) return 'now';
if (s < 3600) return `${Math.max(1, Math.round(s / 60))} min`;
if (s < 86_400) return `${Math.round(s / 3600)} h`;
return s < 7 * 86_400 ? `${Math.round(s / 86_400)} d` : new Date(time).toLocaleDateString();
}
export function uuid() {
if (crypto.randomUUID) return crypto.randomUUID();
const b = crypto.getRandomValues(new Uint8Array(16));
return Array.from(b, (x) => x.toString(16).padStart(2, '0')).join('');
}
