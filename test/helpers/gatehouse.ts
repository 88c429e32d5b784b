/** Runs the built `gatehouse` program with a user's command line, and stops it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { resolve } from 'node:path'

export interface RunningGatehouse {
  readonly child: ChildProcess
  /** All output so far, from both streams. */
  readonly output: () => string
  /** Resolves with the match as soon as the output contains it. Rejects if the program ends first. */
  readonly waitFor: (pattern: RegExp) => Promise<RegExpExecArray>
  /** Sends SIGINT and resolves with the exit code. */
  readonly interrupt: () => Promise<number | null>
}

interface Waiter {
  readonly pattern: RegExp
  readonly resolve: (match: RegExpExecArray) => void
  readonly reject: (error: Error) => void
}

/**
 * Folder of the built programs under test: `dist`, which a run of all tests builds first, or the folder of an installed
 * package. If undefined, programs run from source, so a single test file needs no build.
 */
const dist = process.env['GATEHOUSE_TEST_DIST']

/** `gatehouse`, the program under test. */
export const program = resolve(dist === undefined ? 'runtime/cli/main.ts' : `${dist}/gatehouse.js`)

/** `gatehouse-hooks`, the program under test. */
export const hooksProgram = resolve(
  dist === undefined ? 'hooks/server/main.ts' : `${dist}/gatehouse-hooks.js`,
)

/** Starts `gatehouse` with arguments. Default: the build under test. */
export function startGatehouse(
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
  path: string = program,
): RunningGatehouse {
  const child = spawn(process.execPath, [path, ...args], {
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
  // A program may close its standard input.
  child.stdin.on('error', () => {}).end(stdin)
  await once(child, 'close')
  return { code: child.exitCode, stdout, stderr }
}

/** Returns a free loopback port. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}

/** Returns the ids of all descendants of process `pid`, from /proc (Linux only). */
export function descendantsOf(pid: number): number[] {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
    } catch {
      // The process ended in the meantime.
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

/** Returns false also for a process that has ended but has not been reaped (Linux only). */
export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat[stat.lastIndexOf(')') + 2] !== 'Z'
  } catch {
    return false
  }
}
