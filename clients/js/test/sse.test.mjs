// Server-Sent Events, with cuts at every byte.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encode, parser } from '../dist/sse.js';

const stream = ': holdfast\n\nretry: 250\n\nid: 1-x\ndata: {"text":"größer ✓"}\n\n: keep-alive\n\nid: 2-x\r\ndata: a\r\ndata: b\r\n\r\nevent: other\ndata:\n\n';
const frames = [
  { comment: 'holdfast' }, { retry: 250 }, { id: '1-x', data: '{"text":"größer ✓"}' }, { comment: 'keep-alive' }, { id: '2-x', data: 'a\nb' }, { data: '' },
];
const bytes = new TextEncoder().encode(stream);

function read(...pieces) {
  const parse = parser();
  const decoder = new TextDecoder();
  return pieces.flatMap((piece) => parse(decoder.decode(piece, { stream: true })));
}

test('a stream arrives in two pieces, split at every byte', () => {
  for (let at = 0; at <= bytes.length; at++) {
    assert.deepEqual(read(bytes.subarray(0, at), bytes.subarray(at)), frames, `split at ${at}`);
  }
});

test('a stream arrives byte by byte', () => {
  assert.deepEqual(read(...Array.from(bytes, (_, i) => bytes.subarray(i, i + 1))), frames);
});

test('a stream that is cut at any byte yields whole frames only', () => {
  for (let at = 0; at <= bytes.length; at++) {
    const got = read(bytes.subarray(0, at));
    assert.deepEqual(got, frames.slice(0, got.length), `cut at ${at}`);
  }
});

test('what is not an event', () => {
  assert.deepEqual(read(new TextEncoder().encode('\uFEFFdata: x\n\nid: 1\n\nid: a\0b\nretry: soon\ndata\nunknown: y\n\ndata: unfinished\n')), [{ data: 'x' }, { data: '' }]);
});

test('what is written can be read', () => {
  const event = { type: 'X', text: 'a\nb\r\u2028' };
  assert.deepEqual(read(new TextEncoder().encode(encode(event, '3-x') + encode(event))), [{ id: '3-x', data: JSON.stringify(event) }, { data: JSON.stringify(event) }]);
});

test('a long frame in many pieces is looked at once', (t) => {
  const piece = 'x'.repeat(1000);
  const parse = parser();
  let looked = 0;
  const { exec } = RegExp.prototype;
  t.mock.method(RegExp.prototype, 'exec', function (string) {
    looked += string.length;
    return exec.call(this, string);
  });
  parse('data: ');
  for (let i = 0; i < 1000; i++) parse(piece);
  const [{ data }] = parse('\n\n');
  assert.equal(data.length, 1_000_000);
  assert.ok(looked < 6_000_000, `${looked} characters`);
});
