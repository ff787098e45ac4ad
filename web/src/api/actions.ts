// Everything that the page can ask the server to do. Each is a value, so that it can be sent
// and also shown as a command.

import type { Action } from './request';

const part = encodeURIComponent;

/** Where a thread is. */
export const threadPath = (thread: string): string => `threads/${part(thread)}`;

/** Where a run is. */
export const runPath = (thread: string, run: string): string => `${threadPath(thread)}/runs/${part(run)}`;

/** `?name=value&…` of what is given. */
export function query(values: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const said = Object.entries(values).filter(([, value]) => value !== undefined && value !== '');
  return said.length === 0 ? '' : '?' + said.map(([name, value]) => `${name}=${part(String(value))}`).join('&');
}

/** An answer to a question. */
export type Answer =
  | { readonly interruptId: string; readonly status: 'resolved'; readonly payload: unknown }
  | { readonly interruptId: string; readonly status: 'cancelled' };

/** A part of what a person sends. */
export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio' | 'video' | 'document'; readonly source: { readonly type: 'data' | 'url'; readonly value: string; readonly mimeType?: string }; readonly metadata?: Readonly<Record<string, unknown>> };

/** A message that a person sends. */
export interface UserMessage extends SentMessage {
  readonly role: 'user';
  readonly content: string | readonly ContentPart[];
}

/** The server's choices where it would rather ask: `forwardedProps.holdfast`. */
export interface Choices {
  readonly chat?: boolean;
  readonly onBusy?: 'reject' | 'cancel_and_run';
  readonly onInterrupted?: 'reject' | 'decline';
  readonly onUnfinished?: 'reject' | 'abandon';
  readonly branch?: boolean;
  readonly whole?: boolean;
  readonly allowStale?: boolean;
  /** The last message that the page shows: it has what comes before. */
  readonly since?: string | undefined;
}

/** A message as a request names it: of what the server has, the id says it all. */
export interface SentMessage {
  readonly id: string;
  readonly role: string;
  readonly [name: string]: unknown;
}

/** The input that starts, continues or attaches to a run: AG-UI's RunAgentInput. */
export interface RunInput {
  readonly protocolVersion: '1.0';
  readonly threadId: string;
  readonly runId: string;
  readonly messages: readonly SentMessage[];
  readonly resume?: readonly Answer[];
  readonly state?: unknown;
  readonly tools: readonly unknown[];
  readonly context: readonly unknown[];
  readonly forwardedProps: { readonly holdfast: Choices };
}

/** A run's input. As people chat: what was stopped or failed is in nobody's way, and an edited message begins a branch. An open question is declined only by somebody who says so. */
export const runInput = (threadId: string, runId: string, more: { messages?: readonly SentMessage[]; resume?: readonly Answer[] }, choices: Choices = {}): RunInput => ({
  protocolVersion: '1.0', threadId, runId, messages: more.messages ?? [], ...(more.resume === undefined ? {} : { resume: more.resume }), tools: [], context: [],
  forwardedProps: { holdfast: { chat: true, onInterrupted: 'reject', ...choices } },
});

const stream = { Accept: 'text/event-stream' };

/** Starts, resumes, answers, edits or regenerates, with the named agent or the default one. */
export const run = (input: RunInput, agent = ''): Action => ({ method: 'POST', path: agent === '' ? 'runs' : `agents/${part(agent)}/runs`, body: input, headers: stream });

export const cancel = (thread: string, run: string): Action => ({ method: 'POST', path: `${runPath(thread, run)}/cancel` });

/** Gives a thread another title, hides it or shows it again. */
export const describe = (thread: string, change: { title?: string; hidden?: boolean }): Action => ({ method: 'PATCH', path: threadPath(thread), body: change });

export const remove = (thread: string, children = false): Action => ({ method: 'DELETE', path: threadPath(thread) + query({ children: children ? 'delete' : undefined }) });

/** If-Match, if the thread must not have moved. */
const match = (etag: string | undefined): { headers?: Record<string, string> } => (etag === undefined ? {} : { headers: { 'If-Match': etag } });

/** Where to go in a thread's history. */
export interface Travel {
  readonly checkpointId?: string;
  readonly messageId?: string;
  /** All recorded results are used again, or those of the named calls. */
  readonly reuseResults?: boolean;
  readonly reuse?: readonly string[];
  readonly onlyRecorded?: boolean;
  /** Says what would happen, and does nothing. */
  readonly preview?: boolean;
}

export const rewind = (thread: string, to: Travel, etag?: string): Action => ({ method: 'POST', path: `${threadPath(thread)}/rewind`, body: to, ...match(etag) });

export const fork = (thread: string, from: Travel & { threadId?: string }, etag?: string): Action => ({ method: 'POST', path: `${threadPath(thread)}/fork`, body: from, ...match(etag) });

/** Takes a checkpoint by hand; a state replaces the shared state. */
export const checkpoint = (thread: string, mark: { label?: string; state?: unknown }, etag?: string): Action => ({ method: 'POST', path: `${threadPath(thread)}/checkpoints`, body: mark, ...match(etag) });

/** Runs one tool by hand. */
export const callTool = (agent: string, tool: string, call: { arguments: unknown; idempotencyKey?: string }): Action => ({ method: 'POST', path: `agents/${part(agent)}/tools/${part(tool)}/call`, body: call });

/** Imports what exportThread has given, as it was given. */
export const importThread = (exported: string, threadId?: string): Action => ({ method: 'POST', path: 'threads/import' + query({ threadId }), body: exported, headers: { 'Content-Type': 'application/json' } });

/** Kills the process, in demo mode. */
export const kill = (): Action => ({ method: 'POST', path: 'demo/kill' });

/** A request that only reads. */
export interface Readable extends Action {
  readonly method: 'GET';
}

const get = (path: string): Readable => ({ method: 'GET', path });

/** Reads as an operator what belongs to another user; for '' it is one's own. */
export const as = (user: string, action: Readable): Readable => (user === '' ? action : { ...action, headers: { ...action.headers, 'Holdfast-User': user } });

export const threads = (before = '', limit = 50, user = ''): Readable => get('threads' + query({ limit, before, user }));

export const thread = (id: string): Readable => get(threadPath(id));

export const messages = (id: string): Readable => get(`${threadPath(id)}/messages`);

export const state = (id: string): Readable => get(`${threadPath(id)}/state`);

export const runs = (id: string, before = '', limit = 50): Readable => get(`${threadPath(id)}/runs` + query({ limit, before }));

/** A page of the log of a run, after a cursor. */
export const log = (id: string, run: string, after = '', limit = 20_000): Readable => get(`${runPath(id, run)}/log` + query({ after, limit }));

/** The thread as it is, and what comes. */
export const follow = (id: string, after = ''): Readable => ({ ...get(`${threadPath(id)}/stream`), headers: { ...stream, ...(after === '' ? {} : { 'Last-Event-ID': after }) } });

export const checkpoints = (id: string, before = '', limit = 50): Readable => get(`${threadPath(id)}/checkpoints` + query({ limit, before }));

export const checkpointAt = (id: string, at: string): Readable => get(`${threadPath(id)}/checkpoints/${part(at)}`);

export const children = (id: string): Readable => get(`${threadPath(id)}/children`);

/** The calls of a run, or of all runs, with their effects, keys and attempts. */
export const calls = (id: string, run = ''): Readable => get(`${threadPath(id)}/calls` + query({ run }));

/** The usage of all runs of a thread, and its cost. */
export const usage = (id: string): Readable => get(`${threadPath(id)}/usage`);

/** The work that is under way and not yet in a checkpoint. */
export const work = (id: string): Readable => get(`${threadPath(id)}/work`);

/** A thread as a file. */
export const exportThread = (id: string): Readable => get(`${threadPath(id)}/export`);

/** The open questions of all threads. */
export const questions = (before = '', limit = 50): Readable => get('questions' + query({ limit, before }));

export const agents = (): Readable => get('agents');

export const overview = (): Readable => get('overview');

export const settings = (): Readable => get('settings');

/** The data that the page needs at its first paint. */
export const pageConfig = (): Readable => get('ui/config.json');
