// A page of the Vercel AI SDK on a Holdfast server. Nothing here is made for Holdfast but the
// addresses: the chat goes on through reloads and restarts of the server by itself.
import { useEffect, useState, type FormEvent } from "react";
import { createRoot } from "react-dom/client";
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai";
import { Message } from "./message";

const address = new URLSearchParams(location.search);
const server = address.get("server") ?? "http://localhost:8080";
const api = `${server}/ai-sdk/${address.get("agent") ?? "demo"}`;
const suggestions = ["plan 3 steps", "think about durability", "slow 60", "use charge_card {\"amount\": 150, \"currency\": \"EUR\"}"];

function Chat({ id, initial }: { id: string; initial: UIMessage[] }) {
  const { messages, sendMessage, regenerate, stop, status, error, resumeStream, addToolApprovalResponse } = useChat({
    id,
    messages: initial,
    resume: true, // after a reload: the answer that is being written
    transport: new DefaultChatTransport({ api }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const busy = status === "submitted" || status === "streaming";
  const cancel = () => {
    void stop(); // only closes the connection, as a reload does
    void fetch(`${api}/${encodeURIComponent(id)}/stop`, { method: "POST", headers: { "Content-Type": "application/json" } });
  };
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get("text")).trim();
    if (!text || busy) return;
    event.currentTarget.reset();
    void sendMessage({ text });
  };
  const last = messages.at(-1);
  return (
    <>
      <main data-status={status}>
        {messages.length === 0 && (
          <div className="welcome">
            <h2>What shall we do?</h2>
            {suggestions.map((text) => <button key={text} onClick={() => sendMessage({ text })}>{text}</button>)}
          </div>
        )}
        <div className="messages">
          {messages.map((message) => (
            <Message
              key={message.id}
              message={message}
              onDecision={addToolApprovalResponse}
              onAnswer={message === last && !busy ? (interruptId, answer) =>
                sendMessage(undefined, { body: { resume: [{ interruptId, status: "resolved", payload: { answer } }] } }) : undefined}
            />
          ))}
          {last?.role === "assistant" && status === "ready" && (
            <button className="again" onClick={() => regenerate()}>Answer again</button>
          )}
        </div>
      </main>
      {error && (
        <p className="trouble" role="alert">
          {error.message} <button onClick={() => resumeStream()}>Continue</button>
        </p>
      )}
      <form className="composer" onSubmit={submit}>
        <input name="text" aria-label="Message" placeholder="Say something" autoComplete="off" autoFocus />
        {busy ? <button type="button" onClick={cancel}>Stop</button> : <button className="primary">Send</button>}
      </form>
    </>
  );
}

function Page() {
  const [id, setId] = useState(address.get("chat") ?? crypto.randomUUID());
  const [loaded, setLoaded] = useState<{ id: string; messages: UIMessage[] }>();
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    address.set("chat", id); // a reload shows the same chat
    history.replaceState(null, "", `?${address}`);
    void fetch(`${api}/${encodeURIComponent(id)}`)
      .then((answer) => answer.json())
      .then(({ messages, error }) => (error ? setTrouble(error.message) : setLoaded({ id, messages })))
      .catch(() => setTrouble(`There is no server at ${server}.`));
  }, [id]);
  return (
    <>
      <header>
        <h1>The Vercel AI SDK on Holdfast</h1>
        <button onClick={() => setId(crypto.randomUUID())}>New chat</button>
      </header>
      {loaded?.id === id ? <Chat key={id} id={id} initial={loaded.messages} /> : <main>{trouble}</main>}
    </>
  );
}

createRoot(document.getElementById("page")!).render(<Page />);
