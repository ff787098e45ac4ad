export { HoldfastAgent } from './agent.js';
export { resumingFetch } from './fetch.js';
