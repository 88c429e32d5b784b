/** Records the operations and failures of the soak. An error that the soak did not cause itself makes it fail. */
import { appendFileSync } from 'node:fs'

/** Thrown when an operation had an unexpected outcome. */
export class Unexpected extends Error {
  override name = 'Unexpected'
}

interface Count {
  done: number
  /** Expected failures: the backend was down, or the client left. */
  due: number
  failed: number
  slowestMs: number
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}

export class Ledger {
  readonly counts = new Map<string, Count>()
  readonly #file: string
  failures = 0
  operations = 0

  constructor(file: string) {
    this.#file = file
  }

  /** Runs and counts one operation. The operation may return `'due'` for an expected failure. Never rejects. */
  async run(name: string, work: () => Promise<'due' | void>): Promise<boolean> {
    const count = this.counts.get(name) ?? { done: 0, due: 0, failed: 0, slowestMs: 0 }
    this.counts.set(name, count)
    const started = performance.now()
    this.operations++
    try {
      if ((await work()) === 'due') count.due++
      else count.done++
      return true
    } catch (error) {
      count.failed++
      this.failures++
      if (this.failures <= 500) {
        const what = describe(error)
        appendFileSync(this.#file, `${new Date().toISOString()} ${name}: ${what.slice(0, 500)}\n`)
      }
      return false
    } finally {
      count.slowestMs = Math.max(count.slowestMs, performance.now() - started)
    }
  }

  /** Counts operations that ran elsewhere. */
  add(name: string, { done, due, failed, slowestMs }: Count, how: string): void {
    const before = this.counts.get(name)
    this.counts.set(name, {
      done: done + (before?.done ?? 0),
      due: due + (before?.due ?? 0),
      failed: failed + (before?.failed ?? 0),
      slowestMs: Math.max(slowestMs, before?.slowestMs ?? 0),
    })
    this.operations += done + due + failed
    this.failures += failed
    if (failed > 0)
      appendFileSync(this.#file, `${new Date().toISOString()} ${name}: ${failed} failed: ${how}\n`)
  }

  table(): string {
    const rows = [...this.counts].sort(([a], [b]) => (a < b ? -1 : 1))
    return [
      '| operation | done | failed as due | failed | slowest ms |',
      '|---|---|---|---|---|',
      ...rows.map(
        ([name, { done, due, failed, slowestMs }]) =>
          `| ${name} | ${done} | ${due} | ${failed} | ${slowestMs.toFixed(0)} |`,
      ),
    ].join('\n')
  }
}
