// How numbers, times and lists are said in sentences.

/** A number as people write it. */
export const amount = (n: unknown): string => (typeof n === 'number' ? n.toLocaleString('en', { maximumFractionDigits: 6 }) : String(n ?? '?'));

/** A number of things. */
export const count = (n: unknown, one: string, many = one + 's'): string => `${amount(n)} ${n === 1 ? one : many}`;

/** Names, one after the other. */
export const names = (value: unknown): string => (Array.isArray(value) ? value.map(String).join(', ') : String(value ?? ''));

/** A span of time, as short as it can be read. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(ms < 9_950 ? 1 : 0)} s`;
  const minutes = Math.round(ms / 60_000);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** `someName` or `some_name` as words. */
export function spaced(name: string): string {
  const words = name.replace(/[_-]+/g, ' ').replace(/([a-z\d])([A-Z])/g, '$1 $2').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
