// CopilotKit's components of the second generation, straight on Holdfast: chat, a card for
// the server's tool, a tool that the page runs, one that a person answers, the server's
// questions, the shared state, and files.
import "@copilotkit/react-core/v2/styles.css";
import { createRoot } from "react-dom/client";
import { CopilotChat, CopilotKitProvider, useAgent, useFrontendTool, useHumanInTheLoop, useInterrupt, useRenderTool } from "@copilotkit/react-core/v2";
import { z } from "zod";
import { runtimeUrl, threadInAddress } from "./where";

const threadId = threadInAddress();

function Tools() {
  const { agent } = useAgent({ agentId: "default" });
  useRenderTool({
    name: "calculate",
    parameters: z.object({ expression: z.string() }),
    render: ({ status, result }) => <p className="card">calculator: {status === "complete" ? result : "…"}</p>,
  });
  useFrontendTool({
    name: "paint",
    description: "Changes the color of the page.",
    parameters: z.object({ color: z.string() }),
    handler: async ({ color }) => {
      document.body.dataset.color = color;
      return `The page is ${color} now.`;
    },
  });
  useHumanInTheLoop({
    name: "confirm",
    description: "Asks the person to confirm.",
    parameters: z.object({ what: z.string() }),
    render: ({ args, status, respond }) => (
      <p className="confirm">
        {args.what} {status === "executing" && respond ? <button onClick={() => respond("The person has confirmed.")}>Confirm</button> : null}
      </p>
    ),
  });
  useInterrupt({
    agentId: "default",
    render: ({ interrupt, resolve, cancel }) => (
      <p className="question">
        {interrupt?.message} <button onClick={() => resolve({ answer: "blue" })}>Blue</button> <button onClick={() => cancel()}>No answer</button>
      </p>
    ),
  });
  return <pre className="state">{JSON.stringify(agent.state)}</pre>;
}

createRoot(document.getElementById("page")!).render(
  <CopilotKitProvider runtimeUrl={runtimeUrl} headers={{ "X-Example": "copilotkit" }}>
    <Tools />
    <CopilotChat agentId="default" threadId={threadId} attachments={{ enabled: true }} />
  </CopilotKitProvider>,
);
