/**
 * Measures the longest event-loop turn of a virtual server in its own process for each row of hostile inputs. It uses
 * CPU time of the main thread (turn-watch.ts) relative to the cost of a fixed piece of work in that process at that
 * time, so that a busy machine does not change the result.
 *
 * FC_RUNS multiplies the number of sizes for each row: one in the tests, ten with `make fuzz`, from a fifth of the size
 * to twice the size. GATEHOUSE_TURNS=1 prints the longest turn of each row.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Test } from 'tap'
import { program } from '../gatehouse.ts'

/**
 * Longest allowed turn, and the cost of turn-watch.ts's fixed work on the machine that this limit refers to;
 * microseconds.
 */
const longestTurnUs = 50_000
const attempts = 3
const yardstickUs = 10_000

const runs = Number(process.env['FC_RUNS'] ?? 300)
const sizeSteps = Math.max(1, Math.round(runs / 300))
/** Factors of the size of a row; the first is 1. */
const roundSizes = [
  1,
  ...Array.from({ length: sizeSteps - 1 }, (_, i) => Math.round((i + 1) * (20 / sizeSteps)) / 10),
]

/** True when this combination is tested: one combination of each input in the tests, all of them with `make fuzz`. */
export const takes = (input: number, combination: number, combinations: number): boolean =>
  sizeSteps > 1 || (input + combination) % combinations === 0

/** Sends one input, `size` times as large as in the row, and resolves with its HTTP status. */
export type Send = (size: number) => Promise<number>

export interface Watched {
  readonly url: string
  readonly log: () => string
  /** Checks one row: no turn is too long, and at size 1 the response has this status. */
  row(what: string, send: Send, status?: number): Promise<void>
  /** Sends SIGTERM. Resolves once the program has ended. */
  drain(): Promise<void>
}

/** Starts `gatehouse vmcp serve` with a file. */
export async function startWatched(t: Test, config: Readonly<Record<string, unknown>>): Promise<Watched> {
  const base = { name: 'x', groupRef: 'g', incomingAuth: { type: 'anonymous' }, aggregation: {} }
  const text = JSON.stringify({ ...base, outgoingAuth: { source: 'inline' }, ...config })
  const file = join(t.testdir({ 'vmcp.yaml': text }), 'vmcp.yaml')
  const args = ['vmcp', 'serve', '-c', file, '--port', '0']
  return startWatchedProgram(t, args, (output) => /"url":"([^"]+\/mcp)"/.exec(output)?.[1])
}

/** Starts `gatehouse` with arguments. `urlOf` finds the address in its output. */
export async function startWatchedProgram(
  t: Test,
  args: readonly string[],
  urlOf: (output: string) => string | undefined,
): Promise<Watched> {
  const watch = ['--import', './test/helpers/turn-watch.ts', '--trace-warnings']
  const child = spawn(process.execPath, [...watch, program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let log = ''
  for (const output of [child.stdout, child.stderr])
    output?.setEncoding('utf8').on('data', (chunk: string) => (log += chunk))
  t.teardown(async () => {
    if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'close')
    if (log.includes('MaxListenersExceededWarning')) throw new Error(`listeners pile up:\n${log}`)
  })
  const url = await listening(child, () => log, urlOf)
  return {
    url,
    log: () => log,
    async drain() {
      if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'close')
    },
    async row(what, send, status) {
      let worst = 0
      let last = 0
      for (const size of roundSizes) {
        let share = Infinity
        // Retries, because a garbage collection can lengthen one turn. A turn that is too long on its own stays too
        // long.
        for (let attempt = 0; attempt < attempts && share >= longestTurnUs; attempt++) {
          await tell(child, { watch: true })
          const got = (last = await send(size))
          const { longestUs, yardUs } = await tell(child, { watch: false })
          if (attempt === 0 && size === 1 && status !== undefined) t.equal(got, status, what)
          share = Math.min(share, longestUs / Math.max(1, yardUs / yardstickUs))
        }
        worst = Math.max(worst, share)
        t.ok(share < longestTurnUs, `${what}, times ${size}: ${Math.round(share)} of ${longestTurnUs} us`)
      }
      if (process.env['GATEHOUSE_TURNS']) t.comment(`${Math.round(worst)} us: ${what}: ${last}`)
    },
  }
}

async function listening(
  child: ChildProcess,
  log: () => string,
  urlOf: (output: string) => string | undefined,
): Promise<string> {
  const ended = once(child, 'exit').then(() => {
    throw new Error(`the server ended: ${log()}`)
  })
  for (;;) {
    const url = urlOf(log())
    if (url) {
      ended.catch(() => {})
      return url
    }
    const { stdout, stderr } = child
    if (stdout && stderr) await Promise.race([once(stdout, 'data'), once(stderr, 'data'), ended])
  }
}

async function tell(
  child: ChildProcess,
  message: { readonly watch: boolean },
): Promise<{ readonly longestUs: number; readonly yardUs: number }> {
  child.send(message)
  const [reply] = await once(child, 'message')
  return reply
}
