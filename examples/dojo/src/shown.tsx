// A tool of the page that needs no person. CopilotKit calls a tool's handler when the run ends that
// called it. After a reload it only goes on with tools that wait for a person, so this one is such a
// tool, which answers by itself.
import { useEffect, type ReactNode } from "react";
import { useHumanInTheLoop } from "@copilotkit/react-core/v2";
import type { z } from "zod";

type Shown<T> = {
  agentId: string;
  name: string;
  description: string;
  parameters: z.ZodType<T>;
  /** Does what the call wants, also for a call of the history when the page is loaded. */
  act?: (args: T) => void;
  /** What the agent is told. */
  result: (args: T) => string;
  render: (args: Partial<T>) => ReactNode;
};

export function useShownTool<T extends Record<string, unknown>>({ act, result, render, ...tool }: Shown<T>) {
  useHumanInTheLoop<T>({
    ...tool,
    render: ({ args, status, respond }) => {
      const whole = status !== "inProgress";
      useEffect(() => {
        if (whole) act?.(args as T);
      }, [whole]);
      useEffect(() => {
        respond?.(result(args as T));
      }, [respond]);
      return <>{render(args)}</>;
    },
  });
}
