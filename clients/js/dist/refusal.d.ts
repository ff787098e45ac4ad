/** The server's own words about why it refuses. */
export interface Refusal {
    message: string | undefined;
    code: string | undefined;
    hint: string | undefined;
}
/** Reads the error in an answer. It never rejects: what a proxy says may be anything. */
export declare function errorOf(response: Response): Promise<Refusal>;
