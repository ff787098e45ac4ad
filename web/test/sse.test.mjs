import assert from 'node:assert/strict';
import { test } from 'node:test';
import { frames, parser } from '../src/sse.js';

const stream = 'retry: 300\n\n: holdfast\n\nid: 1-ab\ndata: {"a":1}\n\nid: 2-ab\ndata: {"b":"ü\u2028"}\n\n: keep-alive\n\n';
const want = [{ id: '', data: '', retry: 300 }, { id: '1-ab', data: '{"a":1}' }, { id: '2-ab', data: '{"b":"ü\u2028"}' }];

test('frames are the same wherever the text is split', () => {
  for (let cut = 0; cut <= stream.length; cut++) {
    const parse = parser();
    assert.deepEqual([...parse(stream.slice(0, cut)), ...parse(stream.slice(cut))], want, `cut at ${cut}`);
  }
  const parse = parser();
  assert.deepEqual([...stream].flatMap((c) => parse(c)), want, 'split everywhere');
});

test('CRLF, CR, several data lines, a BOM', () => {
  const parse = parser();
  assert.deepEqual(parse('\uFEFFdata: a\r\ndata:b\r\n\r\ndata: c\r\r\nevent: x\n'), [{ id: '', data: 'a\nb' }, { id: '', data: 'c' }]);
});

test('a frame that is not finished is not returned', () => {
  const parse = parser();
  assert.deepEqual(parse('id: 1-a\ndata: {"half":'), []);
  assert.deepEqual(parse('1}\n'), []);
  assert.deepEqual(parse('\n'), [{ id: '1-a', data: '{"half":1}' }]);
});

test('an id belongs to its own frame: a notice has none', () => {
  const parse = parser();
  assert.deepEqual(parse('id: 1-a\ndata: x\n\ndata: y\n\n').map((f) => f.id), ['1-a', '']);
});

test('a body is decoded across splits within a character, and everything that arrives counts as a sign of life', async () => {
  const bytes = new TextEncoder().encode('data: zwölf €\n\n: idle\n\n');
  const body = new ReadableStream({
    start(c) {
      for (const b of bytes) c.enqueue(new Uint8Array([b]));
      c.close();
    },
  });
  let alive = 0;
  const got = [];
  for await (const f of frames(body, () => alive++)) got.push(f.data);
  assert.deepEqual(got, ['zwölf €']);
  assert.equal(alive, bytes.length);
});
