/** Runs `gatehouse vmcp serve --workers`, and opens connections that reach its processes in turn. */
import { mkdtempSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { descendantsOf, type RunningGatehouse, startGatehouse } from '../gatehouse.ts'
import { vmcpConfig } from '../vmcp/vmcp.ts'

/** Each request has its own connection, and each connection goes to the next process. */
export const nextWorker = { connection: 'close' }

export interface ServedWorkers {
  readonly url: string
  readonly origin: string
  readonly dir: string
  readonly run: RunningGatehouse
  pids(): readonly number[]
  /** Replaces the file like an editor. */
  write(backends: Readonly<Record<string, string>>, more?: Readonly<Record<string, unknown>>): void
}

export interface ServedOptions {
  readonly more?: Readonly<Record<string, unknown>>
  /** Undefined: the value in the file. */
  readonly workers?: number | undefined
  readonly flags?: readonly string[]
  readonly port?: number
  readonly env?: NodeJS.ProcessEnv
  /** Writes other files into the folder of the configuration. */
  readonly beside?: (dir: string) => void
}

export async function startServed(
  t: Pick<Test, 'teardown'>,
  backends: Readonly<Record<string, string>>,
  { more = {}, workers, flags = [], port = 0, env = {}, beside = () => {} }: ServedOptions = {},
): Promise<ServedWorkers> {
  const dir = mkdtempSync(join(tmpdir(), 'workers-'))
  const path = join(dir, 'vmcp.yaml')
  const write: ServedWorkers['write'] = (to, and = more) => {
    writeFileSync(`${path}.new`, JSON.stringify(vmcpConfig(to, and)))
    renameSync(`${path}.new`, path)
  }
  write(backends)
  beside(dir)
  const run = startGatehouse(
    [
      ...['vmcp', 'serve', '--config', path, '--port', String(port)],
      ...(workers === undefined ? [] : ['--workers', String(workers)]),
      ...flags,
    ],
    { ...process.env, ...env },
  )
  t.teardown(() => run.interrupt())
  const [line] = await run.waitFor(/^.*several processes serve.*$/m)
  const origin = `http://127.0.0.1:${String(JSON.parse(line).port)}`
  return {
    url: `${origin}/mcp`,
    origin,
    dir,
    run,
    write,
    pids: () => descendantsOf(run.child.pid ?? 0),
  }
}
