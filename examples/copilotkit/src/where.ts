// Where the server is, which agent the page talks to, and which thread it shows: all from the
// address, so that a reload shows the same thread.
const params = new URLSearchParams(location.search);

export const runtimeUrl = params.get("server") ?? "http://localhost:8080/copilotkit";
export const agentId = params.get("agent") ?? "default";
/** Whether the page shows suggestions, and whether all its requests have one address. */
export const suggests = params.has("suggest");
export const oneRoute = params.has("single");

export function threadInAddress(): string {
  return new URLSearchParams(location.search).get("thread") ?? showInAddress(crypto.randomUUID());
}

export function showInAddress(thread: string): string {
  const params = new URLSearchParams(location.search);
  params.set("thread", thread);
  history.replaceState(null, "", `?${params}`);
  return thread;
}
