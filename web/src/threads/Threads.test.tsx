import { act, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { expectAccessible } from '../../test/axe.ts';
import { page, refusal, type Routes } from '../../test/fake.tsx';
import type { ThreadInfo } from '../api/types.ts';
import { Questions } from './Questions.tsx';
import { Threads } from './Threads.tsx';
import { matching, standingOf } from './standing.ts';

const thread = (id: string, more: Partial<ThreadInfo> = {}): ThreadInfo => ({ id, title: `Title of ${id}`, agent: 'demo', status: 'idle', outcome: 'success', runId: 'r1', iteration: 1, cursor: '', updatedAt: new Date().toISOString(), etag: 'e', ...more });

const all = [
  thread('a', { status: 'running' }), thread('b', { status: 'interrupted', agent: 'writer' }), thread('c', { status: 'stopped', outcome: 'error' }), thread('d', { hidden: true }), thread('e', { status: 'unreadable', title: '', message: 'It is damaged.' }),
];

// jsdom has no layout: the list of threads gets a height.
beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, 'offsetWidth', 'get').mockReturnValue(300);
  return () => vi.restoreAllMocks();
});

const list = (threads: readonly ThreadInfo[], more: Routes = () => undefined): Routes => (asked) => (asked.method === 'GET' && asked.path.startsWith('threads?') ? { threads } : more(asked));
const links = () => screen.getAllByRole('link').map((l) => l.querySelector('.threads-name')?.textContent);

describe('the list of threads', () => {
  it('says how each one stands, and leaves out those that were put away', async () => {
    page(<Threads />, { routes: list(all), hash: '#/threads/b' });
    expect(screen.queryByRole('link')).toBeNull();
    expect(await screen.findByText('Title of a')).toBeTruthy();
    expect(links()).toEqual(['Title of a', 'Title of b', 'Title of c', 'Thread e']);
    expect(screen.getByText('running · demo')).toBeTruthy();
    expect(screen.getByText('waiting for you · writer')).toBeTruthy();
    expect(screen.getByRole('link', { current: 'page' }).textContent).toContain('Title of b');
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'List' }));
    await userEvent.click(await screen.findByRole('menuitemcheckbox', { name: 'Hidden threads too' }));
    expect(links()).toContain('Title of d');
  });

  it('is searched by title, agent and standing', async () => {
    const { studio } = page(<Threads />, { routes: list(all) });
    await screen.findByText('Title of a');
    await userEvent.type(screen.getByRole('searchbox', { name: 'Search threads' }), 'writer waiting');
    expect(links()).toEqual(['Title of b']);
    await userEvent.keyboard('{Enter}');
    expect(studio.router.get().thread).toBe('b');
    await userEvent.type(screen.getByRole('searchbox'), ' nothing');
    expect(screen.getByText('No thread matches')).toBeTruthy();
    await expectAccessible();
    await userEvent.keyboard('{Escape}');
    expect(links()?.length).toBe(4);
  });

  it('renames in place', async () => {
    const { asked } = page(<Threads />, { routes: list(all, () => ({})) });
    await userEvent.click(await screen.findByRole('button', { name: 'More about Title of a' }));
    await userEvent.click(await screen.findByRole('menuitem', { name: 'Rename' }));
    const field = await screen.findByLabelText('Title');
    await expectAccessible();
    await userEvent.clear(field);
    await userEvent.type(field, 'Another{Enter}');
    expect(asked.find((a) => a.method === 'PATCH')).toEqual({ method: 'PATCH', path: 'threads/a', body: { title: 'Another' } });
  });

  it('deletes unless that is taken back', async () => {
    const { asked } = page(<Threads />, { routes: list(all, ({ method }) => (method === 'DELETE' ? { deleted: 1 } : undefined)), hash: '#/threads/a' });
    const remove = async (name: string) => {
      await userEvent.click(await screen.findByRole('button', { name: `More about ${name}` }));
      await userEvent.click(await screen.findByRole('menuitem', { name: 'Delete' }));
      await screen.findByText(`“${name}” is deleted`);
    };
    await remove('Title of a');
    expect(links()).not.toContain('Title of a');
    await userEvent.click(screen.getByRole('button', { name: 'Undo' }));
    expect(links()).toContain('Title of a');
    expect(location.hash).toBe('#/threads/a');
    expect(asked.some((a) => a.method === 'DELETE')).toBe(false);
    await remove('Title of c');
    await userEvent.click(screen.getByRole('button', { name: 'Dismiss' }));
    await expect.poll(() => asked.some((a) => a.method === 'DELETE' && a.path === 'threads/c')).toBe(true);
  });

  it('deletes what nobody took back when the page is left', async () => {
    const { asked } = page(<Threads />, { routes: list(all, ({ method }) => (method === 'DELETE' ? { deleted: 1 } : undefined)) });
    await userEvent.click(await screen.findByRole('button', { name: 'More about Title of c' }));
    await userEvent.click(await screen.findByRole('menuitem', { name: 'Delete' }));
    await screen.findByText('“Title of c” is deleted');
    act(() => void window.dispatchEvent(new Event('pagehide')));
    expect(asked.filter((a) => a.method === 'DELETE').map((a) => a.path)).toEqual(['threads/c']);
  });

  it('says why it is still hidden', async () => {
    page(<Threads />, { routes: list(all, ({ method, body }) => (method !== 'PATCH' ? undefined : (body as { hidden: boolean }).hidden ? {} : refusal(409, 'busy', 'Not now.'))) });
    await userEvent.click(await screen.findByRole('button', { name: 'More about Title of b' }));
    await userEvent.click(await screen.findByRole('menuitem', { name: 'Hide' }));
    await userEvent.click(await screen.findByRole('button', { name: 'Undo' }));
    expect(await screen.findByText('The thread was not shown again. Not now.')).toBeTruthy();
  });

  it('hides, and shows again', async () => {
    const { asked } = page(<Threads />, { routes: list(all, () => ({})) });
    await userEvent.click(await screen.findByRole('button', { name: 'More about Title of b' }));
    await userEvent.click(await screen.findByRole('menuitem', { name: 'Hide' }));
    expect(await screen.findByText('Thread hidden')).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Undo' }));
    expect(asked.filter((a) => a.method === 'PATCH').map((a) => a.body)).toEqual([{ hidden: true }, { hidden: false }]);
  });

  it('teaches when it is empty, and says what is wrong', async () => {
    const { unmount } = page(<Threads />, { routes: list([]) });
    expect(await screen.findByText('No threads yet')).toBeTruthy();
    await expectAccessible();
    unmount();
    page(<Threads />, { routes: () => refusal(403, 'forbidden', 'This key may not read.', { hint: 'Ask for another one.' }) });
    expect(await screen.findByText('This key may not read.')).toBeTruthy();
    await expectAccessible();
  });
});

describe('standings', () => {
  it('are words', () => {
    const said = (more: Partial<ThreadInfo>) => standingOf(thread('x', more)).text;
    expect(said({ outcome: 'cancelled' })).toBe('stopped');
    expect(said({ status: 'stopped', outcome: undefined })).toBe('unfinished');
    expect(said({ outsideCalls: [{ toolCallId: 'c', toolName: 'approve' }] })).toBe('waits for approve');
    expect(said({ pendingToolCallIds: ['c'] })).toBe('waits for a tool');
    expect(said({ status: 'running', waiting: { revision: 'r', since: '', until: '' } })).toBe('waits for a server');
    expect(matching(all, '').length).toBe(all.length);
  });
});

describe('the page of open questions', () => {
  const question = (id: string, of: string) => ({ thread: { id: of, title: `Title of ${of}`, agent: 'demo' }, runId: 'r', askedAt: new Date().toISOString(), interrupt: { id, reason: 'input_required', message: `Question ${id}?`, responseSchema: { type: 'boolean' } } });

  it('lists them by thread and answers all of a thread at once', async () => {
    const { asked } = page(<Questions />, { routes: ({ path, method }) => (path.startsWith('questions') ? { questions: [question('1', 'a'), question('2', 'a'), question('3', 'b')] } : method === 'POST' ? new Response('') : undefined) });
    expect(await screen.findByText('3 open')).toBeTruthy();
    await expectAccessible();
    const a = screen.getByRole('group', { name: 'Title of a' });
    await userEvent.click((await within(a).findAllByRole('button', { name: 'Yes' }))[0] as HTMLElement);
    await userEvent.click(within(a).getByRole('button', { name: 'No' }));
    await expect.poll(() => asked.find((r) => r.method === 'POST')).toMatchObject({
      path: 'agents/demo/runs',
      body: { threadId: 'a', resume: [{ interruptId: '1', status: 'resolved', payload: true }, { interruptId: '2', status: 'resolved', payload: false }] },
    });
    expect(await screen.findByText(/Title of a goes on/)).toBeTruthy();
  });

  it('says that there may be more, also if the newest threads ask nothing', async () => {
    const { unmount } = page(<Questions />, { routes: () => ({ questions: [question('1', 'a')], next: '2026-01-01T00:00:00Z' }) });
    expect(await screen.findByText('1+ open')).toBeTruthy();
    unmount();
    const { asked } = page(<Questions />, { routes: ({ path }) => (path.includes('before=') ? { questions: [question('9', 'old')] } : { questions: [], next: '2026-01-01T00:00:00Z' }) });
    expect(await screen.findByText('The newest threads ask nothing')).toBeTruthy();
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Older questions' }));
    expect(await screen.findByText('Question 9?')).toBeTruthy();
    expect(asked.some((r) => r.path.includes('before=2026-01-01'))).toBe(true);
  });

  it('says that nothing waits, and what is wrong', async () => {
    const { unmount } = page(<Questions />, { routes: () => ({ questions: [] }) });
    expect(await screen.findByText('Nothing waits for you')).toBeTruthy();
    await expectAccessible();
    unmount();
    page(<Questions />);
    expect(await screen.findByText('The questions cannot be listed')).toBeTruthy();
    await expectAccessible();
  });
});
