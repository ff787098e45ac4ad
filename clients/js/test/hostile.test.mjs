// The reconnecting fetch against servers, proxies and pages that do what they should not.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AssistantUIAgent } from '../dist/assistantui.js';
import { resumingFetch } from '../dist/fetch.js';
import { answers, asked, down, finished, json, lines, pass, post, run, sse, started, text, timers } from './answers.mjs';

/** A server that takes the request and never answers. */
const silent = (init) => new Promise((_, fail) => init.signal?.addEventListener('abort', () => fail(new DOMException('', 'AbortError'))));
const few = () => new Promise((next) => setImmediate(() => setImmediate(next)));

/** Posts, reads the start, and aborts. */
async function stopped(resuming) {
  const stop = new AbortController();
  const reader = (await resuming('http://h/x/runs', { ...post(), signal: stop.signal })).body.getReader();
  await reader.read();
  stop.abort();
  await assert.rejects(reader.read(), { name: 'AbortError' });
}

test('a cancel that is never answered does not hold back the next message for ever', async (t) => {
  timers(t);
  const { fetch, requests } = answers(sse(started, 'hang'), silent, sse(started + finished));
  const resuming = resumingFetch({ fetch });
  await stopped(resuming);
  let events;
  resuming('http://h/x/runs', post()).then(lines).then((got) => (events = got));
  for (let ms = 0; ms < 20_000 && !events; ms += 100) {
    await few();
    t.mock.timers.tick(100);
  }
  assert.equal(events?.length, 2);
  assert.equal(requests.length, 3);
});

test('a message that waits for the end of the run before it can be stopped', async (t) => {
  timers(t);
  const { fetch, requests } = answers(sse(started, 'hang'), silent);
  const resuming = resumingFetch({ fetch });
  await stopped(resuming);
  const stop = new AbortController();
  let failed;
  resuming('http://h/x/runs', { ...post(), signal: stop.signal }).catch((error) => (failed = error));
  await few();
  stop.abort();
  await few();
  assert.equal(failed?.name, 'AbortError');
  assert.equal(requests.length, 2);
});

test('a run is cancelled also if the request that starts it is not answered', async (t) => {
  timers(t);
  const stop = new AbortController();
  const { fetch, requests } = answers(silent, json(404));
  const failed = assert.rejects(resumingFetch({ fetch })('http://h/x/runs', { ...post(), signal: stop.signal }), { name: 'AbortError' });
  await few();
  stop.abort();
  await failed;
  for (let ms = 0; ms < 15_000; ms += 1000) {
    await few();
    t.mock.timers.tick(1000);
  }
  assert.deepEqual(asked(requests), [['POST', '/runs', null], ['POST', '/threads/t%2F1/runs/r1/cancel', null]]);
});

test('a client that stops reading while it reconnects is gone at once', async (t) => {
  timers(t);
  const { fetch, requests } = answers(sse(started), down);
  const states = [];
  const response = await resumingFetch({ fetch, onConnection: (s) => states.push(s) })('http://h/runs', post());
  const reader = response.body.getReader();
  await reader.read();
  await few();
  assert.deepEqual(states, ['reconnecting']);
  let gone = false;
  reader.cancel().then(() => (gone = true));
  await few();
  const before = requests.length;
  assert.ok(gone);
  t.mock.timers.tick(60_000);
  await few();
  assert.equal(requests.length, before);
  assert.deepEqual(states, ['reconnecting', 'live']); // the note on the page goes
});

test('after Stop nothing is reconnecting', async (t) => {
  timers(t);
  const [states, stop] = [[], new AbortController()];
  const { fetch } = answers(sse(started), down);
  const response = await resumingFetch({ fetch, onConnection: (s) => states.push(s) })('http://h/runs', { ...post(), signal: stop.signal });
  const failed = assert.rejects(response.text(), { name: 'AbortError' });
  await few();
  stop.abort();
  await failed;
  assert.deepEqual(states, ['reconnecting', 'live']);
});

test('a run that works says so after one that was given up', async (t) => {
  timers(t);
  const states = [];
  let answer = down;
  const resuming = resumingFetch({ fetch: (_, init) => answer(init), patience: 1000, onConnection: (s) => states.push(s) });
  await pass(t, resuming('http://h/runs', post()).then(lines));
  assert.deepEqual(states, ['reconnecting']);
  answer = (init) => Promise.resolve(sse(started + finished)(init));
  await pass(t, resuming('http://h/runs', post()).then(lines));
  assert.deepEqual(states, ['reconnecting', 'live']);
});

test('retry: 0 does not make a client that comes back at once, again and again', async (t) => {
  t.mock.method(Math, 'random', () => 1);
  const turns = Array.from({ length: 20 }, (_, n) => sse(`retry: 0\n\n${text(n + 2)}`));
  const { ms } = await run(t, [sse(`retry: 0\n\n${started}`), ...turns, sse(finished)]);
  assert.ok(ms >= 2000, `${ms} ms of simulated time for 21 attempts`);
});

test('a time without end is no time at all for a timer, so it is cut', async (t) => {
  const real = setTimeout;
  const asked = [];
  t.mock.method(globalThis, 'setTimeout', (f, ms) => {
    asked.push(ms);
    return real(f, ms > 2 ** 31 - 1 ? 1 : 0);
  });
  const forever = { silence: Infinity, patience: Infinity, maxDelay: Infinity };
  const { fetch } = answers(json(503, {}, { 'Retry-After': '99999999' }), sse(`retry: 99999999999\n\n${started}`), sse(finished));
  assert.equal((await resumingFetch({ fetch, ...forever })('http://h/runs', post()).then(lines)).length, 2);
  assert.ok(asked.length > 0);
  assert.deepEqual(asked.filter((ms) => ms > 2 ** 31 - 1), []);
});

for (const body of ['null', '7', '{"error":null}', '{"error":"gone"}', '{"error":{"message":{},"code":5}}', '<html>']) {
  test(`a refusal that says ${body} ends the run in words for people`, async (t) => {
    const gone = () => new Response(body, { status: 404 });
    const { events } = await run(t, [sse(started), gone, gone]);
    const { message, code, metadata } = events[1];
    assert.match(message, /reload the page/);
    assert.deepEqual([code, metadata.holdfast.hint], ['connection_lost', 'The server answered 404.']);
  });
}

test('a refusal whose text never comes ends the run too', async (t) => {
  const gone = (init) => new Response(new ReadableStream({ start: (c) => init.signal.addEventListener('abort', () => c.error(new DOMException('', 'AbortError'))) }), { status: 403 });
  const { events } = await run(t, [sse(started), gone, gone]);
  assert.equal(events[1].code, 'connection_lost');
});

test('the text of a refusal can be aborted', async () => {
  const stop = new AbortController();
  const { fetch } = answers((init) => new Response(new ReadableStream({ start: (c) => init.signal.addEventListener('abort', () => c.error(new DOMException('', 'AbortError'))) }), { status: 409 }));
  const response = await resumingFetch({ fetch })('http://h/runs', { ...post(), signal: stop.signal });
  const failed = assert.rejects(response.text(), { name: 'AbortError' });
  stop.abort();
  await failed;
});

test('what does not ask for a stream passes through untouched', async () => {
  for (const [url, init] of [['http://h/runs', { ...post(), headers: { Accept: 'application/json' } }], ['http://h/threads/%/stream', { method: 'GET' }]]) {
    const { fetch, requests } = answers(json(503));
    assert.equal((await resumingFetch({ fetch })(url, init)).status, 503);
    assert.equal(requests.length, 1);
  }
});

test('the history of assistant-ui waits for a server that is away, and says what is refused', async (t) => {
  timers(t);
  const load = (...list) => {
    const { fetch, requests } = answers(...list);
    const agent = new AssistantUIAgent({ url: 'http://h/x/runs', threadId: 't/1', fetch, patience: 5000 });
    return { requests, loaded: pass(t, agent.history((messages) => ({ messages })).load()) };
  };
  const { requests, loaded } = load(down, json(503), json(200, { status: 'idle' }), json(502), json(200, { messages: [7] }));
  assert.deepEqual((await loaded)[0], { messages: [7], unstable_resume: false });
  assert.deepEqual([...new Set(asked(requests).map(([, url]) => url))], ['/threads/t%2F1', '/threads/t%2F1/messages']);
  await assert.rejects(load(json(403, { error: { message: 'Not yours.' } })).loaded, { message: 'Not yours.' });
  await assert.rejects(load(json(418, null)).loaded, { message: /418/ });
  await assert.rejects(load(down).loaded, { message: /could not be reached/ });
});
