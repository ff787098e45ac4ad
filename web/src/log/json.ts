// Readers of values that came over the wire. An event is taken for what it is found to be,
// never for what it should be: whatever a producer sends, the page goes on.

/** The values of JSON. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** An object of which nothing is known yet. */
export type Fields = { readonly [name: string]: unknown };

/** Whether a value is an object, and no list. */
export const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The object, or an empty one. */
export const fields = (value: unknown): Fields => (isFields(value) ? value : {});

/** The list, or an empty one. */
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The text, or ''. */
export const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The text, or undefined if there is none. */
export const textOr = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** The number, or undefined if it is none that can be counted with. */
export const number = (value: unknown): number | undefined => (typeof value === 'number' && Number.isFinite(value) ? value : undefined);

/** The server's metadata of an event or a message. */
export const holdfast = (value: unknown): Fields => fields(fields(fields(value)['metadata'])['holdfast']);

/** Levels of lists and objects that are still taken; the server takes 256. */
const deepest = 512;

/** Whether a value is nested more deeply than anything that is meant to be shown. */
export function tooDeep(value: Fields): boolean {
  if (Object.values(value).every((each) => typeof each !== 'object')) return false; // most events
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > deepest) return true;
    const below: unknown[] = [];
    for (const each of level) {
      if (typeof each !== 'object' || each === null) continue;
      for (const inner of Array.isArray(each) ? each : Object.values(each)) if (typeof inner === 'object' && inner !== null) below.push(inner);
    }
    level = below;
  }
  return false;
}
