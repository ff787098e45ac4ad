/** How many colours processes have. Their names tell them apart; the colour only helps. */
export const hues = 5;

/** The colour of a process, the same everywhere. */
export function hueOf(name: string): number {
  let sum = 7;
  for (const character of name) sum = (sum * 31 + (character.codePointAt(0) ?? 0)) % 99_991;
  return sum % hues;
}

/** A process's id as short as it can be told from the others: ids that the server makes are long and random. */
export const shortName = (name: string): string => (name.length <= 14 ? name : `…${name.slice(-6)}`);
