/**
 * Measures the CPU time that the console's rings and the event stream add to each call, and their memory when they are
 * full.
 *
 * Measured separately, as CPU time of this thread, because it is a small share of a call and not visible in the noise
 * of a whole server. The share refers to the cost of a call in `vmcp:throughput` of the same run, or in
 * docs/evidence/performance.md when that was not measured.
 */
import { CallRecorder } from '../../../runtime/console/index.ts'
import { Hub } from '../../../runtime/console/stream/hub.ts'
import { makeCaller } from '../../../runtime/net/index.ts'
import { type ExchangeRecord, logEvents, makeEvents, makeLog } from '../../../runtime/observe/index.ts'
import { cpuUsage } from '../../helpers/thread-time.ts'
import { costOfCall, reached } from '../aims.ts'
import { quantile, sorted, table } from './table.ts'

const rounds = 9
const calls = 20_000
/**
 * CPU microseconds of one call of a session-era client at full load, on the machine of docs/evidence/performance.md.
 */
const usualCallMicros = 113

const caller = makeCaller({
  issuer: 'https://issuer.example',
  subject: 'ada',
  claims: {},
  displayName: 'Ada',
})
const rpc = {
  kind: 'request',
  id: '7',
  method: 'tools/call',
  target: 'b0_echo',
  targetType: 'tool',
  toolArguments: Buffer.from('{"text":"hello"}'),
  protocolVersion: '2025-11-25',
} as const

function record(i: number, more: object = {}): ExchangeRecord {
  return {
    type: 'mcp_tool_call',
    outcome: 'success',
    status: 200,
    errorCode: undefined,
    req: { method: 'POST', headers: { 'mcp-session-id': `session-${i % 32}` } },
    path: '/mcp',
    clientAddress: '127.0.0.1',
    requestId: `r${i}`,
    caller,
    client: { name: 'claude-code', version: '2.1' },
    rpc,
    backend: 'b0',
    durationMs: 4.2 + (i % 10),
    responseBytes: 300,
    rpcResponse: { kind: 'result', toolError: false },
    denial: undefined,
    body: Buffer.alloc(0),
    response: undefined,
    ...more,
  } as unknown as ExchangeRecord
}

const log = makeLog({ level: 'warn', destination: '/dev/null' })

/** Created in advance, because the server has these records anyway. */
const recordsOf = (more: object): readonly ExchangeRecord[] =>
  Array.from({ length: 64 }, (_, i) => record(i, more))

function start() {
  const events = makeEvents()
  const stop = logEvents(events, log)
  const recorder = new CallRecorder({ events })
  const hub = new Hub({ recorder, events, sessionCount: () => 32 })
  return {
    events,
    recorder,
    close() {
      hub.close()
      recorder.close()
      stop()
    },
  }
}

type Parts = ReturnType<typeof start>

/**
 * Returns the median of the microseconds per call over the rounds. Yields regularly, so that pending records are
 * flushed as under load.
 */
async function micros(work: (parts: Parts, i: number) => void): Promise<number> {
  const parts = start()
  const found: number[] = []
  for (let round = 0; round < rounds; round++) {
    const before = cpuUsage()
    for (let i = 0; i < calls; i++) {
      work(parts, i)
      if (i % 500 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    found.push((cpuUsage() - before) / calls)
  }
  parts.close()
  return quantile(sorted(found), 0.5)
}

const one = (records: readonly ExchangeRecord[], i: number): ExchangeRecord =>
  records[i % records.length] ?? record(i)

const failed = { outcome: 'error', status: 502, errorCode: 'BACKEND_UNAVAILABLE' }
const denied = { outcome: 'denied', errorCode: 'FORBIDDEN' }
const records = { good: recordsOf({}), failed: recordsOf(failed), denied: recordsOf(denied) }

const withRings = 'and the rings of the console'

const works: Readonly<Record<string, (parts: Parts, i: number) => void>> = {
  'a call that succeeds: no event': () => {},
  [withRings]: ({ recorder }, i) => recorder.exchange(one(records.good, i)),
  'a call that a policy denies: an event': ({ events }) =>
    events.emit('call_denied', { method: 'tools/call', item: 'b0_echo', policies: ['policies[0]'] }),
  'a denied call, event and rings': ({ events, recorder }, i) => {
    events.emit('call_denied', { method: 'tools/call', item: 'b0_echo', policies: ['policies[0]'] })
    recorder.exchange(one(records.denied, i))
  },
  'a call that its backend fails, event and rings': ({ events, recorder }, i) => {
    events.emit('backend_call_failed', { backend: 'b0', reason: 'timeout' })
    recorder.exchange(one(records.failed, i))
  },
}

/** Measures the heap of rings that drop their oldest entries, in MiB. Needs --expose-gc. */
async function memory(): Promise<string> {
  const collect = (globalThis as { gc?: () => void }).gc
  const used = (): number => {
    for (let n = 0; n < 4; n++) collect?.()
    return process.memoryUsage().heapUsed / 1024 / 1024
  }
  const before = used()
  const parts = start()
  const rows: (string | number)[][] = []
  for (const [name, more] of [
    ['40,000 calls that succeed', {}],
    ['and 40,000 that fail', failed],
  ] as const) {
    for (let i = 0; i < 40_000; i++) {
      parts.recorder.exchange(record(i, more))
      if (i % 500 === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    }
    const { all, notable } = parts.recorder
    rows.push([name, all.size, notable.size, (all.bytes + notable.bytes) / 1024 / 1024, used() - before])
  }
  parts.close()
  return table(['rings after', 'entries', 'of them notable', 'counted MiB', 'heap MiB'], rows)
}

export async function told(): Promise<string> {
  // Value of the same run, if vmcp:throughput was measured before.
  const callMicros = costOfCall() ?? usualCallMicros
  const rows: (string | number)[][] = []
  for (const [name, work] of Object.entries(works)) {
    await micros(work)
    const found = await micros(work)
    const percent = (100 * found) / callMicros
    if (name === withRings) reached('told', percent)
    rows.push([name, found, `${percent.toFixed(1)} %`])
  }
  return `${table(['event stream and console', 'CPU µs/call', `of ${callMicros.toFixed(0)} µs`], rows)}\n\n${await memory()}`
}
