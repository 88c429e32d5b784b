/** The processes of the soak: backends, the built virtual server with its probe, and the plain calls. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { LoadMinute, LoadTold } from './load.ts'
import type { ProbeAnswer, ProbeQuestion } from './probe.ts'

export interface BackendProcess {
  /** Address of each backend by name. */
  readonly urls: Readonly<Record<string, string>>
  readonly pid: number
  /** Kills the process without warning. */
  kill(): Promise<void>
}

export async function startBackend(...args: string[]): Promise<BackendProcess> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'backend.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return {
    urls: JSON.parse(line) as Record<string, string>,
    pid: child.pid ?? 0,
    kill: () => ended(child, 'SIGKILL'),
  }
}

export interface LoadProcess {
  readonly pid: number
  /** Calls per second that the server handles without other clients. */
  readonly capacity: number
  kill(): Promise<void>
}

/** Called with the figures of the load while it runs. */
export interface LoadTo {
  /** Called with the new number of calls per second. */
  begins(rate: number): void
  minuteOver(minute: LoadMinute): void
}

/**
 * Calls `tool` at the rate that keeps the server at a share of its capacity together with all other clients. Resolves
 * after the measurement without them.
 */
export async function startLoad(url: string, tool: string, share: number, to: LoadTo): Promise<LoadProcess> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'load.ts'), url, tool, String(share)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const capacity = await new Promise<number>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the load ended with ${code}`)))
    child.on('message', (told: LoadTold) => {
      if ('capacity' in told) resolve(told.capacity)
      else if ('rate' in told) to.begins(told.rate)
      else to.minuteOver(told)
    })
  })
  return { pid: child.pid ?? 0, capacity, kill: () => ended(child, 'SIGTERM') }
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill(signal)
  await gone
}

export interface ServerProcess {
  readonly origin: string
  readonly pid: number
  /** Undefined while the process runs. */
  readonly exit: () => string | undefined
  ask(question: { readonly collect: boolean }): Promise<ProbeAnswer>
  snapshot(file: string): Promise<void>
  /** Resolves with the exit code. */
  stop(): Promise<number | null>
}

/** Starts `program vmcp serve` on a free port. Its log goes to a file. */
export async function startServer(options: {
  readonly program: string
  readonly configFile: string
  readonly logFile: string
  readonly sessionTtl: string
}): Promise<ServerProcess> {
  const { program, configFile, logFile, sessionTtl } = options
  const probe = ['--expose-gc', '--import', join(import.meta.dirname, 'probe.ts')]
  const args = ['vmcp', 'serve', '--config', configFile, '--port', '0', '--session-ttl', sessionTtl]
  const child = spawn(process.execPath, [...probe, program, ...args], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  const log = createWriteStream(logFile)
  child.stdout?.pipe(log, { end: false })
  child.stderr?.pipe(log, { end: false })
  const origin = await listening(child)
  const reply = async <T>(question: ProbeQuestion): Promise<T> => {
    child.send(question)
    const [response] = (await once(child, 'message')) as [T]
    return response
  }
  return {
    origin,
    pid: child.pid ?? 0,
    exit: () =>
      child.exitCode === null && child.signalCode === null
        ? undefined
        : `code ${child.exitCode}, signal ${child.signalCode}`,
    ask: (question) => reply<ProbeAnswer>(question),
    snapshot: async (snapshot) => void (await reply({ snapshot })),
    async stop() {
      await ended(child, 'SIGTERM')
      log.end()
      return child.exitCode
    },
  }
}

/** Address of the server in its log. */
function listening(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const look = (chunk: Buffer): void => {
      text = (text + chunk.toString()).slice(-10_000)
      const url = /listening.*?(http:\/\/127\.0\.0\.1:\d+)|(http:\/\/127\.0\.0\.1:\d+)\/mcp.*listening/.exec(
        text,
      )
      const found = url?.[1] ?? url?.[2]
      if (found !== undefined) resolve(found)
    }
    child.stdout?.on('data', look)
    child.stderr?.on('data', look)
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}:\n${text}`)))
  })
}

/** Returns the CPU time of a process in milliseconds, or 0 when it has ended. Linux only. */
export function cpuMs(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * 10
  } catch {
    return 0
  }
}
