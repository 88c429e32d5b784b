/** The processes of the soak: backends, the built virtual server with the probe in it, and who calls it all the time. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { LoadMinute, LoadTold } from './load.ts'
import type { ProbeAnswer, ProbeQuestion } from './probe.ts'

export interface BackendProcess {
  /** Name to address. */
  readonly urls: Readonly<Record<string, string>>
  readonly pid: number
  /** Without warning, as machines do. */
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
  /** Calls a second that the server takes, alone. */
  readonly capacity: number
  kill(): Promise<void>
}

/** Hears of the load while it lasts. */
export interface LoadTo {
  /** How many calls a second there are from now on. */
  begins(rate: number): void
  minuteOver(minute: LoadMinute): void
}

/**
 * Calls `tool` so often that the server is at a share of its capacity together with all others; resolves when that has been
 * measured without them.
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
  /** Undefined while it lives. */
  readonly exit: () => string | undefined
  ask(question: { readonly collect: boolean }): Promise<ProbeAnswer>
  snapshot(file: string): Promise<void>
  /** Resolves with the exit code. */
  stop(): Promise<number | null>
}

/** Starts `program vmcp serve` on a port that the kernel chooses; its log goes to a file. */
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

/** The address that the server says in its log. */
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

/** CPU time of a process so far in milliseconds; Linux. 0 when it has gone. */
export function cpuMs(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * 10
  } catch {
    return 0
  }
}
