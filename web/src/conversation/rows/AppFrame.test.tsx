import { act, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState } from 'react';
import { describe, expect, it, vi } from 'vitest';
import { page } from '../../../test/fake.tsx';
import type { ActivityItem } from '../../log/view.ts';
import { RowsContext, type Rows } from '../context.ts';
import { AppFrame } from './AppFrame.tsx';

const item: ActivityItem = { key: 'a:1', id: 'a:1', runId: 'r1', first: 1, last: 1, open: false, at: 0, end: 0, kind: 'activity', name: 'mcp-apps', content: { toolName: 'show', result: { content: [] } } };
const rows: Rows = {
  readOnly: false, busy: false, thread: 't1', lastAnswer: '', versionsOf: () => undefined, edit: () => Promise.resolve(), regenerate: vi.fn(), switchTo: vi.fn(), say: vi.fn(), showRecords: vi.fn(), isOpen: () => true, setOpen: () => {},
};

/** An interface in a conversation that goes on when its button is pressed. */
function Conversation() {
  const [readOnly, setReadOnly] = useState(false);
  return (
    <RowsContext value={{ ...rows, readOnly, say: () => {} }}>
      <button onClick={() => setReadOnly(true)}>Go on</button>
      <AppFrame item={item} />
    </RowsContext>
  );
}

async function shown() {
  page(<Conversation />, { routes: ({ method }) => (method === 'GET' ? { html: '<p>hi</p>', csp: {} } : { content: [] }) });
  const frame = await screen.findByTitle<HTMLIFrameElement>('Interface of show');
  const source = frame.contentWindow!;
  const posted: { method?: string; id?: unknown; error?: { message: string } }[] = [];
  source.postMessage = (message: object) => void posted.push(message);
  const tell = (method: string, params: object = {}, id?: number) => act(async () => {
    window.dispatchEvent(new MessageEvent('message', { source, data: { jsonrpc: '2.0', id, method, params } }));
    await Promise.resolve();
  });
  return { posted, tell };
}

describe('the frame of an interface', () => {
  it('has one host for as long as it is shown, which sends the page once', async () => {
    const { posted, tell } = await shown();
    await tell('ui/notifications/sandbox-proxy-ready');
    expect(posted.map((m) => m.method)).toEqual(['ui/notifications/sandbox-resource-ready']);
    await userEvent.click(screen.getByRole('button', { name: 'Go on' }));
    expect(posted).toHaveLength(1); // it is not torn down
    await tell('tools/call', { name: 'refresh' }, 1);
    await waitFor(() => expect(posted.at(-1)).toMatchObject({ id: 1, error: { message: 'This is only looked at.' } }));
    // An interface that has gone to another address gets no page, and is not shown anymore.
    await tell('ui/notifications/sandbox-proxy-ready');
    expect(posted).toHaveLength(2);
    expect(screen.queryByTitle('Interface of show')).toBeNull();
  });

  it('asks one thing at a time: what a person agrees to is what is written there', async () => {
    const open = vi.spyOn(window, 'open').mockReturnValue(null);
    const { posted, tell } = await shown();
    await tell('ui/open-link', { url: 'https://a.example/' }, 1);
    await tell('ui/open-link', { url: 'https://b.example/' }, 2);
    await waitFor(() => expect(posted.at(-1)).toMatchObject({ id: 2, error: { message: 'Link opening denied by user' } }));
    await userEvent.click(screen.getByRole('button', { name: 'Open' }));
    expect(open).toHaveBeenCalledExactlyOnceWith('https://a.example/', '_blank', 'noopener,noreferrer');
    await tell('ui/open-link', { url: 'https://c.example/' }, 3);
    await userEvent.click(screen.getByRole('button', { name: 'No' }));
    await waitFor(() => expect(posted.at(-1)).toMatchObject({ id: 3, error: { message: 'Link opening denied by user' } }));
    expect(open).toHaveBeenCalledOnce();
    open.mockRestore();
    screen.getByTitle('Interface of show').remove(); // jsdom would load it
  });
});
