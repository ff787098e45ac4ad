import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { expectAccessible } from '../../../test/axe.ts';
import { page, type Routes } from '../../../test/fake.tsx';
import type { CallItem, Item, ItemBase, TextItem } from '../../log/view.ts';
import { RowsContext, type Rows } from '../context.ts';
import { outcomeOf } from './OtherRows.tsx';
import { Row } from './Row.tsx';

const base = (key: string, more: Partial<ItemBase> = {}): ItemBase => ({ key, id: key, runId: 'r1', first: 3, last: 5, open: false, at: 1000, end: 3100, ...more });
const text = (more: Partial<TextItem> = {}): TextItem => ({ ...base('t:m1'), kind: 'text', role: 'assistant', text: 'Hello', parts: [], seams: [], imported: false, ...more });
const call = (more: Partial<CallItem> = {}): CallItem => ({
  ...base('c:c1'), kind: 'call', id: 'c1', name: 'pay', args: '{"amount":120,"to":"Ada"}', status: 'done', result: '{"paid":true}', parts: [], parentId: 'm1', resultId: 'm2', code: '', notRun: false, edited: false, imported: false, ...more,
});
const hostile = '<img src=x onerror=alert(1)><script>alert(1)</script>[x](javascript:alert(1)) ![y](https://evil.example/track.png) ‮abc';

function rows(items: readonly Item[], more: Partial<Rows> = {}, routes?: Routes) {
  const opened = new Map<string, boolean>(items.map((i) => [i.key, true]));
  const value: Rows = {
    readOnly: false, busy: false, thread: 't1', lastAnswer: 't:m1', versionsOf: () => undefined, edit: () => Promise.resolve(), regenerate: vi.fn(), switchTo: vi.fn(), say: vi.fn(), showRecords: vi.fn(),
    isOpen: (key) => opened.get(key), setOpen: () => {}, ...more,
  };
  return { value, ...page(<RowsContext value={value}>{items.map((item) => <Row key={item.key} item={item} />)}</RowsContext>, { routes }) };
}

describe('messages', () => {
  it('of the assistant are Markdown, and can be copied, answered again and followed to their records', async () => {
    const { value } = rows([text({ text: '# Title\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```go\nx := 1\n```' })]);
    expect(screen.getByRole('table')).toBeTruthy();
    expect(screen.getByRole('button', { name: 'Copy code' })).toBeTruthy();
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Answer again' }));
    await userEvent.click(screen.getByRole('button', { name: 'Show its records' }));
    expect(value.regenerate).toHaveBeenCalledOnce();
    expect(value.showRecords).toHaveBeenCalledOnce();
  });

  it('of a person can be edited: Enter sends, Escape leaves it', async () => {
    const edit = vi.fn(() => Promise.resolve());
    rows([text({ role: 'user', text: 'before' })], { edit });
    await userEvent.click(screen.getByRole('button', { name: 'Edit' }));
    const field = screen.getByLabelText('Your message');
    expect(document.activeElement).toBe(field);
    await expectAccessible();
    await userEvent.keyboard('{Escape}');
    expect(screen.getByText('before')).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Edit' }));
    await userEvent.keyboard(' and after{Enter}');
    expect(edit).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ id: 't:m1' }), 'before and after');
  });

  it('stay in the editor if they are refused', async () => {
    rows([text({ role: 'user', text: 'before' })], { edit: () => Promise.reject(new Error('The thread has moved.')) });
    await userEvent.click(screen.getByRole('button', { name: 'Edit' }));
    await userEvent.keyboard('!{Enter}');
    expect(await screen.findByText('The thread has moved.')).toBeTruthy();
    expect((screen.getByLabelText('Your message') as HTMLTextAreaElement).value).toBe('before!');
  });

  it('can be looked at only, while something runs or as they were', () => {
    rows([text(), text({ key: 't:m0', role: 'user', text: 'x' })], { busy: true });
    expect(screen.queryByRole('button', { name: 'Edit' })).toBeNull();
    expect(screen.queryByRole('button', { name: 'Answer again' })).toBeNull();
  });

  it('have versions that one can switch', async () => {
    const branch = { parentId: 'm0', shown: 1, versions: [{ key: 't:a', checkpointId: '1', number: 5 }, { key: 't:m1', checkpointId: '', number: 0 }] };
    const { value } = rows([text()], { versionsOf: () => ({ branch, shown: 1, count: 2 }) });
    expect(screen.getByRole('group', { name: 'Versions' }).textContent).toBe('2 / 2');
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Earlier version' }));
    expect(value.switchTo).toHaveBeenCalledExactlyOnceWith(branch, 0);
    expect((screen.getByRole('button', { name: 'Later version' }) as HTMLButtonElement).disabled).toBe(true);
  });

  it('do nothing, whatever is in them', async () => {
    const part = (url: string, type = 'image', mimeType = 'image/png') => ({ type, mimeType, url, name: hostile });
    const { container } = rows([
      text({ text: hostile }), text({ key: 't:u', role: 'user', text: hostile, parts: [part('https://evil.example/a.png'), part('data:image/png;base64,AAAA'), part('', 'document', hostile), part('data:image/svg+xml;base64,AAAA', 'image', 'image/svg+xml')] }),
      text({ key: 't:s', role: 'system', text: hostile }), call({ name: hostile, args: hostile, result: hostile, code: hostile }), { ...base('n:1'), kind: 'note', tone: 'error', text: hostile, code: hostile, hint: hostile, name: 'x', value: undefined },
      { ...base('a:1'), kind: 'activity', name: hostile, content: { [hostile]: hostile } }, { ...base('a:2'), kind: 'activity', name: 'holdfast.image', content: { url: 'javascript:alert(1)', mimeType: 'image/png' } },
      { ...base('q:1'), kind: 'question', interrupt: { id: hostile, reason: hostile, message: hostile } }, { ...base('g:1'), kind: 'agent', name: hostile, text: hostile, status: 'failed', parentCallId: '' },
    ]);
    await screen.findAllByRole('tree');
    expect(container.querySelector('script, iframe, [onerror]')).toBeNull();
    expect([...container.querySelectorAll('img')].map((i) => i.getAttribute('src')?.slice(0, 15))).toEqual(['data:image/png;']);
    expect([...container.querySelectorAll('a')].every((a) => /^(https:|data:)/.test(a.getAttribute('href') ?? ''))).toBe(true);
    await expectAccessible();
  });
});

describe('calls', () => {
  it('show what they are about, and all of it with the facts that the server knows', async () => {
    const calls = [{ toolCallId: 'c1', toolName: 'pay', runId: 'r1', effect: 'once', key: 'hf_k1', attempts: 2, process: 'p_1' }];
    const { asked } = rows([call()], {}, ({ path }) => (path.startsWith('threads/t1/calls') ? { calls } : undefined));
    expect(screen.getByText('amount: 120, to: Ada')).toBeTruthy();
    expect(screen.getByText(/2.1 s/)).toBeTruthy();
    expect(await screen.findByText('hf_k1')).toBeTruthy();
    // Under the page's only h1.
    expect(screen.getAllByRole('heading', { level: 2 }).map((h) => h.textContent)).toEqual(['Arguments', 'Result']);
    expect(screen.getByText(/is never started twice/)).toBeTruthy();
    expect(asked.map((a) => a.path)).toContain('threads/t1/calls?run=r1');
    await expectAccessible();
  });

  it('say how they stand', () => {
    rows([
      call({ key: 'c:1', status: 'pending', args: '{"am', result: '' }), call({ key: 'c:2', status: 'running', result: '' }), call({ key: 'c:3', status: 'waiting', result: '' }),
      call({ key: 'c:4', status: 'failed', result: 'no money' }), call({ key: 'c:5', status: 'failed', notRun: true, result: 'refused' }), call({ key: 'c:6', status: 'failed', code: 'outcome_unknown', result: '?' }), call({ key: 'c:7', status: 'none', result: '' }),
    ]);
    for (const word of ['Preparing', 'Running', 'Waiting', 'Failed', 'Not run', 'Outcome unknown', 'No result']) expect(screen.getAllByText(new RegExp(word)).length, word).toBeGreaterThan(0);
  });

  it('that a person has changed, or a client has brought, say so', async () => {
    rows([call({ edited: true, imported: true }), text({ key: 't:m9', failed: true })]);
    expect(screen.getByText('not finished: the run failed here')).toBeTruthy();
    expect(screen.getByText('edited')).toBeTruthy();
    expect(screen.getByText('imported')).toBeTruthy();
    await expectAccessible();
  });
});

describe('activities', () => {
  const activity = (key: string, name: string, content: unknown): Item => ({ ...base(key), kind: 'activity', name, content });
  const plan = { title: 'A trip', items: [{ text: 'Pack', status: 'done' }, { text: 'Go', status: 'running' }, { text: 'Rest' }, { text: 'Swim', status: 'failed' }, { text: 'Ski', status: 'skipped' }, 7] };

  it('show how far the work has come, and what of a plan is done', async () => {
    const { container } = rows([
      activity('a:1', 'holdfast.progress', { title: 'Reading', text: 'Page 2', done: 1, total: 4 }), activity('a:2', 'holdfast.progress', { done: 7 }), activity('a:3', 'holdfast.plan', plan),
      activity('a:4', 'a2ui-surface', { operations: [{ beginRendering: {} }] }), activity('a:5', 'holdfast.plan', null), activity('a:6', 'holdfast.progress', 'x'),
    ], { busy: true });
    const bar = (await screen.findByRole('progressbar', { name: 'Reading' })) as HTMLProgressElement;
    expect([bar.value, bar.max]).toEqual([1, 4]);
    expect(screen.getByText('1 of 4')).toBeTruthy();
    expect(screen.getByText('Page 2')).toBeTruthy();
    expect(screen.getByText('7')).toBeTruthy();
    expect(screen.getAllByRole('listitem').map((li) => li.textContent)).toEqual(['Done: Pack', 'Under way: Go', 'To do: Rest', 'Failed: Swim', 'Skipped: Ski', 'To do: ']);
    expect(container.querySelectorAll('.spinner')).toHaveLength(1);
    expect(screen.getByRole('heading', { name: 'A2ui surface' })).toBeTruthy();
    await expectAccessible();
  });

  it('show the interface of a tool in a frame without an origin, and what it has brought if there is none', async () => {
    const content = { toolName: 'show', resourceUri: 'ui://w/page', serverId: 'w', result: { content: [{ type: 'text', text: '21 degrees' }] } };
    const app = { html: '<p>hi</p>', csp: { connectDomains: ['https://a.example'] } };
    const { container } = rows([activity('a:1', 'mcp-apps', content), activity('a:2', 'mcp-apps', content)], {}, ({ path }) => (path === 'threads/t1/apps/a%3A1' ? app : undefined));
    const frame = await screen.findByTitle('Interface of show');
    expect([frame.getAttribute('sandbox'), frame.getAttribute('src')]).toEqual(['allow-scripts', 'http://server/ui/app-frame?connect=https%3A%2F%2Fa.example']);
    expect(await screen.findByText('The interface cannot be shown')).toBeTruthy();
    expect(container.querySelectorAll('iframe')).toHaveLength(1);
    frame.remove(); // jsdom would load it
  });

  it('are still once the run is over', async () => {
    const { container } = rows([activity('a:3', 'holdfast.plan', plan)]);
    expect(await screen.findByRole('heading', { name: 'A trip' })).toBeTruthy();
    expect(container.querySelector('.spinner')).toBeNull();
  });
});

describe('questions that were answered', () => {
  const asked = (reason: string): Extract<Item, { kind: 'question' }> => ({ ...base('q:1'), kind: 'question', interrupt: { id: 'q', reason } });

  it('say what came of them', () => {
    expect(outcomeOf(asked('input_required'), call({ result: 'tea' }))).toEqual({ word: 'answered', text: 'tea' });
    expect(outcomeOf(asked('input_required'), call({ status: 'failed' })).word).toBe('declined');
    expect(outcomeOf(asked('tool_call'), call()).word).toBe('approved');
    expect(outcomeOf(asked('tool_call'), call({ edited: true })).word).toBe('approved, edited');
    expect(outcomeOf(asked('tool_call'), call({ status: 'failed', notRun: true })).word).toBe('not approved');
    expect(outcomeOf(asked('tool_call'), undefined).word).toBe('answered');
  });
});

describe('other rows', () => {
  it('say what they are', async () => {
    rows([
      { ...base('r:1'), kind: 'reasoning', text: 'Let me think.', hidden: false, seams: [] }, { ...base('r:2'), kind: 'reasoning', text: '', hidden: true, seams: [] }, { ...base('r:3', { open: true }), kind: 'reasoning', text: 'Hm', hidden: false, seams: [] },
      { ...base('n:1'), kind: 'note', tone: 'info', text: 'A remark.', code: '', hint: '', name: 'x', value: undefined }, { ...base('n:2'), kind: 'note', tone: 'error', text: 'It failed.', code: 'cut_off', hint: 'Send it again.', name: '', value: undefined },
      { ...base('s:1'), kind: 'step', name: 'read_files' }, { ...base('g:1'), kind: 'agent', name: 'Researcher', text: 'looks it up', status: 'running', parentCallId: '' },
      { ...base('a:1'), kind: 'activity', name: 'PLAN', content: { steps: 3 } }, { ...base('q:1', { open: true }), kind: 'question', interrupt: { id: 'q', reason: 'r', message: 'Sure?' } },
      { ...base('x:1'), kind: 'seam', reason: 'owner_gone', epoch: 2, iteration: 0, from: 'a', process: 'b', target: '', place: 'before', offset: 0, fromRevision: '', toRevision: '', outageMs: 900 },
    ]);
    expect(screen.getByText('Thought for 2.1 s')).toBeTruthy();
    expect(screen.getByText('Thought, hidden by the provider')).toBeTruthy();
    expect(screen.getByText(/Thinking for/)).toBeTruthy();
    expect(screen.getByText('For developers')).toBeTruthy();
    expect(screen.getByText('Read files')).toBeTruthy();
    expect(screen.getByText('answer below')).toBeTruthy();
    expect(screen.getByRole('button', { name: 'Process a died here. Process b went on.' })).toBeTruthy();
    await expectAccessible();
  });
});
