/**
 * Sends requests at a fixed rate, independent of the responses. A latency counts from the time at which the request was
 * due, not from its actual start, so that a peer that stalls is charged for all waiting requests (no coordinated
 * omission).
 */
import { Agent, request } from 'node:http'
import { sorted } from '../vmcp/table.ts'

export interface OpenLoopOptions {
  readonly origin: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Requests per second. Must divide 1000, because requests start at whole milliseconds. */
  readonly rate: number
  readonly seconds: number
}

/** Resolves with the sorted milliseconds from due time to response. Rejects when a request fails or is rejected. */
export async function openLoop(options: OpenLoopOptions): Promise<Float64Array> {
  const { rate, seconds } = options
  const everyMs = 1_000 / rate
  const agent = new Agent({ keepAlive: true, maxSockets: 256 })
  const taken: number[] = []
  const pending: Promise<void>[] = []
  // Timers fire just after whole milliseconds of the system's clock, so requests are due then.
  const start = Math.ceil(clockMs()) + 20
  const total = rate * seconds
  try {
    for (let sent = 0; sent < total; ) {
      const now = clockMs()
      for (; sent < total && start + sent * everyMs <= now; sent++) {
        const due = start + sent * everyMs
        pending.push(send(options, agent).then(() => void taken.push(clockMs() - due)))
      }
      const wait = Math.ceil(start + sent * everyMs - clockMs())
      await new Promise((resolve) => setTimeout(resolve, Math.max(wait, 0)))
    }
    await Promise.all(pending)
  } finally {
    agent.destroy()
  }
  return sorted(taken)
}

function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

function send({ origin, headers, body }: OpenLoopOptions, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const length = { 'content-length': String(Buffer.byteLength(body)) }
    const req = request(
      `${origin}/mcp`,
      { method: 'POST', agent, headers: { ...headers, ...length } },
      (res) => {
        res.resume()
        res.once('error', reject)
        res.once('end', () =>
          res.statusCode === 200 ? resolve() : reject(new Error(`refused with ${res.statusCode}`)),
        )
      },
    )
    req.once('error', reject)
    req.end(body)
  })
}
