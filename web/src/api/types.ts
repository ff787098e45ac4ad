// The answers of the server, as docs/http.md and openapi.json have them. A contract test
// compares every type here with the schema of the same name.

import type { Interrupt, OutsideCall } from '../log/view';

export type ThreadStatus = 'idle' | 'running' | 'interrupted' | 'stopped' | 'unreadable';

export type Outcome = 'success' | 'interrupt' | 'cancelled' | 'error';

export interface Waiting {
  readonly revision: string;
  readonly since: string;
  readonly until: string;
}

export interface ThreadInfo {
  readonly id: string;
  /** Whose it is; only in lists of the threads of all users. */
  readonly user?: string;
  readonly title?: string;
  readonly hidden?: boolean;
  readonly createdAt?: string;
  readonly agent: string;
  readonly status: ThreadStatus;
  readonly runId: string;
  readonly outcome?: Outcome;
  readonly code?: string;
  readonly message?: string;
  readonly waiting?: Waiting;
  readonly iteration: number;
  readonly cursor: string;
  readonly interrupts?: readonly Interrupt[];
  readonly pendingToolCallIds?: readonly string[];
  readonly outsideCalls?: readonly OutsideCall[];
  readonly updatedAt: string;
  readonly etag: string;
  readonly parentThreadId?: string;
  readonly parentCheckpointId?: string;
  readonly sizeBytes?: Readonly<Record<string, number>>;
  readonly stateVersion?: string;
}

export interface ThreadList {
  readonly threads: readonly ThreadInfo[];
  readonly next?: string;
}

/** A process that has run a run. */
export interface RunProcess {
  readonly process: string;
  readonly epoch: number;
  /** The text after the number in the cursors of the records that it has written. */
  readonly tag: string;
  readonly since: string;
}

export interface RunInfo {
  readonly id: string;
  readonly agent: string;
  readonly revision?: string;
  readonly startedAt: string;
  readonly durability?: 'none' | 'process' | 'machine' | 'failover';
  readonly endedAt?: string;
  readonly outcome?: Outcome;
  readonly code?: string;
  readonly message?: string;
  readonly interrupts?: readonly Interrupt[];
  readonly continues?: string;
  readonly continuedBy?: string;
  readonly parentRunId?: string;
  /** How many records it has. */
  readonly records?: number;
  readonly usage?: readonly PricedUsage[];
  /** The cost together, if every model has a price. */
  readonly cost?: number;
  readonly processes?: readonly RunProcess[];
}

/** The usage of one model. */
export interface PricedUsage {
  readonly provider?: string;
  readonly model?: string;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly totalTokens?: number;
  readonly reasoningTokens?: number;
  readonly cachedInputTokens?: number;
  readonly cacheWriteInputTokens?: number;
  /** In the currency of the server's prices; absent if the model has no price. */
  readonly cost?: number;
}

/** The usage of all runs of a thread. */
export interface ThreadUsage {
  readonly runs: number;
  readonly usage: readonly PricedUsage[];
  readonly cost?: number;
  readonly incomplete?: boolean;
}

export interface RunList {
  readonly runs: readonly RunInfo[];
}

/** A page of the log of a run. */
export interface Log {
  readonly records: readonly { readonly cursor: string; readonly number: number; readonly event: Readonly<Record<string, unknown>> }[];
  readonly ended: boolean;
  readonly next?: string;
}

export interface CheckpointMetadata {
  readonly source: 'input' | 'loop' | 'update' | 'fork';
  readonly step: number;
  readonly parentCheckpointId?: string;
  readonly parentThreadId?: string;
  readonly label?: string;
}

export interface Checkpoint {
  readonly id: string;
  readonly threadId: string;
  readonly createdAt: string;
  readonly etag?: string;
  readonly format: number;
  readonly agent: string;
  readonly runId: string;
  readonly runStartedAt?: string;
  readonly status: 'idle' | 'running' | 'interrupted' | 'stopped';
  readonly iteration: number;
  readonly messageId?: string;
  readonly messageCount?: number;
  readonly metadata: CheckpointMetadata;
}

export interface CheckpointList {
  readonly checkpoints: readonly Checkpoint[];
}

export interface MiddlewareState {
  readonly schemaSignature: string | null;
  readonly schemaVersion: number;
  readonly stateVersions: Readonly<Record<string, number>> | null;
  readonly states: Readonly<Record<string, unknown>>;
  readonly newerStates?: Readonly<Record<string, unknown>>;
}

export interface OpenCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly interruptId?: string;
}

export interface PendingWrite {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly messageId: string;
  readonly result: unknown;
  readonly failed?: boolean;
  readonly iteration: number;
  readonly threadId: string;
  readonly completedAt: string;
}

export interface ToolCall {
  readonly id: string;
  readonly type?: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
  readonly encryptedValue?: string;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
}

export interface Message {
  readonly id: string;
  readonly role: 'user' | 'assistant' | 'tool' | 'system' | 'developer' | 'reasoning' | 'activity';
  readonly content?: unknown;
  readonly name?: string;
  readonly toolCalls?: readonly ToolCall[];
  readonly toolCallId?: string;
  readonly error?: string;
  readonly encryptedValue?: string;
  readonly activityType?: string;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly subagentRunId?: string;
}

export interface MessageList {
  readonly messages: readonly Message[];
}

export interface CheckpointDetail extends Checkpoint {
  readonly messages: readonly Message[];
  readonly state: unknown;
  readonly middlewareState?: MiddlewareState;
  readonly openToolCalls?: readonly OpenCall[];
  readonly pendingWrites?: readonly PendingWrite[];
  readonly outcome?: Outcome;
  readonly code?: string;
  readonly message?: string;
  readonly interrupts?: readonly Interrupt[];
}

export interface ThreadState {
  readonly state: unknown;
  readonly middlewareState?: MiddlewareState;
  readonly stateVersion?: string;
}

export interface PastEffect {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly arguments: unknown;
  readonly effect: string;
  readonly messageId?: string;
  readonly failed?: boolean;
  /** Its recorded result can be used again. */
  readonly reusable?: boolean;
}

/** Where a thread is after a fork or a rewind. */
export interface Traveled {
  readonly thread: ThreadInfo;
  readonly checkpoint: Checkpoint;
  readonly effects: readonly PastEffect[];
  readonly effectsIncomplete?: boolean;
  /** Nothing was done: this is what would happen. */
  readonly preview?: boolean;
}

export interface AgentTool {
  readonly name: string;
  readonly description: string;
  readonly effect: string;
  /** The JSON Schema of its arguments. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly timeoutMs: number;
  readonly outside?: boolean;
}

export interface Agent {
  readonly name: string;
  readonly description: string;
  readonly revision?: string;
  readonly default: boolean;
  readonly demo: boolean;
  /** In the order in which they are asked, as provider/model. */
  readonly models: readonly string[];
  readonly approvals: 'user' | 'approver';
  readonly tools: readonly AgentTool[];
  readonly middleware: readonly string[];
  readonly capabilities: Readonly<Record<string, unknown>>;
}

export interface AgentList {
  readonly agents: readonly Agent[];
}

/** A call that is open, or has ended and is in no checkpoint yet. */
export interface WorkCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly state: 'planned' | 'started' | 'recorded' | 'in_doubt' | 'waiting' | 'outside';
  readonly effect: string;
  readonly key?: string;
  readonly attempts?: number;
  readonly startedAt?: string;
  readonly interruptId?: string;
  readonly messageId?: string;
  readonly result?: unknown;
  readonly failed?: boolean;
  readonly endedAt?: string;
}

/** The work that is under way on a thread. */
export interface Work {
  readonly runId: string;
  readonly status: 'idle' | 'running' | 'interrupted' | 'stopped';
  readonly iteration: number;
  readonly process?: string;
  readonly epoch: number;
  readonly calls: readonly WorkCall[];
}

/** A call that a model has made. */
export interface Call {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly messageId?: string;
  readonly resultMessageId?: string;
  readonly runId?: string;
  readonly effect: string;
  readonly key?: string;
  readonly attempts: number;
  readonly failed?: boolean;
  readonly code?: string;
  readonly startedAt?: string;
  readonly endedAt?: string;
  readonly process?: string;
}

export interface CallList {
  readonly calls: readonly Call[];
  readonly next?: string;
}

/** An open question of any thread. */
export interface Question {
  readonly thread: { readonly id: string; readonly title?: string; readonly agent: string; readonly hidden?: boolean };
  readonly runId: string;
  readonly interrupt: Interrupt;
  readonly askedAt: string;
}

export interface QuestionList {
  readonly questions: readonly Question[];
  readonly next?: string;
}

/** The data that the page needs to begin. */
export interface PageConfig {
  readonly version: string;
  readonly demo: boolean;
  readonly kill: boolean;
  readonly auth: 'none' | 'key';
  readonly identified: boolean;
  readonly roles: readonly ('read' | 'user' | 'approver' | 'tenant_operator' | 'server_operator' | 'service')[];
  /** May read the threads of all users of the tenant. */
  readonly tenantOperator: boolean;
  /** May see figures and settings, and run tools by hand. */
  readonly serverOperator: boolean;
  readonly defaultAgent?: string;
  /** How large the body of a request may be, in bytes. */
  readonly maxBody: number;
  /** How large it may be where more than half of it is media. */
  readonly maxMediaBody: number;
}

/** How long something took, in milliseconds. */
export interface Spread {
  readonly p50: number;
  readonly p95: number;
  readonly count: number;
}

/** The server's figures of one step. */
export interface Point {
  readonly at: string;
  readonly running: number;
  readonly started: number;
  readonly finished: number;
  readonly failed: number;
  readonly waiting: number;
  readonly cancelled: number;
  readonly tokensIn: number;
  readonly tokensCached: number;
  readonly tokensOut: number;
  readonly firstTokenMs?: Spread;
  readonly runMs?: Spread;
  readonly commitMs?: Spread;
}

export interface OverviewRuns {
  readonly running: number;
  readonly started: number;
  readonly finished: number;
  readonly waiting: number;
  readonly cancelled: number;
  readonly failed: number;
  readonly left: number;
  readonly takenOver: number;
}

export interface Overview {
  readonly process: string;
  readonly version: string;
  readonly startedAt: string;
  readonly now: string;
  readonly store: string;
  readonly durability?: 'none' | 'process' | 'machine' | 'failover';
  readonly demo: boolean;
  readonly processes: readonly string[];
  readonly index: {
    readonly complete: boolean;
    readonly pass: number;
    readonly threads: number;
    readonly entered: number;
  };
  readonly indexLagMs: number;
  readonly runs: OverviewRuns;
  readonly series: { readonly stepSeconds: number; readonly points: readonly Point[] };
  readonly errors: readonly { readonly code: string; readonly count: number; readonly lastAt: string }[];
}

export interface Setting {
  readonly name: string;
  readonly value: string;
  /** `flag`, `env`, `file` or `default`. */
  readonly source: string;
  readonly text?: string;
}

export interface SettingList {
  readonly settings: readonly Setting[];
}

/** The outcome of a tool that was run by hand. */
export interface ToolOutcome {
  readonly result?: unknown;
  readonly error?: string;
  readonly idempotencyKey: string;
  readonly durationMs: number;
}
