export { HoldfastAgent } from './agent.js';
export type { HoldfastAgentConfig, HoldfastChoices, OutsideCall } from './agent.js';
export { resumingFetch } from './fetch.js';
export type { Connection, Fetch, ResumeOptions } from './options.js';
