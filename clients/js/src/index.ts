export { HoldfastAgent } from './agent.js';
export type { HoldfastAgentConfig, HoldfastChoices, OutsideCall, Question, Answer } from './agent.js';
export { resumingFetch } from './fetch.js';
export type { Connection, Fetch, ResumeOptions } from './options.js';
