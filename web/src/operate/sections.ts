// The parts of Operate, and who is shown which.
import type { PageConfig } from '../api/types.ts';

const sections = [['overview', 'Overview'], ['agents', 'Agents'], ['threads', 'All threads'], ['settings', 'Settings']] as const;

/** An operator of a tenant and not of the server, whom the server's own things are not shown. */
export const onlyTenants = (config: Partial<PageConfig>): boolean => config.tenantOperator === true && config.serverOperator === false;

/** The parts in their order. Without any operator's role all are shown: each says which one it needs. */
export const sectionsFor = (config: Partial<PageConfig>) => sections.filter(([name]) => !onlyTenants(config) || name === 'agents' || name === 'threads');

/** The part of the address without one. */
export const firstSection = (config: Partial<PageConfig>): string => (onlyTenants(config) ? 'threads' : 'overview');
