// Tokens as events say them.

import { fields, list, number, text } from './json';
import type { Usage } from './view';

/** Reads the usage of an event; what it does not say counts as 0. */
export function usageOf(value: unknown): readonly Usage[] {
  return list(value).map(fields).map((u) => {
    const count = (name: string): number => Math.max(0, number(u[name]) ?? 0);
    const [inputTokens, outputTokens] = [count('inputTokens'), count('outputTokens')];
    return {
      provider: text(u['provider']), model: text(u['model']), inputTokens, outputTokens, totalTokens: count('totalTokens') || inputTokens + outputTokens,
      reasoningTokens: count('reasoningTokens'), cachedInputTokens: count('cachedInputTokens'), cacheWriteInputTokens: count('cacheWriteInputTokens'),
    };
  });
}
