// CopilotKit's components of the first generation, straight on Holdfast.
import "@copilotkit/react-ui/styles.css";
import "./page.css";
import { createRoot } from "react-dom/client";
import { CopilotKit, useCoAgent, useCopilotAction, useCopilotReadable } from "@copilotkit/react-core";
import { CopilotChat } from "@copilotkit/react-ui";
import { resumeRuns } from "./resume";
import { agentId, runtimeUrl, threadInAddress } from "./where";

const threadId = threadInAddress();
resumeRuns(runtimeUrl);

function Tools() {
  useCopilotReadable({ description: "the weather", value: "sunny" });
  const { state } = useCoAgent({ name: agentId });
  useCopilotAction({
    name: "paint",
    description: "Changes the color of the page.",
    parameters: [{ name: "color", type: "string", required: true }],
    handler: async ({ color }) => {
      document.body.dataset.color = color;
      return `The page is ${color} now.`;
    },
  });
  useCopilotAction({
    name: "confirm",
    description: "Asks the person to confirm.",
    parameters: [{ name: "what", type: "string", required: true }],
    renderAndWaitForResponse: ({ args, status, respond }) => (
      <p className="card confirm">
        {args.what} {status === "executing" ? <button onClick={() => respond?.("The person has confirmed.")}>Confirm</button> : null}
      </p>
    ),
  });
  return Object.keys(state ?? {}).length > 0 ? <pre className="state">{JSON.stringify(state)}</pre> : null;
}

createRoot(document.getElementById("page")!).render(
  <CopilotKit runtimeUrl={runtimeUrl} agent={agentId} threadId={threadId} useSingleEndpoint={false} showDevConsole={false} enableInspector={false}>
    <main>
      <Tools />
      <CopilotChat />
    </main>
  </CopilotKit>,
);
