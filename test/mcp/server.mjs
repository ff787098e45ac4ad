// A server of the revision 2026-07-28, made with the official npm package, over standard
// input and output (node server.mjs) or HTTP (node server.mjs http). What its tools do is
// noted in files in NOTES.
//
// With JOURNAL it has tools that are killed in the middle of a call, which the tests in
// internal/e2e count by that file. HOLDS is a folder with a file peer.TOOL.MOMENT for each
// place where the first call that comes by stops for ever.
//
// Over HTTP a tool may become a task. The package has nothing for that, so tasks are
// answered here; the official schemas of the extension judge what comes in and goes out.
import { appendFileSync, existsSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { acceptedContent, createMcpHandler, inputRequired, inputResponse, McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import * as tasks from '@modelcontextprotocol/ext-tasks/core/v2'
import * as z from 'zod'

const note = (name, text) => appendFileSync(join(process.env.NOTES, name), text + '\n')
const text = (t) => ({ content: [{ type: 'text', text: t }] })
const size = z.object({ size: z.number().int() })
const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

function newServer() {
  const s = new McpServer({ name: 'npm', version: '1.0.0' }, { capabilities: { tools: { listChanged: true } } })
  const add = (name, annotations, inputSchema, f) => s.registerTool(name, { description: name, inputSchema, annotations }, f)
  const none = z.object({})
  add('echo', { readOnlyHint: true }, z.object({ text: z.string() }), ({ text: t }) => text(t))
  add('everything', { readOnlyHint: true }, none, () => ({
    content: [
      { type: 'text', text: 'words' },
      { type: 'image', data: dot, mimeType: 'image/png' },
      { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' },
      { type: 'resource_link', uri: 'file:///a.txt', name: 'a' },
      { type: 'resource', resource: { uri: 'file:///b.txt', mimeType: 'text/plain', text: 'b' } },
      { type: 'resource', resource: { uri: 'file:///c.bin', mimeType: 'application/pdf', blob: 'AAAA' } },
    ],
    structuredContent: { large: 9007199254740991 },
  }))
  add('steps', undefined, none, async (_, ctx) => {
    for (let i = 1; i <= 3; i++) {
      await ctx.mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken: ctx.mcpReq._meta?.progressToken, progress: i, total: 3, message: `step ${i}` },
      })
    }
    return text('done')
  })
  add('meta', undefined, none, (_, ctx) => text(JSON.stringify(ctx.mcpReq._meta)))
  if (process.env.JOURNAL) addMortal(add)
  add('ask', undefined, none, (_, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'size')
    if (answer.kind === 'missing') {
      note('ask', 'asked')
      return inputRequired({
        inputRequests: { size: inputRequired.elicit({ message: 'Which size?', requestedSchema: size }) },
        requestState: 'state of ask: <1>',
      })
    }
    note('ask', 'answered')
    const content = acceptedContent(ctx.mcpReq.inputResponses, 'size', size)
    return text(`${ctx.mcpReq.requestState()} ${content ? content.size : answer.action}`)
  })
  add('page', undefined, none, (_, ctx) => {
    if (inputResponse(ctx.mcpReq.inputResponses, 'login').kind === 'missing') {
      return inputRequired({ inputRequests: { login: inputRequired.elicitUrl({ message: 'Please log in.', url: 'https://example.com/login' }) } })
    }
    return text('logged in')
  })
  // These become tasks; see below.
  for (const name of ['job', 'job-asks', 'job-fails']) {
    add(name, undefined, z.object({ ms: z.number().default(0) }), () => text('never called'))
  }
  return s
}

// The tools that are killed in the middle, by their effect; ask and once differ for their
// caller only, and liar is idempotent by its own word alone. They have a family each: calls,
// calls with a question, and tasks.
const mortal = { pure: { readOnlyHint: true }, idempotent: { idempotentHint: true }, once: undefined, ask: undefined, liar: { idempotentHint: true } }

function addMortal(add) {
  const schema = z.object({ n: z.string() })
  for (const [effect, annotations] of Object.entries(mortal)) {
    add(`call_${effect}`, annotations, schema, (_, ctx) => work(`call_${effect}`, keyOf(ctx.mcpReq)))
    add(`question_${effect}`, annotations, schema, (_, ctx) => {
      if (acceptedContent(ctx.mcpReq.inputResponses, 'size', size)) {
        return ctx.mcpReq.requestState() === 'state <1>' ? work(`question_${effect}`, keyOf(ctx.mcpReq)) : text('the state is lost')
      }
      journal(`asked tool=question_${effect}`)
      return inputRequired({ inputRequests: { size: inputRequired.elicit({ message: 'Which size?', requestedSchema: size }) }, requestState: 'state <1>' })
    })
    add(`task_${effect}`, annotations, schema, () => text('never called'))
  }
}

const keyOf = (request) => request._meta?.['io.github.holdfast-agents/key'] ?? ''
const journal = (line) => appendFileSync(process.env.JOURNAL, `peer ${line} proc=peer\n`)
const done = (key) => readFileSync(process.env.JOURNAL, 'utf8').split('\n').some((line) => line.startsWith('peer did ') && line.includes(` key=${key} `))

async function work(tool, key) {
  journal(`got tool=${tool} key=${key}`)
  await hold(tool, 'received')
  if (!tool.endsWith('idempotent') || !done(key)) journal(`did tool=${tool} key=${key}`)
  await hold(tool, 'done')
  return text('done')
}

// hold stops the first call for ever that comes to a place with a file.
function hold(tool, moment) {
  try { unlinkSync(join(process.env.HOLDS, `peer.${tool}.${moment}`)) } catch { return }
  journal(`held tool=${tool} moment=${moment}`)
  return new Promise(() => {})
}

if (process.env.JOURNAL) {
  if (existsSync(join(process.env.HOLDS, 'down'))) process.exit(1)
  journal(`started pid=${process.pid} ppid=${process.ppid}`)
}
if (process.argv[2] !== 'http') {
  note('started', String(process.pid))
  serveStdio(newServer)
} else {
  serveHTTP()
}

const file = (id) => join(process.env.NOTES, `task-${id}.json`)
const load = (id) => JSON.parse(readFileSync(file(id), 'utf8'))
const save = (t) => writeFileSync(file(t.taskId), JSON.stringify(t))

// detailed returns a task as tasks/get tells it.
function detailed(t) {
  const { tool, until, answer, cancelled, key, did, ...base } = t
  if (cancelled) return { ...base, status: 'cancelled' }
  if (tool === 'job-asks' && !answer) {
    const elicit = { method: 'elicitation/create', params: { mode: 'form', message: 'Which size?', requestedSchema: { type: 'object', properties: { size: { type: 'integer' } } } } }
    return { ...base, status: 'input_required', inputRequests: { size: elicit } }
  }
  if (mortalTask(tool)) return { ...base, status: 'completed', result: { resultType: 'complete', ...text('done') } }
  if (Date.now() < until) return { ...base, status: 'working', statusMessage: 'at it' }
  if (tool === 'job-fails') return { ...base, status: 'failed', error: { code: -32603, message: 'no paper' } }
  return { ...base, status: 'completed', result: { resultType: 'complete', ...text(`${tool} done ${JSON.stringify(answer ?? null)}`) } }
}

const mortalTask = (tool) => tool.startsWith('task_')

// workOn does the work of a task that is killed in the middle when it is first asked for.
async function workOn(t) {
  if (!mortalTask(t.tool)) return
  await hold(t.tool, 'handle')
  if (!t.did && !(t.tool.endsWith('idempotent') && done(t.key))) journal(`did tool=${t.tool} key=${t.key}`)
  save({ ...t, did: true })
  await hold(t.tool, 'done')
}

// answerTask answers a request that is about a task; undefined for any other.
async function answerTask(m) {
  const judge = (schema, value) => schema.parse(value)
  const id = m.params?.taskId
  if (m.method === 'tools/call' && (m.params.name.startsWith('job') || mortalTask(m.params.name))) {
    if (!tasks.hasTaskClientCapabilityV2(m.params)) throw new Error('tasks are not declared')
    const key = keyOf(m.params)
    if (mortalTask(m.params.name)) {
      journal(`got tool=${m.params.name} key=${key}`)
      await hold(m.params.name, 'received')
    }
    const now = new Date().toISOString()
    const t = { taskId: `t${m.id}-${process.pid}`, status: 'working', createdAt: now, lastUpdatedAt: now, ttlMs: 60000, pollIntervalMs: 50 }
    save({ ...t, tool: m.params.name, key, until: Date.now() + (m.params.arguments?.ms ?? 0) })
    note('job', 'begun')
    return judge(tasks.CreateTaskResultV2Schema, { resultType: 'task', ...t })
  }
  switch (m.method) {
    case 'tasks/get':
      judge(tasks.GetTaskRequestV2Schema, m)
      note('polled', id)
      await workOn(load(id))
      return judge(tasks.GetTaskResultV2Schema, { resultType: 'complete', ...detailed(load(id)) })
    case 'tasks/update':
      judge(tasks.UpdateTaskRequestV2Schema, m)
      save({ ...load(id), answer: m.params.inputResponses.size })
      note('job', 'answered')
      return judge(tasks.UpdateTaskResultV2Schema, { resultType: 'complete' })
    case 'tasks/cancel':
      judge(tasks.CancelTaskRequestV2Schema, m)
      save({ ...load(id), cancelled: true })
      note('job', 'cancelled')
      return judge(tasks.CancelTaskResultV2Schema, { resultType: 'complete' })
  }
}

function serveHTTP() {
  const handler = createMcpHandler(newServer, { legacy: process.env.LEGACY ?? 'reject' })
  const server = createServer(async (req, res) => {
    const chunks = []
    for await (const chunk of req) chunks.push(chunk)
    const body = Buffer.concat(chunks)
    let m = {}
    try { m = JSON.parse(body) } catch { /* a request without a body */ }
    try {
      const result = await answerTask(m)
      if (result) {
        res.setHeader('content-type', 'application/json')
        res.end(JSON.stringify({ jsonrpc: '2.0', id: m.id, result }))
        return
      }
    } catch (e) {
      note('errors', String(e))
      res.setHeader('content-type', 'application/json')
      res.end(JSON.stringify({ jsonrpc: '2.0', id: m.id, error: { code: -32602, message: String(e) } }))
      return
    }
    const gone = new AbortController()
    res.on('close', () => gone.abort())
    const answer = await handler.fetch(new Request(`http://${req.headers.host}${req.url}`, {
      method: req.method, headers: req.headers, body: body.length ? body : undefined, signal: gone.signal,
    }))
    res.writeHead(answer.status, Object.fromEntries(answer.headers))
    if (answer.body) for await (const chunk of answer.body) res.write(chunk)
    res.end()
  })
  server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => note('started', `http://127.0.0.1:${server.address().port}/mcp`))
  process.on('SIGUSR2', () => handler.notify.toolsChanged())
}
