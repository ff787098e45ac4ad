import { act, fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { expectAccessible } from '../../test/axe.ts';
import { page, refusal, stream, type Page, type Routes } from '../../test/fake.tsx';
import type { Agent, RunInfo, ThreadInfo } from '../api/types.ts';
import Inspector from './Inspector.tsx';

type Event = Readonly<Record<string, unknown>> & { readonly type: string };

const at = (ms: number): string => new Date(1_700_000_000_000 + ms).toISOString();
const ts = (ms: number): number => 1_700_000_000_000 + ms;

const events: readonly Event[] = [
  { type: 'RUN_STARTED', threadId: 't1', runId: 'r1', timestamp: ts(0), input: { messages: [{ id: 'u1', role: 'user', content: 'Plan it' }] } },
  { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant', timestamp: ts(100) },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'Hold ' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'fast' },
  { type: 'TEXT_MESSAGE_END', messageId: 'm1', timestamp: ts(300) },
  { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'lookup', parentMessageId: 'm1', timestamp: ts(300) },
  { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"term":"fence"}' },
  { type: 'TOOL_CALL_END', toolCallId: 'c1', timestamp: ts(310) },
  { type: 'STATE_SNAPSHOT', snapshot: { plan: { steps: 1 } }, timestamp: ts(320) },
  { type: 'TOOL_CALL_RESULT', messageId: 'm2', toolCallId: 'c1', content: 'a word', role: 'tool', timestamp: ts(900) },
  { type: 'STATE_DELTA', delta: [{ op: 'replace', path: '/plan/steps', value: 2 }], timestamp: ts(910) },
  { type: 'RUN_FINISHED', threadId: 't1', runId: 'r1', outcome: { type: 'success' }, timestamp: ts(1000) },
];

const thread: ThreadInfo = { id: 't1', title: 'A plan', agent: 'demo', status: 'idle', outcome: 'success', runId: 'r1', iteration: 1, cursor: '12-x', updatedAt: at(1000), etag: '1' };
const run: RunInfo = {
  id: 'r1', agent: 'demo', revision: 'abc', startedAt: at(0), endedAt: at(1000), outcome: 'success', records: 12, durability: 'machine', cost: 0.0123,
  processes: [{ process: 'p1', epoch: 1, tag: 'x', since: at(0) }],
  usage: [{ provider: 'acme', model: 'large', inputTokens: 1000, cachedInputTokens: 250, outputTokens: 50, totalTokens: 1050, cost: 0.0123 }],
};
const agent: Agent = {
  name: 'demo', description: '', default: true, demo: true, models: ['demo/demo'], approvals: 'user', middleware: [], capabilities: {},
  tools: [{ name: 'lookup', description: 'Explains a word.', effect: 'pure', timeoutMs: 30_000, parameters: { type: 'object', properties: { term: { type: 'string' } } } }],
};

const served = (more: Routes = () => undefined, records: readonly Event[] = events): Routes => (request) => {
  const own = more(request);
  if (own !== undefined) return own;
  const { path } = request;
  if (path === 'threads/t1') return thread;
  if (path === 'agents') return { agents: [agent] };
  if (path.startsWith('threads/t1/runs?')) return { runs: [run] };
  if (path.startsWith('threads/t1/runs/r1/log')) return { records: path.includes('after') ? [] : records.map((event, i) => ({ cursor: `${i + 1}-x`, number: i + 1, event })), ended: true };
  if (path === 'threads/t1/stream') return stream([{ event: { type: 'RUN_STARTED', threadId: 't1', runId: 'r1' } }, { event: { type: 'RUN_FINISHED', threadId: 't1', runId: 'r1', outcome: { type: 'success' } } }]);
  if (path.startsWith('threads/t1/checkpoints?')) return { checkpoints: [] };
  if (path.startsWith('threads/t1/calls')) return { calls: [{ toolCallId: 'c1', toolName: 'lookup', effect: 'pure', attempts: 1, startedAt: at(310), endedAt: at(900) }] };
  if (path === 'threads/t1/usage') return { runs: 3, usage: run.usage, cost: 0.0123, incomplete: true };
  if (path.startsWith('threads/t1/messages')) return { messages: [] };
  return undefined;
};

const open = (hash: string, routes = served()): Page => page(<div className="inspector-frame"><Inspector /></div>, { hash, routes });

const records = () => screen.findByRole('log', { name: 'Records' });

describe('events', () => {
  it('are grouped, opened, and shown whole; a record has an address', async () => {
    const { studio } = open('#/threads/t1');
    const list = await records();
    expect(within(list).getByText('Hold fast')).toBeTruthy();
    expect(within(list).queryByText('TEXT_MESSAGE_CONTENT')).toBeNull();
    await expectAccessible();
    await userEvent.click(within(list).getByRole('button', { name: 'assistant, 4 records' }));
    await userEvent.click(within(list).getAllByText('TEXT_MESSAGE_CONTENT')[1] as Element);
    const record = await screen.findByRole('region', { name: 'Record 4' });
    expect(within(record).getByRole('tree')).toBeTruthy();
    await waitFor(() => expect(studio.router.get().more).toEqual({ record: '4-x' }));
    await expectAccessible();
    await userEvent.click(within(record).getByRole('button', { name: 'Raw' }));
    expect(within(record).getByRole('region', { name: 'Raw JSON' }).textContent).toContain('"delta": "fast"');
    await userEvent.click(within(record).getByRole('button', { name: 'Record after' }));
    expect(await screen.findByRole('region', { name: 'Record 5' })).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Close the record' }));
    await waitFor(() => expect(studio.router.get().more).toBeUndefined());
  });

  it('lead from a record to its message, and to the thread as it was', async () => {
    const { studio } = open('#/threads/t1?record=10-x');
    await userEvent.click(await screen.findByRole('button', { name: 'In the conversation' }));
    expect(studio.router.get().more?.['item']).toBe('c:c1');
    await userEvent.click(screen.getByRole('button', { name: 'As it was here' }));
    expect(studio.router.get().at).toBe('10-x');
  });

  it('say what a record has changed in the state', async () => {
    open('#/threads/t1?record=11-x');
    const record = await screen.findByRole('region', { name: 'Record 11' });
    await userEvent.click(within(record).getByRole('button', { name: 'Changes' }));
    expect(await screen.findByRole('list', { name: 'Changes of the record in the shared state' })).toBeTruthy();
    await expectAccessible();
  });

  it('are searched, and filtered by family, as the address says', async () => {
    const { studio } = open('#/threads/t1');
    await records();
    await userEvent.type(screen.getByRole('searchbox', { name: 'Search in the records' }), 'a word');
    expect(await screen.findByText('1 record found')).toBeTruthy();
    expect(within(await records()).queryByText('Hold fast')).toBeNull();
    expect(studio.router.get().more?.['find']).toBe('a word');
    await userEvent.type(screen.getByRole('searchbox', { name: 'Search in the records' }), ' that is nowhere');
    expect(await screen.findByText('No record matches')).toBeTruthy();
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Show all records' }));
    await userEvent.click(screen.getByRole('button', { name: 'Filter by family' }));
    await userEvent.click(await screen.findByRole('menuitemcheckbox', { name: /Text/ }));
    await waitFor(() => expect(studio.router.get().more?.['families']).toBe('run,call,state'));
    await waitFor(() => expect(screen.queryByText('Hold fast')).toBeNull());
  });

  it('go by the keyboard', async () => {
    open('#/threads/t1?list=flat&record=2-x');
    const list = await records();
    await screen.findByRole('region', { name: 'Record 2' });
    act(() => list.focus());
    await userEvent.keyboard('{ArrowDown}');
    expect(await screen.findByRole('region', { name: 'Record 3' })).toBeTruthy();
    await userEvent.keyboard('{End}');
    expect(await screen.findByRole('region', { name: 'Record 12' })).toBeTruthy();
  });

  it('of a long log are in the page only where they are seen', async () => {
    const long: Event[] = [events[0] as Event, events[1] as Event, ...Array.from({ length: 20_000 }, () => events[2] as Event), events[4] as Event, events[11] as Event];
    open('#/threads/t1?list=flat', served(undefined, long));
    const list = await records();
    expect(within(list).getAllByRole('listitem').length).toBeLessThanOrEqual(200);
    expect(within(list).getAllByRole('listitem')[0]?.getAttribute('aria-setsize')).toBe(String(long.length)); // without what was there before the run, which is no record
  });

  it('are said to be missing, in words, and load in lines', async () => {
    const { unmount } = open('#/threads/t1', served(undefined, []));
    expect(await screen.findByText('No records yet')).toBeTruthy();
    await expectAccessible();
    unmount();
    const never = open('#/threads/t1', () => new Promise(() => {}));
    expect(await screen.findAllByText('Loading')).toBeTruthy();
    await expectAccessible();
    never.unmount();
    open('#/threads/t1', () => refusal(403, 'forbidden', 'This thread is somebody else’s.'));
    expect(await screen.findByText('This thread is somebody else’s.')).toBeTruthy();
    await expectAccessible();
  });

  it('of hostile content are text', async () => {
    const evil = '<img src=x onerror=alert(1)>';
    open('#/threads/t1?list=flat&record=2-x', served(undefined, [events[0] as Event, { type: evil, [evil]: evil, delta: evil }]));
    await screen.findByRole('region', { name: 'Record 2' });
    expect(document.querySelector('img')).toBeNull();
    await expectAccessible();
  });
});

describe('the state', () => {
  it('is shown at each change, with what the change was', async () => {
    const { studio } = open('#/threads/t1?tab=state');
    expect(await screen.findByRole('tree', { name: 'Shared state' })).toBeTruthy();
    expect(screen.getByText(/Change 2 of 2/)).toBeTruthy();
    expect(document.querySelector('.json-marked')?.textContent).toContain('steps');
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Change before' }));
    expect(await screen.findByText(/Change 1 of 2/)).toBeTruthy();
    expect(studio.router.get().at).toBe('9-x');
    await userEvent.click(screen.getByRole('button', { name: 'Changes' }));
    expect(await screen.findByRole('list', { name: 'Changes of the record' })).toBeTruthy();
    await expectAccessible();
    await userEvent.click(screen.getAllByRole('button', { name: 'Now' })[0] as Element);
    expect(studio.router.get().at).toBeUndefined();
  });

  it('says where there is none', async () => {
    open('#/threads/t1?tab=state', served(undefined, events.filter((event) => !event.type.startsWith('STATE'))));
    expect(await screen.findByText('No shared state')).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Middleware' }));
    expect(await screen.findByText(/there is none at this place/)).toBeTruthy();
    await expectAccessible();
  });

  it('has what middleware keeps, by checkpoint', async () => {
    const checkpoint = (id: string, n: number) => ({ id, threadId: 't1', createdAt: at(Number(id) * 100), format: 9, agent: 'demo', runId: 'r1', status: 'idle', iteration: n, metadata: { source: 'loop', step: n } });
    open('#/threads/t1?tab=state', served(({ path }) => {
      if (path.startsWith('threads/t1/checkpoints?')) return { checkpoints: [checkpoint('2', 2), checkpoint('1', 1)] };
      const id = /checkpoints\/(\d)$/.exec(path)?.[1];
      return id && { ...checkpoint(id, Number(id)), messages: [], state: null, middlewareState: { schemaSignature: null, schemaVersion: 1, stateVersions: null, states: { budget: { used: Number(id) } } } };
    }));
    await userEvent.click(await screen.findByRole('button', { name: 'Middleware' }));
    expect(await screen.findByRole('tree', { name: 'Middleware states' })).toBeTruthy();
    await waitFor(() => expect(document.querySelector('.json-marked')?.textContent).toContain('used'));
    await expectAccessible();
  });
});

describe('a run', () => {
  it('is shown in time, with what it has used', async () => {
    open('#/threads/t1?tab=run');
    const chart = await screen.findByRole('group', { name: /The run in time/ });
    const tool = within(chart).getByRole('button', { name: 'Tool lookup, 590 ms, began after 310 ms' });
    await expectAccessible();
    act(() => within(chart).getAllByRole('button', { name: /Waiting for the model/ })[0]?.focus());
    await userEvent.keyboard('{End}');
    await userEvent.keyboard('{ArrowLeft}');
    await waitFor(() => expect(chart.querySelector('[aria-pressed="true"]')).toBeTruthy());
    await userEvent.click(tool);
    expect(within(chart).getByRole('link', { name: '#6' }).getAttribute('href')).toContain('record=6-x');
    await userEvent.keyboard('+');
    expect((within(chart).getByRole('button', { name: 'Zoom out' }) as HTMLButtonElement).disabled).toBe(false);
    await userEvent.click(screen.getByRole('button', { name: 'Table' }));
    expect(within(await screen.findByRole('region', { name: 'Spans of the run' })).getByRole('row', { name: /lookup 310 ms 590 ms/ })).toBeTruthy();
    await expectAccessible();
  });

  it('leaves the keys of its buttons to them', async () => {
    const { studio } = open('#/threads/t1?tab=run');
    const zoom = await screen.findByRole('button', { name: 'Zoom in' });
    act(() => zoom.focus());
    await userEvent.keyboard('{Enter}');
    expect((screen.getByRole('button', { name: 'Zoom out' }) as HTMLButtonElement).disabled).toBe(false);
    expect(studio.router.get().tab).toBe('run');
  });

  it('is in the list as soon as it begins, no matter who has begun it', async () => {
    let say: ((event: Event, cursor: string) => void) | undefined;
    const { asked } = open('#/threads/t1?tab=run', served(({ path }) => {
      if (path === 'threads/t1') return { ...thread, status: 'running' };
      if (path !== 'threads/t1/stream') return undefined;
      return new Response(new ReadableStream({
        start(controller) {
          say = (event, cursor) => controller.enqueue(new TextEncoder().encode(`id: ${cursor}\ndata: ${JSON.stringify({ ...event, metadata: { holdfast: { cursor } } })}\n\n`));
        },
      }), { headers: { 'Content-Type': 'text/event-stream' } });
    }));
    await screen.findByRole('group', { name: /The run in time/ });
    await waitFor(() => expect(say).toBeTruthy());
    const lists = () => asked.filter(({ path }) => path.startsWith('threads/t1/runs?')).length;
    const before = lists();
    act(() => say?.({ type: 'RUN_STARTED', threadId: 't1', runId: 'r2' }, '13-x'));
    await waitFor(() => expect(lists()).toBeGreaterThan(before), { timeout: 10_000 });
  });

  it('has tokens, the share of the cache and costs, of it and of the thread', async () => {
    open('#/threads/t1?tab=run');
    const table = await screen.findByRole('region', { name: 'Tokens of the run' });
    expect(within(table).getByRole('row', { name: 'acme / large 1,000 25% 50 0.0123' })).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Thread' }));
    expect(await screen.findByText(/3 runs, with those that were taken back/)).toBeTruthy();
    await expectAccessible();
  });

  it('says what went wrong, and where there is none', async () => {
    const { unmount } = open('#/threads/t1?tab=run', served(({ path }) => (path.startsWith('threads/t1/runs?') ? { runs: [{ ...run, outcome: 'error', code: 'model_failed', message: 'The model broke off.' }] } : undefined)));
    expect(await screen.findByText('The model broke off.')).toBeTruthy();
    await expectAccessible();
    unmount();
    const none = open('#/threads/t1?tab=run', served(({ path }) => (path.startsWith('threads/t1/runs?') ? { runs: [] } : undefined)));
    expect(await screen.findByText('No runs yet')).toBeTruthy();
    none.unmount();
    open('#/threads/t1?tab=run', served(({ path }) => (path.startsWith('threads/t1/runs?') ? refusal(500, 'store_failed', 'The store is away.') : undefined)));
    expect(await screen.findByText('The store is away.')).toBeTruthy();
    await expectAccessible();
  });
});

describe('tools', () => {
  it('have their schemas, and say how often they were called', async () => {
    open('#/threads/t1?tab=tools');
    expect(await screen.findByText('Explains a word.')).toBeTruthy();
    expect(await screen.findByText('1 call')).toBeTruthy();
    await userEvent.click(screen.getByText('Explains a word.'));
    expect(await screen.findByRole('tree', { name: 'Arguments of lookup' })).toBeTruthy();
    await expectAccessible();
  });
  it('say where there are none', async () => {
    open('#/threads/t1?tab=tools', served(({ path }) => (path === 'agents' ? { agents: [{ ...agent, tools: [] }] } : undefined)));
    expect(await screen.findByText('No tools')).toBeTruthy();
    await expectAccessible();
  });
});

describe('a replay', () => {
  it('goes from record to record, and its rest has an address', async () => {
    const { studio } = open('#/threads/t1');
    await records();
    await userEvent.click(screen.getByRole('button', { name: 'One record back' }));
    expect(studio.router.get().at).toBe('11-x');
    await userEvent.click(screen.getByRole('button', { name: 'Max' }));
    await userEvent.click(screen.getByRole('button', { name: 'Replay from the log' }));
    await waitFor(() => expect(studio.router.get().at).toBeUndefined());
    expect(studio.playback.get()).toBeUndefined();
    await expectAccessible();
  });
  it('leads to now also when its position has just been moved', async () => {
    const { studio } = open('#/threads/t1');
    await records();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      fireEvent.change(screen.getByRole('slider', { name: 'Position in the log' }), { target: { value: '3' } });
      fireEvent.click(screen.getByRole('button', { name: 'Now' }));
      act(() => void vi.advanceTimersByTime(1000));
      expect(studio.router.get().at).toBeUndefined();
      fireEvent.change(screen.getByRole('slider', { name: 'Position in the log' }), { target: { value: '3' } });
      act(() => void vi.advanceTimersByTime(1000));
      expect(studio.router.get().at).toBe('2-x');
    } finally {
      vi.useRealTimers();
    }
  });
});
