
import { spaced } from './dom.js';
const number = (n) => (typeof n === 'number' ? n.toLocaleString('en', { maximumFractionDigits: 6 }) : String(n ?? '?'));
const count = (n, one, many = one + 's') => `${number(n)} ${n === 1 ? one : many}`;
const list = (names) => (Array.isArray(names) ? names.join(', ') : String(names ?? ''));
const size = (bytes) => (bytes < 1024 ? count(bytes, 'byte') : bytes < 1 << 20 ? `${Math.round(bytes / 1024)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`);
const spent = (v) => `the ${v.scope} has used ${number(v.used)} of ${number(v.limit)} ${v.currency ?? v.unit}`;
const rate = (v) => `${v.name && v.name !== 'default' ? `“${v.name}”, ` : ''}${count(v.limit, v.tool ? `call of ${v.tool}` : 'model call', v.tool ? `calls of ${v.tool}` : 'model calls')} in ${String(v.window).replace(/(\D)0s$/, '$1').replace(/(\D)0m$/, '$1')}`;
function schema(v) {
const short = (names) => names.map((n) => n.split('.').at(-1)).join(', ');
const facts = [
v.removed?.length && `without ${short(v.removed)}`,
v.added?.length && `with ${short(v.added)}`,
...(v.changed ?? []).map((c) => `${short([c.name])} ${c.from} → ${c.to}`),
].filter(Boolean);
return 'This thread was written by another version of the agent’s state' + (facts.length ? `; now ${facts.join(', ')}.` : '.');
}
const texts = {
takeover: () => 'The server took over this run and continued it.',
retry: () => 'The model broke off. Its unfinished answer was discarded, and it was asked again.',
output_retry: () => 'The answer did not fit its form. The model was asked once more.',
content_left_out: (v) => `The model cannot take this: ${list(v.content)}.`,
output_left_out: (v) => `Left out of the answer: ${list(v.content)}.`,
schema_changed: schema,
store_recovered: () => 'The store was unavailable for a while. Nothing was lost.',
thread_large: (v) => `This thread is large: ${size(v.bytes)}.`,
circuit_open: (v) => `${v.tool} was called ${count(v.count, 'time')} in a row with the same arguments. The last call was not run.`,
too_many_errors: (v) => `Tools failed in ${count(v.failures, 'iteration')} in a row.`,
budget_warning: (v) => `Budget nearly used: ${spent(v)}.`,
budget_exceeded: (v) => `Budget used: ${spent(v)}, and the next call needs ${number(v.needed)}.`,
budget_unreported: (v) => `The model did not report its usage; ${count(v.tokens, 'token')} are counted.`,
rate_limited: (v) => `Rate limit reached: ${rate(v)}${v.retryAt ? `, again at ${new Date(v.retryAt).toLocaleTimeString()}` : ''}.`,
rate_limit_unchecked: (v) => `A rate limit could not be checked: ${rate(v)}.`,
continuation_granted: (v) => `The run may continue for ${count(v.iterations, 'iteration')}${v.remembered ? ', as answered before' : ''}.`,
continuation_refused: (v) => `The run may not continue after ${count(v.used, 'iteration')}: ${v.why}.`,
permission_denied: (v) => `${v.tool} was not allowed, by ${v.by === 'person' ? 'a person' : v.by === 'remembered' ? 'an earlier answer' : 'a rule'}.`,
permission_remembered: (v) => `Remembered for this ${v.scope}: ${v.tool} ${v.allow ? 'is allowed' : 'is not allowed'}.`,
permission_not_remembered: (v) => `The answer about ${v.tool} could not be kept; it counts for this call only.`,
retried: (v) => `${v.tool} was tried ${count(v.attempts, 'time')}; ${v.helped ? 'the last attempt succeeded' : 'no attempt succeeded'}.`,
history_summarised: (v) => `For the model, ${count(v.messages, 'older message')} became a summary.`,
summary_failed: (v) => `${count(v.messages, 'older message')} could not be summarized for the model: ${v.reason}.`,
redacted: (v) => `${count(v.count, 'text')} hidden (${list(v.names)}) from ${list(v.where)}.`,
};
function plainly(name, value) {
const facts = value && typeof value === 'object' ? Object.entries(value) : value === undefined || value === null ? [] : [['', value]];
const said = facts.filter(([, v]) => v !== null && (typeof v !== 'object' || (Array.isArray(v) && v.length && v.every((x) => typeof x !== 'object'))));
const text = said.slice(0, 5).map(([k, v]) => [k && spaced(k).toLowerCase(), clip(list(v))].filter(Boolean).join(' ')).join(', ');
return spaced(name) + (text ? `: ${text}` : '') + '.';
}
const clip = (text) => (text.length > 80 ? text.slice(0, 80) + '…' : text);
export function notice(name, value) {
const [, own] = /^holdfast\.(\w+)$/.exec(name ?? '') ?? [];
if (!own) return '';
return Object.prototype.hasOwnProperty.call(texts, own) ? texts[own](value ?? {}) : plainly(own, value);
}
