import type { Cancels } from './cancel.js';
import type { Connection, Fetch, ResumeOptions } from './options.js';
import type { Placing } from './placing.js';
import { type Target } from './target.js';
export declare class RunStream {
    #private;
    constructor(target: Target, init: RequestInit, send: Fetch, cancels: Cancels, placing: Placing, options: ResumeOptions, told: (state: Connection) => void);
    /**
     * Returns the answer to the request: the run's stream, or an answer that refuses it.
     * It rejects only when the caller aborts.
     */
    open(): Promise<Response>;
}
