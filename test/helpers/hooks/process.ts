/** Runs the hooks server as its own process, with certificate files that a test may replace. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { hooksProgram } from '../gatehouse.ts'

export interface HooksProcess {
  readonly pid: number
  readonly port: number
  /** Resolves at the next log line with this message. */
  logged(message: string): Promise<void>
  /** Starts or ends the measurement of event-loop turns. Requires `--import ./test/helpers/turn-watch.ts`. */
  tell(message: { readonly watch: boolean }): Promise<{ readonly longestUs: number; readonly yardUs: number }>
  stop(): Promise<void>
  /** Kills it without warning. */
  kill(): void
}

/** Writes `tls.crt` and `tls.key` into a folder, like a mounted Secret. */
export function writeCertificate(folder: string, pair: { certificate: string; key: string }): void {
  writeFileSync(join(folder, 'tls.crt'), pair.certificate)
  writeFileSync(join(folder, 'tls.key'), pair.key, { mode: 0o600 })
}

export interface HooksBuild {
  readonly program: string
  readonly version: string
}

/** Starts `gatehouse-hooks` on a free port with the certificate in `folder`, if any. Default: the build under test. */
export async function startHooksProcess(
  t: Pick<Test, 'teardown'>,
  folder?: string,
  nodeOptions: readonly string[] = [],
  flags: readonly string[] = [],
  build?: HooksBuild,
): Promise<HooksProcess> {
  const files =
    folder === undefined
      ? []
      : ['--tls-cert-file', join(folder, 'tls.crt'), '--tls-key-file', join(folder, 'tls.key')]
  const args = [
    ...nodeOptions,
    build?.program ?? hooksProgram,
    '--host',
    '127.0.0.1',
    '--port',
    '0',
    ...files,
    ...flags,
  ]
  const env = build ? { ...process.env, GATEHOUSE_VERSION: build.version } : process.env
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], env })
  const stop = () => end(child)
  t.teardown(stop)
  if (!child.stderr) throw new Error('the process has no standard error')
  const lines = createInterface(child.stderr)
  const logged = (message: string): Promise<Record<string, unknown>> =>
    new Promise((found, lost) => {
      const onLine = (line: string): void => {
        const entry: Record<string, unknown> = JSON.parse(line)
        if (entry['message'] !== message) return
        lines.off('line', onLine)
        child.off('exit', onExit)
        found(entry)
      }
      const onExit = (): void => lost(new Error('the hooks server ended'))
      lines.on('line', onLine)
      child.once('exit', onExit)
    })
  const { port } = await logged('listening')
  return {
    pid: child.pid ?? 0,
    port: Number(port),
    stop,
    kill: () => child.kill('SIGKILL'),
    logged: async (message) => void (await logged(message)),
    tell: async (message) => {
      child.send(message)
      const [reply] = await once(child, 'message')
      return reply
    },
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  await gone
}
