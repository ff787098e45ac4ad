// Where the server is, and which feature and thread are shown: all from the address, so that a
// reload shows the same.
const params = () => new URLSearchParams(location.search);

export const runtimeUrl = params().get("server") ?? "http://localhost:8080/copilotkit";
/** Where Studio shows the threads. */
export const studioUrl = new URL("/", runtimeUrl).href;

export type Where = { feature: string; thread: string };

export function whereInAddress(first: string): Where {
  const feature = params().get("feature") ?? first;
  return showInAddress({ feature, thread: params().get("thread") ?? newThread(feature) });
}

export const newThread = (feature: string) => `${feature}-${crypto.randomUUID().slice(0, 8)}`;

export function showInAddress(where: Where): Where {
  const shown = params();
  for (const [name, value] of Object.entries(where)) shown.set(name, value);
  history.replaceState(null, "", `?${shown}`);
  return where;
}
