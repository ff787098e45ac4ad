// A thread's history with a server: looks, journeys, marks, and the kill of the server.
import { act, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import { expectAccessible } from '../../test/axe.ts';
import { page, refusal, stream, type Asked, type Page } from '../../test/fake.tsx';
import { Shortcuts } from '../app/Shortcuts.tsx';
import { AtPosition, CheckpointStrip } from './Bar.tsx';
import { Checkpoints } from './Checkpoints.tsx';
import { KillButton, KillStory } from './Kill.tsx';
import { useLook } from './look.ts';

const ids = ['000000000001', '000000000002', '000000000003'];

const checkpoint = (n: number) => ({
  id: ids[n], threadId: 't1', createdAt: `2026-03-04T05:06:0${n}Z`, format: 9, agent: 'demo', runId: 'r1', status: n === 2 ? 'idle' : 'running', iteration: n, messageCount: n + 1,
  metadata: { source: n === 0 ? 'input' : 'loop', step: n - 1, ...(n > 0 && { parentCheckpointId: ids[n - 1] }) },
});

const detail = (n: number) => ({
  ...checkpoint(n), state: { step: n },
  messages: [{ id: 'm1', role: 'user', content: 'go' }, ...(n > 0 ? [{ id: 'm2', role: 'assistant', content: `answer ${n}` }] : [])],
  ...(n === 2 && { openToolCalls: [{ toolCallId: 'c1', toolName: 'ship', interruptId: 'i1' }], pendingWrites: [{ toolCallId: 'c2', toolName: 'pay', messageId: 'm9', result: 'paid', iteration: 1, threadId: 't1', completedAt: '2026-03-04T05:06:07Z' }] }),
});

const thread = { id: 't1', title: 'The thread', agent: 'demo', status: 'idle', runId: 'r1', iteration: 2, cursor: '9-abc', updatedAt: '2026-03-04T05:06:07Z', etag: 'e1', outcome: 'success' };

const effects = [{ toolCallId: 'c9', toolName: 'pay', arguments: { amount: 1 }, effect: 'once', messageId: 'm3', reusable: true }];

const records = [
  { cursor: '1-abc', number: 1, event: { type: 'RUN_STARTED', threadId: 't1', runId: 'r1' } },
  { cursor: '9-abc', number: 9, event: { type: 'RUN_FINISHED', threadId: 't1', runId: 'r1', outcome: { type: 'success' } } },
];

/** A server with one thread of three checkpoints. */
function routes({ method, path, body }: Asked): unknown {
  const [route = ''] = path.split('?');
  const wants = body as { preview?: boolean } | undefined;
  if (method === 'POST' && route === 'threads/t1/rewind') return { thread, checkpoint: checkpoint(1), effects, ...(wants?.preview && { preview: true }) };
  if (method === 'POST' && route === 'threads/t1/fork') return { thread: { ...thread, id: 't2', etag: 'e2' }, checkpoint: { ...checkpoint(0), threadId: 't2' }, effects: [] };
  if (method === 'POST' && route.endsWith('/checkpoints')) return checkpoint(2);
  if (method !== 'GET') return undefined;
  const at = /^threads\/t1\/checkpoints\/(\d+)$/.exec(route)?.[1];
  if (at !== undefined) return ids.includes(at) ? detail(ids.indexOf(at)) : undefined;
  const answers: Record<string, unknown> = {
    'threads/t1': thread,
    'threads/t1/checkpoints': { checkpoints: [2, 1, 0].map(checkpoint) },
    'threads/t1/children': { threads: [{ ...thread, id: 't2', title: 'The fork', parentThreadId: 't1', parentCheckpointId: ids[0] }] },
    'threads/t1/runs': { runs: [{ id: 'r1', agent: 'demo', startedAt: '2026-03-04T05:06:00Z', endedAt: '2026-03-04T05:06:09Z', outcome: 'success', processes: [{ process: 'process-1', epoch: 1, tag: 'abc', since: '2026-03-04T05:06:00Z' }, { process: 'process-2', epoch: 2, tag: 'def', since: '2026-03-04T05:06:02Z' }] }] },
    'threads/t1/runs/r1/log': { records, ended: true },
    'threads/t1/stream': stream(records),
    'threads/t1/work': { runId: 'r1', status: 'idle', iteration: 2, epoch: 2, calls: [] },
  };
  return answers[route];
}

function Shown() {
  const look = useLook();
  return <p data-testid="shown">{look?.view?.items.map((item) => (item.kind === 'text' ? item.text : '')).join('|') ?? 'now'}</p>;
}

const open = (hash: string, more = routes): Page => page(<><AtPosition /><Shown /><CheckpointStrip thread="t1" /><Checkpoints /><Shortcuts /></>, { hash, routes: more });

const posts = (p: Page) => p.asked.filter(({ method }) => method === 'POST');

describe('a look at the past', () => {
  it('shows the thread as it was, says where, and leads back', async () => {
    const p = open('#/threads/t1?checkpoint=000000000002');
    expect(await screen.findByText('go|answer 1')).toBeTruthy();
    const banner = await screen.findByRole('region', { name: 'A look at the past' });
    await waitFor(() => expect(banner.textContent).toContain('step 2 of 3'));
    await expectAccessible();
    await userEvent.click(within(banner).getByRole('button', { name: 'Back to now' }));
    expect(await screen.findByText('now', { selector: 'p' })).toBeTruthy();
    expect(p.studio.router.get().more).toBeUndefined();
  });
  it('goes from one to the next with the keyboard, without a trail', async () => {
    const p = open('#/threads/t1');
    await screen.findByRole('region', { name: 'Checkpoints' });
    const before = history.length;
    await userEvent.keyboard('[[');
    await waitFor(() => expect(p.studio.router.get().more?.['checkpoint']).toBe(ids[2]));
    await userEvent.keyboard('[[');
    await waitFor(() => expect(p.studio.router.get().more?.['checkpoint']).toBe(ids[1]));
    expect(history.length).toBe(before + 1);
    await userEvent.keyboard(']');
    await waitFor(() => expect(p.studio.router.get().more?.['checkpoint']).toBe(ids[2]));
    await userEvent.keyboard(']');
    await waitFor(() => expect(p.studio.router.get().more).toBeUndefined());
  });
  it('says that a checkpoint cannot be shown', async () => {
    open('#/threads/t1?checkpoint=000000000099');
    expect(await screen.findByText(/cannot be shown/)).toBeTruthy();
    await expectAccessible();
  });
});

describe('the checkpoints of the inspector', () => {
  it('have their state, what has changed, what is open, who took them, and the forks', async () => {
    open('#/threads/t1?checkpoint=000000000003');
    const rows = within(await screen.findByRole('list', { name: 'Checkpoints, newest first' })).getAllByRole('link');
    expect(rows).toHaveLength(3);
    await waitFor(() => expect(rows[0]?.textContent).toContain('process-2'));
    expect(rows[2]?.textContent).toContain('process-1');
    expect(await screen.findByText('result saved')).toBeTruthy();
    expect(screen.getByText('waits for an answer')).toBeTruthy();
    expect(await screen.findByText('The fork')).toBeTruthy();
    await userEvent.click(await screen.findByRole('button', { name: 'Since the one before' }));
    expect((await screen.findByLabelText('Changes since the checkpoint before')).textContent).toContain('step');
    await expectAccessible();
    rows[0]?.focus();
    await userEvent.keyboard('{ArrowDown}{Enter}');
    expect(await screen.findByText('go|answer 1')).toBeTruthy();
  });
  it('teach when there are none, and when the server keeps none', async () => {
    const p = open('#/threads/t1', (asked) => (asked.path.startsWith('threads/t1/checkpoints') ? refusal(409, 'history_not_kept', 'No.') : routes(asked)));
    expect(await screen.findByText('This server keeps no history')).toBeTruthy();
    await expectAccessible();
    p.unmount();
    open('#/threads/t1', (asked) => (asked.path.startsWith('threads/t1/checkpoints') ? { checkpoints: [] } : routes(asked)));
    expect(await screen.findByText('No checkpoints yet')).toBeTruthy();
  });
  it('say why they cannot be shown', async () => {
    open('#/threads/t1', (asked) => (asked.path.startsWith('threads/t1/checkpoints') ? refusal(409, 'thread_unreadable', 'It is damaged.') : routes(asked)));
    expect((await screen.findAllByText(/It is damaged./)).length).toBe(2);
    await expectAccessible();
  });
});

describe('journeys', () => {
  const banner = async (name: string) => userEvent.click(within(await screen.findByRole('region', { name: 'A look at the past' })).getByRole('button', { name }));
  it('rewind after asking what has happened, exactly as shown, and can be undone', async () => {
    const p = open('#/threads/t1?checkpoint=000000000002');
    await waitFor(() => expect(screen.getByRole('region', { name: 'A look at the past' }).textContent).toContain('step 2 of 3'));
    await banner('Rewind…');
    expect(await screen.findByText('One call has already changed something outside')).toBeTruthy();
    expect(posts(p).map(({ body }) => body)).toEqual([{ checkpointId: ids[1], preview: true }]);
    await userEvent.click(screen.getByRole('switch', { name: 'Continue the run from there' }));
    await userEvent.click(screen.getByRole('button', { name: 'Rewind' }));
    const undo = await screen.findByRole('button', { name: 'Undo' });
    expect(posts(p).at(-1)).toMatchObject({ path: 'threads/t1/rewind', body: { checkpointId: ids[1], reuse: ['c9'] } });
    expect(p.studio.router.get().more).toBeUndefined();
    await userEvent.click(undo);
    await waitFor(() => expect(posts(p).at(-1)?.body).toEqual({ checkpointId: ids[2] }));
  });
  /** A server whose thread has another ETag by the time it is asked to go back; `more` is what else is another then. */
  const moves = (more: object) => {
    let now: object = { ...thread, etag: 'e1' };
    return open('#/threads/t1?checkpoint=000000000002', (asked) => {
      if (asked.path !== 'threads/t1/rewind') return routes(asked);
      const { preview } = (asked.body ?? {}) as { preview?: boolean };
      if (!preview) now = { ...thread, etag: 'e2', ...more };
      return preview || asked.ifMatch === 'e2' ? { ...(routes(asked) as object), thread: now } : refusal(409, 'checkpoint_conflict', 'The thread has moved.');
    });
  };
  const goBack = async () => {
    await waitFor(() => expect(screen.getByRole('region', { name: 'A look at the past' }).textContent).toContain('step 2 of 3'));
    await banner('Rewind…');
    await userEvent.click(await screen.findByRole('switch', { name: 'Continue the run from there' }));
    await userEvent.click(screen.getByRole('button', { name: 'Rewind' }));
  };
  it('stay in their dialog if the thread has moved meanwhile', async () => {
    const p = moves({ cursor: '12-abc' });
    await goBack();
    expect((await screen.findByRole('alert')).textContent).toContain('The thread has moved.');
    expect(posts(p).filter(({ path, body }) => path === 'threads/t1/rewind' && !(body as { preview?: boolean }).preview).length).toBe(1);
  });
  it('are made if only the ETag is another, as that of a log that was archived meanwhile', async () => {
    const p = moves({});
    await goBack();
    expect(await screen.findByRole('button', { name: 'Undo' })).toBeTruthy();
    expect(posts(p).at(-1)).toMatchObject({ path: 'threads/t1/rewind', body: { checkpointId: ids[1], reuse: ['c9'] } });
  });
  it('say that a run does not go on, when the thread has gone back', async () => {
    open('#/threads/t1?checkpoint=000000000002', (asked) => (asked.method === 'POST' && asked.path.endsWith('/runs') ? refusal(409, 'run_in_progress', 'Not now.') : routes(asked)));
    await waitFor(() => expect(screen.getByRole('region', { name: 'A look at the past' }).textContent).toContain('step 2 of 3'));
    await banner('Rewind…');
    await waitFor(() => expect((screen.getByRole('button', { name: 'Rewind' }) as HTMLButtonElement).disabled).toBe(false));
    await userEvent.click(screen.getByRole('button', { name: 'Rewind' }));
    expect(await screen.findByText('Not now.', { selector: '.toast *' })).toBeTruthy();
  });
  it('fork into another thread', async () => {
    const p = open('#/threads/t1?checkpoint=000000000001');
    await waitFor(() => expect(screen.getByRole('region', { name: 'A look at the past' }).textContent).toContain('step 1 of 3'));
    await banner('Fork from here');
    await waitFor(() => expect((screen.getByRole('button', { name: 'Fork' }) as HTMLButtonElement).disabled).toBe(false));
    await userEvent.click(screen.getByRole('button', { name: 'Fork' }));
    await waitFor(() => expect(p.studio.router.get().thread).toBe('t2'));
  });
  it('fork with another state', async () => {
    userEvent.setup(); // gives the page a clipboard
    const p = open('#/threads/t1?checkpoint=000000000001');
    await waitFor(() => expect(screen.getAllByRole('button', { name: 'Edit the state, and fork…' })).toHaveLength(1));
    await userEvent.click(screen.getByRole('button', { name: 'Edit the state, and fork…' }));
    const field = await screen.findByLabelText('Shared state, as JSON');
    await userEvent.clear(field);
    await userEvent.type(field, '{{"step": 7}');
    await userEvent.click(screen.getByRole('button', { name: 'Copy as curl' }));
    const [, fork, state] = /fork .*"threadId":"([^"]+)".*\n.*threads\/([^/]+)\/checkpoints .*"step":7/.exec(await navigator.clipboard.readText()) ?? [];
    expect(state).toBe(fork ?? 'a thread');
    await userEvent.click(screen.getByRole('button', { name: 'Fork with this state' }));
    await waitFor(() => expect(p.studio.router.get().thread).toBe('t2'));
    expect(posts(p).map(({ path, body }) => [path, body])).toEqual([['threads/t1/fork', { checkpointId: ids[0] }], ['threads/t2/checkpoints', { state: { step: 7 } }]]);
  });
  it('fork only once if the state was refused', async () => {
    let refused = 0;
    const p = open('#/threads/t1?checkpoint=000000000001', (asked) => (asked.method === 'POST' && asked.path === 'threads/t2/checkpoints' && refused++ === 0 ? refusal(400, 'invalid_input', 'That state is too large.') : routes(asked)));
    await userEvent.click(await screen.findByRole('button', { name: 'Edit the state, and fork…' }));
    const field = await screen.findByLabelText('Shared state, as JSON');
    await userEvent.clear(field);
    await userEvent.type(field, '{{"step": 7}');
    await userEvent.click(screen.getByRole('button', { name: 'Fork with this state' }));
    expect((await screen.findByRole('alert')).textContent).toContain('too large');
    await userEvent.click(screen.getByRole('button', { name: 'Fork with this state' }));
    await waitFor(() => expect(p.studio.router.get().thread).toBe('t2'));
    expect(posts(p).map(({ path }) => path)).toEqual(['threads/t1/fork', 'threads/t2/checkpoints', 'threads/t2/checkpoints']);
  });
  it('are marked', async () => {
    const p = open('#/threads/t1');
    await userEvent.click(await screen.findByRole('button', { name: 'Mark this place…' }));
    await userEvent.type(await screen.findByLabelText('Label'), 'good{Enter}');
    await waitFor(() => expect(posts(p).at(-1)).toMatchObject({ path: 'threads/t1/checkpoints', body: { label: 'good' } }));
    expect(await screen.findByText('Marked: good.', { selector: '.toast *' })).toBeTruthy();
  });
});

describe('the kill button', () => {
  const killable = (more: (asked: Asked) => unknown) => page(
    <><KillButton /><KillStory /></>,
    { hash: '#/threads/t1', routes: (asked) => more(asked) ?? (asked.path === 'ui/config.json' ? { version: 'v1', demo: true, kill: true, auth: 'none', roles: [] } : routes(asked)) },
  );
  it('is not there on a server that is not to be killed', async () => {
    const p = killable(({ path }) => (path === 'ui/config.json' ? { version: 'v1', kill: false } : undefined));
    await waitFor(() => expect(p.asked.some(({ path }) => path === 'ui/config.json')).toBe(true));
    expect(screen.queryByRole('button', { name: 'Kill the server' })).toBeNull();
  });
  it('explains itself once, kills, and tells what happens', async () => {
    let dead = false;
    const p = killable(({ path }) => {
      if (path === 'demo/kill') {
        dead = true;
        throw new TypeError('the connection is gone');
      }
      if (dead && path === 'ui/config.json') throw new TypeError('nobody is there');
      return undefined;
    });
    await userEvent.click(await screen.findByRole('button', { name: 'Kill the server' }));
    const dialog = await screen.findByRole('alertdialog', { name: 'Kill the server?' });
    await expectAccessible();
    await userEvent.click(within(dialog).getByRole('button', { name: 'Kill it' }));
    expect(await screen.findByText('The server is dead')).toBeTruthy();
    await expectAccessible();
    act(() => {
      dead = false;
    });
    expect(await screen.findByText(/A new process is there/, { selector: '.durable-story-title' })).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Dismiss' }));
    expect(screen.queryByRole('region', { name: 'The kill of the server' })).toBeNull();
    await userEvent.click(screen.getByRole('button', { name: 'Kill the server' }));
    await waitFor(() => expect(p.asked.filter(({ path }) => path === 'demo/kill')).toHaveLength(2));
    expect(screen.queryByRole('alertdialog')).toBeNull();
  });
  it('says why it did not work', async () => {
    localStorage.setItem('holdfast.kill-explained', 'yes');
    killable(({ path }) => (path === 'demo/kill' ? refusal(404, 'not_found', 'This server is not to be killed.') : undefined));
    await userEvent.click(await screen.findByRole('button', { name: 'Kill the server' }));
    expect(await screen.findByText('This server is not to be killed.')).toBeTruthy();
    await expectAccessible();
  });
});
