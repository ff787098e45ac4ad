
import { h } from './dom.js';
const telling = new Set(['RUN_STARTED', 'STEP_FINISHED', 'TOOL_CALL_RESULT', 'RUN_FINISHED', 'RUN_ERROR']);
export const mayChangeStates = (event) => telling.has(event.type);
const textOf = (value) => (value === '[redacted]' ? value : JSON.stringify(value, null, 2) ?? '');
export function entries(held) {
const known = typeof held?.schemaSignature === 'string' ? held.schemaSignature.split(',') : undefined;
const entry = (name, version, value, mark) => ({
key: mark + ' ' + name, name, short: name.split('.').at(-1) || name, version: version === undefined ? '' : `v${version}`, mark, text: textOf(value),
});
const sorted = (of) => Object.keys(of ?? {}).sort();
return [
...sorted(held?.states).map((n) => entry(n, held.stateVersions?.[n], held.states[n], known && !known.includes(n) ? 'not known here' : '')),
...sorted(held?.newerStates).map((n) => entry(n, held.newerStates[n]?.version, held.newerStates[n]?.data, 'set aside')),
];
}
export function sparingly(read, clock) {
const apart = 1000;
const soon = 100;
let last = -apart;
let state = 'idle'; // or planned, working, again
const plan = () => {
state = 'planned';
clock.later(work, Math.max(soon, last + apart - clock.now()));
};
async function work() {
state = 'working';
last = clock.now();
await read();
if ((state) === 'again') plan();
else state = 'idle';
}
return () => {
if (state === 'idle') plan();
else if (state === 'working') state = 'again';
};
}
function row(e) {
const version = h('span.quiet');
const mark = h('span.mark');
const pre = h('pre', { tabindex: 0 });
const el = h('details.held', {}, h('summary', {}, h('code', { title: e.name }, e.short), version, mark), pre);
return {
el,
update(now) {
for (const [at, text] of [[version, now.version], [mark, now.mark], [pre, now.text]]) if (at.textContent !== text) at.textContent = text;
pre.classList.toggle('quiet', now.text === '[redacted]');
},
};
}
export function statesView(load, box, list, problem) {
let rows = new Map();
let cleared = 0; // so that an answer about the previous thread is not shown
function show(now) {
rows = new Map(now.map((e) => [e.key, rows.get(e.key) ?? row(e)]));
for (const e of now) rows.get(e.key)?.update(e);
const els = [...rows.values()].map((r) => r.el);
if (els.some((el, i) => list.children[i] !== el) || list.children.length !== els.length) list.replaceChildren(...els);
}
function say(failed) {
problem.hidden = !failed;
box.hidden = !rows.size && !failed;
}
async function read() {
const at = cleared;
try {
const stored = await load();
if (at !== cleared) return;
show(entries(stored?.middlewareState));
say(false);
} catch {
if (at === cleared) say(true); // the last states stay visible
}
}
return {
read: sparingly(read, { now: () => performance.now(), later: setTimeout.bind(window) }),
clear() {
cleared++;
show([]);
say(false);
},
};
}
