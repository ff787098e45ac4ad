// Where the server is, and which thread the page shows: both from the address, so that a
// reload shows the same thread.
const params = new URLSearchParams(location.search);

export const runtimeUrl = params.get("server") ?? "http://localhost:8080/copilotkit";

export function threadInAddress(): string {
  const given = params.get("thread");
  if (given) return given;
  const made = crypto.randomUUID();
  params.set("thread", made);
  history.replaceState(null, "", `?${params}`);
  return made;
}
