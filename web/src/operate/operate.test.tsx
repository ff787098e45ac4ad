import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { expectAccessible } from '../../test/axe.ts';
import { page, refusal, type Asked, type Page, type Routes } from '../../test/fake.tsx';
import type { AgentList, Overview, PageConfig, Point, SettingList, ThreadList } from '../api/types.ts';
import ImportDialog from './ImportDialog.tsx';
import { OtherUser } from '../app/OtherUser.tsx';
import Operate from './Operate.tsx';

const hostile = '<img src=x onerror=alert(1)>"\'`${x}';

const point = (more: Partial<Point>): Point => ({ at: '2026-03-01T10:00:00Z', running: 0, started: 0, finished: 0, failed: 0, waiting: 0, cancelled: 0, tokensIn: 0, tokensCached: 0, tokensOut: 0, ...more });

const overview = (more: Partial<Overview> = {}): Overview => ({
  process: 'p_1', version: 'v1.2.3', startedAt: '2026-03-01T09:00:00Z', now: '2026-03-01T10:00:05Z', store: 'file:data', durability: 'machine', demo: false, processes: ['p_1', 'p_2'],
  index: { complete: true, pass: 1, threads: 9, entered: 0 }, indexLagMs: 0,
  runs: { running: 2, started: 12, finished: 7, waiting: 1, cancelled: 0, failed: 2, left: 0, takenOver: 1 },
  series: { stepSeconds: 10, points: [point({ finished: 7, failed: 2, tokensIn: 1200, firstTokenMs: { p50: 20, p95: 80, count: 9 } })] },
  errors: [{ code: 'model_failed', count: 2, lastAt: '2026-03-01T09:59:00Z' }], ...more,
});

const agents: AgentList = { agents: [
  { name: 'shop', description: 'Sells things.', revision: 'abc', default: true, demo: false, models: ['openai/gpt-5', 'custom/shop'], approvals: 'approver', middleware: ['budget', 'compaction'], capabilities: { transport: { streaming: true } }, tools: [
    { name: 'calculate', description: 'Computes.', effect: 'pure', timeoutMs: 60_000, parameters: { type: 'object', properties: { expression: { type: 'string' } }, required: ['expression'], additionalProperties: false } },
    { name: 'refund', description: hostile, effect: 'once', timeoutMs: 1000, parameters: { type: 'object', properties: {}, additionalProperties: false } },
    { name: 'approve', description: 'Asks finance.', effect: 'once', timeoutMs: 0, outside: true },
  ] },
  { name: 'empty', description: '', default: false, demo: true, models: ['demo/demo'], approvals: 'user', middleware: [], capabilities: {}, tools: [] },
] };

const settings: SettingList = { settings: [
  { name: '--addr', value: ':8080', source: 'flag', text: 'the address to listen on' },
  { name: '--store', value: '', source: 'default', text: 'where threads are kept' },
  { name: 'OPENAI_API_KEY', value: '[secret]', source: 'env' },
] };

const threads: ThreadList = { threads: [
  { id: 't1', user: 'alice', title: hostile, agent: 'shop', status: 'idle', runId: 'r', outcome: 'success', iteration: 1, cursor: 'c', updatedAt: '2026-03-01T09:00:00Z', etag: 'e' },
  { id: 't1', user: 'bob', title: 'Refund', agent: 'shop', status: 'stopped', outcome: 'error', code: 'model_failed', runId: 'r', iteration: 1, cursor: 'c', updatedAt: '2026-03-01T09:00:00Z', etag: 'e' },
] };

const config = (more: Partial<PageConfig> = {}): PageConfig => ({ version: 'v1.2.3', demo: false, kill: false, auth: 'none', identified: true, roles: ['user'], tenantOperator: true, serverOperator: true, maxBody: 4 << 20, maxMediaBody: 8 << 20, ...more });

const noOperator = { tenantOperator: false, serverOperator: false };

const operator: Record<string, unknown> = { 'GET ui/config.json': config(), 'GET overview': overview(), 'GET agents': agents, 'GET settings': settings, 'GET threads?limit=50&user=*': threads };

const routesOf = (answers: Record<string, unknown>): Routes => ({ method, path }: Asked) => {
  const answer = answers[`${method} ${path}`];
  return typeof answer === 'function' ? (answer as () => unknown)() : answer;
};

const operate = (hash: string, answers: Record<string, unknown> = operator): Page => page(<Operate />, { hash, routes: routesOf(answers) });

// There is no canvas here: plots are looked at in a browser, and their tables here.
beforeEach(() => {
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(null);
  return () => vi.restoreAllMocks();
});

describe('the overview', () => {
  it('shows runs, figures, processes and errors, with a table for each plot', async () => {
    operate('#/operate/overview');
    expect(await screen.findByRole('heading', { name: 'This process' })).toBeTruthy();
    const tiles = screen.getByRole('list', { name: 'Runs since its start' });
    expect(within(tiles).getByRole('link', { name: /Failed 2/ }).getAttribute('href')).toBe('#/operate/threads?q=failed');
    expect(screen.getByText('p_2')).toBeTruthy();
    expect(screen.getByRole('link', { name: 'Its threads' }).getAttribute('href')).toBe('#/operate/threads?q=model_failed');
    const runs = screen.getByRole('region', { name: 'Runs' });
    await userEvent.click(within(runs).getByText('As a table'));
    expect(within(within(runs).getByRole('table')).getAllByRole('cell').map((c) => c.textContent)).toEqual(['7', '0', '0', '2']);
    expect(document.title).toBe('Overview · Holdfast');
    await expectAccessible();
  });

  it('teaches on a fresh server', async () => {
    const none = { running: 0, started: 0, finished: 0, waiting: 0, cancelled: 0, failed: 0, left: 0, takenOver: 0 };
    operate('#/operate', { ...operator, 'GET overview': overview({ runs: none, errors: [], series: { stepSeconds: 10, points: [point({})] } }) });
    expect(await screen.findByRole('heading', { name: 'Nothing has run yet' })).toBeTruthy();
    expect(screen.getByText('No run has failed since this process began.')).toBeTruthy();
    await expectAccessible();
  });

  it('waits, and can be asked again when it failed', async () => {
    let answer: unknown = refusal(500, 'internal', 'The server has failed.', { hint: 'Look into its log.' });
    const shown = operate('#/operate', { ...operator, 'GET overview': () => answer });
    expect(screen.getByText('Loading')).toBeTruthy();
    await expectAccessible();
    expect(await screen.findByText('Look into its log.')).toBeTruthy();
    await expectAccessible();
    answer = overview();
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByRole('heading', { name: 'This process' })).toBeTruthy();
    shown.unmount();
  });

  it('says what is missing to people who are no operators', async () => {
    operate('#/operate', { ...operator, 'GET ui/config.json': config({ auth: 'key', ...noOperator }), 'GET overview': refusal(403, 'forbidden', 'No.') });
    expect(await screen.findByText('The overview is for server operators')).toBeTruthy();
    expect(screen.getByText(/holdfast key --tenant/)).toBeTruthy();
    expect(screen.getByRole('button', { name: 'Use another key' })).toBeTruthy();
    await expectAccessible();
  });

  it('is not shown to operators of a tenant, and neither are settings and tools by hand', async () => {
    const tenant = { ...operator, 'GET ui/config.json': config({ auth: 'key', roles: ['tenant_operator'], tenantOperator: true, serverOperator: false }) };
    const begun = operate('#/operate', tenant);
    expect(await screen.findByRole('link', { name: 'All threads', current: 'page' })).toBeTruthy();
    expect(screen.getAllByRole('link').map((a) => a.textContent).filter((text) => text === 'Overview' || text === 'Settings')).toEqual([]);
    await expectAccessible();
    begun.unmount();
    const tool = operate('#/operate/agents?agent=shop&tool=calculate', tenant);
    expect(await screen.findByText('Schema of its arguments')).toBeTruthy();
    await waitFor(() => expect(screen.queryByRole('button', { name: 'Run it' })).toBeNull());
    expect(screen.queryByText(/for server operators/)).toBeNull();
    tool.unmount();
    operate('#/operate/settings', { ...tenant, 'GET settings': refusal(403, 'forbidden', 'No.') });
    expect(await screen.findByText('The list of settings is for server operators')).toBeTruthy();
    expect(screen.getByText(/--roles user,server_operator/)).toBeTruthy();
  });

  it('says so where it is off, and where the server is too old', async () => {
    const off = operate('#/operate', { 'GET ui/config.json': config(noOperator) });
    expect(await screen.findByText('The overview is off here')).toBeTruthy();
    await expectAccessible();
    off.unmount();
    operate('#/operate', {});
    expect(await screen.findByText('The overview is not on this server')).toBeTruthy();
  });

  it('has no other parts than it has', async () => {
    operate('#/operate/nothing');
    expect(await screen.findByText('Nothing is at this address')).toBeTruthy();
    await expectAccessible();
  });
});

describe('agents and their tools', () => {
  it('shows what an agent is made of', async () => {
    operate('#/operate/agents');
    expect(await screen.findByRole('heading', { name: 'shop' })).toBeTruthy();
    expect(screen.getByText('approvers')).toBeTruthy();
    expect(screen.getByText('Models').nextSibling?.textContent).toBe('openai/gpt-5, then custom/shop');
    expect(screen.getByRole('heading', { name: '3 tools' })).toBeTruthy();
    expect(screen.getByRole('link', { name: /calculate/ }).getAttribute('href')).toBe('#/operate/agents?agent=shop&tool=calculate');
    expect(document.querySelector('img[src=x]')).toBeNull();
    await expectAccessible();
    expect(screen.getByRole('link', { name: 'empty' }).getAttribute('href')).toBe('#/operate/agents?agent=empty');
  });

  it('says when an agent or a tool is not there', async () => {
    const one = operate('#/operate/agents?agent=gone');
    expect(await screen.findByText('No agent is called “gone”')).toBeTruthy();
    await expectAccessible();
    one.unmount();
    operate('#/operate/agents?agent=shop&tool=gone');
    expect(await screen.findByText('shop has no tool “gone”')).toBeTruthy();
  });

  it('runs a tool by hand, and again with the same key', async () => {
    const { asked } = operate('#/operate/agents?agent=shop&tool=calculate', { ...operator, 'POST agents/shop/tools/calculate/call': () => ({ result: '{"sum":42}', idempotencyKey: 'k1', durationMs: 12 }) });
    await userEvent.type(await screen.findByRole('textbox', { name: /Expression/ }), '6 * 7');
    await userEvent.click(screen.getByRole('button', { name: 'Run it' }));
    expect(await screen.findByText('12 ms')).toBeTruthy();
    expect(await screen.findByRole('tree', { name: 'Result' })).toBeTruthy();
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Again with this key' }));
    await waitFor(() => expect(screen.getAllByText('Returned')).toHaveLength(2));
    expect(asked.filter((a) => a.method === 'POST').map((a) => a.body)).toEqual([{ arguments: { expression: '6 * 7' } }, { arguments: { expression: '6 * 7' }, idempotencyKey: 'k1' }]);
  });

  it('does not send what the schema does not allow, and shows what the server has against it', async () => {
    const { asked } = operate('#/operate/agents?agent=shop&tool=calculate', { ...operator, 'POST agents/shop/tools/calculate/call': () => refusal(400, 'invalid_input', 'The arguments are wrong.', { details: { violations: ['/expression: it must have a number in it'] } }) });
    const field = await screen.findByRole('textbox', { name: /Expression/ });
    await userEvent.click(screen.getByRole('button', { name: 'Run it' }));
    await waitFor(() => expect(field.getAttribute('aria-invalid')).toBe('true'));
    expect(asked.some((a) => a.method === 'POST')).toBe(false);
    await userEvent.type(field, 'six');
    await userEvent.click(screen.getByRole('button', { name: 'Run it' }));
    expect(await screen.findByText('it must have a number in it')).toBeTruthy();
    expect(screen.getByText('It was not called')).toBeTruthy();
    await expectAccessible();
  });

  it('asks before it runs what has effects', async () => {
    const { asked } = operate('#/operate/agents?agent=shop&tool=refund', { ...operator, 'POST agents/shop/tools/refund/call': () => ({ error: 'The bank is closed.', idempotencyKey: 'k1', durationMs: 3 }) });
    await userEvent.click(await screen.findByRole('button', { name: 'Run it' }));
    const dialog = await screen.findByRole('alertdialog', { name: 'Run refund?' });
    await waitFor(() => expect(document.activeElement?.textContent).toBe('Cancel'));
    await expectAccessible();
    expect(asked.some((a) => a.method === 'POST')).toBe(false);
    await userEvent.click(within(dialog).getByRole('button', { name: 'Run it' }));
    expect(await screen.findByText('The bank is closed.')).toBeTruthy();
  });

  it('runs nothing that is finished from outside, and nothing for others than operators', async () => {
    const outside = operate('#/operate/agents?agent=shop&tool=approve');
    expect(await screen.findByText(/finished from outside the server/)).toBeTruthy();
    expect(screen.queryByRole('button', { name: 'Run it' })).toBeNull();
    await expectAccessible();
    outside.unmount();
    operate('#/operate/agents?agent=shop&tool=calculate', { ...operator, 'GET ui/config.json': config({ auth: 'key', ...noOperator }) });
    expect(await screen.findByText('Running a tool by hand is for server operators')).toBeTruthy();
    await expectAccessible();
  });
});

describe('settings', () => {
  it('are searched, with where each comes from', async () => {
    const { studio } = operate('#/operate/settings');
    expect(await screen.findByRole('row', { name: /--addr/ })).toBeTruthy();
    expect(screen.getByText('not set')).toBeTruthy();
    expect(screen.getByText('environment')).toBeTruthy();
    await expectAccessible();
    await userEvent.type(screen.getByRole('searchbox'), 'kept');
    await waitFor(() => expect(screen.queryByRole('row', { name: /--addr/ })).toBeNull());
    expect(studio.router.get().more).toEqual({ q: 'kept' });
    await userEvent.clear(screen.getByRole('searchbox'));
    await userEvent.click(screen.getByRole('button', { name: 'Set' }));
    await waitFor(() => expect(screen.queryByRole('row', { name: /--store/ })).toBeNull());
    expect(screen.getByRole('row', { name: /OPENAI_API_KEY/ })).toBeTruthy();
  });
});

describe('the threads of all users', () => {
  it('are listed with whose they are, and lead to them', async () => {
    operate('#/operate/threads');
    expect((await screen.findByRole('link', { name: 'Refund' })).getAttribute('href')).toBe('#/threads/t1?user=bob');
    expect(screen.getByText(hostile)).toBeTruthy();
    await expectAccessible();
    await userEvent.type(screen.getByRole('searchbox'), 'model_failed');
    await waitFor(() => expect(screen.queryByText(hostile)).toBeNull());
    expect(screen.getByRole('link', { name: 'Refund' })).toBeTruthy();
    await userEvent.type(screen.getByRole('searchbox'), 'x');
    expect(await screen.findByText('No thread of the 2 that are loaded matches.')).toBeTruthy();
  });

  it('say all the time whose they are', async () => {
    const shown = page(<OtherUser />, { hash: '#/threads/t1?user=alice' });
    expect(screen.getByRole('note').textContent).toContain('You read a thread of alice');
    await expectAccessible();
    shown.unmount();
    page(<OtherUser />, { hash: '#/threads/t1' });
    expect(screen.queryByRole('note')).toBeNull();
  });
});

describe('import', () => {
  const document = { kind: 'holdfast.thread', version: 1, tenant: 'acme', thread: 't1', head: {}, state: {}, messages: [{}, {}], values: {}, records: [{}] };
  const file = (content: string) => new File([content], 'a.holdfast.json', { type: 'application/json' });

  it('shows what is in a file, and what became of it', async () => {
    const { asked, studio } = page(<ImportDialog />, { routes: routesOf({ 'POST threads/import': () => ({ ...threads.threads[1], id: 'thread_2', title: 'Refund' }) }) });
    studio.layer.set('import');
    await expectAccessible();
    await userEvent.upload(screen.getByLabelText('Choose a file'), file(JSON.stringify(document)));
    expect(await screen.findByText('2 messages, 1 record')).toBeTruthy();
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Import' }));
    expect(await screen.findByText(/another thread is called/)).toBeTruthy();
    expect(asked.find((a) => a.method === 'POST')?.body).toEqual(document);
    await userEvent.click(screen.getByRole('button', { name: 'Open it' }));
    expect(studio.router.get()).toEqual({ page: 'thread', thread: 'thread_2' });
    expect(studio.layer.get()).toBe('none');
  });

  it('says what is wrong with a file, and what the server has against it', async () => {
    page(<ImportDialog />, { routes: routesOf({ 'POST threads/import?threadId=mine': () => refusal(409, 'thread_exists', 'There is a thread with this id.') }) });
    await userEvent.upload(screen.getByLabelText('Choose a file'), file('{"kind":"other"}'));
    expect(await screen.findByText(/is no exported thread/)).toBeTruthy();
    await expectAccessible();
    await userEvent.upload(screen.getByLabelText('Choose a file'), file(JSON.stringify(document)));
    await userEvent.type(await screen.findByLabelText('Id of the new thread'), 'mine');
    await userEvent.click(screen.getByRole('button', { name: 'Import' }));
    expect(await screen.findByText('There is a thread with this id.')).toBeTruthy();
    await expectAccessible();
  });
});
