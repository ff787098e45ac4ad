/** An AG-UI event, of which only these members matter here. */
export interface Event {
  type: string;
  runId?: string;
  messageId?: string;
  toolCallId?: string;
  stepName?: string;
  subagentRunId?: string;
  code?: string;
  metadata?: { holdfast?: Record<string, unknown>; [name: string]: unknown };
  [name: string]: unknown;
}

/** The events that open and close an item, and the member that names it. */
const pairs: ReadonlyArray<readonly [start: string, end: string, name: 'messageId' | 'toolCallId' | 'stepName' | 'subagentRunId']> = [
  ['TEXT_MESSAGE_START', 'TEXT_MESSAGE_END', 'messageId'],
  ['TOOL_CALL_START', 'TOOL_CALL_END', 'toolCallId'],
  ['REASONING_START', 'REASONING_END', 'messageId'],
  ['REASONING_MESSAGE_START', 'REASONING_MESSAGE_END', 'messageId'],
  ['STEP_STARTED', 'STEP_FINISHED', 'stepName'],
  ['SUBAGENT_STARTED', 'SUBAGENT_FINISHED', 'subagentRunId'],
];

/** Whether a run's stream ends with this event. */
export const isEnd = (event: Event): boolean => event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR';

/**
 * The part of a run that one client has been shown. It makes one legal AG-UI stream out of several:
 * when the server starts over (RUN_STARTED again, then snapshots), the items that are open
 * are closed, and the second start is left out.
 */
export class Transcript {
  /** Whether RUN_STARTED has been shown. */
  started = false;
  /** The id that the client knows the run by. */
  #runId: string | undefined;
  /** Open items, oldest first, each with the event that closes it. */
  readonly #open = new Map<string, Event>();

  /** @param runId the id that the client asked for; without it, the first one shown */
  constructor(runId?: string) {
    this.#runId = runId;
  }

  /** Returns the events to show for one that arrived. */
  take(event: Event): Event[] {
    if (event.type === 'RUN_STARTED') {
      if (this.started) return this.#close();
      this.started = true;
      this.#runId ??= event.runId;
      return [this.#named(event)];
    }
    if (event.type === 'RUN_FINISHED') return [this.#named(event)];
    this.#track(event);
    return [event];
  }

  #track(event: Event): void {
    for (const [start, end, name] of pairs) {
      const id = event[name];
      const key = `${start} ${event.type.startsWith('STEP') ? `${event.subagentRunId ?? ''} ` : ''}${id}`;
      if (event.type === start) {
        this.#open.set(key, { type: end, [name]: id, ...(name === 'stepName' && event.subagentRunId !== undefined ? { subagentRunId: event.subagentRunId } : {}) });
      } else if (event.type === end || (start === 'SUBAGENT_STARTED' && event.type === 'SUBAGENT_ERROR')) {
        this.#open.delete(key);
      }
    }
  }

  /** Ends everything that is open, the newest first. */
  #close(): Event[] {
    const ends = [...this.#open.values()].reverse();
    this.#open.clear();
    return ends;
  }

  /** Gives the run the id that the client knows it by; metadata has its own. */
  #named(event: Event): Event {
    if (this.#runId === undefined || event.runId === this.#runId) return event;
    const holdfast = { runId: event.runId, ...event.metadata?.holdfast };
    return { ...event, runId: this.#runId, metadata: { ...event.metadata, holdfast } };
  }
}
