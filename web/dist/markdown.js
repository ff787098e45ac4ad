
const maxDepth = 32;
const maxInline = 32 * 1024;
const plain = (text) => ({ tag: '#text', text });
const inlineRules = /(`+)([^`]|[^`][\s\S]{0,2000}?[^`])\1(?!`)|\[([^\][]+)\]\((https?:\/\/[^\s()]+(?:\([^\s()]*\)[^\s()]*)*)\)|(https?:\/\/[^\s<>"'`]*[^\s<>"'`.,:;!?)\]}*_])|(\*\*|__)(?=\S)([\s\S]{0,1000}?\S)\6|(?<![\w*])(\*|_)(?=[^\s*_])([\s\S]{0,1000}?[^\s*_])\8(?![\w*])|~~(?=\S)([\s\S]{0,1000}?\S)~~|\\([\\`*_{}[\]()#+\-.!~>|])/g;
export function inline(text, depth = 0) {
if (depth >= maxDepth || text.length > maxInline) return [plain(text)];
const out = [];
let last = 0;
for (const m of text.matchAll(inlineRules)) {
if (m.index > last) out.push(plain(text.slice(last, m.index)));
last = m.index + m[0].length;
if (m[2] !== undefined) out.push({ tag: 'code', kids: [plain(m[2].replace(/^ (.*) $/s, '$1'))] });
else if (m[4]) out.push({ tag: 'a', href: m[4], kids: inline(m[3], depth + 1) });
else if (m[5]) out.push({ tag: 'a', href: m[5], kids: [plain(m[5])] });
else if (m[7]) out.push({ tag: 'strong', kids: inline(m[7], depth + 1) });
else if (m[9]) out.push({ tag: 'em', kids: inline(m[9], depth + 1) });
else if (m[10]) out.push({ tag: 'del', kids: inline(m[10], depth + 1) });
else out.push(plain(m[11]));
}
if (last < text.length) out.push(plain(text.slice(last)));
return out;
}
function withBreaks(nodes) {
return nodes.flatMap(function split(n) {
if (n.tag === '#text') return n.text?.split('\n').flatMap((t, i) => (i ? [{ tag: 'br' }, plain(t)] : [plain(t)])).filter((k) => k.tag === 'br' || k.text) ?? [];
return [n];
});
}
const item = /^( *)([-*+]|\d{1,9}[.)])( +(.*)|$)/;
const fence = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)/;
const starts = /^ {0,3}(#{1,6} |>|(`{3,}|~{3,})|([-*_] *){3,}$)|^ *([-*+]|\d{1,9}[.)]) /;
function block(lines, at, depth) {
const line = lines[at];
const f = fence.exec(line);
if (f) {
let end = at + 1;
while (end < lines.length && !(lines[end].trim().startsWith(f[1]) && /^[`~]+$/.test(lines[end].trim()))) end++;
return [{ tag: 'pre', lang: f[2], text: lines.slice(at + 1, end).join('\n') }, end + 1];
}
const heading = /^ {0,3}(#{1,6}) +(.*?)( +#+)? *$/.exec(line);
if (heading) return [{ tag: 'h' + Math.min(6, heading[1].length + 2), kids: inline(heading[2]) }, at + 1];
if (/^ {0,3}([-*_] *){3,}$/.test(line)) return [{ tag: 'hr' }, at + 1];
if (/^ {0,3}>/.test(line)) {
let end = at;
while (end < lines.length && /^ {0,3}>/.test(lines[end])) end++;
return [{ tag: 'blockquote', kids: blocks(lines.slice(at, end).map((l) => l.replace(/^ {0,3}> ?/, '')), depth + 1) }, end];
}
if (item.test(line)) return list(lines, at, depth);
let end = at + 1;
while (end < lines.length && lines[end].trim() && !starts.test(lines[end])) end++;
return [{ tag: 'p', kids: withBreaks(inline(lines.slice(at, end).join('\n'))) }, end];
}
function list(lines, at, depth) {
const first = (item.exec(lines[at]));
const indent = first[1].length;
const ordered = /\d/.test(first[2]);
const kids = [];
while (at < lines.length) {
const m = item.exec(lines[at]);
if (!m || m[1].length > indent + 1 || m[1].length < indent || /\d/.test(m[2]) !== ordered) break;
const body = [m[4] ?? ''];
for (at++; at < lines.length; at++) {
const l = lines[at];
const deep = /^ */.exec(l)?.[0].length ?? 0;
if (l.trim() === '') {
const next = /^ */.exec(lines[at + 1] ?? '')?.[0].length ?? 0;
if (!lines[at + 1]?.trim() || next <= indent) break;
} else if (deep <= indent && (starts.test(l) || lines[at - 1].trim() === '')) break;
body.push(l.slice(Math.min(deep, indent + 2)));
}
const inner = blocks(body, depth + 1);
kids.push({ tag: 'li', kids: inner[0]?.tag === 'p' ? [...(inner[0].kids ?? []), ...inner.slice(1)] : inner });
if (lines[at]?.trim() === '' && item.test(lines[at + 1] ?? '')) at++;
}
return [{ tag: ordered ? 'ol' : 'ul', ...(ordered ? { start: parseInt(first[2], 10) } : {}), kids }, at];
}
function blocks(lines, depth = 0) {
if (depth >= maxDepth) return [{ tag: 'p', kids: withBreaks([plain(lines.join('\n'))]) }];
const out = [];
let at = 0;
while (at < lines.length) {
if (!lines[at].trim()) {
at++;
continue;
}
const [node, end] = block(lines, at, depth);
out.push({ ...node, src: lines.slice(at, end).join('\n') });
at = end;
}
return out;
}
export const parse = (text) => blocks(text.replace(/\r\n?/g, '\n').replace(/\t/g, '    ').split('\n'));
function toDOM(n, copyButton) {
if (n.tag === '#text') return document.createTextNode(n.text ?? '');
const el = document.createElement(n.tag);
if (n.tag === 'pre') {
el.tabIndex = 0; // long lines can be scrolled with the keyboard too
const code = document.createElement('code');
code.textContent = n.text ?? '';
el.append(code);
const box = document.createElement('div');
box.className = 'code';
const bar = document.createElement('div');
bar.className = 'code-bar';
bar.append(n.lang || 'text', copyButton(n.text ?? ''));
box.append(bar, el);
return box;
}
if (n.tag === 'a') {
el.setAttribute('href', n.href ?? '');
el.setAttribute('target', '_blank');
el.setAttribute('rel', 'noopener noreferrer');
}
if (n.start !== undefined && n.start !== 1) el.setAttribute('start', String(n.start));
for (const k of n.kids ?? []) el.append(toDOM(k, copyButton));
return el;
}
export function show(box, text, shown, copyButton) {
const tree = parse(text);
let same = 0;
while (same < tree.length && same < shown.length && tree[same].src === shown[same]) same++;
while (box.childNodes.length > same) box.lastChild?.remove();
for (const n of tree.slice(same)) box.append(toDOM(n, copyButton));
return tree.map((n) => n.src ?? '');
}
