// CopilotKit's components of the first generation, straight on Holdfast.
import "@copilotkit/react-ui/styles.css";
import { createRoot } from "react-dom/client";
import { CopilotKit, useCoAgent, useCopilotAction, useCopilotReadable } from "@copilotkit/react-core";
import { CopilotChat } from "@copilotkit/react-ui";
import { runtimeUrl, threadInAddress } from "./where";

const threadId = threadInAddress();

function Tools() {
  useCopilotReadable({ description: "the weather", value: "sunny" });
  const { state } = useCoAgent({ name: "default" });
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
      <p className="confirm">
        {args.what} {status === "executing" ? <button onClick={() => respond?.("The person has confirmed.")}>Confirm</button> : null}
      </p>
    ),
  });
  return <pre className="state">{JSON.stringify(state)}</pre>;
}

createRoot(document.getElementById("page")!).render(
  <CopilotKit runtimeUrl={runtimeUrl} agent="default" threadId={threadId} showDevConsole={false} enableInspector={false}>
    <Tools />
    <CopilotChat />
  </CopilotKit>,
);
