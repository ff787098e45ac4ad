/** What is known of servers: whether they may be sent the header. */
export declare class Placing {
    #private;
    /** Names the thread in the headers of a request, if that cannot keep it from being sent. */
    name(headers: Headers, url: string, thread: string): void;
    /** Notes what an answer tells of its server. */
    note(url: string, response: Response): void;
}
