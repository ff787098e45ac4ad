/** The names of classes, without those that are not meant. */
export const classes = (...names: (string | false | null | undefined)[]): string => names.filter(Boolean).join(' ');
