import type { Message, RunAgentInput } from '@ag-ui/client';
/** The messages of a client when a run had ended, each as text: the server has the same. */
export interface Stand {
    thread: string;
    messages: string[];
}
/** How a client stands whose run has ended. */
export declare const standOf: (thread: string, messages: readonly Message[]) => Stand;
/**
 * The input without what the server has; undefined if all has to be sent. The last turn is
 * sent, so that the server notices if the thread has gone on meanwhile.
 */
export declare function shortened(input: RunAgentInput, stand: Stand | undefined): RunAgentInput | undefined;
/** A request with a shortened body. */
export declare const short: (init: RequestInit, all: RequestInit) => RequestInit;
/** Sends a request, and all of it to a server that does not take it shortened. */
export declare const orWhole: (send: (url: string, init?: RequestInit) => Promise<Response>) => (url: string, init?: RequestInit) => Promise<Response>;
