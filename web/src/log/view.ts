// A person's view of a thread at a position of its log. Every part is a value: what has not
// changed between two positions is the same object.

import type { Fields } from './json';

/** The fields of every row of the conversation. */
export interface ItemBase {
  /** Unique in a view, and the same at every position. */
  readonly key: string;
  /** The protocol's id, where it has one. */
  readonly id: string;
  /** The run that it was first seen in; '' if only a snapshot has it. */
  readonly runId: string;
  /** The number of the first record that is about it; 0 if only a snapshot has it. */
  readonly first: number;
  /** The number of the last record that is about it. */
  readonly last: number;
  /** When it began, by the server's clock in milliseconds. */
  readonly at?: number;
  /** When it ended. */
  readonly end?: number;
  /** Still growing. */
  readonly open: boolean;
  /** The subagent whose it is. */
  readonly subagentRunId?: string;
}

/** A part of a message that is not text. */
export interface Part {
  readonly type: string;
  readonly mimeType: string;
  /** A data: or https: URL; '' if the part has none that may be shown. */
  readonly url: string;
  readonly name: string;
}

/** Where in a text a process died, and another went on. */
export interface SeamMark {
  /** The key of the seam. */
  readonly seam: string;
  /** How many characters of the text the dead process had shown. */
  readonly offset: number;
}

export interface TextItem extends ItemBase {
  readonly kind: 'text';
  readonly role: string;
  readonly text: string;
  readonly parts: readonly Part[];
  /** The content as it came, if it is more than text. */
  readonly raw?: unknown;
  /** Seams inside the text, in order. */
  readonly seams: readonly SeamMark[];
  /** A client brought it; this server has not produced it. */
  readonly imported: boolean;
  /** The run failed in the middle of it. Models are not shown it. */
  readonly failed?: true;
}

export interface ReasoningItem extends ItemBase {
  readonly kind: 'reasoning';
  readonly text: string;
  /** As of a text. */
  readonly failed?: true;
  /** The provider does not show it. */
  readonly hidden: boolean;
  readonly seams: readonly SeamMark[];
}

/** pending: its arguments arrive. running: it has them. none: it ended without a result. */
export type CallStatus = 'pending' | 'running' | 'waiting' | 'done' | 'failed' | 'none';

export interface CallItem extends ItemBase {
  readonly kind: 'call';
  readonly name: string;
  /** JSON, as far as it has arrived. */
  readonly args: string;
  readonly status: CallStatus;
  /** The result as text; '' while there is none. */
  readonly result: string;
  readonly parts: readonly Part[];
  /** The result as it came, if it is more than text. */
  readonly rawResult?: unknown;
  /** The message that made the call. */
  readonly parentId: string;
  /** The message with the result. */
  readonly resultId: string;
  /** Why it failed, if the server says so. */
  readonly code: string;
  /** It failed before anything was started. */
  readonly notRun: boolean;
  /** A person has changed the arguments. */
  readonly edited: boolean;
  readonly imported: boolean;
  /** The log's facts about these; the rest is in GET /threads/{thread}/calls. */
  readonly effect?: string;
  readonly idempotencyKey?: string;
  readonly attempts?: number;
}

export interface ActivityItem extends ItemBase {
  readonly kind: 'activity';
  readonly name: string;
  readonly content: unknown;
}

export interface StepItem extends ItemBase {
  readonly kind: 'step';
  readonly name: string;
}

export interface AgentItem extends ItemBase {
  readonly kind: 'agent';
  readonly name: string;
  readonly text: string;
  readonly status: 'running' | 'waiting' | 'done' | 'failed' | 'none';
  readonly parentCallId: string;
}

/** A remark in words: what the server or a middleware says, or how a run ended. */
export interface NoteItem extends ItemBase {
  readonly kind: 'note';
  readonly tone: 'info' | 'error';
  readonly text: string;
  readonly code: string;
  readonly hint: string;
  /** The name of the CUSTOM event; '' for the end of a run. */
  readonly name: string;
  readonly value: unknown;
}

/** The text that was being shown when a process died. */
export interface Cut {
  readonly kind: 'text' | 'reasoning' | 'call';
  /** The key of the item that was given up. */
  readonly key: string;
  readonly text: string;
}

/** The place where a process died, and another one, or the same after a restart, went on. */
export interface SeamItem extends ItemBase {
  readonly kind: 'seam';
  /** `owner_gone` or `handed_over`. */
  readonly reason: string;
  readonly epoch: number;
  readonly iteration: number;
  /** The name of the process that died, and of the one that went on; '' if the log does not say. */
  readonly from: string;
  readonly process: string;
  /** The text that was given up; the last text if there was one. */
  readonly cut?: Cut;
  /** The key of the item that says it again; '' until there is one. */
  readonly target: string;
  /** inside: the new text has repeated the old one, and the mark in `target` shows where. before: it stands before `target`. catching_up: the new text is still in what was shown. */
  readonly place: 'before' | 'inside' | 'catching_up';
  /** In the text of `target`. */
  readonly offset: number;
  /** Milliseconds from the last sign of the dead process to the takeover, and to the first new text; undefined while unknown. */
  readonly outageMs?: number;
  readonly gapMs?: number;
  readonly fromRevision: string;
  readonly toRevision: string;
}

/** A question to a person, in its place in the conversation. */
export interface QuestionItem extends ItemBase {
  readonly kind: 'question';
  readonly interrupt: Interrupt;
}

export type Item = TextItem | ReasoningItem | CallItem | ActivityItem | StepItem | AgentItem | NoteItem | SeamItem | QuestionItem;

/** AG-UI's Interrupt. */
export interface Interrupt {
  readonly id: string;
  readonly reason: string;
  readonly message?: string;
  readonly toolCallId?: string;
  readonly responseSchema?: Fields;
  readonly expiresAt?: string;
  readonly metadata?: Fields;
  readonly subagentRunId?: string;
}

/** A call that waits for its result from outside. */
export interface OutsideCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly expiresAt?: string;
  readonly abandonable?: boolean;
}

/** The tokens of a run's calls to one model. */
export interface Usage {
  readonly provider: string;
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  readonly reasoningTokens: number;
  readonly cachedInputTokens: number;
  readonly cacheWriteInputTokens: number;
}

export type Status = 'idle' | 'running' | 'waiting' | 'failed' | 'stopped' | 'done';

/** The log's facts about one run. */
export interface RunView {
  readonly id: string;
  readonly status: Status;
  /** The numbers of its first record and of its last one so far. */
  readonly first: number;
  readonly last: number;
  readonly at?: number;
  readonly end?: number;
  readonly usage: readonly Usage[];
  /** The answer as JSON, of an agent whose answers have a form. */
  readonly result?: unknown;
  readonly code: string;
  /** How often another process went on with it. */
  readonly takeovers: number;
  /** The process that runs it, or ran it last; '' if the log does not say. */
  readonly process: string;
}

/** One way in which a conversation went on from a message. */
export interface Version {
  /** The key of the first item of it; '' while it has none. */
  readonly key: string;
  /** Where it can be gone back to; '' for the newest, which has not been left. */
  readonly checkpointId: string;
  /** The last record at which it was shown, for a look at it; 0 for what is shown now. */
  readonly number: number;
}

/** Where a conversation has gone on in several ways. */
export interface Branch {
  /** The message before it; '' for the beginning. */
  readonly parentId: string;
  /** Oldest first. */
  readonly versions: readonly Version[];
  /** The index of the version that is shown. */
  readonly shown: number;
}

export interface View {
  /** How many records of the log it is made of, and the number of the last one. */
  readonly position: number;
  readonly number: number;
  /** The run that is shown last, by its real id. */
  readonly runId: string;
  readonly status: Status;
  readonly items: readonly Item[];
  /** The shared state; undefined if it is not known. */
  readonly state: unknown;
  /** The number of the record that changed it last. */
  readonly stateAt: number;
  /** The open questions. */
  readonly interrupts: readonly Interrupt[];
  /** The calls that wait to be finished from outside, and those that the frontend has to finish. */
  readonly outside: readonly OutsideCall[];
  readonly pending: readonly string[];
  readonly runs: readonly RunView[];
  /** The tokens of the last run. */
  readonly usage: readonly Usage[];
  readonly branches: readonly Branch[];
  /** @internal what the next record may need */
  readonly inner: Inner;
}

/** The text that was given up at a takeover and is not said again yet. */
export interface Pending {
  readonly seam: string;
  readonly cut?: Cut;
}

/** @internal */
export interface Inner {
  /** Items that CHUNK events have opened. */
  readonly chunks: { readonly text: string; readonly call: string; readonly reasoning: string };
  /** The messages that an empty snapshot has removed, until the full one arrives. */
  readonly aside?: readonly Item[];
  /** The view before the run began, and the number of the record it was shown at. */
  readonly before: { readonly items: readonly Item[]; readonly number: number };
  /** Whether the run has shown nothing but snapshots so far. */
  readonly beginning: boolean;
  /** After a takeover, before its snapshot. */
  readonly taken: string;
  readonly cuts: readonly Pending[];
  /** Seams whose text catches up with what was shown. */
  readonly catching: readonly Pending[];
  /** The time of the last record that has one. */
  readonly at?: number;
}
