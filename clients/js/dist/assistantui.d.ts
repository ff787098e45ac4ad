import type { Message } from '@ag-ui/client';
import { HoldfastAgent, type HoldfastAgentConfig } from './agent.js';
/** The interface that assistant-ui calls a ThreadHistoryAdapter; `T` is its exported repository of messages. */
export interface ThreadHistory<T> {
    load(): Promise<T & {
        unstable_resume: boolean;
    }>;
    append(): Promise<void>;
}
/** A {@link HoldfastAgent} for one thread of assistant-ui. It chooses `chat` and `whole`. */
export declare class AssistantUIAgent extends HoldfastAgent {
    private joins;
    constructor(config: HoldfastAgentConfig);
    /**
     * Returns the history adapter: the thread as the server has it. If its run is under way or
     * waits for an answer, the runtime joins it. `convert` makes assistant-ui's messages:
     * `(messages) => ExportedMessageRepository.fromArray(fromAgUiMessages(messages))`.
     */
    history<T extends object>(convert: (messages: Message[]) => T): ThreadHistory<T>;
    /** Reads a part of the thread. A server that is away is asked again, as for a run. */
    private get;
    runAgent(...[parameters, subscriber]: Parameters<HoldfastAgent['runAgent']>): ReturnType<HoldfastAgent['runAgent']>;
}
