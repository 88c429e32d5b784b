/** The parts of a benchmark, one after the other, and how long everything took. */
import { progress, table } from '../vmcp/table.ts'
import type { Measured } from '../vmcp/steady/verdict.ts'

/** Tables as text, or with a verdict. */
export type Parts = Readonly<Record<string, () => Promise<string | Measured>>>

interface Rules {
  /** Parts to measure; none: all but those that are measured only by name. */
  readonly wanted: readonly string[]
  /** Parts that `make bench` can do without. */
  readonly onlyByName?: readonly string[]
  /** No part needs half of it. */
  readonly limitMs: number
  /** Ends what a part left behind. */
  cleanUp(): Promise<unknown> | void
}

const tookSeconds = new Map<string, number>()

/**
 * Prints what the parts measured. One that fails or takes too long says so in place of its table, and the next one goes on.
 * Resolves with whether all of them could be measured and none has a bad verdict.
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

/** Remembers how long the work took. */
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

/** What took how long, and all of it together. */
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
