
import { h, copyButton, duration, pretty } from './dom.js';
import { show } from './markdown.js';
import { made } from './reduce.js';
const words = { pending: 'preparing', running: 'running', waiting: 'waiting', done: 'done', failed: 'failed', none: 'no result' };
function textRow() {
const body = h('div.md');
const extra = h('p.quiet');
const who = h('span.sr');
const el = h('article', {}, who, body, extra);
let shown = [];
return {
el,
update(item) {
el.className = `msg ${item.role}` + (item.open ? ' open' : '');
who.textContent = item.role === 'user' ? 'You said:' : item.role === 'assistant' ? 'Assistant said:' : `${item.role}:`;
if (item.role === 'assistant') shown = show(body, item.text ?? '', shown, copyButton);
else body.textContent = item.text ?? '';
body.classList.toggle('raw', item.role !== 'assistant');
extra.textContent = (item.parts ?? []).map((p) => `[${p}]`).join(' ');
extra.hidden = !extra.textContent;
el.hidden = extra.hidden && !item.open && !item.text;
},
};
}
function reasoningRow() {
const title = h('span');
const body = h('div.thought');
const el = h('details.reasoning', {}, h('summary', {}, title), body);
return {
el,
update(item) {
const time = item.start && item.end ? duration(item.end - item.start) : '';
title.textContent = item.hidden ? 'Reasoning, hidden by the provider' : item.open ? 'Thinking…' : time ? `Thought for ${time}` : 'Thought';
body.textContent = item.text ?? '';
el.classList.toggle('open', Boolean(item.open));
},
};
}
function section(name) {
const pre = h('pre', { tabindex: 0 });
const head = h('div.part', {}, name);
const el = h('div', {}, head, pre);
let last = '';
return {
el,
set(text) {
el.hidden = !text;
if (!text || text === last) return;
last = text;
pre.textContent = pretty(text);
head.replaceChildren(name, copyButton(pre.textContent ?? ''));
},
};
}
function callRow() {
const name = h('code');
const brief = h('span.brief');
const status = h('span.state');
const input = section('Arguments');
const output = section('Result');
const el = h('details.call', {}, h('summary', {}, h('span.dot', { 'aria-hidden': 'true' }), name, brief, status), input.el, output.el);
return {
el,
update(item) {
el.dataset.state = item.status;
name.textContent = item.name ?? '';
brief.textContent = (item.status === 'pending' ? item.args : item.result ?? item.args) ?? '';
const time = item.start && item.end && item.result !== undefined ? duration(item.end - item.start) : '';
status.textContent = [words[item.status ?? 'none'], time].filter(Boolean).join(' · ');
input.set(item.args);
output.set(item.result);
},
};
}
function noteRow() {
const el = h('div');
return {
el,
update(item) {
el.className = `note ${item.tone}`;
const more = item.hint ? h('details', {}, h('summary', {}, 'For developers'), item.hint) : '';
el.replaceChildren(item.text ?? '', item.code ? h('code', {}, item.code) : '', more);
},
};
}
function madeRow() {
const img = h('img.made', { alt: 'An image that the assistant made' });
const text = h('span.quiet');
const el = h('div', {}, img, text);
return {
el,
update(item) {
const { url = '', mimeType, leftOut } = item.content ?? {};
img.hidden = !/^data:image\/[a-z0-9.+-]+;base64,/i.test(url);
if (!img.hidden && img.src !== url) img.src = url;
text.textContent = leftOut ? 'An older image, not loaded again' : `Not shown here: ${/^https:/.test(url) ? url : mimeType}`;
text.hidden = !img.hidden;
},
};
}
function plainRow() {
const title = h('span');
const pre = h('pre', { tabindex: 0 });
const el = h('div.plain', {}, title, pre);
return {
el,
update(item) {
const what = { activity: 'Activity', step: 'Step', agent: 'Subagent' }[(item.kind)];
const state = item.status ? words[item.status] : item.kind === 'step' ? (item.open ? 'running' : 'done') : '';
title.textContent = [`${what} ${item.name ?? ''}`, item.text, state].filter(Boolean).join(' · ');
pre.hidden = item.content === undefined;
pre.textContent = item.content === undefined ? '' : JSON.stringify(item.content, null, 2);
},
};
}
function spareRow() {
const el = h('pre.plain', { tabindex: 0 });
return {
el,
update(item) {
el.textContent = item.text ?? item.result ?? item.args ?? '';
},
};
}
const kinds = { text: textRow, reasoning: reasoningRow, call: callRow, note: noteRow, activity: plainRow, step: plainRow, agent: plainRow };
export function conversation(list) {
let rows = new Map();
return (items) => {
const next = new Map();
for (const item of items) {
let row = rows.get(item.key) ?? (made(item) ? madeRow() : kinds[item.kind]());
try {
if (row.item !== item) row.update(item);
} catch (err) {
console.error(err);
row = spareRow();
row.update(item);
}
row.item = item;
next.set(item.key, row);
}
for (const [key, row] of rows) if (next.get(key) !== row) row.el.remove();
let place = list.firstElementChild;
for (const row of next.values()) {
if (row.el === place) place = place.nextElementSibling;
else list.insertBefore(row.el, place);
}
rows = next;
};
}
