/** One block of a Server-Sent Events stream. */
export interface Frame {
    /** The frame's own id, if it has one. */
    id?: string;
    /** The event; absent in a frame that only sets something. */
    data?: string;
    /** Milliseconds to wait before reconnecting. */
    retry?: number;
    /** The text of a comment, which only keeps the connection alive. */
    comment?: string;
}
/**
 * Returns a function that takes text as it arrives, split anywhere, and returns the frames
 * that became complete. An unfinished frame is never returned: half an event must not be
 * shown. (HTML standard, "Server-sent events", 9.2.6.)
 */
export declare function parser(): (text: string) => Frame[];
/** Writes an event as a frame, in the form that the official client reads. */
export declare function encode(event: unknown, id?: string): string;
