/**
 * Forwards requests to the hooks server with failures that occur in clusters: the server is killed and restarts,
 * responses are errors, end early, or arrive long after the caller has given up. A seeded generator selects the
 * failures.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { Test } from 'tap'
import { type HooksProcess, startHooksProcess } from './process.ts'

export type Disturbance = 'refused' | 'halfBody' | 'noResponse' | 'slow'

export interface DisturbedHooks {
  readonly url: string
  /** Number of failures of each kind since the disturbance began. */
  readonly counts: Readonly<Record<Disturbance | 'forwarded' | 'killed', number>>
  /** Requests without a response. */
  inFlight(): number
  /** Starts the failures. `calm` ends them. */
  disturb(): void
  calm(): void
  /** Kills the server without warning and starts a new one. */
  kill(): Promise<void>
}

const slowMs = 30_000

export async function startDisturbedHooks(t: Test, { slowest = 6 } = {}): Promise<DisturbedHooks> {
  const counts = { refused: 0, halfBody: 0, noResponse: 0, slow: 0, forwarded: 0, killed: 0 }
  const random = generator(20_261_123)
  const waiting = new Set<NodeJS.Timeout>()
  let hooks: HooksProcess | undefined = await startHooksProcess(t)
  let disturbed = false
  let open = 0

  function draw(): Disturbance | undefined {
    const drawn = disturbed ? random() : 1
    if (drawn < 0.15) return 'refused'
    if (drawn < 0.3) return 'halfBody'
    if (drawn < 0.42) return 'noResponse'
    return drawn < 0.5 && counts.slow < slowest ? 'slow' : undefined
  }

  function answer(
    disturbance: Disturbance | undefined,
    body: Buffer,
    req: IncomingMessage,
    res: ServerResponse,
  ): void {
    counts[disturbance ?? 'forwarded']++
    if (disturbance === 'refused') res.writeHead(random() < 0.5 ? 500 : 503).end('{"status":')
    else if (disturbance === 'noResponse') res.destroy()
    else if (disturbance === 'slow') {
      const timer = setTimeout(() => forward(body, req, res), slowMs)
      waiting.add(timer)
    } else forward(body, req, res, disturbance === 'halfBody')
  }

  function forward(body: Buffer, { url, headers }: IncomingMessage, res: ServerResponse, half = false): void {
    if (!hooks) {
      res.destroy()
      return
    }
    const target = { host: '127.0.0.1', port: hooks.port, path: url, method: 'POST', headers }
    const sent = request(target, (from) => {
      const parts: Buffer[] = []
      from.on('error', () => res.destroy())
      from.on('data', (part: Buffer) => parts.push(part))
      from.on('end', () => {
        const text = Buffer.concat(parts)
        res.writeHead(from.statusCode ?? 502, {
          'content-type': 'application/json',
          'content-length': text.length,
        })
        if (half) res.write(text.subarray(0, text.length / 2), () => res.destroy())
        else res.end(text)
      })
    })
    sent.on('error', () => res.destroy()).end(body)
  }

  const server = createServer((req, res) => {
    open++
    res.once('close', () => open--)
    const parts: Buffer[] = []
    req.on('data', (part: Buffer) => parts.push(part))
    req.on('end', () => answer(draw(), Buffer.concat(parts), req, res))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const timer of waiting) clearTimeout(timer)
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    counts,
    inFlight: () => open,
    disturb() {
      disturbed = true
    },
    calm() {
      disturbed = false
    },
    async kill() {
      counts.killed++
      const killed = hooks
      hooks = undefined
      killed?.kill()
      hooks = await startHooksProcess(t)
    },
  }
}

/** Returns numbers from 0 to 1, the same in every run. */
export function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
