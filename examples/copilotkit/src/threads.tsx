// The list of threads. Its titles are the server's, made from each thread's first message;
// renaming, hiding and deleting are stored there.
import { useEffect } from "react";
import { useAgent, useThreads } from "@copilotkit/react-core/v2";
import { agentId } from "./where";

type Props = { shown: string; onShow: (thread: string) => void };

export function Threads({ shown, onShow }: Props) {
  const { agent } = useAgent({ agentId, updates: [] });
  const { threads, error, refetchThreads, renameThread, archiveThread, deleteThread } = useThreads({ agentId });
  // A thread is in the list from the moment that its first run begins.
  useEffect(() => {
    const { unsubscribe } = agent.subscribe({ onRunStartedEvent: refetchThreads, onRunFinalized: refetchThreads });
    return unsubscribe;
  }, [agent, refetchThreads]);
  const rename = (form: HTMLFormElement, id: string) => renameThread(id, String(new FormData(form).get("name")));
  // A list that was asked for earlier may arrive later and bring the thread back.
  const hide = async (id: string) => {
    await archiveThread(id);
    refetchThreads();
  };
  const remove = async (id: string) => {
    await deleteThread(id);
    refetchThreads();
    if (id === shown) onShow(crypto.randomUUID());
  };
  return (
    <nav className="threads" aria-label="Conversations">
      <button className="new" onClick={() => onShow(crypto.randomUUID())}>New conversation</button>
      {error ? <p role="alert">{error.message}</p> : null}
      <ul>
        {threads.map(({ id, name }) => (
          <li key={id} aria-current={id === shown || undefined}>
            <button className="title" onClick={() => onShow(id)}>{name ?? "New conversation"}</button>
            <details>
              <summary aria-label={`Change ${name}`}>⋯</summary>
              <form onSubmit={(e) => { e.preventDefault(); rename(e.currentTarget, id); }}>
                <input name="name" aria-label="Title" defaultValue={name ?? ""} key={name} />
                <button>Rename</button>
                <button type="button" onClick={() => hide(id)}>Hide</button>
                <button type="button" onClick={() => remove(id)}>Delete</button>
              </form>
            </details>
          </li>
        ))}
      </ul>
    </nav>
  );
}
