/**
 * Requests at a fixed rate, whatever the responses do. A latency counts from the moment at which the request was due, not
 * from when it could be sent: a peer that stalls is charged for everything that had to wait (no coordinated omission).
 */
import { Agent, request } from 'node:http'
import { sorted } from '../vmcp/table.ts'

export interface OpenLoopOptions {
  readonly origin: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Requests a second; must divide 1000, because requests leave on whole milliseconds. */
  readonly rate: number
  readonly seconds: number
}

/** Milliseconds from due to answered, sorted. Rejects when a request fails or is refused. */
export async function openLoop(options: OpenLoopOptions): Promise<Float64Array> {
  const { rate, seconds } = options
  const everyMs = 1_000 / rate
  const agent = new Agent({ keepAlive: true, maxSockets: 256 })
  const taken: number[] = []
  const pending: Promise<void>[] = []
  // Timers fire just after whole milliseconds of the system's clock, so that is where requests are due.
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
