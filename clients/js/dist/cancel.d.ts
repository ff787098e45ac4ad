import type { Fetch } from './options.js';
import { type Target } from './target.js';
/** Ends runs on the server, and knows which threads are still waiting for that. */
export declare class Cancels {
    #private;
    constructor(send: Fetch);
    /** Returns when no cancelled run of the thread is still ending, or on an abort. It never rejects. */
    settled(target: Target, signal?: AbortSignal | null): Promise<void>;
    /**
     * Asks the server to end a run. `started` returns the run's id once the server has answered
     * the request that starts it: a run that does not exist yet cannot be cancelled.
     */
    start(target: Target, headers: Headers, started: Promise<string | undefined>): void;
}
