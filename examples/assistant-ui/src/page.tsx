// A page of assistant-ui's components on a Holdfast server: a list of threads, and a chat that
// goes on through reloads and restarts of the server.
import { useCallback, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { AssistantRuntimeProvider, AuiConfig, ExportedMessageRepository, Tools } from "@assistant-ui/react";
import { fromAgUiMessages, useAgUiRuntime } from "@assistant-ui/react-ag-ui";
import { AssistantUIAgent } from "holdfast-agent/assistant-ui";
import { Chat } from "./chat";
import { toolkit } from "./tools";

const address = new URLSearchParams(location.search);
const server = address.get("server") ?? "http://localhost:8080";
const config = AuiConfig({ tools: Tools({ toolkit }) });

interface Thread { id: string; agent?: string; title?: string; status?: string; isNew?: boolean }

function Conversation({ thread: { id: threadId, agent: name, isNew }, onChange }: { thread: Thread; onChange: () => void }) {
  const [reconnecting, setReconnecting] = useState(false);
  const [agent] = useState(() => new AssistantUIAgent({
    url: `${server}/agents/${name ?? address.get("agent") ?? "demo"}/runs`,
    threadId,
    onConnection: (state) => setReconnecting(state === "reconnecting"),
  }));
  const [history] = useState(() => (isNew ? undefined : agent.history((found) => ExportedMessageRepository.fromArray(fromAgUiMessages(found)))));
  // The runtime cancels its run when it goes away. Another thread being chosen is no reason to.
  useEffect(() => () => agent.detach(), [agent]);
  const runtime = useAgUiRuntime({ agent, adapters: history ? { history } : {} });
  useEffect(() => {
    const onRunFinalized = () => {
      setReconnecting(false); // also after it was given up
      onChange();
    };
    return agent.subscribe({ onRunStartedEvent: onChange, onRunFinalized }).unsubscribe;
  }, [agent, onChange]);
  return (
    <AssistantRuntimeProvider runtime={runtime} config={config}>
      <Chat />
      {reconnecting && <p className="reconnecting" role="status">Reconnecting…</p>}
    </AssistantRuntimeProvider>
  );
}

const newThread = (): Thread => ({ id: crypto.randomUUID(), isNew: true });

function Page() {
  const [thread, setThread] = useState<Thread>(() => (address.has("thread") ? { id: address.get("thread")! } : newThread()));
  const [threads, setThreads] = useState<Thread[]>([]);
  const show = useCallback((isNew?: boolean) => {
    if (isNew) address.delete("thread");
    else address.set("thread", thread.id); // a reload shows the same thread
    if (thread.agent) address.set("agent", thread.agent);
    window.history.replaceState(null, "", `?${address}`);
    void fetch(`${server}/threads`).then((answer) => answer.json()).then((found) => setThreads(found.threads ?? []), () => {});
  }, [thread]);
  useEffect(() => show(thread.isNew), [show, thread]);
  const onChange = useCallback(() => show(), [show]);
  return (
    <>
      <nav>
        <button onClick={() => setThread(newThread())}>New chat</button>
        {threads.map(({ id, agent, title, status }) => (
          <button key={id} aria-current={id === thread.id} onClick={() => setThread({ id, agent })}>
            {title ?? "Untitled"}
            {status === "interrupted" && <small>has a question</small>}
          </button>
        ))}
      </nav>
      <main>
        <Conversation key={thread.id} thread={thread} onChange={onChange} />
      </main>
    </>
  );
}

createRoot(document.getElementById("page")!).render(<Page />);
