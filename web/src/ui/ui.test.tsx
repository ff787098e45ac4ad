import { act, fireEvent, render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState } from 'react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { expectAccessible } from '../../test/axe.ts';
import { Badge } from './Badge.tsx';
import { Button, IconButton } from './Button.tsx';
import { CopyButton } from './CopyButton.tsx';
import { AlertDialog, Dialog } from './Dialog.tsx';
import { EmptyState } from './EmptyState.tsx';
import { EffectBadge, effectOf } from './effect.tsx';
import { ErrorCard, failureOf } from './ErrorCard.tsx';
import { Checkbox, Select, TextArea, TextField } from './Field.tsx';
import { keyNames } from './Kbd.tsx';
import { Menu, MenuCheck, MenuChoice, MenuItem, MenuSeparator } from './Menu.tsx';
import { PanelBoundary } from './PanelBoundary.tsx';
import { Popover } from './Popover.tsx';
import { Skeleton } from './Spinner.tsx';
import { StatusDot } from './StatusDot.tsx';
import { Switch } from './Switch.tsx';
import { Tabs } from './Tabs.tsx';
import { Duration, Time } from './Time.tsx';

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe('buttons', () => {
  it('do nothing while they are busy, and keep the focus', async () => {
    const pressed = vi.fn();
    const { rerender } = render(<Button onClick={pressed}>Fork</Button>);
    await userEvent.click(screen.getByRole('button', { name: 'Fork' }));
    rerender(<Button busy onClick={pressed}>Fork</Button>);
    await userEvent.click(screen.getByRole('button', { name: 'Fork' }));
    expect(pressed).toHaveBeenCalledTimes(1);
    expect(document.activeElement).toBe(screen.getByRole('button'));
    await expectAccessible();
  });

  it('with an icon have a name, and say it when they have the focus', async () => {
    render(<IconButton label="Delete" keys="Mod+D"><span>×</span></IconButton>);
    expect(screen.getByRole('button', { name: 'Delete' })).toBeTruthy();
    await userEvent.tab();
    expect(await screen.findByText('Delete', { selector: '.tooltip' })).toBeTruthy();
    await expectAccessible();
  });

  it('copy, and say so', async () => {
    const user = userEvent.setup();
    render(<CopyButton text={() => 'some text'} />);
    await user.click(screen.getByRole('button', { name: 'Copy' }));
    expect(await navigator.clipboard.readText()).toBe('some text');
    expect(await screen.findByText('Copied')).toBeTruthy();
    await expectAccessible();
  });

  it('name keys as the keyboard here does', () => {
    expect(keyNames('Mod+Shift+K', false)).toEqual(['Ctrl', 'Shift', 'K']);
    expect(keyNames('Mod+Enter', true)).toEqual(['⌘', '↵']);
    expect(keyNames('+')).toEqual(['+']);
  });
});

describe('dialogs', () => {
  function Opens({ alert = false, onConfirm = () => {} }: { alert?: boolean; onConfirm?: () => void }) {
    const [open, setOpen] = useState(false);
    const close = () => setOpen(false);
    return (
      <>
        <Button onClick={() => setOpen(true)}>Open</Button>
        {alert
          ? <AlertDialog open={open} onClose={close} title="Delete this thread?" about="Its runs go with it." confirm="Delete" danger onConfirm={onConfirm} />
          : <Dialog open={open} onClose={close} title="Rename" about="Others see it." actions={<Button kind="primary">Save</Button>}><TextField label="Title" value="a" onChange={() => {}} /></Dialog>}
      </>
    );
  }

  it('take the focus and give it back', async () => {
    render(<Opens />);
    await userEvent.click(screen.getByRole('button', { name: 'Open' }));
    const dialog = await screen.findByRole('dialog', { name: 'Rename' });
    await expect.poll(() => dialog.contains(document.activeElement)).toBe(true);
    await expectAccessible();
    await userEvent.keyboard('{Escape}');
    await expect.poll(() => screen.queryByRole('dialog')).toBeNull();
    await expect.poll(() => document.activeElement?.textContent).toBe('Open');
  });

  it('ask before something is done', async () => {
    const confirmed = vi.fn();
    render(<Opens alert onConfirm={confirmed} />);
    await userEvent.click(screen.getByRole('button', { name: 'Open' }));
    const dialog = await screen.findByRole('alertdialog', { name: 'Delete this thread?' });
    await expectAccessible();
    await userEvent.click(within(dialog).getByRole('button', { name: 'Delete' }));
    expect(confirmed).toHaveBeenCalledOnce();
    await userEvent.click(within(dialog).getByRole('button', { name: 'Cancel' }));
    await expect.poll(() => screen.queryByRole('alertdialog')).toBeNull();
  });
});

describe('menus and popovers', () => {
  it('are used with the keyboard', async () => {
    const chosen = vi.fn();
    const checked = vi.fn();
    const selected = vi.fn();
    render(
      <Menu trigger={<Button>More</Button>}>
        <MenuChoice label="Order" value="new" options={[['new', 'Newest'], ['old', 'Oldest']]} onChange={chosen} />
        <MenuSeparator />
        <MenuCheck checked={false} onChange={checked}>Hidden ones</MenuCheck>
        <MenuItem danger onSelect={selected}>Delete</MenuItem>
        <MenuItem disabled onSelect={selected}>Never</MenuItem>
      </Menu>,
    );
    await userEvent.click(screen.getByRole('button', { name: 'More' }));
    await screen.findByRole('menu');
    await expectAccessible();
    await userEvent.click(screen.getByRole('menuitemradio', { name: 'Oldest' }));
    expect(chosen).toHaveBeenCalledWith('old');
    await userEvent.click(screen.getByRole('menuitemcheckbox', { name: 'Hidden ones' }));
    expect(checked).toHaveBeenCalledWith(true);
    await userEvent.keyboard('d{Enter}');
    expect(selected).toHaveBeenCalledOnce();
    await expect.poll(() => screen.queryByRole('menu')).toBeNull();
  });

  it('have a title', async () => {
    render(<Popover trigger={<Button>Usage</Button>} title="Tokens">1,204</Popover>);
    await userEvent.click(screen.getByRole('button', { name: 'Usage' }));
    expect(await screen.findByRole('dialog', { name: 'Tokens' })).toBeTruthy();
    await expectAccessible();
  });
});

describe('tabs', () => {
  it('show one panel, and move with the arrow keys', async () => {
    function Two() {
      const [at, setAt] = useState<'a' | 'b'>('a');
      return <Tabs label="Inspector" value={at} onChange={setAt} tabs={[{ value: 'a', name: 'Events', count: 1204, panel: 'records' }, { value: 'b', name: 'State', panel: 'a state' }]} />;
    }
    render(<Two />);
    expect(screen.getByRole('tab', { name: 'Events 1,204' }).getAttribute('aria-selected')).toBe('true');
    await expectAccessible();
    screen.getByRole('tab', { name: /Events/ }).focus();
    await userEvent.keyboard('{ArrowRight}{Enter}');
    await expect.poll(() => screen.getAllByRole('tabpanel').map((e) => e.textContent)).toEqual(['a state']);
    await expectAccessible();
  });
});

describe('fields', () => {
  it('are named, explained, and say what is wrong', async () => {
    const changed = vi.fn();
    render(
      <>
        <TextField label="Nights" about="At least one." error="It must be at least 1." required value="" onChange={changed} />
        <TextArea label="Message" value="" onChange={changed} />
        <Select label="Agent" value="a" options={[['a', 'demo'], ['b', 'travel']]} onChange={changed} />
        <Checkbox checked={false} onChange={changed} about="Nothing runs.">Only recorded</Checkbox>
        <Switch checked={false} onChange={changed} about="As they come.">Follow</Switch>
        <TextField label="Search" quiet value="" onChange={changed} />
      </>,
    );
    await expectAccessible();
    const nights = screen.getByLabelText(/Nights/);
    expect(nights.getAttribute('aria-invalid')).toBe('true');
    expect(nights.getAttribute('aria-describedby')?.split(' ').map((id) => document.getElementById(id)?.textContent)).toEqual(['At least one.', 'It must be at least 1.']);
    fireEvent.change(nights, { target: { value: '2' } });
    fireEvent.change(screen.getByLabelText('Message'), { target: { value: 'hello' } });
    await userEvent.selectOptions(screen.getByLabelText('Agent'), 'travel');
    await userEvent.click(screen.getByLabelText('Only recorded'));
    await userEvent.click(screen.getByRole('switch', { name: 'Follow' }));
    expect(changed.mock.calls.map((c) => c[0])).toEqual(['2', 'hello', 'b', true, true]);
  });
});

describe('states', () => {
  it('are accessible', async () => {
    render(
      <>
        <EmptyState title="Nothing yet" actions={<Button>Begin</Button>}>Your message starts it.</EmptyState>
        <Skeleton />
        <Badge tone="wait">waiting</Badge>
        <StatusDot tone="bad" label="Failed" />
        <ErrorCard alert error={failureOf({ code: 'not_found', message: 'No such thread.', hint: 'Look in the list.' })} onRetry={() => {}} />
      </>,
    );
    await expectAccessible();
    expect(screen.getByRole('alert').textContent).toContain('Look in the list.');
    expect(screen.getByRole('img', { name: 'Failed' })).toBeTruthy();
  });

  it('tell what was thrown', () => {
    expect(failureOf(new Error('x'))).toEqual({ code: undefined, message: 'x', hint: undefined });
    expect(failureOf('plain')).toEqual({ message: 'plain' });
  });

  it('of a panel that fails leave the others, and can be tried again', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    let broken = true;
    const Breaks = () => {
      if (broken) throw new Error('no such member');
      return <p>whole</p>;
    };
    render(<><PanelBoundary name="The inspector"><Breaks /></PanelBoundary><p>other</p></>);
    expect(screen.getByText('other')).toBeTruthy();
    expect(screen.getByText('The inspector cannot be shown')).toBeTruthy();
    await expectAccessible();
    broken = false;
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(screen.getByText('whole')).toBeTruthy();
  });

  it('of a panel are tried again when it shows something else', () => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const Shows = ({ thread }: { thread: string }) => {
      if (thread === 'bad') throw new Error('bad');
      return <p>{thread}</p>;
    };
    const page = (thread: string) => <PanelBoundary name="This" of={thread}><Shows thread={thread} /></PanelBoundary>;
    const { rerender } = render(page('bad'));
    rerender(page('good'));
    expect(screen.getByText('good')).toBeTruthy();
  });
});

describe('times', () => {
  it('go on by themselves', () => {
    vi.useFakeTimers({ now: new Date('2026-05-01T12:00:00Z') });
    render(<><Time at="2026-05-01T11:58:00Z" /><Duration since="2026-05-01T11:59:30Z" /></>);
    expect(screen.getByText('2m ago').getAttribute('datetime')).toBe('2026-05-01T11:58:00.000Z');
    expect(screen.getByText('30 s')).toBeTruthy();
    act(() => vi.advanceTimersByTime(60_000));
    expect(screen.getByText('3m ago')).toBeTruthy();
    expect(screen.getByText('1 m 30 s')).toBeTruthy();
  });
});

describe('effects of tools', () => {
  it('says what is known of each, and warns of what is not', () => {
    for (const name of ['pure', 'idempotent', 'query', 'once', 'frontend']) expect(effectOf(name).about).not.toBe(effectOf('gone').about);
    expect(effectOf('pure').again).toBeUndefined();
    expect(effectOf('once')).toMatchObject({ tone: 'wait', about: expect.stringContaining('never started twice') as string });
    expect(effectOf('gone').again).toMatch(/nobody can say/);
    render(<EffectBadge effect="query" />);
    expect(screen.getByText('query').dataset['tone']).toBe('info');
  });
});
