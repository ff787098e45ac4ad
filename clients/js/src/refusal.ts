/** The server's own words about why it refuses. */
export interface Refusal {
  message: string | undefined;
  code: string | undefined;
  hint: string | undefined;
}

/** Reads the error in an answer. It never rejects: what a proxy says may be anything. */
export async function errorOf(response: Response): Promise<Refusal> {
  const body: unknown = await response.json().catch(() => undefined);
  const error = (body as { error?: Record<string, unknown> | null } | null | undefined)?.error;
  const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
  return { message: text(error?.message), code: text(error?.code), hint: text(error?.hint) };
}
