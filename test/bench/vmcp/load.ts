/**
 * Generates load in two ways: at a fixed rate independent of the responses (open loop), and as fast as responses
 * arrive.
 */
import autocannon from 'autocannon'
import { type BenchClient, bodyOf, type Sent } from './client.ts'
import { sorted } from './table.ts'

export interface Latencies {
  /** Milliseconds from sending to the complete response, sorted. */
  readonly ms: Float64Array
  readonly failed: number
}

/**
 * Sends `rate` requests per second for `seconds` without waiting for responses. Due requests start at ticks of about a
 * millisecond.
 */
export async function openLoop(
  client: BenchClient,
  requests: readonly Sent[],
  rate: number,
  seconds: number,
): Promise<Latencies> {
  const ms: number[] = []
  const pending = new Set<Promise<void>>()
  let failed = 0
  let sent = 0
  const started = performance.now()
  for (let now = started; now - started < seconds * 1_000; now = performance.now()) {
    const due = ((now - started) / 1_000) * rate
    for (; sent < due; sent++) {
      const request = requests[sent % requests.length]
      if (!request) throw new Error('no requests')
      const from = performance.now()
      const one: Promise<void> = client
        .result(request)
        .then(
          () => void ms.push(performance.now() - from),
          () => void failed++,
        )
        .finally(() => void pending.delete(one))
      pending.add(one)
    }
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  await Promise.all(pending)
  return { ms: sorted(ms), failed }
}

export interface Throughput {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly requests: number
}

/** Sends as many requests as the server answers on `connections` connections. Throws when a request is rejected. */
export async function closedLoop(
  url: string,
  requests: readonly Sent[],
  seconds: number,
  connections: number,
): Promise<Throughput> {
  let next = 0
  const result = await autocannon({
    url,
    connections,
    duration: seconds,
    method: 'POST' as const,
    body: requests[0] ? bodyOf(requests[0], 1) : '',
    setupClient: (client: { setHeaders(headers: Readonly<Record<string, string>>): void }) =>
      client.setHeaders(requests[next++ % requests.length]?.headers ?? {}),
  } as Parameters<typeof autocannon>[0])
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${result.non2xx} refusals, ${result.errors} errors`)
  return {
    perSecond: result.requests.total / result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    requests: result.requests.total,
  }
}

/** Runs `work` repeatedly, one run after the other. Returns the sorted durations in milliseconds. */
export async function oneByOne(times: number, work: () => Promise<unknown>): Promise<Float64Array> {
  const ms: number[] = []
  for (let n = 0; n < times; n++) {
    const from = performance.now()
    await work()
    ms.push(performance.now() - from)
  }
  return sorted(ms)
}
