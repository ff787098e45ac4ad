// Questions of middleware, and its memory; an agent that has changed meanwhile.
const watched = `agents:
  - name: demo
    model: demo
    tools: [lookup, current_time]
    middleware:
      - continuation: {maxIterations: 1}
      - toolPermission: {default: allow, rules: [{tool: lookup, then: ask, remember: [run, thread]}]}
      - circuitBreaker
`;

export const setup = { first: (server) => ({ args: ['--config', server.file('watched.yaml', watched)] }) };

export default {
  async 'permissions are given together, and remembered'({ s, server, shot }) {
    await s.goto(server.base);
    await s.see('textbox', 'Message');
    await s.say('use lookup {"term": "fence"} and lookup {"term": "cursor"} and current_time {}');
    await s.see('button', 'Approve', 2);
    await s.reads(/0 of 2 answered/);
    await s.reads(/fence/);
    await s.axe('two permissions');
    await shot('permission-light');
    await s.look({ dark: true });
    await s.axe('two permissions, dark');
    await shot('permission-dark');
    await s.look({ width: 320, height: 640 });
    await s.narrow('two permissions');
    await s.axe('two permissions, narrow');
    await s.look();
    await s.click('button', /remember/i);
    await s.axe('what else one can say to a permission');
    await s.click('radio', 'thread');
    await s.click('button', 'Approve');
    await s.reads(/1 of 2 answered/);
    await s.click('button', 'Reject');
    await s.reads(/Go on\?/);
    await s.axe('a question of middleware');
    await s.click('button', 'Go on');
    await s.idle();
    await s.reads(/may continue for 1 iteration/);
    await s.reads(/lookup was not allowed, by a person/);
    await s.reads(/Remembered for this thread: lookup is allowed/);
    // Its answer has begun, so it is not at rest only because it has not begun.
    await s.reads(/The person did not allow this call/, 'article', 'Assistant');
    await s.idle();
    await s.say('use lookup {"term": "lease"}');
    // A remembered answer is not asked for again.
    await s.click('button', 'Go on');
    await s.idle();
  },
  async 'its states are in the inspector'({ s, shot }) {
    await s.click('button', 'Show the inspector');
    await s.click('tab', 'State');
    await s.click('button', 'Middleware');
    await s.reads(/circuit_breaker|Circuit breaker/i, 'tabpanel');
    await s.reads(/tool_permission|Tool permission/i, 'tabpanel');
    await s.axe('states of middleware');
    await shot('middleware-light');
    await s.look({ dark: true });
    await s.axe('states of middleware, dark');
    await s.look({ width: 320, height: 640 });
    await s.narrow('states of middleware');
    await s.look();
  },
  async 'a run of an agent that has changed says so'({ s, server }) {
    await server.kill();
    await server.start();
    await s.reload();
    await s.see('textbox', 'Message');
    await s.say('time');
    await s.idle();
    await s.reads(/another version of the agent’s state; now without/);
  },
};
