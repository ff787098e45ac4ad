/** Reads the error in an answer. It never rejects: what a proxy says may be anything. */
export async function errorOf(response) {
    const body = await response.json().catch(() => undefined);
    const error = body?.error;
    const text = (value) => (typeof value === 'string' && value !== '' ? value : undefined);
    return { message: text(error?.message), code: text(error?.code), hint: text(error?.hint) };
}
