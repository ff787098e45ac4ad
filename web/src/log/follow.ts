// The stream of a thread, through the official client behind our own, which survives what
// happens to connections and servers. The output is records and things that are not a record:
// the snapshots with which the server begins for somebody who knows nothing.

import type { RunAgentInput } from '@ag-ui/client';
import { HoldfastAgent } from 'holdfast-agent';
import { short } from 'holdfast-agent/stand';
import type { RunInput } from '../api/actions';
import { errorOf, requestOf, type Action, type Server } from '../api/request';
import { fields, holdfast, text } from './json';
import type { LogEvent } from './record';

/** The outcome of a stream. */
export interface Listener {
  /** An event, with the cursor of its record; without one it is a prelude made of what is stored, or a notice. */
  event(event: LogEvent, cursor: string): void;
  connection(state: 'live' | 'reconnecting'): void;
}

/** The page waits for as long as it is open: a day without progress is the end. */
const patience = 24 * 60 * 60 * 1000;

/** The input for a server that is older than the page, and does not know `since`; undefined if the input does not say it. */
function withoutSince(input: RunInput | undefined): RunInput | undefined {
  if (input?.forwardedProps?.holdfast.since === undefined) return undefined;
  const { since: _, ...holdfast } = input.forwardedProps.holdfast;
  return { ...input, forwardedProps: { ...input.forwardedProps, holdfast } };
}

/** An agent that sends one action, whatever it is. */
class Wire extends HoldfastAgent {
  readonly #action: Action;

  constructor(server: Server, action: Action, listener: Listener) {
    super({ url: server.base + action.path, base: server.base.replace(/\/$/, ''), fetch: (url, init) => server.fetch(url, init), onAbort: 'detach', patience, onConnection: (state) => listener.connection(state) });
    this.#action = action;
    const resuming = this.fetch;
    this.fetch = async (url, init) => {
      const response = await resuming(url, init as RequestInit);
      if (!response.ok) throw await errorOf(response);
      return response;
    };
  }

  protected override requestInit(): RequestInit {
    const { headers, ...rest } = requestOf(this.#action);
    const init: RequestInit = { ...rest, headers: { ...headers, Accept: 'text/event-stream', 'Holdfast-Cursors': 'metadata' }, signal: this.abortController.signal };
    const asked = withoutSince(this.#action.body as RunInput | undefined);
    return asked === undefined ? init : short(init, { body: JSON.stringify(asked) });
  }
}

/** An event as it is in the log: the cursor that was asked for is beside it. */
export function withoutCursor(event: LogEvent): { event: LogEvent; cursor: string } {
  const cursor = text(holdfast(event)['cursor']);
  if (cursor === '') return { event, cursor };
  const { metadata, ...rest } = event;
  const { holdfast: own, ...others } = fields(metadata);
  const { cursor: _, ...said } = fields(own);
  const left = { ...others, ...(Object.keys(said).length === 0 ? {} : { holdfast: said }) };
  return { event: (Object.keys(left).length === 0 ? rest : { ...rest, metadata: left }) as LogEvent, cursor };
}

/** Only its frame is used: requestInit says what is sent. */
const unused: RunAgentInput = { threadId: '', runId: '', messages: [], tools: [], context: [], state: {}, forwardedProps: {} };

/**
 * Sends an action that is answered with a stream, and tells what comes until the stream is
 * over. It throws an ApiError if the server refuses, and resolves quietly at an abort; the
 * run goes on then.
 */
export function follow(server: Server, action: Action, listener: Listener, signal: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    if (signal.aborted) return done();
    const wire = new Wire(server, action, listener);
    const stop = (): void => {
      wire.abortController.abort();
      subscription.unsubscribe();
      done();
    };
    const end = (): void => signal.removeEventListener('abort', stop);
    const subscription = wire.run(unused).subscribe({
      next: (raw) => {
        if (signal.aborted) return;
        const { event, cursor } = withoutCursor(raw as unknown as LogEvent);
        listener.event(event, cursor);
      },
      error: (error: unknown) => {
        end();
        failed(error);
      },
      complete: () => {
        end();
        done();
      },
    });
    signal.addEventListener('abort', stop, { once: true });
  });
}
