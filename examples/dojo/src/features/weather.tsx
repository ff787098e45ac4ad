// Backend tool rendering: the page shows the calls of a tool of the server.
import { useRenderTool } from "@copilotkit/react-core/v2";
import { z } from "zod";
import type { Feature } from "../feature";

const id = "backend_tool_rendering";

type Weather = { conditions: string; temperature: number; feels_like: number; humidity: number; wind_speed: number };

const skies: Record<string, string> = {
  Sunny: "linear-gradient(150deg, #0369a1, #0ea5e9)",
  "Partly cloudy": "linear-gradient(150deg, #0284c7, #64748b)",
  Cloudy: "linear-gradient(150deg, #475569, #64748b)",
  Rainy: "linear-gradient(150deg, #1e3a8a, #475569)",
  Snowy: "linear-gradient(150deg, #334155, #6b8fb5)",
};

function Sky({ of }: { of?: string }) {
  const falls = of === "Rainy" || of === "Snowy";
  return (
    <svg viewBox="0 0 64 48" aria-hidden="true">
      {of === "Sunny" || of === "Partly cloudy" ? <circle cx="40" cy="18" r="13" fill="#fde047" /> : null}
      {of && of !== "Sunny" ? <path d="M16 36a9 9 0 0 1 1-18 13 13 0 0 1 25 2 8 8 0 0 1 4 16z" fill="#f8fafc" /> : null}
      {falls ? [20, 30, 40].map((x) => <circle key={x} cx={x} cy={x === 30 ? 45 : 42} r="2" fill={of === "Rainy" ? "#7dd3fc" : "#fff"} />) : null}
    </svg>
  );
}

function read(result: string): Weather | undefined {
  try {
    return JSON.parse(result);
  } catch {
    return undefined; // an error's text
  }
}

function Tools() {
  useRenderTool({
    agentId: id,
    name: "get_weather",
    parameters: z.object({ location: z.string() }),
    render: ({ status, parameters, result }) => {
      const now = status === "complete" ? read(result) : undefined;
      const sky = skies[now?.conditions ?? "Cloudy"];
      return (
        <section className="weather" data-status={status} style={{ background: sky }}>
          <header>
            <h3>{parameters?.location ?? "…"}</h3>
            <p>{now?.conditions ?? (status === "complete" ? result : "Asking the sky…")}</p>
          </header>
          <b>{now ? `${now.temperature}°` : "…"}</b>
          <Sky of={now?.conditions} />
          {now ? (
            <dl>
              <div><dt>Feels like</dt><dd>{now.feels_like}°</dd></div>
              <div><dt>Humidity</dt><dd>{now.humidity} %</dd></div>
              <div><dt>Wind</dt><dd>{now.wind_speed} km/h</dd></div>
            </dl>
          ) : null}
        </section>
      );
    },
  });
  return null;
}

export const weather: Feature = {
  id,
  name: "Backend tool rendering",
  about: "The agent calls a tool of the server, and the page draws a card of the call.",
  tries: [
    { title: "Lisbon", message: "What is the weather in Lisbon?" },
    { title: "Reykjavík", message: "What is the weather in Reykjavík?" },
    { title: "Nairobi", message: "What is the weather in Nairobi?" },
  ],
  Tools,
};
