/** A function like the global `fetch`, as the official client calls it. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;
/** The state of the connection. */
export type Connection = 'live' | 'reconnecting';
/** How {@link resumingFetch} behaves. All times are in milliseconds. */
export interface ResumeOptions {
    /** The function that sends the requests; the global `fetch` by default. */
    fetch?: Fetch;
    /**
     * The server's address, like `https://agents.example.com`. By default it is taken from the
     * URL that is posted to, if that is one of the server's own routes; say it if a proxy gives
     * them other names.
     */
    base?: string;
    /**
     * The meaning of an abort: `cancel` (the default) also ends the run on the server, as a Stop
     * button should; `detach` only stops watching it.
     */
    onAbort?: 'cancel' | 'detach';
    /** How long to try without any progress before the stream ends with RUN_ERROR; 120,000 by default. */
    patience?: number;
    /**
     * After how much silence a connection counts as dead; 40,000 by default. The server sends
     * something at least every 15 seconds.
     */
    silence?: number;
    /** The longest pause between two attempts, unless the server asks for more; 10,000 by default. */
    maxDelay?: number;
    /** Is called when the connection is lost, and when it works again or nobody waits for it any more. */
    onConnection?: (state: Connection) => void;
}
