import { act, cleanup, render, screen } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, expect, it } from 'vitest';
import { connect } from '../api/request';
import { Thread, useLog, useStanding, useThread, useView } from './hooks';
import { reduce } from './reduce';
import { PlayedPage, PlayedServer } from './played';
import type { View } from './view';

afterEach(cleanup);

const textOf = ({ items }: View): string => items.map((item) => (item.kind === 'text' ? item.text : '')).join('|');
const statusOf = ({ status }: View): string => status;

let drawn = 0;

function Text(): ReactNode {
  return <p data-testid="text">{useView(textOf)}</p>;
}

function Status(): ReactNode {
  drawn++;
  return <p data-testid="status">{useView(statusOf)}</p>;
}

function Rest(): ReactNode {
  const { standing } = useStanding();
  const log = useLog();
  return <p data-testid="rest">{`${standing} ${log.length} ${textOf(reduce(log, log.positionOf(3)))}`}</p>;
}

it('components show what they have chosen, and are drawn again only for that', async () => {
  const server = new PlayedServer();
  server.say({ type: 'RUN_STARTED', threadId: 't', runId: 'r1' }, { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' }, { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'a' });
  const page = new PlayedPage();
  const connected = connect('http://server/', undefined, server.fetch);
  const { unmount } = render(<Thread server={connected} id="t" page={page}><Text /><Status /><Rest /></Thread>);
  await screen.findByText('go|a');
  await screen.findByText('live 4 go|a');
  const before = drawn;
  act(() => server.say({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'b' }));
  await screen.findByText('go|ab');
  expect(screen.getByTestId('rest').textContent).toBe('live 5 go|a');
  expect([screen.getByTestId('status').textContent, drawn]).toEqual(['running', before]);
  act(() => server.say({ type: 'RUN_FINISHED', threadId: 't', runId: 'r1', outcome: { type: 'success' } }));
  await screen.findByText('done');
  unmount();
  expect(server.watchers).toBe(0);
});

it('outside of a thread, they say what is wrong', () => {
  const Lost = (): ReactNode => useThread().thread;
  expect(() => render(<Lost />)).toThrow('<Thread>');
});
