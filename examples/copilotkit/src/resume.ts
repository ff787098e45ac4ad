// CopilotKit sends its requests with the global fetch, and shows an error when a connection
// breaks. With this one, a cut connection or a server that is started again is only a pause:
// it comes back with the cursor of the last event, and gets exactly what is missing.
import { resumingFetch } from "holdfast-agent/fetch";

export function resumeRuns(runtimeUrl: string) {
  const plain = window.fetch.bind(window);
  // CopilotKit's Stop button cancels the run by a request of its own. Other requests that it aborts, it
  // only no longer looks at.
  const resuming = resumingFetch({ fetch: plain, onAbort: "detach" });
  window.fetch = (input, init) =>
    typeof input === "string" && input.startsWith(`${runtimeUrl}/agent/`) ? resuming(input, init) : plain(input, init);
}
