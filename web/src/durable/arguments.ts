// A call's arguments as text.

/** Arguments as they are read: in lines if these are few, and else as close as JSON can be. */
export function argumentsText(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? '';
  if (text === '{}') return 'no arguments';
  return typeof value === 'string' || text.split('\n').length <= 6 ? text : text.replace(/(?<=[[{])\n\s*|\n\s*(?=[\]}])/g, '').replace(/\n\s*/g, ' ');
}
