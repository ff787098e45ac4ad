
export function parser() {
let rest = '';
let started = false;
let frame = { id: '', data: [] };
function take(line, out) {
if (line === '') {
if (frame.data.length || frame.retry !== undefined) {
out.push({ id: frame.id, data: frame.data.join('\n'), ...(frame.retry === undefined ? {} : { retry: frame.retry }) });
}
frame = { id: '', data: [] };
return;
}
const colon = line.indexOf(':');
if (colon === 0) return; // a comment, which keeps the connection alive
const name = colon < 0 ? line : line.slice(0, colon);
let value = colon < 0 ? '' : line.slice(colon + 1);
if (value[0] === ' ') value = value.slice(1);
if (name === 'data') frame.data.push(value);
else if (name === 'id' && !value.includes('\0')) frame.id = value;
else if (name === 'retry' && /^\d+$/.test(value)) frame.retry = Number(value);
}
return (text) => {
const out = [];
rest += text;
if (!started && rest) {
started = true;
if (rest[0] === '\uFEFF') rest = rest.slice(1);
}
for (;;) {
const end = rest.search(/[\r\n]/);
if (end < 0) return out;
if (rest[end] === '\r' && end + 1 === rest.length) return out;
const width = rest[end] === '\r' && rest[end + 1] === '\n' ? 2 : 1;
take(rest.slice(0, end), out);
rest = rest.slice(end + width);
}
};
}
export async function* frames(body, alive) {
const reader = body.getReader();
const decoder = new TextDecoder();
const parse = parser();
try {
for (;;) {
const { done, value } = await reader.read();
if (done) return;
alive();
yield* parse(decoder.decode(value, { stream: true }));
}
} finally {
reader.cancel().catch(() => {});
}
}
