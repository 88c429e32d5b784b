/**
 * An MCP server on standard streams with faults as its argument: it starts slowly, ignores a method or crashes on it,
 * prints a banner. It writes every start, received method and end to a file, so that tests count processes and compare
 * orders.
 */
import { appendFileSync, closeSync, existsSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

/** The server's reaction to a request of a method, instead of a response. */
export type Fault =
  | { readonly do: 'ignore' }
  | { readonly do: 'exit'; readonly code: number; readonly stderr?: readonly string[] }
  | { readonly do: 'signal'; readonly signal: NodeJS.Signals }
  /** Sends a log message first. */
  | { readonly do: 'exit mid-stream' }
  /** Ends in the middle of a line. */
  | { readonly do: 'exit mid-line' }
  /** Responds without a line end, and exits. */
  | { readonly do: 'answer without line end' }
  | { readonly do: 'refuse'; readonly message: string }
  /** Stays alive. */
  | { readonly do: 'close stdout' }

export interface Script {
  readonly journal: string
  /** Waits until this file exists before it serves. */
  readonly gate?: string
  /** Lines on standard output before anything else. */
  readonly banner?: readonly string[]
  readonly stderr?: readonly string[]
  readonly byteOrderMark?: boolean
  /** Exits with this code instead of serving. */
  readonly exitAtStart?: number
  readonly era?: 'session' | 'stateless' | 'both'
  readonly on?: Readonly<Record<string, Fault>>
}

export interface JournalEntry {
  readonly pid: number
  /** `start`, `end`, or the method of a received message. */
  readonly what: string
}

/** Reads the events of all processes of a script so far. */
export function readJournal(path: string): readonly JournalEntry[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as JournalEntry)
}

/** Command line that starts the program. */
export function scripted(script: Script): readonly [string, string] {
  return ['test/helpers/mcp/scripted-stdio-program.ts', JSON.stringify(script)]
}

const isProgram = process.argv[1]?.endsWith('scripted-stdio-program.ts') === true
if (isProgram) run(JSON.parse(process.argv[2] ?? '{}') as Script)

interface Request {
  readonly id?: number | string
  readonly method: string
}

function run(script: Script): void {
  const { journal, gate, banner = [], stderr = [], exitAtStart } = script
  const note = (what: string): void =>
    appendFileSync(journal, `${JSON.stringify({ pid: process.pid, what })}\n`)
  note('start')
  process.on('exit', () => note('end'))
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => process.exit(1))
  for (const line of stderr) console.error(line)
  const serve = (): void => {
    if (gate !== undefined && !existsSync(gate)) return void setTimeout(serve, 20)
    for (const line of banner) console.log(line)
    if (exitAtStart !== undefined) process.exit(exitAtStart)
    const lines = createInterface({ input: process.stdin })
    lines.on('close', () => process.exit(0))
    lines.on('line', (line) => {
      const request = JSON.parse(line) as Request
      note(request.method)
      if (request.id !== undefined) answer(script, request)
    })
  }
  serve()
}

function answer(script: Script, request: Request): void {
  const fault = script.on?.[request.method]
  if (!fault) return say(script, responseTo(script, request))
  switch (fault.do) {
    case 'ignore':
      return
    case 'refuse':
      return say(script, { id: request.id, error: { code: -32050, message: fault.message } })
    case 'exit':
      for (const line of fault.stderr ?? []) console.error(line)
      return process.exit(fault.code)
    case 'signal':
      process.kill(process.pid, fault.signal)
      return
    case 'exit mid-stream':
      say(script, { method: 'notifications/message', params: { level: 'info', data: 'about to fail' } })
      return process.exit(3)
    case 'exit mid-line':
      process.stdout.write('{"jsonrpc":"2.0","id":')
      return process.exit(3)
    case 'answer without line end':
      process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...responseTo(script, request) }))
      return process.exit(0)
    case 'close stdout':
      closeSync(1)
      setInterval(() => undefined, 1e6)
  }
}

function say({ byteOrderMark = false }: Script, message: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${byteOrderMark ? '\ufeff' : ''}${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
}

const serverInfo = { name: 'scripted', version: '1' }
const info = { 'io.modelcontextprotocol/serverInfo': serverInfo }

function responseTo({ era = 'session' }: Script, { id, method }: Request): Record<string, unknown> {
  const isStateless = era === 'stateless'
  const unknown = { id, error: { code: -32601, message: `no method ${method}` } }
  switch (method) {
    case 'initialize':
      if (isStateless) return unknown
      return { id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo } }
    case 'server/discover':
      if (era === 'session') return unknown
      return { id, result: { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, _meta: info } }
    case 'ping':
      return { id, result: {} }
    case 'tools/list':
      return {
        id,
        result: {
          ...(isStateless && { resultType: 'complete' }),
          tools: [{ name: 'pid', inputSchema: { type: 'object' } }],
        },
      }
    case 'tools/call':
      return {
        id,
        result: {
          ...(isStateless && { resultType: 'complete' }),
          content: [{ type: 'text', text: String(process.pid) }],
        },
      }
    default:
      return unknown
  }
}
