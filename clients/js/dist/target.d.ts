/** A request that starts or attaches to a run. */
export interface Target {
    url: string;
    /** The server's address, without a slash at its end. */
    base: string;
    thread: string;
    /** The run's id, if the request names it: a POST does, an attach does not. */
    run?: string;
    /** Whether the client speaks the dialect from before AG-UI 1.0. */
    legacy: boolean;
    /** Whether the client is the AI SDK, whose streams are continued where they began. */
    ui?: boolean;
}
/**
 * Returns the server's address for the URL of its POST route (`…/runs`,
 * `…/agents/{agent}/runs`, `…/copilotkit/agent/{agent}/run`), or undefined if it is not one.
 */
export declare function baseOf(url: string): string | undefined;
/** Returns what a request is about; undefined means that it does not concern a run. */
export declare function targetOf(url: string, init: RequestInit, base: string | undefined): Target | undefined;
/**
 * Returns the request of an AI SDK's chat with an id for its run, by which the server knows it if
 * it is sent again; any other request as it is.
 */
export declare function named(url: string, init: RequestInit): RequestInit;
/** Where a thread is. */
export declare function threadURL(base: string, thread: string): string;
/** Where a thread can be attached to. */
export declare function streamURL(base: string, thread: string, legacy: boolean): string;
/** Where a run can be followed from a cursor. */
export declare function eventsURL(base: string, thread: string, run: string, legacy: boolean): string;
/** Where a run can be cancelled. */
export declare function cancelURL(base: string, thread: string, run: string): string;
