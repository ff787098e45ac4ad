// A balancer that sends all requests of a thread to one server finds the thread in a header, because it cannot
// read bodies. Before a page of another origin may send a header, its browser asks the server, and one from before
// this header says no, to the whole request. One that knows it names the owner of a run.

const header = 'Holdfast-Thread';

/** What is known of servers: whether they may be sent the header. */
export class Placing {
  readonly #takes = new Set<string>();

  /** Names the thread in the headers of a request, if that cannot keep it from being sent. */
  name(headers: Headers, url: string, thread: string): void {
    const origin = originOf(url);
    if (origin !== undefined && !this.#takes.has(origin)) return;
    try {
      headers.set(header, encodeURIComponent(thread));
    } catch {
      // Half a character cannot be encoded, in a header or in a path.
    }
  }

  /** Notes what an answer tells of its server. */
  note(url: string, response: Response): void {
    const origin = originOf(url);
    if (origin !== undefined && response.headers.has('Holdfast-Owner')) this.#takes.add(origin);
  }
}

/** The origin that a page asks; undefined if it is the page's own, and for programs that are no page. */
function originOf(url: string): string | undefined {
  const page: Location | undefined = globalThis.location;
  if (page === undefined) return undefined;
  const { origin } = new URL(url, page.href);
  return origin === page.origin ? undefined : origin;
}
