import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inline, parse } from '../src/markdown.js';

/** Writes a tree short: p(text) strong(text). */
const flat = (nodes) => nodes.map((n) => n.tag === '#text' ? n.text : `${n.tag}${n.href ? '=' + n.href : ''}(${n.text ?? flat(n.kids ?? [])})`).join('');

const table = [
  ['two paragraphs', 'a\n\nb', 'p(a)p(b)'],
  ['a line end is kept', 'a\nb', 'p(abr()b)'],
  ['headings are below the page’s own', '# A\n### B ##', 'h3(A)h5(B)'],
  ['not a heading', '#tag', 'p(#tag)'],
  ['bold, italic, code, struck out', '**b** *i* _j_ `c` ~~d~~', 'p(strong(b) em(i) em(j) code(c) del(d))'],
  ['nested', '**a *b* `c`**', 'p(strong(a em(b) code(c)))'],
  ['names with underscores stay', 'snake_case_name and 2*3*4', 'p(snake_case_name and 2*3*4)'],
  ['code contains no markup', '`**a** [x](http://y)`', 'p(code(**a** [x](http://y)))'],
  ['a link', '[a **b**](https://x.org/p?q=1#f)', 'p(a=https://x.org/p?q=1#f(a strong(b)))'],
  ['a bare link without its full stop', 'see https://x.org/a_b_c.', 'p(see a=https://x.org/a_b_c(https://x.org/a_b_c).)'],
  ['a fence with a language', '```go\nx := 1\n\ny\n```\nafter', 'pre(x := 1\n\ny)p(after)'],
  ['a fence that is still open', '```\nhalf', 'pre(half)'],
  ['a fence interrupts a paragraph', 'a\n```\nb\n```', 'p(a)pre(b)'],
  ['a list', '- a\n- b', 'ul(li(a)li(b))'],
  ['a list right after a paragraph', 'What:\n- a\n- b', 'p(What:)ul(li(a)li(b))'],
  ['a numbered list with gaps', '1. a\n\n2. b', 'ol(li(a)li(b))'],
  ['a nested list', '- a\n  - b\n- c', 'ul(li(aul(li(b)))li(c))'],
  ['code in an item', '- a\n\n  ```\n  x\n  ```', 'ul(li(apre(x)))'],
  ['a paragraph after a list', '- a\n\nb', 'ul(li(a))p(b)'],
  ['a quote', '> a\n> b\n\nc', 'blockquote(p(abr()b))p(c)'],
  ['a rule', 'a\n\n---\n\nb', 'p(a)hr()p(b)'],
  ['escapes', '\\*a\\* 1\\. b', 'p(*a* 1. b)'],
  ['markup of HTML is text', '<img src=x onerror=alert(1)>', 'p(<img src=x onerror=alert(1)>)'],
  ['half a bold', 'a **b', 'p(a **b)'],
  ['nothing', '', ''],
];

for (const [name, text, want] of table) test(name, () => assert.equal(flat(parse(text)), want));

test('only http and https become links', () => {
  for (const url of ['javascript:alert(1)', 'data:text/html,x', 'JaVaScRiPt:alert(1)', '//x.org', 'file:///etc/passwd', 'vbscript:x']) {
    assert.equal(inline(`[a](${url})`).find((n) => n.tag === 'a'), undefined, url);
  }
});

test('only known elements come out, whatever goes in', () => {
  const tags = new Set(['#text', 'p', 'br', 'pre', 'code', 'strong', 'em', 'del', 'a', 'ul', 'ol', 'li', 'blockquote', 'hr', 'h3', 'h4', 'h5', 'h6']);
  const bits = ['**', '*', '_', '`', '```', '\n', '\n\n', '- ', '1. ', '> ', '# ', '[', '](', ')', 'http://a.b', '<b>', ' ', 'x', '\\', '~~', '    '];
  let seed = 7;
  const random = (n) => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed % n; };
  const walk = (nodes) => nodes.forEach((n) => { assert.ok(tags.has(n.tag), n.tag); walk(n.kids ?? []); });
  for (let i = 0; i < 3000; i++) walk(parse(Array.from({ length: random(30) }, () => bits[random(bits.length)]).join('')));
});

test('blocks that are complete keep their source while the answer grows', () => {
  const text = '# Title\n\nFirst.\n\n- a\n- b\n\n```\ncode\n```\n\nLast words';
  const final = parse(text).map((b) => b.src);
  const half = parse(text.slice(0, text.indexOf('Last'))).map((b) => b.src);
  assert.deepEqual(final.slice(0, half.length), half);
});

test('markup without reason is shown as it was written, and nests no deeper than a page can show', () => {
  const depth = (nodes) => nodes.reduce((most, n) => Math.max(most, 1 + depth(n.kids ?? [])), 0);
  const text = (nodes) => nodes.map((n) => n.text ?? text(n.kids ?? [])).join('');
  const nested = (n) => Array.from({ length: n }, (_, i) => ' '.repeat(2 * i) + '- x').join('\n');
  const hostile = {
    quotes: '>'.repeat(4000) + 'end', items: '* '.repeat(2000) + 'end', numbers: '1. '.repeat(2000) + 'end', both: '> - '.repeat(2000) + 'end',
    lists: nested(300) + 'end', emphasis: '**a '.repeat(8000) + 'end', marks: '*'.repeat(20000) + 'end', ticks: '`a '.repeat(8000) + 'end',
    brackets: '['.repeat(20000) + 'end', strong: Array.from({ length: 200 }, (_, i) => (i % 2 ? '*a ' : '**b ')).join('') + 'end',
    links: '[a'.repeat(8000) + '](http://x)end', tildes: '~~a '.repeat(8000) + 'end', long: 'word **bold** '.repeat(20000) + 'end',
  };
  for (const [name, source] of Object.entries(hostile)) {
    const tree = parse(source);
    assert.ok(depth(tree) < 150, `${name} nests ${depth(tree)} deep`);
    assert.ok(text(tree).endsWith('end'), `${name} is cut off`);
  }
});
