// CopilotKit's components of the second generation, straight on Holdfast: a chat whose
// answers can be regenerated and whose messages can be edited, with a list of threads, cards
// of tools, approvals, questions, the shared state, and files.
import "@copilotkit/react-core/v2/styles.css";
import "./page.css";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { CopilotChat, CopilotKitProvider, useAgent, useConfigureSuggestions, useCopilotKit } from "@copilotkit/react-core/v2";
import { resumeRuns } from "./resume";
import { Threads } from "./threads";
import { Tools } from "./tools";
import { agentId, oneRoute, runtimeUrl, showInAddress, suggests, threadInAddress } from "./where";

resumeRuns(runtimeUrl);

/** Asks the model, after each answer, what the person could say next. Nothing of it is stored. */
function Suggestions() {
  useConfigureSuggestions({ instructions: "Suggest what the demo can do.", minSuggestions: 1, maxSuggestions: 2 });
  return null;
}

/** A chat on a thread. A message that is edited or regenerated begins a branch. */
function Chat({ threadId }: { threadId: string }) {
  const { agent } = useAgent({ agentId });
  const { copilotkit } = useCopilotKit();
  const [edited, setEdited] = useState<string>();
  const before = (id: string) => agent.messages.slice(0, agent.messages.findIndex((m) => m.id === id));
  const run = (messages: typeof agent.messages) => {
    setEdited(undefined);
    agent.setMessages(messages);
    copilotkit.runAgent({ agent });
  };
  const regenerate = (id: string) => {
    const kept = before(id);
    run(kept.slice(0, kept.findLastIndex((m) => m.role === "user") + 1));
  };
  // It keeps its id: that is what makes it an edited message, not a new one.
  const edit = (form: HTMLFormElement) =>
    run([...before(edited!), { id: edited!, role: "user", content: String(new FormData(form).get("text")) }]);
  return (
    <>
      <CopilotChat
        agentId={agentId}
        threadId={threadId}
        attachments={{ enabled: true }}
        messageView={{
          assistantMessage: { onRegenerate: (message) => regenerate(message.id) },
          userMessage: { onEditMessage: ({ message }) => setEdited(message.id) },
        }}
      />
      {edited ? (
        <form className="edit" onSubmit={(e) => { e.preventDefault(); edit(e.currentTarget); }}>
          <input name="text" aria-label="Edited message" autoFocus defaultValue={String(agent.messages.find((m) => m.id === edited)?.content ?? "")} />
          <button>Send</button>
          <button type="button" onClick={() => setEdited(undefined)}>Leave it</button>
        </form>
      ) : null}
    </>
  );
}

function Page() {
  const [threadId, setThreadId] = useState(threadInAddress);
  return (
    <>
      <Threads shown={threadId} onShow={(thread) => setThreadId(showInAddress(thread))} />
      <main>
        <Tools />
        {suggests ? <Suggestions /> : null}
        <Chat threadId={threadId} key={threadId} />
      </main>
    </>
  );
}

createRoot(document.getElementById("page")!).render(
  <CopilotKitProvider runtimeUrl={runtimeUrl} useSingleEndpoint={oneRoute} headers={{ "X-Example": "copilotkit" }}>
    <Page />
  </CopilotKitProvider>,
);
