/**
 * Measures the request path of a virtual server: the functions of `runtime/` that one warm `tools/call` runs between the
 * first byte on the listener and the request on the backend's socket. Client and backend both use sessions, and no optional
 * feature is configured.
 *
 *   node test/helpers/vmcp/request-path.ts            prints the functions, in the order of their files
 *   node test/helpers/vmcp/request-path.ts --write    writes the list to ARCHITECTURE.md
 *
 * V8 counts calls exactly (precise coverage). Every function with a call counts: methods, constructors, getters and arrow
 * functions too. Functions that handle responses do not count, because the backend reads the counters before it responds.
 * A clean-up that happens to run in one call does not count either: a function must run in each of several calls, and not
 * without a call, as timers do.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startRawBackend } from '../mcp/raw-backend.ts'
import { openSession } from '../mcp/wire.ts'
import { bareNames, startTestVmcp } from './vmcp.ts'

const root = new URL('../../../', import.meta.url).href
const runtime = `${root}runtime/`
const warmCalls = 20
const measuredCalls = 20
/** Longer than the intervals of all timers that run often. */
const idleMs = 1_500

export interface PathFunction {
  /** Relative to the root of the repository. */
  readonly file: string
  /** Name of the function, or the line of an anonymous one. */
  readonly name: string
  /** Calls during one request. */
  readonly calls: number
}

/** Returns the functions on the path, sorted by file and position. */
export async function measureRequestPath(): Promise<readonly PathFunction[]> {
  const coverage = new Session()
  coverage.connect()
  coverage.post('Profiler.enable')
  let measured: Map<string, PathFunction> | undefined
  let isMeasuring = false
  const backend = await startRawBackend({
    before: (req) => {
      if (isMeasuring && req.method === 'POST') measured = takeCoverage(coverage)
      return false
    },
  })
  const server = await startTestVmcp({ raw: backend.url }, { aggregation: bareNames('raw') })
  const socket = connect(new URL(server.url).port as unknown as number, '127.0.0.1')
  try {
    const { id } = await openSession(server.url)
    const request = callRequest(server.url, id)
    for (let i = 0; i < warmCalls; i++) await exchange(socket, request)
    let path: Map<string, PathFunction> | undefined
    for (let i = 0; i < measuredCalls; i++) {
      // The end of the previous exchange does not belong to this one.
      await sleep(20)
      isMeasuring = true
      coverage.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
      await exchange(socket, request)
      isMeasuring = false
      const found = measured ?? new Map<string, PathFunction>()
      path = path ? new Map([...path].filter(([key]) => found.has(key))) : found
    }
    coverage.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    await sleep(idleMs)
    const idle = takeCoverage(coverage)
    return [...(path ?? [])].filter(([key]) => !idle.has(key)).map(([, found]) => found)
  } finally {
    socket.destroy()
    await server.close()
    await backend.close()
    coverage.disconnect()
  }
}

/** Returns the functions of `runtime/` that ran since the coverage was started, and stops it. */
function takeCoverage(coverage: Session): Map<string, PathFunction> {
  const path = new Map<string, PathFunction>()
  coverage.post('Profiler.takePreciseCoverage', (error, taken) => {
    if (error) throw error
    for (const { url, functions } of taken.result) {
      if (!url.startsWith(runtime)) continue
      for (const { functionName, ranges } of functions) {
        const [range] = ranges
        if (!range || range.count === 0) continue
        const { startOffset: start, endOffset: end, count } = range
        // The innermost named function around an anonymous one.
        const around = functions.findLast(
          ({ functionName: name, ranges: [outer] }) =>
            name !== '' && outer && outer.startOffset <= start && outer.endOffset >= end,
        )
        // V8 names the initializers of class fields on their own. They belong to the constructor.
        if (functionName === '<instance_members_initializer>') continue
        const name =
          functionName === '' ? `(function in ${around?.functionName ?? 'the module'})` : functionName
        path.set(`${url}:${String(start).padStart(8, '0')}`, {
          file: url.slice(root.length),
          name,
          calls: count,
        })
      }
    }
  })
  coverage.post('Profiler.stopPreciseCoverage')
  return new Map([...path].sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** A `tools/call` as one chunk, so that the server receives it in one event. */
function callRequest(url: string, session: string): string {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'echo', arguments: { text: 'hello' } },
  })
  return [
    'POST /mcp HTTP/1.1',
    `Host: ${new URL(url).host}`,
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    `Mcp-Session-Id: ${session}`,
    'MCP-Protocol-Version: 2025-11-25',
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

/** Sends a request and waits for the end of its response. */
async function exchange(socket: Socket, request: string): Promise<void> {
  const response = new Promise<void>((resolve, reject) => {
    let text = ''
    const read = (chunk: Buffer): void => {
      text += chunk
      const [head, body] = text.split('\r\n\r\n')
      const length = /^content-length: (\d+)/im.exec(head ?? '')?.[1]
      if (body === undefined || (length ? body.length < Number(length) : !body.endsWith('0'))) return
      socket.off('data', read)
      if (text.startsWith('HTTP/1.1 200') && text.includes('hello')) resolve()
      else reject(new Error(text))
    }
    socket.on('data', read)
  })
  socket.write(request)
  await response
}

/** Returns the list in the form of ARCHITECTURE.md: a line for each file. */
export function formatRequestPath(path: readonly PathFunction[]): string {
  const files = Map.groupBy(path, ({ file }) => file)
  const lines = [...files].map(
    ([file, all]) =>
      `    ${file.slice('runtime/'.length).padEnd(46)} ${all.map(({ name }) => name).join(', ')}`,
  )
  return `${path.length} functions in ${files.size} files of \`runtime/\`:\n\n${lines.join('\n')}`
}

const page = new URL('ARCHITECTURE.md', root)
const begin = '<!-- request path: begin -->\n\n'
const end = '\n\n<!-- request path: end -->'

/** Returns the list in ARCHITECTURE.md. */
export function listedRequestPath(): string {
  const text = readFileSync(page, 'utf8')
  return text.slice(text.indexOf(begin) + begin.length, text.indexOf(end))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const list = formatRequestPath(await measureRequestPath())
  if (process.argv.includes('--write')) {
    const text = readFileSync(page, 'utf8')
    const before = text.slice(0, text.indexOf(begin) + begin.length)
    writeFileSync(page, before + list + text.slice(text.indexOf(end)))
  } else process.stdout.write(`${list}\n`)
}
