/** An AG-UI event, of which only these members matter here. */
export interface Event {
    type: string;
    runId?: string;
    messageId?: string;
    toolCallId?: string;
    stepName?: string;
    subagentRunId?: string;
    code?: string;
    metadata?: {
        holdfast?: Record<string, unknown>;
        [name: string]: unknown;
    };
    [name: string]: unknown;
}
/** Whether a run's stream ends with this event. */
export declare const isEnd: (event: Event) => boolean;
/**
 * The part of a run that one client has been shown. It makes one legal AG-UI stream out of several:
 * when the server starts over (RUN_STARTED again, then snapshots), the items that are open
 * are closed, and the second start is left out.
 */
export declare class Transcript {
    #private;
    /** Whether RUN_STARTED has been shown. */
    started: boolean;
    /** @param runId the id that the client asked for; without it, the first one shown */
    constructor(runId?: string);
    /** Returns the events to show for one that arrived. */
    take(event: Event): Event[];
}
