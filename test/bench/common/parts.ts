/** Runs the parts of a benchmark one after the other, and records their durations. */
import { progress, table } from '../vmcp/table.ts'
import type { Measured } from '../vmcp/steady/verdict.ts'

/** Results as text, or with a verdict. */
export type Parts = Readonly<Record<string, () => Promise<string | Measured>>>

interface Rules {
  /** Parts to measure. Empty: all parts that are not in `onlyByName`. */
  readonly wanted: readonly string[]
  /** Parts that `make bench` skips. */
  readonly onlyByName?: readonly string[]
  /** More than twice the duration of the longest part. */
  readonly limitMs: number
  /** Stops everything that a part left running. */
  cleanUp(): Promise<unknown> | void
}

const tookSeconds = new Map<string, number>()

/**
 * Prints the results of the parts. A part that fails or takes too long prints its error instead of a table, and the
 * next part runs. Resolves with true when all parts were measured and no verdict is bad.
 */
export async function runParts(
  bench: string,
  parts: Parts,
  { wanted, onlyByName = [], limitMs, cleanUp }: Rules,
): Promise<boolean> {
  let good = true
  for (const [part, measure] of Object.entries(parts)) {
    if (wanted.length > 0 ? !wanted.includes(part) : onlyByName.includes(part)) continue
    const name = `${bench}:${part}`
    const isGood = await timed(name, async () => {
      try {
        return print(await inTime(measure(), limitMs))
      } catch (error) {
        return failed(name, error)
      } finally {
        await cleanUp()
      }
    })
    good &&= isGood
  }
  return good
}

function print(measured: string | Measured): boolean {
  console.log(`\n${typeof measured === 'string' ? measured : measured.text}`)
  return typeof measured === 'string' || measured.isGood
}

export function failed(name: string, error: unknown): false {
  console.log(`\n${name} could not be measured: ${error instanceof Error ? error.message : String(error)}`)
  return false
}

/** Records the duration of the work. */
export async function timed<T>(name: string, work: () => Promise<T>): Promise<T> {
  progress(name)
  const started = performance.now()
  try {
    return await work()
  } finally {
    const seconds = (performance.now() - started) / 1_000
    tookSeconds.set(name, seconds)
    progress(`${name} took ${seconds.toFixed(0)} s`)
  }
}

/** Returns the durations of all parts, and their sum. */
export function durationsTable(): string {
  const rows = [...tookSeconds].map(([name, seconds]) => [name, Math.round(seconds)])
  const all = [...tookSeconds.values()].reduce((sum, seconds) => sum + seconds, 0)
  return table(['what', 's'], [...rows, ['in all', Math.round(all)]])
}

async function inTime<T>(work: Promise<T>, limitMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${limitMs / 60_000} minutes`)), limitMs)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
