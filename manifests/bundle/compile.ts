/**
 * Makes the compiled code that an image brings along: `node manifests/bundle/compile.ts FOLDER`, where FOLDER holds a built program
 * under the path that it has in the image.
 *
 * Each server is started there and asked for what clients ask first; what Node has compiled by then goes to FOLDER/compiled.
 * The launcher takes it for the same version of Node and the same processor family, and V8 only for the same flags and script, so
 * an image for another platform runs without. Imports Node's modules alone, so that it runs within an image as well.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'

const startMs = 60_000
const pollMs = 50
const app = resolve(process.argv[2] ?? '')
const work = mkdtempSync(join(tmpdir(), 'gatehouse-compile-'))
const backend = createServer((req, res) => void text(req).then((body) => respond(res, body)))
async function compileRuntime(backendUrl: string): Promise<void> {
  const config = join(work, 'vmcp.json')
  writeFileSync(
    config,
    JSON.stringify({
      name: 'compile',
      groupRef: 'compile',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline' },
      aggregation: {
        conflictResolution: 'prefix',
        conflictResolutionConfig: { prefixFormat: '{workload}_' },
      },
      backends: [{ name: 'b', transport: 'streamable-http', url: `${backendUrl}/mcp` }],
    }),
  )
  await serve('gatehouse', ['vmcp', 'serve', '--config', config], (url) => useTools(url, 'b_echo'))
  await serve('gatehouse', ['proxy', '--target-uri', backendUrl, 'compile'], (url) => useTools(url, 'echo'))
}

async function compileHooks(): Promise<void> {
  const metadata = { name: 'compile', namespace: 'compile', uid: 'compile', generation: 1 }
  const parent = { apiVersion: 'gatehouse.dev/v1beta1', kind: 'MCPGroup', metadata, spec: {} }
  await serve('gatehouse-hooks', [], async (url) => {
    await ask(`${url}/readyz`)
    await ask(`${url}/hooks/mcpgroups/customize`, { parent, controller: {} })
    await ask(`${url}/hooks/mcpgroups/sync`, { parent, controller: {}, children: {}, related: {} })
  })
}

/** Starts a server, uses it as soon as it listens, and ends it, upon which it writes what it compiled. */
async function serve(
  program: string,
  args: readonly string[],
  use: (url: string) => Promise<void>,
): Promise<void> {
  const port = await freePort()
  const child = spawn(process.execPath, [join(app, `${program}.js`), ...args, '--port', String(port)], {
    // Nothing else: a variable of Node could say otherwise where compiled code goes.
    env: { NODE_ENV: 'production', XDG_CACHE_HOME: work },
    stdio: 'ignore',
  })
  try {
    const url = `http://127.0.0.1:${port}`
    await listening(url, child)
    await use(url)
  } finally {
    child.kill('SIGTERM')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
}

async function listening(url: string, child: ChildProcess): Promise<void> {
  const until = performance.now() + startMs
  for (;;) {
    const responded = await fetch(url).catch(() => undefined)
    await responded?.arrayBuffer()
    if (responded) return
    if (child.exitCode !== null) throw new Error(`the server ended with code ${child.exitCode}`)
    if (performance.now() > until) throw new Error('the server does not listen')
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}

async function useTools(url: string, name: string): Promise<void> {
  const clientInfo = { name: 'compile', version: '1' }
  const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
  const session = await call(url, 1, 'initialize', hello)
  const headers = { 'mcp-session-id': session.headers.get('mcp-session-id') ?? '' }
  const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' }
  await ask(`${url}/mcp`, initialized, { accept, ...headers })
  const listed = await call(url, 2, 'tools/list', {}, headers)
  if (!listed.text.includes(`"${name}"`)) throw new Error(`no tool ${name}: ${listed.text}`)
  await call(url, 3, 'tools/call', { name, arguments: {} }, headers)
}

const accept = 'application/json, text/event-stream'

function call(
  url: string,
  id: number,
  method: string,
  params: unknown,
  headers: Readonly<Record<string, string>> = {},
) {
  return ask(`${url}/mcp`, { jsonrpc: '2.0', id, method, params }, { accept, ...headers })
}

/** GET, or POST with a body. Throws when the server does not answer with success. */
async function ask(url: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(url, {
    headers: { 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  })
  const answer = { headers: response.headers, text: await response.text() }
  if (!response.ok) throw new Error(`${url}: ${response.status} ${answer.text}`)
  return answer
}

/** The MCP server behind both: one tool, without sessions. */
const results: Readonly<Record<string, unknown>> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: {} },
    serverInfo: { name: 'compile', version: '1' },
  },
  'tools/list': {
    tools: [
      {
        name: 'echo',
        description: 'Echoes',
        inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
      },
    ],
  },
  'tools/call': { content: [{ type: 'text', text: 'echo' }] },
  ping: {},
}

function respond(res: ServerResponse, body: string): void {
  const { id, method = '' }: { id?: unknown; method?: string } = body === '' ? {} : JSON.parse(body)
  if (id === undefined) return void res.writeHead(method === '' ? 405 : 202).end()
  const found = results[method]
  const outcome = found === undefined ? { error: { code: -32_601, message: 'unknown' } } : { result: found }
  res.writeHead(200, { 'content-type': 'application/json' })
  res.end(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }))
}

/** Address of the backend. */
async function listen(): Promise<string> {
  await once(backend.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(backend.address() as AddressInfo).port}`
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await once(server.close(), 'close')
  return port
}

/** What all servers wrote lies in one folder, because they run with the same flags. */
function keep(): void {
  const written = join(work, 'gatehouse/compile-cache')
  const [folder, ...others] = readdirSync(written)
  if (folder === undefined || others.length > 0)
    throw new Error(`${others.length + 1} folders of compiled code`)
  const target = join(app, 'compiled', `${process.version}-${process.arch}`)
  rmSync(join(app, 'compiled'), { recursive: true, force: true })
  mkdirSync(target, { recursive: true })
  const names = readdirSync(join(written, folder))
  // Node writes them for its user alone; the image has another one.
  for (const name of names) writeFileSync(join(target, name), readFileSync(join(written, folder, name)))
  process.stdout.write(`${target}: ${names.length} scripts\n`)
}

try {
  if (existsSync(join(app, 'gatehouse.js'))) await compileRuntime(await listen())
  if (existsSync(join(app, 'gatehouse-hooks.js'))) await compileHooks()
  keep()
} finally {
  backend.close()
  rmSync(work, { recursive: true, force: true })
}
