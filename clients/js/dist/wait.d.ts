/** Returns the error that `fetch` rejects with when a request is aborted. */
export declare function abortError(): DOMException;
/** Calls a function after a time. Timers take a longer one than they can count for no time at all. */
export declare function after(ms: number, then: () => void): ReturnType<typeof setTimeout>;
/** Waits; an abort ends the wait, and it is for the caller to look why it ended. */
export declare function sleep(ms: number, signal?: AbortSignal | null): Promise<void>;
/** Waits for a promise that does not reject; an abort ends the wait as well. */
export declare function settled(promise: Promise<void>, signal?: AbortSignal | null): Promise<void>;
/** Returns how long an answer asks to wait, in milliseconds; 0 if it does not (RFC 9110, 10.2.3). */
export declare function retryAfter(response: Response): number;
/** Frees the connection of an answer that nobody reads. */
export declare function discard(response: Response | undefined): void;
