/** The compared servers: our built programs, ToolHive's programs, nginx. Each is pinned to one core. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../helpers/gatehouse.ts'
import { type Cost, type Program, startProgram, stopPrograms } from '../programs/run.ts'
import { BenchClient, requestOf } from '../vmcp/client.ts'

const gatehouse = join(import.meta.dirname, '../../../dist/gatehouse.js')
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
/** Socket of the container engine that `thv` requires. */
const socket = join(folder, 'engine.sock')

export type Maker = 'gatehouse' | 'toolhive'

export interface Server {
  readonly name: string
  readonly url: string
  /** Undefined for direct access. */
  readonly program: Program | undefined
  readonly cost: Cost | undefined
}

/** Path of a program of ToolHive, or undefined when its variable is not set. */
function programOf(name: 'TOOLHIVE_VMCP' | 'TOOLHIVE_THV'): string | undefined {
  return process.env[name]
}

export function vmcpMakers(): Maker[] {
  return programOf('TOOLHIVE_VMCP') === undefined ? ['gatehouse'] : ['gatehouse', 'toolhive']
}

/**
 * Starts a virtual server and waits until its first list has `tools` tools, because a server with an empty list is not
 * ready.
 */
export async function startVmcp(maker: Maker, backends: readonly string[], tools: number): Promise<Server> {
  const port = await freePort()
  const file = join(folder, 'vmcp.json')
  writeFileSync(file, JSON.stringify(fileOf(backends)))
  const url = `http://127.0.0.1:${port}/mcp`
  const args = ['--config', file, '--port', String(port)]
  const ready = (): Promise<boolean> => listsTools(url, tools)
  const started =
    maker === 'gatehouse'
      ? await startProgram([gatehouse, 'vmcp', 'serve', ...args], ready, { onCores: '0' })
      : await startProgram(['serve', ...args], ready, {
          onCores: '0',
          command: programOf('TOOLHIVE_VMCP'),
          env: { GOMAXPROCS: '1', LOG_LEVEL: 'error', TOOLHIVE_DEV: 'true' },
        })
  return { name: `${maker} vmcp`, url, ...started }
}

/** Returns a configuration with only the fields that both programs support. */
function fileOf(backends: readonly string[]): unknown {
  return {
    name: 'bench',
    groupRef: 'bench',
    incomingAuth: { type: 'anonymous' },
    outgoingAuth: { source: 'inline', default: { type: 'unauthenticated' } },
    aggregation: {
      conflictResolution: 'prefix',
      conflictResolutionConfig: { prefixFormat: '{workload}_' },
    },
    backends: backends.map((url, i) => ({ name: `b${i}`, url, transport: 'streamable-http' })),
  }
}

async function listsTools(url: string, tools: number): Promise<boolean> {
  const client = new BenchClient(url, 1)
  try {
    const session = await client.openSession()
    return (await countTools(client, session)) === tools
  } finally {
    await client.close()
  }
}

/** Counts the tools on all pages. */
export async function countTools(client: BenchClient, session: string): Promise<number> {
  let count = 0
  let cursor: string | undefined
  do {
    const params = cursor === undefined ? {} : { cursor }
    const { body } = await client.result(requestOf('session', 'tools/list', params, session))
    const text = body.startsWith('{') ? body : (/^data: ?(\{.*"result".*)$/m.exec(body)?.[1] ?? '{}')
    const { result } = JSON.parse(text) as { result?: { tools: unknown[]; nextCursor?: string } }
    count += result?.tools.length ?? 0
    cursor = result?.nextCursor
  } while (cursor !== undefined)
  return count
}

/** Starts a proxy without authentication. Undefined when its program is missing. */
export async function startProxy(maker: Maker, target: string): Promise<Server | undefined> {
  const port = await freePort()
  const args = ['proxy', 'bench', '--target-uri', new URL(target).origin, '--port', String(port)]
  const url = `http://127.0.0.1:${port}/mcp`
  const ready = async (): Promise<boolean> => (await listsAnything(url)) > 0
  if (maker === 'gatehouse') {
    const started = await startProgram([gatehouse, ...args], ready, { onCores: '0' })
    return { name: 'gatehouse proxy', url, ...started }
  }
  const command = programOf('TOOLHIVE_THV')
  if (command === undefined) return undefined
  const engine = join(import.meta.dirname, 'container-engine.ts')
  await startProgram([engine, socket], async () => existsSync(socket), { onCores: '1' })
  const homes = ['HOME', 'XDG_CONFIG_HOME', 'XDG_STATE_HOME', 'XDG_DATA_HOME'].map((name) => [name, folder])
  const started = await startProgram(args, ready, {
    onCores: '0',
    command,
    env: { GOMAXPROCS: '1', TOOLHIVE_DOCKER_SOCKET: socket, ...Object.fromEntries(homes) },
  })
  return { name: 'thv proxy', url, ...started }
}

async function listsAnything(url: string): Promise<number> {
  const client = new BenchClient(url, 1)
  try {
    return await countTools(client, await client.openSession())
  } finally {
    await client.close()
  }
}

/** Stops everything that a part has started. */
export function endServers(): void {
  stopPrograms()
  rmSync(socket, { force: true })
}

export function removeFiles(): void {
  rmSync(folder, { recursive: true, force: true })
}
