import { act, render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { expectAccessible } from '../../test/axe.ts';
import { App } from './App.tsx';
import { fakeServer, refusal } from '../../test/fake.tsx';
import { createStudio, type Studio } from './context.tsx';

let studio: Studio;

beforeEach(() => {
  location.hash = '#/';
  studio = createStudio(window);
  return () => studio.router.close();
});

describe('the page', () => {
  it('is accessible, with landmarks for its regions', async () => {
    render(<App studio={studio} />);
    expect(screen.getByRole('navigation', { name: 'Threads' })).toBeTruthy();
    expect(screen.getByRole('main')).toBeTruthy();
    expect(screen.getByRole('heading', { level: 1, name: 'New thread' })).toBeTruthy();
    await expectAccessible();
  });

  it('works in a browser that keeps nothing', async () => {
    const blocked = { get: () => { throw new DOMException('denied', 'SecurityError'); }, configurable: true };
    const names = ['localStorage', 'sessionStorage'] as const;
    const before = names.map((name) => Object.getOwnPropertyDescriptor(window, name));
    for (const name of names) Object.defineProperty(window, name, blocked);
    try {
      render(<App studio={createStudio(window)} />);
      expect(screen.getByRole('heading', { level: 1, name: 'New thread' })).toBeTruthy();
      await userEvent.type(screen.getByLabelText('Message'), 'not kept');
      expect((screen.getByLabelText('Message') as HTMLTextAreaElement).value).toBe('not kept');
    } finally {
      names.forEach((name, i) => Object.defineProperty(window, name, before[i] as PropertyDescriptor));
    }
  });

  it('goes where a link says, and back', async () => {
    render(<App studio={studio} />);
    await userEvent.click(screen.getByRole('link', { name: 'Questions' }));
    expect(await screen.findByRole('heading', { name: 'Questions' })).toBeTruthy();
    act(() => history.back());
    expect(await screen.findByRole('heading', { name: 'New thread' })).toBeTruthy();
  });

  it('leaves what was refused and what is attached with the thread that it was for', async () => {
    location.hash = '#/threads/a';
    studio = createStudio(window);
    let refuse = () => {};
    const { server, asked } = fakeServer(({ method }) => (method === 'POST' ? new Promise((done) => { refuse = () => done(refusal(409, 'interrupted', 'A question is open.')); }) : undefined));
    const { unmount } = render(<App studio={studio} server={server} />);
    const field = () => screen.getByLabelText('Message') as HTMLTextAreaElement;
    const go = (thread: string) => act(() => studio.router.go({ page: 'thread', thread }));
    await userEvent.type(await screen.findByLabelText('Message'), 'for a{Enter}');
    await expect.poll(() => asked.filter((a) => a.method === 'POST').length).toBe(1);
    go('b');
    await userEvent.upload(document.querySelector('input[type=file]') as HTMLInputElement, new File(['x'], 'b.txt', { type: 'text/plain' }));
    await screen.findByText('b.txt');
    go('a');
    expect(screen.queryByText('b.txt')).toBeNull();
    await expect.poll(() => asked.filter((a) => a.method === 'POST').length).toBe(2);
    refuse();
    expect(await screen.findByText('This was not sent')).toBeTruthy();
    await expect.poll(() => field().value).toBe('for a');
    go('b');
    expect(screen.queryByText('This was not sent')).toBeNull();
    expect(field().value).toBe('');
    expect(screen.getByText('b.txt')).toBeTruthy();
    unmount();
    render(<App studio={studio} server={server} />);
    expect(await screen.findByText('b.txt')).toBeTruthy();
  });

  it('asks nothing of a new thread when one leaves a run that is under way', async () => {
    const { server, asked } = fakeServer(({ path }) => {
      if (path === 'threads/t1') return { id: 't1', agent: 'demo', status: 'running', runId: 'r1', iteration: 0, cursor: '1-x', updatedAt: '', etag: '1' };
      if (path.startsWith('threads/t1/runs?')) return { runs: [{ id: 'r1', agent: 'demo', startedAt: '2026-01-01T00:00:00Z' }] };
      if (path.startsWith('threads/t1/runs/r1/log')) return { records: [{ cursor: '1-x', number: 1, event: { type: 'RUN_STARTED', threadId: 't1', runId: 'r1' } }], ended: false };
      if (path === 'threads/t1/messages') return { messages: [] };
      return path === 'threads/t1/stream' ? new Promise(() => {}) : undefined;
    });
    studio.router.go({ page: 'thread', thread: 't1' });
    render(<App studio={studio} server={server} />);
    expect(await screen.findByRole('button', { name: 'Stop' })).toBeTruthy();
    act(() => studio.router.go({ page: 'thread' }));
    expect(await screen.findByRole('heading', { name: 'New thread' })).toBeTruthy();
    expect(asked.filter((a) => a.path.startsWith('threads//'))).toEqual([]);
  });

  it('shows the parts that are loaded later', async () => {
    render(<App studio={studio} />);
    act(() => studio.router.go({ page: 'operate' }));
    expect(await screen.findByRole('heading', { name: 'Operate' })).toBeTruthy();
    act(() => studio.router.go({ page: 'thread', thread: 't1' }));
    await userEvent.keyboard('i');
    expect(await screen.findByRole('complementary', { name: 'Inspector' })).toBeTruthy();
    await expectAccessible();
  });

  it('shows the inspector where the address names one of its tabs, until it is closed', async () => {
    studio.preferences.set((now) => ({ ...now, inspector: false }));
    studio.router.go({ page: 'thread', thread: 't1', tab: 'run' });
    render(<App studio={studio} />);
    expect(await screen.findByRole('complementary', { name: 'Inspector' })).toBeTruthy();
    await userEvent.keyboard('i');
    expect(screen.queryByRole('complementary', { name: 'Inspector' })).toBeNull();
  });

  it('counts the open questions, as far as they were looked for', async () => {
    const questions = [{ thread: { id: 'a', agent: 'demo' }, runId: 'r', askedAt: '', interrupt: { id: 'q', reason: 'input_required' } }];
    const { server } = fakeServer(({ path }) => (path.startsWith('questions') ? { questions, next: '2026-01-01T00:00:00Z' } : undefined));
    render(<App studio={studio} server={server} />);
    const link = await screen.findByRole('link', { name: 'Questions 1+ open' });
    await userEvent.click(link);
    await expect.poll(() => document.title).toBe('(1+) Questions · Holdfast');
  });

  it('does what the palette is asked for', async () => {
    render(<App studio={studio} />);
    await userEvent.keyboard('{Control>}k{/Control}');
    const palette = await screen.findByRole('dialog', { name: 'Commands' });
    await expectAccessible();
    await userEvent.type(within(palette).getByRole('combobox'), 'dark');
    await userEvent.keyboard('{Enter}');
    await expect.poll(() => document.documentElement.dataset.theme).toBe('dark');
    expect(JSON.parse(localStorage.getItem('holdfast.preferences') ?? '').theme).toBe('dark');
  });

  it('has nothing that ends anything at the beginning of the palette', async () => {
    const { server } = fakeServer(({ path }) => (path === 'ui/config.json' ? { version: 'v1', demo: true, kill: true } : undefined));
    render(<App studio={studio} server={server} />);
    await expect.poll(() => studio.commands.list.get().find((c) => c.id === 'kill')?.when?.()).toBe(true);
    await userEvent.keyboard('{Control>}k{/Control}');
    const options = within(await screen.findByRole('dialog', { name: 'Commands' })).getAllByRole('option');
    expect(options[0]?.textContent).toContain('Go to');
    expect(options.at(-1)?.textContent).toContain('Kill the server');
  });

  it('explains its keys, and can do without letters', async () => {
    render(<App studio={studio} />);
    await userEvent.keyboard('?');
    const help = await screen.findByRole('dialog', { name: 'Keyboard' });
    expect(within(help).getByText('New thread')).toBeTruthy();
    await expectAccessible();
    await userEvent.click(within(help).getByRole('switch', { name: 'Single letters are shortcuts' }));
    await userEvent.keyboard('{Escape}');
    await expect.poll(() => screen.queryByRole('dialog')).toBeNull();
    await userEvent.keyboard('?');
    expect(screen.queryByRole('dialog')).toBeNull();
  });

  it('changes widths with the arrow keys and remembers them', async () => {
    render(<App studio={studio} />);
    const separator = screen.getByRole('separator', { name: 'Width of threads' });
    separator.focus();
    await userEvent.keyboard('{ArrowRight}');
    expect(separator.getAttribute('aria-valuenow')).toBe('280');
    await userEvent.keyboard('{End}{ArrowRight}');
    expect(separator.getAttribute('aria-valuenow')).toBe('440');
    expect(studio.preferences.get().threadsWidth).toBe(440);
  });

  it('asks for a key, and says when one was refused', async () => {
    render(<App studio={studio} />);
    let got = false;
    act(() => void studio.keys.ask('').then(() => { got = true; }));
    const dialog = await screen.findByRole('dialog', { name: 'This server requires a key' });
    await expectAccessible();
    await userEvent.type(within(dialog).getByLabelText(/API key/), 'k1{Enter}');
    await expect.poll(() => got).toBe(true);
    expect(studio.keys.current()).toBe('k1');
    act(() => void studio.keys.ask('k1').catch(() => {}));
    expect(await screen.findByText(/That key was refused/)).toBeTruthy();
  });

  it('keeps asking for a key without which nothing can be shown, but not for another one', async () => {
    render(<App studio={studio} />);
    act(() => void studio.keys.ask('').catch(() => {}));
    await screen.findByRole('dialog', { name: 'This server requires a key' });
    expect(screen.queryByRole('button', { name: 'Close' })).toBeNull();
    await userEvent.keyboard('{Escape}');
    expect(screen.getByRole('dialog', { name: 'This server requires a key' })).toBeTruthy();
    act(() => studio.keys.use('k1'));
    await expect.poll(() => screen.queryByRole('dialog')).toBeNull();
    act(() => void studio.keys.another().catch(() => {}));
    await userEvent.click(within(await screen.findByRole('dialog', { name: 'Use another key' })).getByRole('button', { name: 'Close' }));
    await expect.poll(() => screen.queryByRole('dialog')).toBeNull();
    expect(studio.keys.current()).toBe('k1');
  });

  it('shows toasts whose action can be used once', async () => {
    render(<App studio={studio} />);
    let undone = 0;
    let gone = 0;
    act(() => void studio.toasts.show({ text: 'Deleted', action: { label: 'Undo', run: () => { undone++; } }, onGone: () => { gone++; } }));
    await expectAccessible();
    await userEvent.click(screen.getByRole('button', { name: 'Undo' }));
    expect([undone, gone, screen.queryByText('Deleted')]).toEqual([1, 0, null]);
  });

  it('announces in regions that are there from the start', () => {
    render(<App studio={studio} />);
    act(() => studio.announcer.announce('Message complete'));
    act(() => studio.announcer.announce('A question', 'assertive'));
    expect(document.querySelector('[data-live=polite]')?.textContent).toBe('Message complete');
    expect(document.querySelector('[data-live=assertive]')?.textContent).toBe('A question');
  });
});

describe('a narrow page', () => {
  const wide = window.matchMedia;
  beforeEach(() => {
    vi.stubGlobal('matchMedia', (query: string) => ({ ...wide(query), matches: query.includes('899px') }));
  });
  afterEach(() => {
    vi.stubGlobal('matchMedia', wide);
  });

  it('has drawers, which keep the focus and give it back', async () => {
    render(<App studio={studio} />);
    expect(screen.queryByRole('navigation', { name: 'Threads' })).toBeNull();
    const opener = screen.getByRole('button', { name: 'Show threads' });
    await userEvent.click(opener);
    const drawer = screen.getByRole('dialog', { name: 'Threads' });
    expect(drawer.contains(document.activeElement)).toBe(true);
    expect(document.getElementById('region-main')?.hasAttribute('inert')).toBe(true);
    await expectAccessible();
    await userEvent.keyboard('{Escape}');
    expect(screen.queryByRole('dialog')).toBeNull();
    await expect.poll(() => document.activeElement).toBe(opener);
  });

  it('closes the drawer when one goes somewhere', async () => {
    render(<App studio={studio} />);
    await userEvent.click(screen.getByRole('button', { name: 'Show threads' }));
    await userEvent.click(screen.getByRole('link', { name: 'Questions' }));
    expect(await screen.findByRole('heading', { name: 'Questions' })).toBeTruthy();
    expect(screen.queryByRole('dialog')).toBeNull();
  });
});
