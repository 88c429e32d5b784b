/**
 * Runs a real Metacontroller for tests: the program in METACONTROLLER, or in PATH. It listens on loopback only, with
 * the rights of the given token.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { kubeMissing } from './apiserver.ts'

const program = process.env['METACONTROLLER'] ?? 'metacontroller'

/** Reason that it cannot run on this machine, for `{ skip }`; otherwise false. */
export function metacontrollerMissing(): string | false {
  const kube = kubeMissing()
  if (kube) return kube
  const { error } = spawnSync(program, ['--help'], { stdio: 'ignore' })
  return error ? 'no metacontroller in PATH, and METACONTROLLER is not set' : false
}

/** Path of the program. */
export function metacontrollerProgram(): string {
  if (program.includes('/')) return program
  return spawnSync('sh', ['-c', 'command -v "$0"', program], { encoding: 'utf8' }).stdout.trim()
}

export interface Metacontroller {
  readonly pid: number
  /** Its log so far. */
  log(): string
  /** Kills it. It has no state of its own. */
  stop(): Promise<void>
}

/** Starts it with a kubeconfig; stops it with the test. */
export function startMetacontroller(
  t: Pick<Test, 'teardown'>,
  kubeconfig: string,
  ...more: readonly string[]
): Metacontroller {
  // Not t.testdir(), which would empty the folder of the test.
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-metacontroller-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'metacontroller.log')
  const out = openSync(path, 'w')
  const args = [
    `--kubeconfig=${kubeconfig}`,
    '--metrics-address=0',
    '--health-probe-bind-address=0',
    '--discovery-interval=2s',
    '--client-go-qps=200',
    '--client-go-burst=400',
    '--zap-log-level=info',
    ...more,
  ]
  const child = spawn(program, args, { stdio: ['ignore', out, out] })
  closeSync(out)
  t.teardown(() => stop(child))
  return { pid: child.pid ?? 0, log: () => readFileSync(path, 'utf8'), stop: () => stop(child) }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}
