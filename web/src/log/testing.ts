// Logs for tests: by hand, and made up by a seed. Invented logs are like those that a server sends: legal
// events, snapshots of what is stored, deaths in the middle of an answer.

import { record, type LogEvent, type LogRecord } from './record';

/** Events as records of a log, numbered from 1. */
export function logged(events: readonly LogEvent[], from = 1): LogRecord[] {
  let runId = '';
  return events.map((event, i) => {
    const made = record(event, `${from + i}-abc123`, runId) as LogRecord;
    runId = made.runId;
    return made;
  });
}

/** A generator of numbers that repeats itself (mulberry32). */
export function seeded(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

interface Stored {
  id: string;
  role: string;
  [name: string]: unknown;
}

/** A thread that is made up. */
export interface MadeUp {
  /** The events of each run. */
  readonly runs: readonly (readonly LogEvent[])[];
}

/** How a thread is made up. */
export interface Recipe {
  readonly runs?: number;
  /** Answers in one run, at most. */
  readonly rounds?: number;
  /** CHUNK events instead of START, CONTENT and END. */
  readonly chunks?: boolean;
}

class Maker {
  readonly #random: () => number;
  readonly #chunks: boolean;
  stored: Stored[] = [];
  state: Record<string, unknown> = {};
  events: LogEvent[] = [];
  #ids = 0;
  #at = 1_700_000_000_000;

  constructor(random: () => number, chunks: boolean) {
    this.#random = random;
    this.#chunks = chunks;
  }

  chance = (p: number): boolean => this.#random() < p;
  upTo = (n: number): number => 1 + Math.floor(this.#random() * n);
  id = (kind: string): string => `${kind}${++this.#ids}`;
  words = (n: number): string[] => Array.from({ length: n }, () => `w${Math.floor(this.#random() * 5)} `);

  emit(event: LogEvent, timed = false): void {
    this.#at += this.upTo(40);
    this.events.push(timed ? { ...event, timestamp: this.#at } : event);
  }

  snapshot(): void {
    this.emit({ type: 'MESSAGES_SNAPSHOT', messages: structuredClone(this.stored) });
  }

  /** Text of a kind; true if a process died in it. */
  #stream(family: 'TEXT_MESSAGE' | 'REASONING_MESSAGE', id: string, words: readonly string[], dies: boolean): boolean {
    const role = family === 'TEXT_MESSAGE' ? 'assistant' : 'reasoning';
    const shown = dies ? words.slice(0, Math.floor(this.#random() * words.length)) : words;
    if (this.#chunks && !dies && shown.length > 0) {
      shown.forEach((delta, i) => this.emit({ type: `${family}_CHUNK`, ...(i === 0 || this.chance(0.5) ? { messageId: id } : {}), ...(i === 0 && family === 'TEXT_MESSAGE' ? { role } : {}), delta }));
      return false;
    }
    if (family === 'REASONING_MESSAGE') this.emit({ type: 'REASONING_START', messageId: id }, true);
    this.emit({ type: `${family}_START`, messageId: id, role }, true);
    for (const delta of shown) this.emit({ type: `${family}_CONTENT`, messageId: id, delta });
    this.emit({ type: `${family}_END`, messageId: id }, !dies);
    if (family === 'REASONING_MESSAGE') this.emit({ type: 'REASONING_END', messageId: id }, !dies);
    return dies;
  }

  #takeover(round: number): void {
    this.emit({ type: 'CUSTOM', name: 'holdfast.takeover', value: { epoch: 2, iteration: round, reason: 'owner_gone', outageMs: 500 } }, true);
    this.snapshot();
    this.emit({ type: 'STATE_SNAPSHOT', snapshot: structuredClone(this.state) });
  }

  #call(id: string, parentMessageId: string): { id: string; type: 'function'; function: { name: string; arguments: string } } {
    const name = `tool${this.upTo(3)}`;
    const args = JSON.stringify({ a: this.words(2).join('') });
    if (this.#chunks) {
      this.emit({ type: 'TOOL_CALL_CHUNK', toolCallId: id, toolCallName: name, parentMessageId, delta: args.slice(0, 4) });
      this.emit({ type: 'TOOL_CALL_CHUNK', delta: args.slice(4) });
    } else {
      this.emit({ type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name, parentMessageId }, true);
      this.emit({ type: 'TOOL_CALL_ARGS', toolCallId: id, delta: args.slice(0, 4) });
      this.emit({ type: 'TOOL_CALL_ARGS', toolCallId: id, delta: args.slice(4) });
      this.emit({ type: 'TOOL_CALL_END', toolCallId: id }, true);
    }
    return { id, type: 'function', function: { name, arguments: args } };
  }

  /** One answer of the model, and the results of its calls. */
  round(round: number): void {
    const thought = this.words(this.upTo(6));
    const answer = this.words(this.upTo(8));
    const died = this.chance(0.25) && (this.chance(0.5) ? this.#stream('REASONING_MESSAGE', this.id('r'), thought, true) : this.#stream('TEXT_MESSAGE', this.id('m'), answer, true));
    if (died) this.#takeover(round);
    if (this.chance(0.4)) {
      const id = this.id('r');
      this.#stream('REASONING_MESSAGE', id, thought, false);
      this.stored.push({ id, role: 'reasoning', content: thought.join('') });
    }
    const id = this.id('m');
    this.#stream('TEXT_MESSAGE', id, died && this.chance(0.3) ? this.words(4) : answer, false);
    const last = this.events.filter((event) => event['messageId'] === id || event.type === 'TEXT_MESSAGE_CHUNK');
    const from = this.events.findIndex((event) => event['messageId'] === id);
    const content = this.events.slice(from).filter((event) => last.includes(event)).map((event) => event['delta'] ?? '').join('');
    const toolCalls = this.chance(0.6) ? Array.from({ length: this.upTo(3) }, () => this.#call(this.id('c'), id)) : [];
    this.stored.push({ id, role: 'assistant', content, ...(toolCalls.length > 0 ? { toolCalls } : {}) });
    this.#others();
    for (const call of toolCalls) {
      const message = { id: this.id('t'), role: 'tool', toolCallId: call.id, content: this.words(2).join('') };
      const failed = this.chance(0.2) ? { metadata: { holdfast: { failed: true, code: 'outcome_unknown' } } } : {};
      this.emit({ type: 'TOOL_CALL_RESULT', messageId: message.id, toolCallId: call.id, content: message.content, role: 'tool', ...failed }, true);
      this.stored.push({ ...message, ...failed });
    }
  }

  #others(): void {
    if (this.chance(0.3)) {
      this.state = { ...this.state, [`k${this.upTo(3)}`]: { n: this.upTo(9), list: this.words(2) } };
      this.emit({ type: 'STATE_SNAPSHOT', snapshot: structuredClone(this.state) });
    }
    if (this.chance(0.3)) {
      this.state = { ...this.state, n: this.upTo(99) };
      this.emit({ type: 'STATE_DELTA', delta: [{ op: 'add', path: '/n', value: this.state['n'] }] });
    }
    if (this.chance(0.2)) this.emit({ type: 'STATE_DELTA', delta: [{ op: 'remove', path: '/nowhere' }] });
    if (this.chance(0.2)) {
      const messageId = this.id('a');
      this.emit({ type: 'ACTIVITY_SNAPSHOT', messageId, activityType: 'plan', content: { steps: 1 } });
      this.emit({ type: 'ACTIVITY_DELTA', messageId, activityType: 'plan', patch: [{ op: 'replace', path: '/steps', value: this.upTo(9) }] });
    }
    if (this.chance(0.2)) this.emit({ type: 'CUSTOM', name: 'holdfast.retried', value: { tool: 'x', attempts: 2, helped: true } }, true);
    if (this.chance(0.1)) {
      this.emit({ type: 'STEP_STARTED', stepName: 's' }, true);
      this.emit({ type: 'STEP_FINISHED', stepName: 's' }, true);
    }
  }

  run(index: number, rounds: number): LogEvent[] {
    this.events = [];
    const question = { id: this.id('u'), role: 'user', content: this.words(3).join('') };
    const runId = `run${index}`;
    const branch = index > 0 && this.chance(0.3);
    const before = this.stored;
    if (branch) this.stored = this.stored.slice(0, this.stored.findIndex((message) => message.role === 'user' && this.chance(0.5)));
    if (branch && this.stored.at(-1)?.role === 'assistant' && this.stored.at(-1)?.['toolCalls'] !== undefined) this.stored = before;
    this.stored = [...this.stored, question];
    this.emit({ type: 'RUN_STARTED', threadId: 't', runId, ...(index === 0 ? { input: { threadId: 't', runId, messages: [question], tools: [], context: [], state: {}, forwardedProps: {} } } : {}) }, true);
    if (index > 0) {
      if (this.chance(0.7)) this.emit({ type: 'MESSAGES_SNAPSHOT', messages: [] });
      this.snapshot();
    }
    for (let round = 0; round < this.upTo(rounds); round++) this.round(round);
    this.emit({ type: 'RUN_FINISHED', threadId: 't', runId, outcome: { type: 'success' }, usage: [{ provider: 'p', model: 'm', inputTokens: 10, outputTokens: 5, totalTokens: 15, reasoningTokens: 0, cachedInputTokens: 4 }] }, true);
    return this.events;
  }
}

/** Makes up a thread. */
export function madeUp(seed: number, { runs = 3, rounds = 4, chunks = false }: Recipe = {}): MadeUp {
  const maker = new Maker(seeded(seed), chunks);
  return { runs: Array.from({ length: maker.upTo(runs) }, (_, i) => maker.run(i, rounds)) };
}
