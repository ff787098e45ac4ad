import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError, follow, requester } from '../src/api.js';

const ev = (id, event) => `${id ? `id: ${id}\n` : ''}data: ${JSON.stringify(event)}\n\n`;
const began = { type: 'RUN_STARTED', threadId: 't', runId: 'r' };
const delta = (d) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: d });
const end = { type: 'RUN_FINISHED', threadId: 't', runId: 'r' };
const body = { threadId: 't', runId: 'r', messages: [{ id: 'u', role: 'user', content: 'hi' }] };

/** A server that gives one answer after the other: text is a stream that ends, an Error is thrown. */
async function play(answers, o = {}) {
  const asked = [];
  const slept = [];
  const states = [];
  const events = [];
  const closed = new AbortController();
  const request = async (method, path, init) => {
    asked.push([method, path, init.headers['Last-Event-ID'] ?? '', init.body?.runId ?? ''].join(' ').trim());
    assert.equal(init.headers['Holdfast-Resume'], '1');
    if (!answers.length) throw new Error('asked too often: ' + asked.join(', '));
    const a = answers.shift();
    if (a instanceof Error) throw a;
    if (a instanceof Response) return a;
    return new Response(a);
  };
  const done = follow({
    request, thread: 't', body, signal: closed.signal, random: () => 1,
    onEvent: (e) => { events.push(e.delta ?? e.type); o.onEvent?.(closed); },
    onState: (s) => states.push(s), sleep: async (ms) => { slept.push(ms); o.onSleep?.(closed); }, ...o.follow,
  });
  const err = await done.then(() => undefined, (e) => e);
  return { asked, slept, states, events, err };
}

test('an answer without accidents is one request', async () => {
  const r = await play([ev('1-a', began) + ev('2-a', delta('x')) + ev('3-a', end)]);
  assert.deepEqual(r.asked, ['POST runs  r']);
  assert.deepEqual([r.events, r.err], [['RUN_STARTED', 'x', 'RUN_FINISHED'], undefined]);
});

test('a cut is repaired from the last id, as often as necessary', async () => {
  const r = await play([
    ev('1-a', began) + ev('2-a', delta('x')) + 'id: 3-a\ndata: {"half', new TypeError('network'), ev('3-a', delta('y')), ev('4-b', delta('z')) + ev('5-b', end),
  ]);
  assert.deepEqual(r.asked, ['POST runs  r', 'GET threads/t/runs/r/events 2-a', 'GET threads/t/runs/r/events 2-a', 'GET threads/t/runs/r/events 3-a']);
  assert.deepEqual([r.events.join(' '), r.err], ['RUN_STARTED x y z RUN_FINISHED', undefined]);
  assert.ok(r.states.includes('reconnecting') && r.states.at(-1) === 'live');
});

test('stream_cut is a cut, not an end', async () => {
  const r = await play([ev('1-a', began) + ev('', { type: 'RUN_ERROR', message: 'restart', code: 'stream_cut' }), ev('2-a', end)]);
  assert.deepEqual(r.asked, ['POST runs  r', 'GET threads/t/runs/r/events 1-a']);
});

test('a POST that was not answered is sent again, with the same run', async () => {
  const r = await play([new TypeError('refused'), new ApiError(503, { code: 'shutting_down' }, 7), ev('1-a', began) + ev('2-a', end)]);
  assert.deepEqual(r.asked, ['POST runs  r', 'POST runs  r', 'POST runs  r']);
  assert.deepEqual(r.slept, [250, 7000]);
});

test('a request that the server refuses is not sent again', async () => {
  const r = await play([new ApiError(409, { code: 'interrupted', message: 'm', hint: 'h' })]);
  assert.deepEqual([r.err.code, r.err.hint, r.slept], ['interrupted', 'h', []]);
});

test('a stream of snapshots has no id: the page attaches again', async () => {
  const r = await play([ev('', began) + ev('', delta('x')), ev('', began) + ev('7-a', end)], { follow: { body: undefined } });
  assert.deepEqual(r.asked, ['GET threads/t/stream', 'GET threads/t/stream']);
});

test('a cursor that the server no longer knows: the page starts over and does not use it again', async () => {
  const anew = { ...began, runId: 'other', metadata: { holdfast: { runId: 'r2', resync: true } } };
  const r = await play([ev('9-a', began), ev('', anew) + ev('3-b', delta('x')), ev('4-b', end)]);
  assert.deepEqual(r.asked, ['POST runs  r', 'GET threads/t/runs/r/events 9-a', 'GET threads/t/runs/r2/events 3-b']);
});

test('a run that is gone, or ended unseen: the thread tells its status', async () => {
  for (const answer of [new ApiError(404, { code: 'not_found' }), new Response(null, { status: 204 })]) {
    const r = await play([ev('1-a', began), answer, ev('', began) + ev('', end)]);
    assert.deepEqual(r.asked.at(-1), 'GET threads/t/stream');
    assert.equal(r.err, undefined);
  }
});

test('pauses grow to ten seconds, start with what the server asked for, and start over after an event', async () => {
  const down = () => new TypeError('network');
  const r = await play(['retry: 400\n\n' + ev('1-a', began), down(), down(), down(), down(), down(), down(), ev('2-a', delta('x')), ev('3-a', end)]);
  assert.deepEqual(r.slept, [400, 800, 1600, 3200, 6400, 10000, 10000, 400]);
});

test('a silent connection is dropped', async () => {
  const silent = new Response(new ReadableStream({}));
  let aborted;
  const request = async (method, path, { signal }) => {
    if (aborted) return new Response(ev('1-a', began) + ev('2-a', end));
    aborted = signal;
    const body = new ReadableStream({ start(c) { signal.addEventListener('abort', () => c.error(new DOMException('', 'AbortError'))); } });
    return new Response(body, silent);
  };
  await follow({ request, thread: 't', body, signal: new AbortController().signal, random: () => 1, onEvent() {}, onState() {}, sleep: async () => {}, silence: 5 });
  assert.ok(aborted.aborted);
});

test('a page that leaves the thread stops asking', async () => {
  const r = await play([ev('1-a', began)], { onSleep: (closed) => closed.abort() });
  assert.equal(r.err?.name, 'AbortError');
  assert.equal(r.asked.length, 1);
});

test('a bug in the page is not taken for a network failure', async () => {
  const r = await play([ev('1-a', began)], { onEvent() { throw new TypeError('undefined is not a function'); } });
  assert.deepEqual([r.err?.name, r.asked.length, r.slept], ['TypeError', 1, []]);
});

test('errors of the server, and of a proxy before it', async (t) => {
  const answers = [new Response('{"error":{"code":"c","message":"m","hint":"h","details":{"a":1}}}', { status: 503, headers: { 'Retry-After': '2' } }), new Response('<html>', { status: 502 })];
  t.mock.method(globalThis, 'fetch', async () => answers.shift());
  const request = requester('http://x/', () => '', async () => {});
  await assert.rejects(request('GET', 'threads'), (e) => e.code === 'c' && e.hint === 'h' && e.details.a === 1 && e.retryAfter === 2);
  await assert.rejects(request('GET', 'threads'), (e) => e.code === 'http_502' && e.message.includes('502'));
});

test('401: the page asks for a key and sends the request again with it', async (t) => {
  let key = '';
  const sent = [];
  t.mock.method(globalThis, 'fetch', async (url, init) => {
    sent.push(init.headers.Authorization ?? 'none');
    return new Response('{}', { status: init.headers.Authorization === 'Bearer good' ? 200 : 401 });
  });
  const keys = ['bad', 'good'];
  const response = await requester('http://x/', () => key, async () => { key = keys.shift(); })('GET', 'threads');
  assert.equal(response.status, 200);
  assert.deepEqual(sent, ['none', 'Bearer bad', 'Bearer good']);
});
