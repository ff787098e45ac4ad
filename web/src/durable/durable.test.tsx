// The parts of a thread's history on their own, in each of their states.
import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { expectAccessible } from '../../test/axe.ts';
import { page } from '../../test/fake.tsx';
import type { Checkpoint, WorkCall } from '../api/types.ts';
import type { SeamItem } from '../log/view.ts';
import { Doubt } from './Doubt.tsx';
import { EditStateDialog, MarkDialog } from './EditState.tsx';
import { graphOf } from './graph.ts';
import { ProcessLanes, ProcessTag } from './Process.tsx';
import { Seam, SeamLine } from './Seam.tsx';
import { Strip } from './Strip.tsx';
import { ThreadTreeView } from './ThreadTree.tsx';
import { TravelDialog, type TravelDialogProps } from './Travel.tsx';
import { Work, workLine } from './Work.tsx';

const hostile = '<img src=x onerror=alert(1)>‮' + 'long'.repeat(200);

const seam = (more: Partial<SeamItem> = {}): SeamItem => ({
  kind: 'seam', key: 'x:57', id: '', runId: 'r1', first: 57, last: 57, open: false, reason: 'owner_gone', epoch: 2, iteration: 1, from: 'process-1', process: 'process-2',
  target: 't:m1', place: 'before', offset: 0, outageMs: 800, gapMs: 900, fromRevision: '', toRevision: '', cut: { kind: 'text', key: 't:m0', text: 'one' }, ...more,
});

const checkpoint = (id: string, more: Partial<Checkpoint> = {}, metadata: Partial<Checkpoint['metadata']> = {}): Checkpoint => ({
  id, threadId: 't1', createdAt: '2026-03-04T05:06:07Z', format: 9, agent: 'demo', runId: 'r1', status: 'running', iteration: 1, messageCount: 3,
  ...more, metadata: { source: 'loop', step: 1, ...metadata },
});

const list = [
  checkpoint('000000000001', {}, { source: 'input', step: -1 }),
  checkpoint('000000000002', {}, { parentCheckpointId: '000000000001' }),
  checkpoint('000000000003', { status: 'interrupted' }, { parentCheckpointId: '000000000002' }),
  checkpoint('000000000004', { status: 'stopped' }, { source: 'fork', parentCheckpointId: '000000000002' }),
  checkpoint('000000000005', { status: 'idle', runId: 'r2' }, { source: 'update', label: hostile, parentCheckpointId: '000000000004' }),
];

describe('a seam', () => {
  it('says as words what happened, and more behind it', async () => {
    page(<p>one <Seam seam={seam({ place: 'inside' })} /> two</p>);
    const mark = screen.getByRole('button', { name: 'Process process-1 died here. Process process-2 went on 900\u00a0ms later.' });
    await expectAccessible();
    await userEvent.click(mark);
    const more = await screen.findByRole('dialog');
    expect(within(more).getByText(/stored before it was shown/)).toBeTruthy();
    expect(within(more).getByText('57')).toBeTruthy();
    await expectAccessible();
  });
  it('tells a server that shut down from one that died', () => {
    page(<Seam seam={seam({ reason: 'handed_over' })} />);
    expect(screen.getByText(/handed over here/)).toBeTruthy();
  });
  it('tells a restart from another process, and a log that says nothing of processes', () => {
    page(<><Seam seam={seam({ process: 'process-1' })} /><Seam seam={seam({ from: '', process: '', cut: undefined })} /></>);
    expect(screen.getByText(/It was started again and went on/)).toBeTruthy();
    expect(screen.getByText('The process died here. Another one went on.')).toBeTruthy();
  });
  it('keeps what was shown until it is said again', () => {
    const { container } = page(<SeamLine seam={seam({ target: '', cut: { kind: 'text', key: 't:m1', text: 'one **two**' } })} />);
    expect(container.querySelector('.durable-ghost')?.textContent).toContain('one two');
  });
  it('has no line of its own once it is in a text', () => {
    page(<SeamLine seam={seam({ place: 'inside' })} />);
    expect(screen.queryByRole('button')).toBeNull();
  });
});

describe('the strip', () => {
  const strip = (at?: string, onLook = vi.fn()) => {
    page(<Strip graph={graphOf(list)} at={at} hrefOf={(id) => `#/threads/t1?checkpoint=${id}`} nowHref="#/threads/t1" onLook={onLook} live />);
    return onLook;
  };
  it('links every checkpoint, and says what it is', async () => {
    strip();
    expect(screen.getAllByRole('link')).toHaveLength(6);
    expect(screen.getByRole('link', { name: 'Checkpoint 1: Run accepted, 3 messages, step 1 of 4' })).toBeTruthy();
    expect(screen.getByRole('link', { name: 'Checkpoint 3: Waiting for a person, 3 messages, left by going back' })).toBeTruthy();
    expect(screen.getByRole('link', { name: 'Now' }).getAttribute('aria-current')).toBe('step');
    await expectAccessible();
  });
  it('is one stop of the Tab key, and the arrow keys go on', async () => {
    const onLook = strip('000000000002');
    await userEvent.tab();
    expect(document.activeElement?.getAttribute('aria-current')).toBe('step');
    await userEvent.keyboard('{ArrowRight}{Enter}');
    expect(onLook).toHaveBeenLastCalledWith('000000000003');
    await userEvent.keyboard('{End}{Enter}');
    expect(onLook).toHaveBeenLastCalledWith(undefined);
    await userEvent.tab();
    expect(document.activeElement).toBe(document.body);
  });
});

const effects = [
  { toolCallId: 'a', toolName: 'pay', arguments: { to: 'Ada', amount: 120 }, effect: 'once', messageId: 'm1', reusable: true },
  { toolCallId: 'b', toolName: 'mail', arguments: hostile, effect: 'idempotent', messageId: 'm2', failed: true, reusable: true },
  { toolCallId: 'c', toolName: 'gone', arguments: {}, effect: 'unknown' },
];

const travel = (more: Partial<TravelDialogProps> = {}) => {
  const onConfirm = vi.fn();
  const onCopyCurl = vi.fn();
  page(<TravelDialog kind="rewind" open onClose={() => {}} where="step 2 of 4" effects={effects} unfinished onConfirm={onConfirm} onCopyCurl={onCopyCurl} {...more} />);
  return { onConfirm, onCopyCurl };
};

describe('going back', () => {
  it('waits for the list of what has happened', async () => {
    travel({ effects: undefined });
    expect(screen.getByText('Asking what has happened since')).toBeTruthy();
    expect((screen.getByRole('button', { name: 'Rewind' }) as HTMLButtonElement).disabled).toBe(true);
    await expectAccessible();
  });
  it('asks about each call, with its arguments', async () => {
    const { onConfirm } = travel();
    expect(screen.getByText('3 calls have already changed something outside')).toBeTruthy();
    expect(screen.getByLabelText('Arguments of pay').textContent).toContain('"Ada"');
    const pay = screen.getByRole('group', { name: 'If the model calls pay like this again' });
    expect((within(pay).getByLabelText('Use its result again') as HTMLInputElement).checked).toBe(true);
    const gone = screen.getByRole('group', { name: 'If the model calls gone like this again' });
    expect((within(gone).getByLabelText('Use its result again') as HTMLInputElement).disabled).toBe(true);
    expect(screen.getByText('no result')).toBeTruthy();
    await expectAccessible();
    await userEvent.click(within(pay).getByLabelText('Let it run again'));
    await userEvent.click(screen.getByRole('switch', { name: 'Continue the run from there' }));
    await userEvent.click(screen.getByRole('button', { name: 'Rewind' }));
    expect(onConfirm).toHaveBeenCalledExactlyOnceWith({ again: { a: 'run', b: 'run', c: 'run' }, onlyRecorded: false }, false);
  });
  it('can be a rehearsal, and be copied as curl', async () => {
    const { onCopyCurl } = travel();
    await userEvent.click(screen.getByRole('switch', { name: 'Run nothing that was not recorded' }));
    await userEvent.click(screen.getByRole('button', { name: 'Copy as curl' }));
    expect(onCopyCurl).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ onlyRecorded: true }));
  });
  it('says that nothing has happened, or that not all is known', async () => {
    travel({ effects: [] });
    expect(screen.getByText(/Nothing outside has been changed/)).toBeTruthy();
    await expectAccessible();
  });
  it('says why it was refused', async () => {
    travel({ effects: [], incomplete: true, error: { code: 'checkpoint_conflict', message: 'The thread has moved.', hint: 'Look at it again.' } });
    expect(screen.getByRole('alert').textContent).toContain('The thread has moved.');
    expect(screen.getByText(/more may have happened/)).toBeTruthy();
    await expectAccessible();
  });
  it('forks with other words', () => {
    travel({ kind: 'fork', unfinished: false });
    expect(screen.getByRole('dialog', { name: 'Fork from step 2 of 4?' })).toBeTruthy();
    expect(screen.queryByRole('switch', { name: 'Continue the run from there' })).toBeNull();
  });
});

describe('editing a state', () => {
  it('shows what will be different before it is saved', async () => {
    const onSave = vi.fn();
    page(<EditStateDialog open onClose={() => {}} state={{ plan: 'a' }} where="step 2 of 4" forks onSave={onSave} onCopyCurl={() => {}} />);
    const field = screen.getByLabelText('Shared state, as JSON');
    const save = screen.getByRole('button', { name: 'Fork with this state' }) as HTMLButtonElement;
    expect(save.disabled).toBe(true);
    await userEvent.clear(field);
    await userEvent.type(field, '{{"plan"');
    expect(screen.getByText(/This is not JSON yet/)).toBeTruthy();
    expect(save.disabled).toBe(true);
    await expectAccessible();
    await userEvent.type(field, ': "b"}');
    expect(await screen.findByLabelText('The changes', { selector: 'ul' })).toBeTruthy();
    await userEvent.type(screen.getByLabelText('Label'), 'second try');
    await userEvent.click(save);
    expect(onSave).toHaveBeenCalledExactlyOnceWith({ plan: 'b' }, 'second try');
  });
  it('says why it was not saved', async () => {
    page(<EditStateDialog open onClose={() => {}} state={null} where="now" forks={false} error={new Error('No.')} onSave={() => {}} onCopyCurl={() => {}} />);
    expect(screen.getByRole('alert').textContent).toContain('No.');
    await expectAccessible();
  });
  it('marks a place with a name', async () => {
    const onSave = vi.fn();
    page(<MarkDialog open onClose={() => {}} onSave={onSave} onCopyCurl={() => {}} />);
    await userEvent.type(screen.getByLabelText('Label'), ' before {Enter}');
    expect(onSave).toHaveBeenCalledExactlyOnceWith('before');
    await expectAccessible();
  });
});

const work = (state: WorkCall['state'], more: Partial<WorkCall> = {}): WorkCall => ({ toolCallId: state, toolName: `tool_${state}`, state, effect: 'once', ...more });

describe('what is under way', () => {
  const calls = [work('planned'), work('started', { key: 'key-1', attempts: 2, startedAt: '2026-03-04T05:06:07Z' }), work('recorded'), work('in_doubt'), work('waiting'), work('outside', { toolName: hostile })];
  it('is told in words, for each state', async () => {
    page(<Work work={{ runId: 'r1', status: 'running', iteration: 2, process: 'process-1', epoch: 1, calls }} />);
    expect(screen.getAllByRole('listitem')).toHaveLength(6);
    expect(screen.getByText(/It was started 2 times/)).toBeTruthy();
    expect(screen.getByText(/It may have happened/)).toBeTruthy();
    await expectAccessible();
  });
  it('teaches when it is empty', async () => {
    page(<Work work={{ runId: 'r1', status: 'idle', iteration: 0, epoch: 1, calls: [] }} />);
    expect(screen.getByText('Everything is in a checkpoint')).toBeTruthy();
    await expectAccessible();
  });
  it('fits in a line', () => {
    expect(workLine(undefined)).toBe('');
    expect(workLine({ runId: 'r1', status: 'running', iteration: 0, epoch: 1, calls })).toBe('1 running · 1 planned · 1 result saved · 1 in doubt · 1 waiting · 1 outside');
  });
  it('in doubt is explained beside the question', async () => {
    page(<Doubt />);
    expect(screen.getByText(/must not happen twice/)).toBeTruthy();
    await expectAccessible();
  });
});

describe('processes', () => {
  const run = (...since: string[]) => ({ startedAt: '2026-03-04T05:06:00Z', endedAt: '2026-03-04T05:06:10Z', processes: since.map((at, i) => ({ process: `process-${i + 1}`, epoch: i + 1, since: at })) });
  it('have lanes if there are several, and a name if there is one', async () => {
    page(<><ProcessLanes run={run('2026-03-04T05:06:00Z', '2026-03-04T05:06:04Z')} now={0} /><ProcessTag name="srv_0123456789abcdef" /></>);
    expect(screen.getAllByRole('listitem')).toHaveLength(2);
    expect(screen.getByText('4.0 s')).toBeTruthy();
    expect(screen.getByText('…abcdef')).toBeTruthy();
    await expectAccessible();
  });
  it('of one, and of none', () => {
    page(<><ProcessLanes run={run('2026-03-04T05:06:00Z')} now={0} /><ProcessLanes run={run()} now={0} /></>);
    expect(screen.queryByRole('list', { name: 'Processes that ran it' })).toBeNull();
    expect(screen.getByText('process-1')).toBeTruthy();
  });
});

describe('forks', () => {
  const thread = (id: string, parentThreadId?: string) => ({ id, agent: 'a', status: 'idle' as const, runId: 'r', iteration: 0, cursor: '', updatedAt: '2026-03-04T05:06:07Z', etag: '', title: `${id} ${hostile}`, ...(parentThreadId && { parentThreadId, parentCheckpointId: '000000000002' }) });
  it('are a tree', async () => {
    page(<ThreadTreeView threads={[thread('a'), thread('b', 'a')]} here="b" />);
    expect(screen.getAllByRole('link').map((link) => link.getAttribute('aria-current'))).toEqual([null, 'page']);
    expect(screen.getByText('from #2')).toBeTruthy();
    await expectAccessible();
  });
  it('teach when there are none', async () => {
    page(<ThreadTreeView threads={[thread('a')]} here="a" />);
    expect(screen.getByText(/Nothing was forked/)).toBeTruthy();
    await expectAccessible();
  });
});
