import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import * as actions from './actions';
import { curl } from './curl';
import { ApiError, baseOf, connect, requestOf, type Keys } from './request';

const answer = (status: number, body: unknown, headers: Record<string, string> = {}): Response => new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers });

/** A server of canned answers, which remembers what it was asked. */
function canned(...answers: (Response | Error)[]): { via: typeof fetch; asked: { url: string; init: RequestInit }[] } {
  const asked: { url: string; init: RequestInit }[] = [];
  const via: typeof fetch = async (url, init = {}) => {
    asked.push({ url: String(url), init });
    const next = answers.shift();
    if (next === undefined || next instanceof Error) throw next ?? new Error('no answer left');
    return next;
  };
  return { via, asked };
}

const failure = async (promise: Promise<unknown>): Promise<ApiError> => promise.then(() => expect.unreachable(), (error: unknown) => error as ApiError);

describe('a request', () => {
  it('goes to the server’s address, below its path prefix', () => {
    expect(baseOf({ href: 'https://x/agents/' })).toBe('https://x/agents/');
    expect(baseOf({ href: 'https://x/agents/?a=b/c#/threads/t' })).toBe('https://x/agents/');
    expect(baseOf({ href: 'http://localhost:8080/' })).toBe('http://localhost:8080/');
  });

  it('has the key, and a body with its type', async () => {
    const { via, asked } = canned(answer(200, { ok: true }));
    const server = connect('http://s/p/', { current: () => 'hf_1', ask: () => Promise.reject(new Error('asked')) }, via);
    expect(await server.json(actions.describe('a/b', { title: 'x' }))).toEqual({ ok: true });
    expect(asked[0]).toMatchObject({ url: 'http://s/p/threads/a%2Fb', init: { method: 'PATCH', body: '{"title":"x"}', headers: { 'Content-Type': 'application/json', Authorization: 'Bearer hf_1' } } });
  });

  it('is sent again with another key', async () => {
    const { via, asked } = canned(answer(401, {}), answer(200, {}));
    let key = '';
    const refused: string[] = [];
    const keys: Keys = { current: () => key, ask: async (old) => { refused.push(old); key = 'hf_2'; } };
    await connect('http://s/', keys, via).send(actions.agents());
    expect(refused).toEqual(['']);
    expect(asked.map(({ init }) => (init.headers as Record<string, string>)['Authorization'])).toEqual([undefined, 'Bearer hf_2']);
  });

  it('that nobody has a key for is an error', async () => {
    const { via } = canned(answer(401, {}));
    expect(await failure(connect('http://s/', undefined, via).send(actions.agents()))).toMatchObject({ status: 401, code: 'unauthorized' });
  });

  it('that is refused says what to do next', async () => {
    const error = { code: 'rate', message: 'No.', hint: 'Wait.', details: { runId: 'r' } };
    const { via } = canned(answer(429, { error }, { 'Retry-After': '7' }), answer(500, '<html>'), new TypeError('failed'));
    const server = connect('http://s/', undefined, via);
    const refused = await failure(server.send(actions.agents()));
    expect(refused).toMatchObject({ ...error, status: 429, retryAfter: 7, passes: true });
    expect(await failure(server.send(actions.agents()))).toMatchObject({ status: 500, code: 'http_500', message: 'The server answered 500.', passes: false });
    expect(await failure(server.send(actions.agents()))).toMatchObject({ status: 0, code: 'unreachable', passes: true });
  });

  it('that deletes is finished also when the page is left', () => {
    expect(requestOf(actions.remove('t')).keepalive).toBe(true);
    expect(requestOf(actions.describe('t', { title: 'x' })).keepalive).toBeUndefined();
  });

  it('that is aborted is no failure of the server', async () => {
    const stop = new AbortController();
    const via: typeof fetch = async () => {
      stop.abort();
      throw new DOMException('aborted', 'AbortError');
    };
    expect(await failure(connect('http://s/', undefined, via).send(actions.agents(), stop.signal))).not.toBeInstanceOf(ApiError);
  });
});

describe('an action', () => {
  it('names what it is about', () => {
    expect(actions.rewind('t', { messageId: 'm', reuse: ['c1'], preview: true }, 'e1')).toEqual({ method: 'POST', path: 'threads/t/rewind', body: { messageId: 'm', reuse: ['c1'], preview: true }, headers: { 'If-Match': 'e1' } });
    expect(actions.follow('t', '5-x').headers).toMatchObject({ 'Last-Event-ID': '5-x' });
    expect(actions.threads('', 20, '*').path).toBe('threads?limit=20&user=*');
    expect(actions.as('alice', actions.log('t', 'r', '9-z', 100))).toEqual({ method: 'GET', path: 'threads/t/runs/r/log?after=9-z&limit=100', headers: { 'Holdfast-User': 'alice' } });
    expect(actions.remove('t', true).path).toBe('threads/t?children=delete');
    expect(actions.run(actions.runInput('t', 'r', {}), 'a b').path).toBe('agents/a%20b/runs');
  });

  it('chats, but does not decline a question by itself', () => {
    const { forwardedProps, messages } = actions.runInput('t', 'r', {});
    expect(forwardedProps.holdfast).toEqual({ chat: true, onInterrupted: 'reject' });
    expect(messages).toEqual([]);
  });

  it('is a command that a shell takes as it is meant', () => {
    const body = { title: "it's $HOME `x` \"q\" \\ ü\n2" };
    const command = curl('http://localhost:8080/', { ...actions.describe('t', {}), body });
    // A shell reads it: what curl would get as its last word is the body.
    const last = execFileSync('sh', ['-c', command.replace(/^curl /, 'for word in ') + '; do last="$word"; done; printf %s "$last"']).toString();
    expect(JSON.parse(last)).toEqual(body);
    expect(command).toContain('-X PATCH http://localhost:8080/threads/t -H \'Content-Type: application/json\'');
  });

  it('as a command has no key in it', () => {
    expect(curl('http://s/', actions.agents(), true)).toBe('curl http://s/agents -H "Authorization: Bearer $HOLDFAST_KEY"');
    expect(curl('http://s/', actions.follow('t'))).toBe("curl -N http://s/threads/t/stream -H 'Accept: text/event-stream'");
    expect(curl('http://s/', actions.runs('t'))).toBe("curl 'http://s/threads/t/runs?limit=50'");
    expect(curl('http://s/', actions.cancel('t', 'r'))).toBe("curl -X POST http://s/threads/t/runs/r/cancel -H 'Content-Type: application/json'");
  });
});
