import { HttpAgent } from '@ag-ui/client';
import type { AgentSubscriber, HttpAgentConfig, RunAgentInput, RunAgentParameters } from '@ag-ui/client';
import { resumingFetch } from './fetch.js';
import type { ResumeOptions } from './options.js';
import { errorOf } from './refusal.js';
import { orWhole, short, shortened, standOf, type Stand } from './stand.js';
import { baseOf, streamURL } from './target.js';
import { encode } from './sse.js';

/** The server's choices in cases where it would rather ask; `forwardedProps.holdfast` of each run. */
export interface HoldfastChoices {
  /** The policy `chat`: Stop, a new message, an edit and a regenerate all do what people expect of a chat. */
  chat?: boolean;
  /** A new message while a run is under way: refuse it, or cancel that run. */
  onBusy?: 'reject' | 'cancel_and_run';
  /** A new message while questions are open: refuse it, or decline them all. */
  onInterrupted?: 'reject' | 'decline';
  /** A new message after a run that failed or was cut off: refuse it, or give up what is unfinished. */
  onUnfinished?: 'reject' | 'abandon';
  /** Messages that do not continue the history start a branch; the old one is kept. */
  branch?: boolean;
  /** The messages are all that the person sees: without any of the history they are a new beginning, as after an edit of the first one. */
  whole?: boolean;
  /** Resume even if the history is not as long as the checkpoint expects. */
  allowStale?: boolean;
}

/** A call that somebody outside finishes, such as another department. Until then nothing runs. */
export interface OutsideCall {
  toolCallId: string;
  toolName: string;
  /** Until when a result is taken. */
  expiresAt?: string;
  /** Whether a new message gives it up; if not, one is refused with `call_pending`. */
  abandonable?: boolean;
}

/** How a {@link HoldfastAgent} is made. */
export interface HoldfastAgentConfig extends HttpAgentConfig, Omit<ResumeOptions, 'fetch'> {
  /** Sent with every run; `forwardedProps.holdfast` of a single run takes precedence. */
  holdfast?: HoldfastChoices;
}

/** Every agent's own reactions to its events; clones have this subscriber too, so it keeps nothing itself. */
const remember: AgentSubscriber = {
  // The server's snapshots are whole. The official client keeps reasoning that is not in them,
  // as it must for servers that leave reasoning out; here it is of an attempt that was given up.
  onMessagesSnapshotEvent: ({ event, messages }) => {
    const known = new Set(event.messages.map((message) => message.id));
    return { messages: messages.filter((message) => message.role !== 'reasoning' || known.has(message.id)) };
  },
  onRunStartedEvent: ({ agent }) => {
    // The server has taken the answers. The official client keeps the questions if the run then fails, and refuses
    // every message.
    agent.pendingInterrupts = [];
    (agent as HoldfastAgent).outside = [];
    (agent as HoldfastAgent).stand = undefined;
  },
  onCustomEvent: ({ event, agent }) => {
    if (event.name === 'holdfast.outside_calls') (agent as HoldfastAgent).outside = (event.value as { calls?: OutsideCall[] }).calls ?? [];
  },
  onRunFinishedEvent: ({ agent }) => {
    (agent as HoldfastAgent).stand = standOf(agent.threadId, []);
  },
  // Only now the agent has all messages of the run.
  onRunFinalized: ({ agent, messages }) => {
    if ((agent as HoldfastAgent).stand !== undefined) (agent as HoldfastAgent).stand = standOf(agent.threadId, messages);
  },
};

/**
 * An `HttpAgent` for a Holdfast server. Runs survive cut connections and restarts of the
 * server (see {@link resumingFetch}, which its `fetch` is), `connectAgent()` shows a thread
 * as it is and follows its run, and `abortRun()` ends the run on the server.
 */
export class HoldfastAgent extends HttpAgent {
  /** Sent with every run, as `forwardedProps.holdfast`. */
  holdfast: HoldfastChoices;
  /** @internal what {@link outsideCalls} returns */
  outside: OutsideCall[] = [];
  /** @internal what it has, as the server has it; undefined if that is not sure */
  stand: Stand | undefined;
  private readonly base: string | undefined;
  /** @internal how it sends and waits */
  protected readonly options: ResumeOptions;

  constructor(config: HoldfastAgentConfig) {
    const options = { ...config };
    super({ ...config, fetch: orWhole(resumingFetch(options)) });
    this.options = options;
    this.holdfast = { ...config.holdfast };
    this.base = config.base ?? baseOf(config.url);
    this.subscribe(remember);
  }

  /** A new agent with the same thread, messages, options, open questions and outside calls. */
  override clone(): HoldfastAgent {
    const copy = super.clone() as HoldfastAgent;
    return Object.assign(copy, { holdfast: { ...this.holdfast }, base: this.base, options: this.options, outside: [...this.outside], stand: this.stand });
  }

  /** Stops watching the run, which goes on: what a page does when it shows another thread. */
  detach(): void {
    const { onAbort = 'cancel' } = this.options;
    this.options.onAbort = 'detach'; // is read while the abort is told
    this.abortRun();
    this.options.onAbort = onAbort;
  }

  /**
   * The calls that the thread waits for: the last run has ended, but its work has not. When
   * their results have come, `connectAgent()` shows how it went on.
   */
  outsideCalls(): OutsideCall[] {
    return [...this.outside];
  }

  /** Shows the thread as it is, and follows its run. */
  override connectAgent(...[parameters, subscriber]: Parameters<HttpAgent['connectAgent']>): ReturnType<HttpAgent['connectAgent']> {
    this.pendingInterrupts = []; // the official client would ask for answers; the server says what is open now
    return super.connectAgent(parameters, subscriber);
  }

  protected override prepareRunAgentInput(parameters?: RunAgentParameters): RunAgentInput {
    const input = super.prepareRunAgentInput(parameters);
    const choices = { ...this.holdfast, ...input.forwardedProps?.holdfast };
    return Object.keys(choices).length === 0 ? input : { ...input, forwardedProps: { ...input.forwardedProps, holdfast: choices } };
  }

  protected override requestInit(input: RunAgentInput): RequestInit {
    const all = super.requestInit(input);
    const less = shortened(input, this.stand);
    return less === undefined ? all : short(super.requestInit(less), all);
  }

  /** @internal the server's address; it throws if that is not known */
  protected address(): string {
    if (this.base !== undefined) return this.base;
    throw new Error(`The server's address is not clear from ${this.url}: pass "base" to HoldfastAgent.`);
  }

  /**
   * The stream that `connectAgent()` reads: the thread as it is, then its run, live. A thread that the
   * server does not know is an empty run.
   */
  protected override connect(input: RunAgentInput): ReturnType<HttpAgent['run']> {
    const base = this.address();
    if (this.abortController.signal.aborted) this.abortController = new AbortController();
    const init = (): RequestInit => {
      const { body: _, ...rest } = this.requestInit(input);
      const headers = new Headers(rest.headers);
      headers.delete('Content-Type');
      return { ...rest, method: 'GET', headers };
    };
    // The official client's own reader of streams, with another request.
    const attach: HttpAgent = Object.create(this, {
      url: { value: streamURL(base, input.threadId, !('protocolVersion' in input)) },
      requestInit: { value: init },
      fetch: { value: async (url: string, request: RequestInit) => orEmpty(await this.fetch(url, request), input) },
    });
    return HttpAgent.prototype.run.call(attach, input);
  }
}

/** Turns "there is no such thread" into a run in which nothing happens. */
async function orEmpty(response: Response, input: RunAgentInput): Promise<Response> {
  const { threadId, runId } = input;
  if (response.status !== 404) return response;
  const { code } = await errorOf(response.clone());
  if (code !== 'not_found') return response;
  const { protocolVersion } = input as { protocolVersion?: string };
  const outcome = protocolVersion === undefined ? {} : { outcome: { type: 'success' } };
  const empty = encode({ type: 'RUN_STARTED', threadId, runId, protocolVersion }) + encode({ type: 'RUN_FINISHED', threadId, runId, ...outcome });
  return new Response(empty, { headers: { 'Content-Type': 'text/event-stream' } });
}
