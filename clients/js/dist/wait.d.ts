/** Returns the error that `fetch` rejects with when a request is aborted. */
export declare function abortError(): DOMException;
/** Waits; an abort ends the wait, and it is for the caller to look why it ended. */
export declare function sleep(ms: number, signal?: AbortSignal | null): Promise<void>;
/** Returns how long an answer asks to wait, in milliseconds; 0 if it does not (RFC 9110, 10.2.3). */
export declare function retryAfter(response: Response): number;
/** Frees the connection of an answer that nobody reads. */
export declare function discard(response: Response | undefined): void;
