// An agent for assistant-ui's useAgUiRuntime (react-ag-ui). That runtime has no notion of a run
// that it did not start, and it builds the message that a run is at from the events of that
// message alone. This agent joins runs, and adds the events that the runtime needs for it.

import type { AgentSubscriber, AssistantMessage, Message } from '@ag-ui/client';
import { HoldfastAgent, type HoldfastAgentConfig } from './agent.js';
import { errorOf } from './refusal.js';
import { threadURL } from './target.js';
import { discard, retryAfter, sleep } from './wait.js';

/** The interface that assistant-ui calls a ThreadHistoryAdapter; `T` is its exported repository of messages. */
export interface ThreadHistory<T> {
  load(): Promise<T & { unstable_resume: boolean }>;
  append(): Promise<void>;
}

/** A {@link HoldfastAgent} for one thread of assistant-ui. It chooses `chat` and `whole`. */
export class AssistantUIAgent extends HoldfastAgent {
  private joins = false;

  constructor(config: HoldfastAgentConfig) {
    super({ ...config, holdfast: { chat: true, whole: true, ...config.holdfast } });
  }

  /**
   * Returns the history adapter: the thread as the server has it. If its run is under way or
   * waits for an answer, the runtime joins it. `convert` makes assistant-ui's messages:
   * `(messages) => ExportedMessageRepository.fromArray(fromAgUiMessages(messages))`.
   */
  history<T extends object>(convert: (messages: Message[]) => T): ThreadHistory<T> {
    return {
      load: async () => {
        const thread = await this.get('');
        if (thread.status === 404) return { ...convert([]), unstable_resume: false };
        const { status } = (await thread.json()) as { status: string };
        this.joins = status === 'running' || status === 'interrupted';
        // The stream of the run begins with the history.
        if (this.joins) return { ...convert([]), unstable_resume: true };
        const { messages = [] } = (await (await this.get('/messages')).json()) as { messages?: Message[] };
        return { ...convert(messages), unstable_resume: false };
      },
      append: async () => {}, // the server has stored it already
    };
  }

  /** Reads a part of the thread. A server that is away is asked again, as for a run. */
  private async get(path: string): Promise<Response> {
    const { fetch: send = fetch, patience = 120_000, maxDelay = 10_000 } = this.options;
    const end = Date.now() + patience;
    for (let pause = 500; ; pause = Math.min(maxDelay, pause * 2)) {
      const response = await send(threadURL(this.address(), this.threadId) + path, { headers: this.headers }).catch(() => undefined);
      if (response?.ok || response?.status === 404) return response;
      if (response !== undefined && ![502, 503, 504].includes(response.status)) {
        throw new Error((await errorOf(response)).message ?? `The server answered ${response.status}.`);
      }
      const wait = Math.max(response === undefined ? 0 : retryAfter(response), pause * (0.5 + Math.random() / 2));
      discard(response);
      if (Date.now() + wait > end) throw new Error('The server could not be reached. Reload the page to try again.');
      await sleep(wait);
    }
  }

  override runAgent(...[parameters, subscriber = {}]: Parameters<HoldfastAgent['runAgent']>): ReturnType<HoldfastAgent['runAgent']> {
    const watcher = new Retelling(subscriber).subscriber();
    if (!this.joins) return super.runAgent(parameters, watcher);
    this.joins = false;
    return this.connectAgent(parameters, watcher);
  }
}

type Handler = 'onTextMessageStartEvent' | 'onTextMessageContentEvent' | 'onToolCallStartEvent' | 'onToolCallArgsEvent' | 'onToolCallResultEvent' | 'onMessagesSnapshotEvent';

/** The facts known of a run when one of its events arrives. */
interface Params {
  messages: readonly Readonly<Message>[];
}

/** Retelling tells a run in such a way that what the runtime builds of it is what the server has. */
class Retelling {
  readonly #to: AgentSubscriber;
  /** How much of each text and of each call's arguments was told. */
  readonly #told = new Map<string, number>();
  /** The calls whose results were told. */
  readonly #results = new Set<string>();
  /** The message that the run is at. */
  #at: string | undefined;
  #givenUp = 0;

  constructor(to: AgentSubscriber) {
    this.#to = to;
  }

  subscriber(): AgentSubscriber {
    return {
      ...this.#to,
      onTextMessageStartEvent: (params) => this.#message(params, params.event.messageId),
      onTextMessageContentEvent: (params) => {
        this.#count(params.event.messageId, params.event.delta);
        return this.#to.onTextMessageContentEvent?.(params);
      },
      onToolCallStartEvent: (params) => {
        const { toolCallId, parentMessageId } = params.event;
        if (parentMessageId !== undefined) this.#message(params, parentMessageId);
        if (this.#told.has(toolCallId)) return undefined;
        this.#told.set(toolCallId, 0);
        return this.#to.onToolCallStartEvent?.(params);
      },
      onToolCallArgsEvent: (params) => {
        this.#count(params.event.toolCallId, params.event.delta);
        return this.#to.onToolCallArgsEvent?.(params);
      },
      onToolCallResultEvent: (params) => {
        this.#results.add(params.event.toolCallId);
        return this.#to.onToolCallResultEvent?.(params);
      },
      onMessagesSnapshotEvent: (params) => this.#snapshot(params, params.event.messages),
      onRunFinishedEvent: (params) => {
        // The message that asks, if it was only in the snapshot.
        const asks = params.messages.filter((message) => message.role === 'assistant').at(-1);
        if (params.outcome === 'interrupt' && asks) this.#message(params, asks.id);
        return this.#to.onRunFinishedEvent?.(params);
      },
    };
  }

  #tell(handler: Handler, params: Params, event: object): void {
    (this.#to[handler] as ((params: object) => void) | undefined)?.({ ...params, event });
  }

  #count(id: string, delta: string): void {
    this.#told.set(id, (this.#told.get(id) ?? 0) + delta.length);
  }

  /** Begins a message, and tells what of it was only in a snapshot. */
  #message(params: Params, messageId: string): void {
    this.#at = messageId;
    if (!this.#told.has(messageId)) {
      this.#told.set(messageId, 0);
      this.#tell('onTextMessageStartEvent', params, { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' });
    }
    const message = params.messages.find((each): each is AssistantMessage => each.id === messageId && each.role === 'assistant');
    const rest = this.#rest(messageId, message?.content);
    if (rest) this.#tell('onTextMessageContentEvent', params, { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: rest });
    for (const call of message?.toolCalls ?? []) this.#call(params, messageId, call.id, call.function.name, call.function.arguments);
  }

  #call(params: Params, parentMessageId: string, toolCallId: string, toolCallName: string, args: string): void {
    if (!this.#told.has(toolCallId)) {
      this.#told.set(toolCallId, 0);
      this.#tell('onToolCallStartEvent', params, { type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId });
    }
    const delta = this.#rest(toolCallId, args);
    if (delta) this.#tell('onToolCallArgsEvent', params, { type: 'TOOL_CALL_ARGS', toolCallId, delta });
    const result = params.messages.find((each) => each.role === 'tool' && each.toolCallId === toolCallId);
    if (!result || this.#results.has(toolCallId)) return;
    this.#results.add(toolCallId);
    this.#tell('onToolCallResultEvent', params, { ...result, type: 'TOOL_CALL_RESULT', messageId: result.id });
  }

  /** Returns what was not told yet of a text, and counts it as told. */
  #rest(id: string, text: string | undefined): string | undefined {
    const rest = text?.slice(this.#told.get(id) ?? 0);
    if (rest) this.#count(id, rest);
    return rest;
  }

  /**
   * A snapshot in mid-run comes after a cut or the death of the process. The runtime keeps the
   * message that it was at, so one that the process had begun in vain is emptied, and left for a
   * new one. And it cannot go on with a message that comes from a snapshot, so it gets only those
   * that it knows; the others are told.
   */
  #snapshot(params: Params, messages: Message[]): void {
    const at = this.#at;
    if (at === undefined) return this.#tell('onMessagesSnapshotEvent', params, { type: 'MESSAGES_SNAPSHOT', messages });
    const known = new Set(params.messages.map(({ id }) => id));
    const unknown = messages.findIndex(({ id }) => !known.has(id));
    const count = Math.max(unknown < 0 ? messages.length : unknown, messages.map(({ role }) => role).lastIndexOf('user') + 1);
    const shown = messages.slice(0, count);
    const isLost = !messages.some(({ id }) => id === at);
    if (isLost) shown.push({ id: at, role: 'assistant', content: '' });
    this.#tell('onMessagesSnapshotEvent', params, { type: 'MESSAGES_SNAPSHOT', messages: shown });
    const now = { ...params, messages };
    if (isLost) {
      this.#at = undefined;
      this.#tell('onTextMessageStartEvent', params, { type: 'TEXT_MESSAGE_START', messageId: `${at}-given-up-${++this.#givenUp}`, role: 'assistant' });
    } else {
      this.#message(now, at);
    }
    for (const { id, role } of messages.slice(count)) if (role === 'assistant') this.#message(now, id);
  }
}
