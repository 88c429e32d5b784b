/**
 * Runs the bundled `gatehouse` program as a user would, and ends it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { resolve } from 'node:path'

export interface RunningGatehouse {
  readonly child: ChildProcess
  /** Everything printed so far, both streams. */
  readonly output: () => string
  /** Resolves with the match once the output has it; rejects when the program ends first. */
  readonly waitFor: (pattern: RegExp) => Promise<RegExpExecArray>
  /** SIGINT, then waits for the end; resolves with the exit code. */
  readonly interrupt: () => Promise<number | null>
}

interface Waiter {
  readonly pattern: RegExp
  readonly resolve: (match: RegExpExecArray) => void
  readonly reject: (error: Error) => void
}

/**
 * The folder of the built programs under test: `dist`, which a run of all tests builds first, or that of an installed
 * package. Without it the programs run from source, so a test file run by hand needs no build.
 */
const dist = process.env['GATEHOUSE_TEST_DIST']

/** `gatehouse`, the program under test. */
export const program = resolve(dist === undefined ? 'runtime/cli/main.ts' : `${dist}/gatehouse.js`)

/** `gatehouse-hooks`, the program under test. */
export const hooksProgram = resolve(
  dist === undefined ? 'hooks/server/main.ts' : `${dist}/gatehouse-hooks.js`,
)

/** Starts `gatehouse` with arguments. */
export function startGatehouse(
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): RunningGatehouse {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env,
  })
  let text = ''
  const waiting = new Set<Waiter>()
  function check(waiter: Waiter): void {
    const match = waiter.pattern.exec(text)
    if (!match) return
    waiting.delete(waiter)
    waiter.resolve(match)
  }
  function ended(waiter: Waiter): void {
    waiter.reject(new Error(`gatehouse ended with code ${child.exitCode}:\n${text}`))
  }
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      for (const waiter of waiting) check(waiter)
    })
  }
  child.once('exit', () => {
    for (const waiter of waiting) ended(waiter)
  })
  return {
    child,
    output: () => text,
    waitFor(pattern) {
      return new Promise((resolve, reject) => {
        const waiter = { pattern, resolve, reject }
        waiting.add(waiter)
        check(waiter)
        if (child.exitCode !== null || child.signalCode !== null) ended(waiter)
      })
    },
    async interrupt() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGINT')
        await once(child, 'exit')
      }
      return child.exitCode
    },
  }
}

/** Runs `gatehouse` to its end. */
export async function runGatehouse(
  args: readonly string[],
  stdin = '',
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [program, ...args], { stdio: 'pipe', env })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk))
  // A program may stop reading.
  child.stdin.on('error', () => {}).end(stdin)
  await once(child, 'close')
  return { code: child.exitCode, stdout, stderr }
}

/** A loopback port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}

/** Process ids of everything that descends from `pid`, by /proc; Linux only. */
export function descendantsOf(pid: number): number[] {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
    } catch {
      // It ended while we looked.
    }
  }
  const found: number[] = []
  const walk = (parent: number) => {
    for (const [child, of] of parents) {
      if (of !== parent) continue
      found.push(child)
      walk(child)
    }
  }
  walk(pid)
  return found
}

/** False as well for one that has ended and waits for somebody to ask how; Linux only. */
export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat[stat.lastIndexOf(')') + 2] !== 'Z'
  } catch {
    return false
  }
}
