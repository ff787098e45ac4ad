// A client need not send again what the server has: it says where it stands. The server then
// does not send it back either.

import type { Message, RunAgentInput } from '@ag-ui/client';
import { errorOf } from './refusal.js';

/** The messages of a client when a run had ended, each as text: the server has the same. */
export interface Stand {
  thread: string;
  messages: string[];
}

const sent = (messages: readonly Message[]): Message[] => messages.filter(({ role }) => role !== 'activity');

/** A message as text; the official client does not keep the order of members. */
const textOf = (message: Message | undefined): string =>
  JSON.stringify(message, (_, value: unknown) => (typeof value !== 'object' || value === null || Array.isArray(value) ? value : Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))));

/** How a client stands whose run has ended. */
export const standOf = (thread: string, messages: readonly Message[]): Stand => ({ thread, messages: sent(messages).map(textOf) });

/**
 * The input without what the server has; undefined if all has to be sent. The last turn is
 * sent, so that the server notices if the thread has gone on meanwhile.
 */
export function shortened(input: RunAgentInput, stand: Stand | undefined): RunAgentInput | undefined {
  const all = sent(input.messages);
  const had = all.slice(0, stand?.messages.length ?? 0);
  const isNew = all.length > had.length || (input.resume?.length ?? 0) > 0;
  const { holdfast } = input.forwardedProps ?? {};
  if (stand?.thread !== input.threadId || !isNew || holdfast?.whole === true) return undefined;
  if (!stand.messages.every((text, i) => textOf(had[i]) === text)) return undefined;
  const roles = had.map(({ role }) => role);
  const first = roles.findIndex((role) => role !== 'system' && role !== 'developer');
  const last = roles.lastIndexOf('user');
  const since = had.filter(({ role }) => role !== 'reasoning').at(-1);
  if (last <= first || since === undefined) return undefined;
  return { ...input, messages: [...all.slice(0, first), ...all.slice(last)], forwardedProps: { ...input.forwardedProps, holdfast: { ...holdfast, since: since.id } } };
}

/** Where a request keeps its whole body beside the shortened one. */
const whole = Symbol('whole');

type Init = RequestInit & { [whole]?: RequestInit['body'] };

/** A request with a shortened body. */
export const short = (init: RequestInit, all: RequestInit): RequestInit => ({ ...init, [whole]: all.body }) as Init;

/** The codes of a server that does not take a shortened request: it is older, or has lost the thread. */
const notShort = new Set(['invalid_input', 'history_diverged']);

/** Sends a request, and all of it to a server that does not take it shortened. */
export const orWhole = (send: (url: string, init?: RequestInit) => Promise<Response>) => async (url: string, init?: RequestInit): Promise<Response> => {
  const { [whole]: body, ...rest } = (init ?? {}) as Init;
  const response = await send(url, init);
  if (body === undefined || response.ok) return response;
  const { code = '' } = await errorOf(response.clone());
  return notShort.has(code) ? send(url, { ...rest, body }) : response;
};
