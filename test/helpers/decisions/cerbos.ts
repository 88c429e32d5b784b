/**
 * A real Cerbos, a decision point that implements AuthZEN: the program in CERBOS, or the one in PATH. It listens only
 * on loopback.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { freePort } from '../gatehouse.ts'

const program = process.env['CERBOS'] ?? 'cerbos'

/** Returns false, or the reason why its tests are skipped. */
export function withoutCerbos(): string | false {
  return spawnSync(program, ['--version']).error ? 'no cerbos in PATH, and CERBOS is not set' : false
}

/** `policies` maps file names to YAML. */
export async function startCerbos(
  policies: Readonly<Record<string, string>>,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const directory = mkdtempSync(join(tmpdir(), 'cerbos-'))
  for (const [name, text] of Object.entries(policies)) writeFileSync(join(directory, name), text)
  const [http, grpc] = [await freePort(), await freePort()]
  const settings = {
    'storage.driver': 'disk',
    'storage.disk.directory': directory,
    'server.httpListenAddr': `127.0.0.1:${http}`,
    'server.grpcListenAddr': `127.0.0.1:${grpc}`,
    'telemetry.disabled': 'true',
  }
  const flags = Object.entries(settings).map(([key, value]) => `--set=${key}=${value}`)
  const child = spawn(program, ['server', ...flags], { stdio: 'ignore' })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = `http://127.0.0.1:${http}`
  const ready = async (): Promise<boolean> =>
    fetch(`${url}/_cerbos/health`).then(
      ({ ok }) => ok,
      () => false,
    )
  while (!(await ready())) {
    if (child.exitCode !== null) throw new Error(`cerbos ended with code ${child.exitCode}`)
    await setTimeout(50)
  }
  return {
    url,
    async close() {
      child.kill()
      await ended
      rmSync(directory, { recursive: true })
    },
  }
}
