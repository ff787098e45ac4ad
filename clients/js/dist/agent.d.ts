import { HttpAgent } from '@ag-ui/client';
import type { HttpAgentConfig, RunAgentInput, RunAgentParameters } from '@ag-ui/client';
import type { ResumeOptions } from './options.js';
import { type Stand } from './stand.js';
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
/**
 * An `HttpAgent` for a Holdfast server. Runs survive cut connections and restarts of the
 * server (see {@link resumingFetch}, which its `fetch` is), `connectAgent()` shows a thread
 * as it is and follows its run, and `abortRun()` ends the run on the server.
 */
export declare class HoldfastAgent extends HttpAgent {
    /** Sent with every run, as `forwardedProps.holdfast`. */
    holdfast: HoldfastChoices;
    /** @internal what {@link outsideCalls} returns */
    outside: OutsideCall[];
    /** @internal what it has, as the server has it; undefined if that is not sure */
    stand: Stand | undefined;
    private readonly base;
    /** @internal how it sends and waits */
    protected readonly options: ResumeOptions;
    constructor(config: HoldfastAgentConfig);
    /** A new agent with the same thread, messages, options, open questions and outside calls. */
    clone(): HoldfastAgent;
    /** Stops watching the run, which goes on: what a page does when it shows another thread. */
    detach(): void;
    /**
     * The calls that the thread waits for: the last run has ended, but its work has not. When
     * their results have come, `connectAgent()` shows how it went on.
     */
    outsideCalls(): OutsideCall[];
    /** Shows the thread as it is, and follows its run. */
    connectAgent(...[parameters, subscriber]: Parameters<HttpAgent['connectAgent']>): ReturnType<HttpAgent['connectAgent']>;
    protected prepareRunAgentInput(parameters?: RunAgentParameters): RunAgentInput;
    protected requestInit(input: RunAgentInput): RequestInit;
    /** @internal the server's address; it throws if that is not known */
    protected address(): string;
    /**
     * The stream that `connectAgent()` reads: the thread as it is, then its run, live. A thread that the
     * server does not know is an empty run.
     */
    protected connect(input: RunAgentInput): ReturnType<HttpAgent['run']>;
}
