import { act, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { expectAccessible } from '../../test/axe.ts';
import { page, refusal, stream, type Routes } from '../../test/fake.tsx';
import type { ThreadInfo } from '../api/types.ts';
import { Conversation } from './Conversation.tsx';

// jsdom has no layout: the conversation gets a height.
beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(800);
  vi.spyOn(HTMLElement.prototype, 'offsetWidth', 'get').mockReturnValue(800);
  return () => vi.restoreAllMocks();
});

type Event = Readonly<Record<string, unknown>> & { readonly type: string };

const info = (more: Partial<ThreadInfo> = {}): ThreadInfo => ({ id: 't1', title: 'Drinks', agent: 'demo', status: 'idle', outcome: 'success', runId: 'r1', iteration: 1, cursor: '4-x', updatedAt: '2026-01-01T00:00:00Z', etag: '1', ...more });
const agents = { agents: [{ name: 'demo', description: 'Says things.', default: true, tools: [], middleware: [], capabilities: {} }, { name: 'writer', description: '', default: false, tools: [], middleware: [], capabilities: { multimodal: { input: { image: false } } } }] };

const started: Event = { type: 'RUN_STARTED', threadId: 't1', runId: 'r1', timestamp: 1000 };
const asked: Event = { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'm1', role: 'user', content: 'Tea, please' }] };
const answer: Event[] = [{ type: 'TEXT_MESSAGE_START', messageId: 'm2', role: 'assistant' }, { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm2', delta: 'Here **it** is.' }, { type: 'TEXT_MESSAGE_END', messageId: 'm2' }];
const finished: Event = { type: 'RUN_FINISHED', threadId: 't1', runId: 'r1', outcome: { type: 'success' }, timestamp: 3000 };

/** A server with one thread of one run. */
const served = (events: readonly Event[], thread: ThreadInfo = info(), more: Routes = () => undefined): Routes => (request) => {
  const { method, path } = request;
  const own = more(request);
  if (own !== undefined) return own;
  if (path === 'agents') return agents;
  if (path === 'threads/t1' && method === 'GET') return thread;
  if (path.startsWith('threads/t1/runs?')) return { runs: [{ id: 'r1', agent: 'demo', startedAt: '2026-01-01T00:00:00Z' }] };
  if (path.startsWith('threads/t1/runs/r1/log')) return { records: path.includes('after=&') || path.includes('?limit') ? events.map((event, i) => ({ cursor: `${i + 1}-x`, number: i + 1, event })) : [], ended: true };
  if (path === 'threads/t1/stream') return stream([...events].slice(-1).map((event) => ({ event: { ...event } })).flatMap((end) => [{ event: started }, end]));
  return undefined;
};

const log = () => screen.getByRole('log', { name: 'Conversation' });

describe('a new thread', () => {
  it('teaches, and shows examples only with the demo model', async () => {
    const { unmount } = page(<Conversation />, { routes: ({ path }) => (path === 'agents' ? agents : undefined) });
    expect(screen.getByRole('heading', { name: 'New thread' })).toBeTruthy();
    expect(screen.queryByRole('list', { name: 'Examples' })).toBeNull();
    await expectAccessible();
    unmount();
    page(<Conversation />, { routes: ({ path }) => (path === 'agents' ? agents : path === 'ui/config.json' ? { version: 'v1', demo: true } : undefined) });
    expect(await screen.findByRole('list', { name: 'Examples' })).toBeTruthy();
    await expectAccessible();
  });

  it('asks the server for nothing of it, has a choice of agents, and begins with the first message', async () => {
    const { asked: requests, studio } = page(<Conversation />, { routes: (r) => (r.path === 'agents' ? agents : r.method === 'POST' ? stream([{ event: { ...started, threadId: 'x', runId: 'x' }, cursor: '1-x' }, ...answer.map((event, i) => ({ event, cursor: `${i + 2}-x` })), { event: { ...finished, threadId: 'x', runId: 'x' }, cursor: '5-x' }]) : undefined) });
    await userEvent.selectOptions(await screen.findByLabelText('Agent'), 'writer');
    expect(requests.some((r) => r.path.startsWith('threads/'))).toBe(false);
    await userEvent.type(screen.getByLabelText('Message'), 'Tea, please{Enter}');
    await expect.poll(() => studio.router.get().thread).toBeTruthy();
    expect(await within(await screen.findByRole('log')).findByText('Tea, please')).toBeTruthy();
    await expect.poll(() => requests.find((r) => r.method === 'POST')).toMatchObject({ path: 'agents/writer/runs', body: { messages: [{ role: 'user', content: 'Tea, please' }], forwardedProps: { holdfast: { chat: true } } } });
    expect(localStorage.getItem('holdfast.draft.')).toBeNull();
  });

  it('gives back what was refused, and says why', async () => {
    page(<Conversation />, { routes: (r) => (r.path === 'agents' ? agents : r.method === 'POST' ? refusal(400, 'media_refused', 'This agent takes no images.', { hint: 'Leave them out.' }) : undefined) });
    await userEvent.type(screen.getByLabelText('Message'), 'Look{Enter}');
    expect(await screen.findByText('This agent takes no images.')).toBeTruthy();
    await expect.poll(() => (screen.getByLabelText('Message') as HTMLTextAreaElement).value).toBe('Look');
    await expectAccessible();
  });

  it('keeps what one has begun to write', async () => {
    const { unmount } = page(<Conversation />);
    await userEvent.type(screen.getByLabelText('Message'), 'not yet');
    unmount();
    page(<Conversation />);
    expect((screen.getByLabelText('Message') as HTMLTextAreaElement).value).toBe('not yet');
  });
});

describe('a thread', () => {
  it('is loading, then shown, and named', async () => {
    page(<Conversation />, { hash: '#/threads/t1', routes: served([started, asked, ...answer, finished]) });
    await expectAccessible();
    expect(await within(await screen.findByRole('log')).findByText('it')).toBeTruthy();
    expect(within(log()).getByText('Tea, please')).toBeTruthy();
    expect(screen.getByRole('heading', { level: 1 }).textContent).toBe('Drinks');
    await expect.poll(() => document.title).toBe('Drinks · Holdfast');
    expect(log().getAttribute('aria-live')).toBe('off');
    await expectAccessible();
  });

  it('asks over the composer, and declines if one writes', async () => {
    const interrupts = [{ id: 'q1', reason: 'input_required', message: 'Which one?', responseSchema: { type: 'object', required: ['answer'], properties: { answer: { enum: ['green', 'black'] } } } }];
    const waiting: Event = { ...finished, outcome: { type: 'interrupt', interrupts } };
    const { asked: requests } = page(<Conversation />, { hash: '#/threads/t1', routes: served([started, asked, waiting], info({ status: 'interrupted', outcome: 'interrupt', interrupts }), (r) => (r.method === 'POST' ? refusal(409, 'thread_gone', 'No.') : undefined)) });
    expect(await screen.findByRole('heading', { level: 2, name: 'Which one?' })).toBeTruthy();
    expect(screen.getByPlaceholderText('Answer above, or write to decline')).toBeTruthy();
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'black' }));
    await expect.poll(() => requests.find((r) => r.method === 'POST')?.body).toMatchObject({ messages: [], resume: [{ interruptId: 'q1', status: 'resolved', payload: { answer: 'black' } }] });
    await expect.poll(() => screen.queryByText('No.')).toBeTruthy();
    await userEvent.type(screen.getByLabelText('Message'), 'Never mind{Enter}');
    await expect.poll(() => requests.filter((r) => r.method === 'POST').at(-1)?.body).toMatchObject({ forwardedProps: { holdfast: { onInterrupted: 'decline' } } });
  });

  it('that failed can be continued', async () => {
    const error: Event = { type: 'RUN_ERROR', code: 'model_failed', message: 'The model is not available.', timestamp: 2000 };
    const { asked: requests } = page(<Conversation />, { hash: '#/threads/t1', routes: served([started, asked, error], info({ status: 'stopped', outcome: 'error', code: 'model_failed' }), (r) => (r.method === 'POST' ? refusal(409, 'x', 'Not now.') : undefined)) });
    expect(await screen.findByText(/The run has failed/)).toBeTruthy();
    expect(screen.getByText(/The model is not available/)).toBeTruthy();
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Continue' }));
    await expect.poll(() => requests.find((r) => r.method === 'POST')).toMatchObject({ path: 'agents/demo/runs', body: { messages: [] } });
  });

  it('that waits for somebody outside says for whom', async () => {
    const outside: Event = { ...finished, metadata: { holdfast: { outsideCalls: [{ toolCallId: 'c1', toolName: 'request_approval', abandonable: true }] } } };
    page(<Conversation />, { hash: '#/threads/t1', routes: served([started, asked, outside]) });
    expect(await screen.findByText(/waits for its result from outside/)).toBeTruthy();
    await expectAccessible();
  });

  it('is looked at as it was, where nothing can be changed', async () => {
    page(<Conversation />, { hash: '#/threads/t1?at=2-x', routes: served([started, asked, ...answer, finished]) });
    expect(await screen.findByText('Tea, please')).toBeTruthy();
    expect(screen.queryByText('it')).toBeNull();
    expect(screen.queryByLabelText('Message')).toBeNull();
    await expectAccessible();
  });

  it('that one may not see says so', async () => {
    page(<Conversation />, { hash: '#/threads/t1', routes: () => refusal(403, 'forbidden', 'This key may not read.') });
    expect(await screen.findByText('This thread cannot be shown')).toBeTruthy();
    await expectAccessible();
  });

  it('that does not exist says so, and can be begun', async () => {
    page(<Conversation />, { hash: '#/threads/t9', routes: ({ path }) => (path === 'agents' ? agents : undefined) });
    expect(await screen.findByText('Nothing is here')).toBeTruthy();
    await expectAccessible();
  });

  it('is not said to be missing while the server cannot be reached', async () => {
    const down = () => { throw new TypeError('connection refused'); };
    page(<Conversation />, { hash: '#/threads/t1', routes: ({ path }) => (path.startsWith('threads/') ? down() : undefined) });
    expect(await screen.findByText('The server cannot be reached')).toBeTruthy();
    expect(screen.queryByText('Nothing is here')).toBeNull();
    await expectAccessible();
  });

  it('in which nothing is said any more says so', async () => {
    page(<Conversation />, { hash: '#/threads/t1', routes: ({ path }) => (path === 'threads/t1' ? info({ runId: '' }) : path.startsWith('threads/t1/runs?') ? { runs: [] } : path === 'threads/t1/stream' ? stream([{ event: { ...started } }, { event: { ...finished } }]) : undefined) });
    expect(await screen.findByText('Nothing is said here')).toBeTruthy();
    expect(screen.queryByText(/does not exist/)).toBeNull();
  });

  it('is renamed in its heading', async () => {
    const { asked: requests } = page(<Conversation />, { hash: '#/threads/t1', routes: served([started, asked, finished], info(), (r) => (r.method === 'PATCH' ? {} : undefined)) });
    await userEvent.click(await screen.findByRole('button', { name: 'Drinks' }));
    const field = await screen.findByLabelText('Title');
    await expectAccessible();
    await userEvent.clear(field);
    await userEvent.type(field, 'Hot drinks{Enter}');
    await expect.poll(() => requests.find((r) => r.method === 'PATCH')?.body).toEqual({ title: 'Hot drinks' });
  });

  it('has its commands in the palette', async () => {
    const { studio } = page(<Conversation />, { hash: '#/threads/t1', routes: served([started, asked, finished]) });
    await screen.findByRole('button', { name: 'Drinks' });
    const ids = () => studio.commands.list.get().map((c) => c.id);
    expect(ids()).toEqual(expect.arrayContaining(['conversation.write', 'conversation.stop', 'conversation.next', 'thread.rename', 'thread.delete', 'thread.curl.follow it', 'conversation.curl']));
    act(() => studio.commands.list.get().find((c) => c.id === 'conversation.write')?.run());
    expect(document.activeElement).toBe(screen.getByLabelText('Message'));
  });
});
