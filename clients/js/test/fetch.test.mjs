// The reconnecting fetch against servers that are made up.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resumingFetch } from '../dist/fetch.js';
import { answers, asked, down, finished, json, lines, pass, post, run, sse, started, text, timers } from './answers.mjs';

test('a stream that breaks in a frame is continued after the last whole one', async (t) => {
  const { events, requests } = await run(t, [sse(started + text(2) + text(3).slice(0, 20), 'break'), sse(text(3) + finished)]);
  assert.deepEqual(events.map((e) => e.delta ?? e.type), ['RUN_STARTED', '2', '3', 'RUN_FINISHED']);
  assert.deepEqual(asked(requests), [['POST', '/agents/demo/runs', null], ['GET', '/threads/t%2F1/runs/r1/events', '2-a']]);
  const headers = new Headers(requests[1].init.headers);
  assert.equal(headers.get('Authorization'), 'Bearer k');
  assert.equal(headers.get('Holdfast-Resume'), '1');
  assert.deepEqual(requests.map(({ init }) => new Headers(init.headers).get('Holdfast-Thread')), ['t%2F1', null]);
  assert.equal(headers.get('Content-Type'), null);
  assert.equal(requests[1].init.body, null);
});

test('a page of another origin names the thread to servers that know the header', async () => {
  globalThis.location = new URL('http://page/chat');
  const named = ({ init }) => new Headers(init.headers).get('Holdfast-Thread');
  try {
    const { fetch, requests } = answers(sse(started + finished), sse(started + finished, 'end', { 'Holdfast-Run': 'r1', 'Holdfast-Owner': 'p' }), sse(started + finished));
    const resuming = resumingFetch({ fetch });
    for (const url of ['http://h/runs', 'http://h/runs', 'http://h/runs', 'http://other/runs', '/runs']) await (await resuming(url, post())).text();
    assert.deepEqual(requests.map(named), [null, null, 't%2F1', null, 't%2F1']);
  } finally {
    delete globalThis.location;
  }
});

test('cut at every byte, a stream is whole in the end', async (t) => {
  timers(t);
  const frames = [started, text(2), 'data: {"type":"CUSTOM","name":"✓","value":1}\n\n', text(3), finished];
  const whole = new TextEncoder().encode(frames.join(''));
  for (let at = 0; at < whole.length; at++) {
    const { fetch } = answers(
      sse(new TextDecoder().decode(whole.subarray(0, at)), at % 2 ? 'end' : 'break'),
      (init) => {
        const cursor = new Headers(init.headers).get('Last-Event-ID');
        return sse(frames.slice(frames.findIndex((f) => cursor && f.startsWith(`id: ${cursor}\n`)) + 1).join(''))(init);
      },
    );
    const [events] = await pass(t, resumingFetch({ fetch })('http://h/runs', post()).then(lines));
    assert.deepEqual(events.filter((e) => e.type !== 'CUSTOM').map((e) => e.delta ?? e.type), ['RUN_STARTED', '2', '3', 'RUN_FINISHED'], `cut at ${at}`);
  }
});

test("cut at every byte, the AI SDK's stream is whole in the end, and the request is the same", async (t) => {
  timers(t);
  const chunk = (type, id) => `${id === undefined ? '' : `id: ${id}\n`}data: {"type":"${type}"}\n\n`;
  const records = [chunk('start') + chunk('start-step') + chunk('text-start', '2-a'), chunk('✓', '3-a'), chunk('finish-step') + chunk('finish', '4-a'), 'data: [DONE]\n\n'];
  const whole = new TextEncoder().encode(records.join(''));
  const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ id: 't', messages: [] }) };
  for (let at = 0; at < whole.length; at++) {
    const { fetch, requests } = answers(
      sse(new TextDecoder().decode(whole.subarray(0, at)), at % 2 ? 'end' : 'break'),
      (again) => {
        const cursor = new Headers(again.headers).get('Last-Event-ID');
        return sse(records.slice(records.findIndex((record) => cursor && record.includes(`id: ${cursor}\n`)) + 1).join(''))(again);
      },
    );
    const text = await pass(t, resumingFetch({ fetch })('http://h/x/ai-sdk/demo?sdk=7', init).then((response) => response.text()));
    assert.deepEqual((text[0] ?? text).match(/(?<=data: ).*/g), ['start', 'start-step', 'text-start', '✓', 'finish-step', 'finish'].map((type) => `{"type":"${type}"}`).concat('[DONE]'), `cut at ${at}`);
    assert.equal(new Set(requests.map(({ url, init: { method, body } }) => `${method} ${url} ${body}`)).size, 1);
    assert.match(JSON.parse(requests[0].init.body).runId, /^[0-9a-f-]{36}$/);
  }
});

test('the older dialect is asked for again', async (t) => {
  const { requests } = await run(t, [sse(started), sse(finished)], {}, post({ protocolVersion: undefined }));
  assert.equal(requests[1].url, 'http://h/x/threads/t%2F1/runs/r1/events?protocolVersion=none');
});

test('the run to follow is the one that the server names', async (t) => {
  const { events, requests } = await run(t, [sse(started.replace('"r1"', '"mine"'), 'end', { 'Holdfast-Run': 'real' }), sse(finished.replace('"r1"', '"real"'))], {}, post({ runId: 'mine' }));
  assert.equal(requests[1].url, 'http://h/x/threads/t%2F1/runs/real/events');
  assert.deepEqual(events.map((e) => e.runId), ['mine', 'mine']);
});

test('a POST that is not answered is sent again, the same', async (t) => {
  const { events, requests } = await run(t, [down, json(502), json(503), json(504), sse(started + finished)]);
  assert.equal(events.length, 2);
  assert.equal(requests.length, 5);
  assert.equal(new Set(requests.map((r) => `${r.method} ${r.url} ${r.init.body}`)).size, 1);
});

test('Retry-After is obeyed', async (t) => {
  const { ms } = await run(t, [json(503, {}, { 'Retry-After': '30' }), sse(started + finished)]);
  assert.ok(ms >= 30_000 && ms < 31_000, `${ms} ms of simulated time`);
});

test('retry: is obeyed, and pauses grow up to maxDelay', async (t) => {
  timers(t);
  t.mock.method(Math, 'random', () => 1);
  const { fetch } = answers(sse(`retry: 400\n\n${started}`), down, down, down, sse(finished));
  const [, ms] = await pass(t, resumingFetch({ fetch, maxDelay: 1000 })('http://h/runs', post()).then(lines));
  // 400 + 800 + 1000 + 1000, and the steps in which the test lets time pass
  assert.ok(ms >= 3200 && ms < 3300, `${ms} ms of simulated time`);
});

test('refusals pass through, with one request', async () => {
  for (const status of [400, 401, 404, 409, 429, 500]) {
    const { fetch, requests } = answers(json(status, { error: { code: 'c' } }));
    const response = await resumingFetch({ fetch })('http://h/runs', post());
    assert.equal(response.status, status);
    assert.deepEqual(await response.json(), { error: { code: 'c' } });
    assert.equal(requests.length, 1);
  }
});

test('what is no run passes through untouched', async () => {
  for (const [url, init] of [['http://h/info', undefined], ['http://h/runs', { method: 'POST', body: '{}' }], ['http://h/runs', { method: 'POST', body: 'no JSON' }], ['http://h/other', post()], ['http://h/threads', { method: 'GET' }]]) {
    const { fetch, requests } = answers(json(503));
    const response = await resumingFetch({ fetch })(url, init);
    assert.equal(response.status, 503);
    assert.equal(requests.length, 1);
    assert.equal(new Headers(requests[0].init.headers).get('Holdfast-Resume'), null);
  }
});

test('base is for proxies that give the routes other names', async (t) => {
  timers(t);
  const { fetch, requests } = answers(sse(started), sse(finished));
  await pass(t, resumingFetch({ fetch, base: 'https://api.example.com/holdfast/' })('/chat', post()).then(lines));
  assert.equal(requests[1].url, 'https://api.example.com/holdfast/threads/t%2F1/runs/r1/events');
});

test('a new start by the server stays one legal run', async (t) => {
  const resync = 'data: {"type":"RUN_STARTED","threadId":"t/1","runId":"r1","metadata":{"holdfast":{"resync":true}}}\n\n';
  const open = 'id: 2-a\ndata: {"type":"TEXT_MESSAGE_START","messageId":"m"}\n\n';
  const snapshot = 'data: {"type":"MESSAGES_SNAPSHOT","messages":[]}\n\n';
  const { events, requests } = await run(t, [sse(started + open), sse(resync + snapshot), sse(resync + snapshot + finished)]);
  assert.deepEqual(events.map((e) => e.type), ['RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_END', 'MESSAGES_SNAPSHOT', 'MESSAGES_SNAPSHOT', 'RUN_FINISHED']);
  // The cursor from before the new start is void.
  assert.deepEqual(asked(requests).slice(1), [['GET', '/threads/t%2F1/runs/r1/events', '2-a'], ['GET', '/threads/t%2F1/stream', null]]);
});

for (const status of [204, 400, 404]) {
  test(`after ${status} for a cursor, the thread is attached to`, async (t) => {
    const { events, requests } = await run(t, [sse(started), status === 204 ? () => new Response(null, { status }) : json(status), sse(started.replace('id: 1-a\n', '') + finished)]);
    assert.deepEqual(events.map((e) => e.type), ['RUN_STARTED', 'RUN_FINISHED']);
    assert.deepEqual(asked(requests)[2], ['GET', '/threads/t%2F1/stream', null]);
  });
}

test('a thread that is gone ends the run with the words of the server', async (t) => {
  const gone = json(404, { error: { code: 'not_found', message: 'There is no such thread.', hint: 'GET /threads lists yours.' } });
  const { events } = await run(t, [sse(started), gone, gone]);
  assert.deepEqual(events[1], { type: 'RUN_ERROR', message: 'There is no such thread.', code: 'not_found', metadata: { holdfast: { hint: 'GET /threads lists yours.' } } });
});

test('stream_cut is not the end of a run', async (t) => {
  const { events } = await run(t, [sse(`${started}data: {"type":"RUN_ERROR","code":"stream_cut","message":"…"}\n\n`), sse(finished)]);
  assert.deepEqual(events.map((e) => e.type), ['RUN_STARTED', 'RUN_FINISHED']);
});

test('a damaged frame is read again', async (t) => {
  const { events, requests } = await run(t, [sse(`${started}id: 2-a\ndata: {"type":\n\n${text(3)}`), sse(text(2) + finished)]);
  assert.deepEqual(events.map((e) => e.delta ?? e.type), ['RUN_STARTED', '2', 'RUN_FINISHED']);
  assert.equal(requests[1].cursor, '1-a');
});

test('a connection that is silent for too long is replaced, whether it has been answered or not', async (t) => {
  const silent = (init) => new Promise((_, fail) => init.signal.addEventListener('abort', () => fail(new DOMException('', 'AbortError'))));
  const { events, ms } = await run(t, [silent, sse(started, 'hang'), sse(finished)]);
  assert.deepEqual(events.map((e) => e.type), ['RUN_STARTED', 'RUN_FINISHED']);
  assert.ok(ms >= 80_000 && ms < 83_000, `${ms} ms of simulated time`);
});

test('a keep-alive is life', async (t) => {
  timers(t);
  let beats = 20;
  const { fetch, requests } = answers(() => new Response(new ReadableStream({
    start(controller) {
      const send = (text) => controller.enqueue(new TextEncoder().encode(text));
      send(started);
      const beat = () => {
        if (beats-- > 0) {
          send(': keep-alive\n\n');
          setTimeout(beat, 15_000);
        } else {
          send(finished);
          controller.close();
        }
      };
      setTimeout(beat, 15_000);
    },
  }), { headers: { 'Content-Type': 'text/event-stream' } }));
  const [events, ms] = await pass(t, resumingFetch({ fetch })('http://h/runs', post()).then(lines));
  assert.equal(events.length, 2);
  assert.equal(requests.length, 1);
  assert.ok(ms >= 300_000);
});

test('it gives up after two minutes without progress, in words for people', async (t) => {
  for (const list of [[down], [json(503)], [sse(started), down], [sse(started), json(500)], [sse(started), sse('retry: 250\n\n: holdfast\n\n')]]) {
    const states = [];
    const { fetch } = answers(...list);
    t.mock.timers.reset();
    timers(t);
    const [events, ms] = await pass(t, resumingFetch({ fetch, onConnection: (s) => states.push(s) })('http://h/runs', post()).then(lines));
    const end = events.at(-1);
    assert.equal(end.type, 'RUN_ERROR');
    assert.equal(end.code, 'connection_lost');
    assert.match(end.message, /reload the page/);
    assert.match(end.metadata.holdfast.hint, /http:\/\/h could not be reached/);
    assert.ok(ms >= 119_000 && ms < 121_000, `${ms} ms of simulated time`);
    assert.deepEqual(states, ['reconnecting']);
  }
});

test('an abort is an AbortError, and ends the run on the server', async (t) => {
  timers(t);
  const stop = new AbortController();
  const list = [sse(started, 'hang'), json(202), json(503), down, json(200), sse(started + finished)];
  const { fetch, requests } = answers(...list);
  const resuming = resumingFetch({ fetch });
  const response = await resuming('http://h/x/runs', { ...post(), signal: stop.signal });
  const reader = response.body.getReader();
  await reader.read();
  stop.abort();
  await assert.rejects(reader.read(), { name: 'AbortError' });
  // The next message waits until the run has ended.
  const [events] = await pass(t, resuming('http://h/x/runs', post({ runId: 'r1' })).then(lines));
  assert.equal(events.length, 2);
  const cancel = ['POST', '/threads/t%2F1/runs/r1/cancel', null];
  assert.deepEqual(asked(requests), [['POST', '/runs', null], cancel, cancel, cancel, cancel, ['POST', '/runs', null]]);
  assert.equal(new Headers(requests[1].init.headers).get('Authorization'), 'Bearer k');
  // Without it the server refuses a POST from a page of another origin.
  assert.equal(new Headers(requests[1].init.headers).get('Content-Type'), 'application/json');
});

test('a cancel is JSON, so that the server takes it from a page of another origin', async (t) => {
  timers(t);
  for (const init of [post(), { method: 'GET' }]) {
    const stop = new AbortController();
    const { fetch, requests } = answers(sse(started, 'hang'), json(200));
    const url = init.method === 'GET' ? 'http://h/x/threads/t1/stream' : 'http://h/x/runs';
    const reader = (await resumingFetch({ fetch })(url, { ...init, signal: stop.signal })).body.getReader();
    await reader.read();
    stop.abort();
    await assert.rejects(reader.read(), { name: 'AbortError' });
    for (let i = 0; i < 8; i++) await new Promise((next) => setImmediate(next));
    assert.equal(new Headers(requests[1].init.headers).get('Content-Type'), 'application/json');
  }
});

test('nothing is left behind that keeps a process alive', async () => {
  const timersNow = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timersNow();
  const stop = new AbortController();
  let cancelled;
  const ended = new Promise((done) => (cancelled = done));
  const { fetch } = answers(sse(started, 'hang'), () => {
    cancelled();
    return new Response(null, { status: 200 });
  });
  const response = await resumingFetch({ fetch })('http://h/runs', { ...post(), signal: stop.signal });
  stop.abort();
  await assert.rejects(response.text(), { name: 'AbortError' });
  await ended;
  await new Promise((done) => setImmediate(done));
  assert.equal(timersNow(), before);
});

test('an abort while it reconnects', async (t) => {
  timers(t);
  const stop = new AbortController();
  const { fetch, requests } = answers(sse(started), down, json(200));
  const response = await resumingFetch({ fetch, onConnection: () => stop.abort() })('http://h/x/runs', { ...post(), signal: stop.signal });
  await assert.rejects(pass(t, response.text()), { name: 'AbortError' });
  await pass(t, Promise.resolve());
  assert.ok(asked(requests).some(([, url]) => url === '/threads/t%2F1/runs/r1/cancel'));
});

test('detach only stops watching', async (t) => {
  timers(t);
  const stop = new AbortController();
  const { fetch, requests } = answers(sse(started, 'hang'));
  const response = await resumingFetch({ fetch, onAbort: 'detach' })('http://h/runs', { ...post(), signal: stop.signal });
  stop.abort();
  await assert.rejects(response.text(), { name: 'AbortError' });
  assert.equal(requests.length, 1);
  assert.ok(requests[0].init.signal.aborted);
});

test('a client that stops reading detaches', async () => {
  const { fetch, requests } = answers(sse(started, 'hang'));
  const response = await resumingFetch({ fetch })('http://h/runs', post());
  await response.body.cancel();
  assert.ok(requests[0].init.signal.aborted);
  assert.equal(requests.length, 1);
});

test('an attach is resumed too', async (t) => {
  timers(t);
  const { fetch, requests } = answers(sse(started.replace('id: 1-a\n', '')), sse(started.replace('id: 1-a\n', '') + text(2)), sse(finished));
  const [events] = await pass(t, resumingFetch({ fetch })('http://h/x/threads/t%2F1/stream?protocolVersion=none').then(lines));
  assert.deepEqual(events.map((e) => e.delta ?? e.type), ['RUN_STARTED', '2', 'RUN_FINISHED']);
  assert.deepEqual(asked(requests), [
    ['GET', '/threads/t%2F1/stream?protocolVersion=none', null], ['GET', '/threads/t%2F1/stream?protocolVersion=none', null],
    ['GET', '/threads/t%2F1/runs/r1/events?protocolVersion=none', '2-a'],
  ]);
});
