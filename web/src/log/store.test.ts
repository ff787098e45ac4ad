// The store against a server that is played.

import { afterEach, describe, expect, it } from 'vitest';
import { ApiError, connect } from '../api/request';
import type { RunInput } from '../api/actions';
import type { LogEvent } from './record';
import { reduce } from './reduce';
import { PlayedPage, PlayedServer } from './played';
import { ThreadStore, type Snapshot } from './store';
import type { Item } from './view';

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

function opened(server: PlayedServer, page = new PlayedPage()): { store: ThreadStore; page: PlayedPage; until: (what: (snapshot: Snapshot) => boolean) => Promise<Snapshot> } {
  const store = new ThreadStore({ server: connect('http://server/', undefined, server.fetch), thread: 't', page });
  closing.push(store.open());
  const until = (what: (snapshot: Snapshot) => boolean): Promise<Snapshot> => new Promise((done) => {
    const stop = store.subscribe(() => look());
    const look = (): void => {
      if (!what(store.get())) return;
      stop();
      done(store.get());
    };
    look();
  });
  return { store, page, until };
}

const texts = ({ view }: Snapshot): string[] => view.items.filter((item): item is Extract<Item, { kind: 'text' }> => item.kind === 'text').map((item) => item.text);
const started = (runId: string): LogEvent => ({ type: 'RUN_STARTED', threadId: 't', runId });
const finished = (runId: string): LogEvent => ({ type: 'RUN_FINISHED', threadId: 't', runId, outcome: { type: 'success' } });
const begin = (id: string, ...deltas: string[]): LogEvent[] => [{ type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' }, ...deltas.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta }))];
const more = (id: string, delta: string): LogEvent => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta });
const end = (id: string): LogEvent => ({ type: 'TEXT_MESSAGE_END', messageId: id });
const rests = (snapshot: Snapshot): boolean => snapshot.standing === 'ended';

describe('opening a thread', () => {
  it('that does not exist shows nothing, and no error', async () => {
    const server = new PlayedServer();
    server.exists = false;
    const { until } = opened(server);
    expect(await until(rests)).toMatchObject({ thread: undefined, error: undefined, view: { items: [] } });
  });

  it('shows its log, page by page, and what was said before it', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), ...begin('m1', 'a', 'b', 'c'), end('m1'), finished('r1'));
    const { until } = opened(server);
    const snapshot = await until((each) => rests(each) && texts(each).length === 2);
    expect(texts(snapshot)).toEqual(['go', 'abc']);
    expect(snapshot.log.at(1)).toMatchObject({ cursor: '1-x', number: 1, runId: 'r1' });
  });

  it('does not take a run for one under way while its log is read', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), ...begin('m1', 'a', 'b', 'c'), end('m1'), finished('r1'));
    const { store, until } = opened(server);
    const seen = new Set<string>();
    store.subscribe(() => seen.add(store.get().view.status));
    await until((each) => rests(each) && texts(each).length === 2);
    expect([...seen]).toEqual(['done']);
  });

  it('follows the run that is under way, without what it knows', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), ...begin('m1', 'a'));
    const { until } = opened(server);
    await until((each) => each.standing === 'live' && server.watchers === 1);
    server.say(more('m1', 'b'), end('m1'), finished('r1'));
    const snapshot = await until(rests);
    expect(texts(snapshot)).toEqual(['go', 'ab']);
    expect(server.asked.find(({ path }) => path.endsWith('/stream'))?.headers.get('Last-Event-ID')).toBe('3-x');
    expect(server.asked.find(({ path }) => path.endsWith('/stream'))?.headers.get('Holdfast-Cursors')).toBe('metadata');
  });

  it('loads earlier runs when they are wanted', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), ...begin('m1', 'one'), end('m1'), finished('r1'));
    server.say(started('r2'), { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u1', role: 'user', content: 'go' }, { id: 'm1', role: 'assistant', content: 'one' }, { id: 'u2', role: 'user', content: 'more' }] }, ...begin('m2', 'two'), end('m2'), finished('r2'));
    const { store, until } = opened(server);
    const before = await until(rests);
    expect([texts(before), before.earlier.map((run) => run.id), before.log.at(0)?.number]).toEqual([['go', 'one', 'more', 'two'], ['r1'], 6]);
    expect(await store.loadEarlier()).toBe(true);
    const after = store.get();
    expect([texts(after), after.earlier, after.log.at(1)?.number]).toEqual([['go', 'one', 'more', 'two'], [], 1]);
    expect(after.view.items.find((item) => item.key === 't:m1')?.first).toBe(2);
    expect(await store.loadEarlier()).toBe(false);
  });

  it('reads what was said before a run whose log does not tell', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), ...begin('m1', 'one'), end('m1'), finished('r1'));
    server.say(started('r2'), ...begin('m2', 'two'));
    server.inputs = { r2: [{ id: 'u1', role: 'user', content: 'go' }, { id: 'm1', role: 'assistant', content: 'one' }, { id: 'u2', role: 'user', content: 'more' }] };
    const { until } = opened(server);
    expect(texts(await until((each) => each.standing === 'live' && server.watchers === 1))).toEqual(['go', 'one', 'more', 'two']);
  });

  it('shows how it stands where the log does not say it', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u1', role: 'user', content: 'go' }] }, ...begin('m1', 'one'), end('m1'), finished('r1'));
    server.stands = [{ type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u1', role: 'user', content: 'go' }] }, { type: 'STATE_SNAPSHOT', snapshot: { draft: 2 } }];
    const { until } = opened(server);
    const snapshot = await until((each) => rests(each) && each.view.state !== undefined);
    expect([texts(snapshot), snapshot.view.state]).toEqual([['go'], { draft: 2 }]);
    expect(texts({ ...snapshot, view: reduce(snapshot.log, snapshot.log.positionOf(4)) })).toEqual(['go', 'one']);
  });

  it('does not ask for the log of a fork that has none yet', async () => {
    const server = new PlayedServer();
    server.runs.push({ id: 'of-its-parent', events: [], from: 1 });
    server.forked = true;
    const { until } = opened(server);
    await until(rests);
    expect(server.asked.filter(({ path }) => path.endsWith('/log'))).toEqual([]);
  });

  it('that is not the user’s says so', async () => {
    const server = new PlayedServer();
    server.fetch = async () => Response.json({ error: { code: 'forbidden', message: 'Not yours.' } }, { status: 403 });
    const { until } = opened(server);
    expect((await until((each) => each.standing === 'gone')).error).toMatchObject({ code: 'forbidden', status: 403 });
  });

  it('of another user asks for it as an operator', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), finished('r1'));
    const store = new ThreadStore({ server: connect('http://server/', undefined, server.fetch), thread: 't', page: new PlayedPage(), user: 'alice' });
    closing.push(store.open());
    await new Promise<void>((done) => store.subscribe(() => rests(store.get()) && done()));
    expect(server.asked.every(({ headers }) => headers.get('Holdfast-User') === 'alice')).toBe(true);
  });
});

describe('what happens to the connection', () => {
  it.each([true, false])('a cut is repaired, and nothing is doubled (runs are named: %s)', async (named) => {
    const server = new PlayedServer();
    server.namesRuns = named;
    server.say(started('r1'), ...begin('m1', 'a'));
    const { until } = opened(server);
    await until((each) => each.standing === 'live' && server.watchers === 1);
    server.say(more('m1', 'b'));
    await until((each) => texts(each)[1] === 'ab');
    server.cut();
    await until((each) => each.standing === 'reconnecting');
    server.say(more('m1', 'c'), end('m1'), finished('r1'));
    expect(texts(await until((each) => rests(each) && each.view.status === 'done' && texts(each)[1] !== 'ab'))).toEqual(['go', 'abc']);
  });

  it('a server that is away is asked again', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), finished('r1'));
    server.down = true;
    const { page, until } = opened(server);
    expect((await until((each) => each.standing === 'reconnecting')).error?.code).toBe('unreachable');
    server.down = false;
    page.pass();
    expect((await until(rests)).error).toBeUndefined();
  });
});

describe('other tabs and other people', () => {
  it('a thread at rest hears of a run that somebody else has started', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), ...begin('m1', 'one'), end('m1'), finished('r1'));
    const { page, until } = opened(server);
    await until(rests);
    await page.waits();
    server.say(started('r2'), { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'm1', role: 'assistant', content: 'one' }, { id: 'u2', role: 'user', content: 'more' }] }, ...begin('m2', 'tw'));
    page.pass();
    await until((each) => texts(each).at(-1) === 'tw' && server.watchers === 1);
    server.say(more('m2', 'o'), end('m2'), finished('r2'));
    expect(texts(await until((each) => rests(each) && texts(each).at(-1) === 'two'))).toEqual(['one', 'more', 'two']);
  });

  it('a page that nobody sees asks nothing', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), finished('r1'));
    const { page, until } = opened(server);
    await until(rests);
    await page.waits();
    const asked = server.asked.length;
    page.seen = false;
    page.pass();
    await page.waits(); // again
    expect(server.asked.length).toBe(asked);
  });

  it('another tab tells at once', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), finished('r1'));
    const { page, until } = opened(server);
    await until(rests);
    await page.waits();
    server.say(started('r2'), ...begin('m2', 'two'));
    page.hears('another thread');
    page.hears('t');
    expect(texts(await until((each) => each.standing === 'live'))).toContain('two');
  });
});

describe('sending', () => {
  it('shows the message at once, and the run when it is there', async () => {
    const server = new PlayedServer();
    server.exists = false;
    const { store, page, until } = opened(server);
    await until(rests);
    const sent = store.send('hello');
    expect(store.get()).toMatchObject({ sending: true, sent: [{ content: 'hello' }] });
    expect(page.kept.size).toBe(1);
    await sent;
    expect(page.told).toEqual(['t']);
    expect(page.kept.size).toBe(0);
    server.say(...begin('m1', 'hi'), end('m1'), finished('id2'));
    const snapshot = await until((each) => rests(each) && each.thread !== undefined);
    expect([texts(snapshot), snapshot.sent, snapshot.sending]).toEqual([['hello', 'hi'], [], false]);
  });

  it('says what the page shows, and is shown although no log tells it', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), ...begin('m1', 'one'), end('m1'), finished('r1'));
    const { store, until } = opened(server);
    await until(rests);
    await store.send('more');
    server.say(...begin('m2', 'two'), end('m2'), finished('id2'));
    const snapshot = await until((each) => rests(each) && texts(each).at(-1) === 'two');
    expect(texts(snapshot)).toEqual(['go', 'one', 'more', 'two']);
    const inputs = server.asked.filter(({ path }) => path.endsWith('/runs') && path !== '/threads/t/runs').map(({ body }) => body as RunInput);
    expect(inputs.map(({ forwardedProps }) => forwardedProps.holdfast.since)).toEqual(['m1']);
  });

  it('goes to a server that is older than the page, too', async () => {
    const server = new PlayedServer();
    server.older = true;
    server.say(started('r1'), ...begin('m1', 'one'), end('m1'), finished('r1'));
    const { store, until } = opened(server);
    await until(rests);
    await store.send('more');
    server.say(...begin('m2', 'two'), end('m2'), finished('id2'));
    await until((each) => rests(each) && texts(each).at(-1) === 'two');
    const inputs = server.asked.filter(({ path }) => path.endsWith('/runs') && path !== '/threads/t/runs').map(({ body }) => body as RunInput);
    expect(inputs.map(({ runId, forwardedProps }) => [runId, forwardedProps.holdfast])).toEqual([
      ['id2', { chat: true, onInterrupted: 'reject', since: 'm1' }],
      ['id2', { chat: true, onInterrupted: 'reject' }],
    ]);
  });

  it('that is refused rejects, and the thread stays as it is', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), ...begin('m1', 'one'), end('m1'), finished('r1'));
    const { store, page, until } = opened(server);
    await until(rests);
    server.refuses = { status: 409, code: 'interrupted' };
    const error: unknown = await store.send('hello').catch((refused: unknown) => refused);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code: 'interrupted', status: 409 });
    const after = await until((each) => rests(each) && !each.sending);
    expect([after.sent, page.kept.size, texts(after)]).toEqual([[], 0, ['go', 'one']]);
  });

  it('twice at the same time is refused by the page itself', async () => {
    const server = new PlayedServer();
    const { store, until } = opened(server);
    await until(rests);
    const first = store.send('a');
    await expect(store.send('b')).rejects.toMatchObject({ code: 'sending' });
    await first;
  });

  it('survives a reload: the same run is asked for again', async () => {
    const server = new PlayedServer();
    server.exists = false;
    const { store, page, until } = opened(server);
    await until(rests);
    server.down = true;
    void store.send('hello').catch(() => {});
    await until((each) => each.standing === 'reconnecting');
    closing.splice(0).forEach((close) => close());
    server.down = false;
    const again = opened(server, page);
    await again.until((each) => each.standing === 'live' && each.view.status === 'running');
    expect(server.asked.filter(({ path }) => path === '/runs').map(({ body }) => (body as RunInput).runId)).toEqual(['id2']);
    expect(page.kept.size).toBe(0);
  });

  it('that an earlier visit has sent and that is refused now is there to be sent again', async () => {
    const server = new PlayedServer();
    server.exists = false;
    server.down = true;
    const page = new PlayedPage();
    const first = opened(server, page);
    const left = first.store.send('hello');
    void left.catch(() => {});
    await first.until((snapshot) => snapshot.sending);
    closing.pop()?.();
    server.down = false;
    server.refuses = { status: 409, code: 'interrupted' };
    const { store, until } = opened(server, page);
    const { refused } = await until((snapshot) => snapshot.refused !== undefined);
    expect(refused).toMatchObject({ content: 'hello', error: { code: 'interrupted' } });
    expect(page.kept.size).toBe(0);
    store.forget();
    expect(store.get().refused).toBeUndefined();
  });

  it('that is stopped at once is cancelled when the server has it, and not if it is refused', async () => {
    const server = new PlayedServer();
    server.exists = false;
    const { store } = opened(server);
    const sent = store.send('hello');
    await store.stop();
    await sent;
    const posted = () => server.asked.filter((a) => a.method === 'POST').map((a) => a.path);
    expect(posted()).toEqual(['/runs', `/threads/t/runs/${server.runs[0]?.id}/cancel`]);
    server.say(finished(server.runs[0]?.id ?? ''));
    server.refuses = { status: 409, code: 'interrupted' };
    const refused = store.send('again').catch((error: ApiError) => error.code);
    await store.stop();
    expect(await refused).toBe('interrupted');
    expect(posted().length).toBe(3);
  });

  it('an edit names what comes before it', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u1', role: 'user', content: 'go' }] }, ...begin('m1', 'one'), end('m1'), finished('r1'));
    server.say(started('r2'), { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'u1', role: 'user', content: 'go' }, { id: 'm1', role: 'assistant', content: 'one' }, { id: 'u2', role: 'user', content: 'more' }] }, ...begin('m2', 'two'), end('m2'), finished('r2'));
    const { store, until } = opened(server);
    await until(rests);
    await store.edit('u2', 'less');
    const asked = server.asked.at(-1)?.body as RunInput;
    expect(asked.messages.map(({ id, content }) => [id, content])).toEqual([['u1', 'go'], ['m1', 'one'], ['id1', 'less']]);
    expect(asked.forwardedProps.holdfast).toMatchObject({ chat: true, branch: true, whole: true });
    server.say(...begin('m3', 'three'), finished('id2'));
    await until((each) => rests(each) && texts(each).includes('three'));
    await store.regenerate('u1');
    expect((server.asked.at(-1)?.body as RunInput).messages.map(({ id }) => id)).toEqual(['u1']);
  });

  it('is stopped as soon as the server knows of it, and not at all if it was refused', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), finished('r1'));
    const { store, until } = opened(server);
    await until(rests);
    const posts = () => server.asked.filter(({ method }) => method === 'POST').map(({ path }) => path);
    const sent = store.send('hello');
    await Promise.all([store.stop(), sent]);
    expect(posts()).toEqual(['/agents/a/runs', `/threads/t/runs/${server.runs.at(-1)?.id}/cancel`]);
    server.say(finished(server.runs.at(-1)?.id ?? ''));
    await until(rests);
    server.refuses = { status: 409, code: 'run_in_progress' };
    const refused = store.send('again');
    await Promise.all([store.stop(), expect(refused).rejects.toMatchObject({ code: 'run_in_progress' })]);
    expect(posts()).toHaveLength(3);
  });

  it('answers, stops and other actions reach the server', async () => {
    const server = new PlayedServer();
    server.say(started('r1'), ...begin('m1', 'a'));
    const { store, page, until } = opened(server);
    await until((each) => each.standing === 'live');
    await store.stop();
    expect(server.asked.at(-1)).toMatchObject({ method: 'POST', path: '/threads/t/runs/r1/cancel' });
    await store.act({ method: 'POST', path: 'threads/t/rewind', body: { messageId: 'm1' } });
    expect(page.told).toEqual(['t']);
    server.say(finished('r1'));
    await until(rests);
    await store.answer([{ interruptId: 'i', status: 'cancelled' }]);
    expect(server.asked.findLast(({ path }) => path === '/agents/a/runs')?.body).toMatchObject({ resume: [{ interruptId: 'i', status: 'cancelled' }], messages: [] });
  });
});

it('many events of one frame are one notification', async () => {
  const server = new PlayedServer();
  server.say(started('r1'), ...begin('m1', 'a'));
  const { store, page, until } = opened(server);
  await until((each) => each.standing === 'live' && server.watchers === 1);
  const held: (() => void)[] = [];
  page.frame = (call) => void held.push(call);
  let told = 0;
  const seen = new Promise<void>((done) => store.subscribe(() => {
    told++;
    done();
  }));
  for (let i = 0; i < 50; i++) server.say(more('m1', 'x'));
  server.say(finished('r1'));
  await new Promise((done) => setTimeout(done));
  for (const call of held.splice(0)) call();
  await seen;
  expect([told, held.length]).toEqual([1, 0]);
});
