/**
 * Runs `gatehouse dev` in tests, with manifests in a temporary folder and a user's command line. Stops it at the end of
 * the test.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort, type RunningGatehouse, startGatehouse } from './gatehouse.ts'

export interface DevRig {
  readonly dev: RunningGatehouse
  readonly folder: string
  readonly port: number
  /** Replaces the manifests. The running program detects this as an edit. */
  readonly write: (...docs: readonly string[]) => void
}

export interface DevRigOptions {
  readonly args?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  readonly port?: number
}

export async function startDev(
  t: Pick<Test, 'teardown'>,
  docs: readonly string[],
  { args = [], env = {}, port }: DevRigOptions = {},
): Promise<DevRig> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-dev-test-'))
  const write = (...next: readonly string[]) =>
    writeFileSync(join(folder, 'manifests.yaml'), next.join('\n---\n'))
  write(...docs)
  const chosen = port ?? (await freePort())
  const dev = startGatehouse(['dev', '-f', folder, '--port', String(chosen), ...args], {
    ...process.env,
    ...env,
  })
  t.teardown(async () => {
    await dev.interrupt()
    rmSync(folder, { recursive: true, force: true })
  })
  return { dev, folder, port: chosen, write }
}

export function group(name = 'g'): string {
  return manifest('MCPGroup', name, { description: 'of a test' })
}

export function virtualServer(name = 'v', groupName = 'g'): string {
  return manifest('VirtualMCPServer', name, {
    groupRef: { name: groupName },
    incomingAuth: { type: 'anonymous' },
  })
}

/** Returns a server that runs `command`. The command opens its own port unless `transport` is stdio. */
export function server(name: string, command: string, spec: Readonly<Record<string, unknown>> = {}): string {
  const network = spec['transport'] === 'stdio' ? {} : { transport: 'streamable-http', mcpPort: 3001 }
  return manifest(
    'MCPServer',
    name,
    { image: 'example.com/server:1', groupRef: { name: 'g' }, ...network, ...spec },
    { 'gatehouse.dev/local-command': command },
  )
}

export function manifest(
  kind: string,
  name: string,
  spec: Readonly<Record<string, unknown>>,
  annotations: Readonly<Record<string, string>> = {},
): string {
  return JSON.stringify({ apiVersion: 'gatehouse.dev/v1beta1', kind, metadata: { name, annotations }, spec })
}
