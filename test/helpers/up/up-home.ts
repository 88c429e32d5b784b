/** A home folder with the files of Claude Desktop, Cursor and VS Code, and `gatehouse up` in it. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import type { Test } from 'tap'
import { freePort, runGatehouse, startGatehouse } from '../gatehouse.ts'
import { untyped } from '../untyped.ts'

const server = resolve('test/helpers/clients/argv-server.ts')
const stdio = (name: string, more: object = {}) => ({ command: 'node', args: [server, name], ...more })

/** A secret in a client's file. It must stay there, or in files that only its owner can read. */
export const secret = 'canary-31c5-memory-token'

export interface ClientFile {
  readonly path: string
  readonly key: string
}

const clientFiles = {
  'claude-desktop': { path: '.config/Claude/claude_desktop_config.json', key: 'mcpServers' },
  cursor: { path: '.cursor/mcp.json', key: 'mcpServers' },
  vscode: { path: '.config/Code/User/mcp.json', key: 'servers' },
} as const satisfies Record<string, ClientFile>

export type ConnectedClient = keyof typeof clientFiles

function textOf(client: ConnectedClient): string {
  const { key } = clientFiles[client]
  const servers = {
    'claude-desktop': {
      memory: stdio('memory', { env: { TOKEN: secret } }),
      postgres: { command: 'not-installed-docker', args: ['run', '-i', 'mcp/postgres'] },
    },
    cursor: { files: stdio('files') },
    vscode: { thinking: { type: 'stdio', ...stdio('thinking') } },
  }[client]
  // The odd spaces and the comment show that every byte is restored.
  return `{ // ${client}\r\n   "${key}":${JSON.stringify(servers, undefined, 3)} ,\r\n "other" : [ ]\r\n}\r\n`
}

export type UpHome = Awaited<ReturnType<typeof makeUpHome>>

export async function makeUpHome(
  t: Pick<Test, 'teardown'>,
  clients = Object.keys(clientFiles) as ConnectedClient[],
) {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'gatehouse-uphome-')))
  const port = await freePort()
  const tmp = join(home, 'tmp')
  mkdirSync(tmp)
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    HOME: home,
    TMPDIR: tmp,
    XDG_STATE_HOME: '',
    XDG_CONFIG_HOME: '',
    GATEHOUSE_STATE_DIR: '',
  }
  const fileOf = (client: ConnectedClient) => join(home, clientFiles[client].path)
  const originals = new Map<ConnectedClient, Buffer>()
  for (const client of clients) {
    mkdirSync(dirname(fileOf(client)), { recursive: true })
    writeFileSync(fileOf(client), textOf(client))
    originals.set(client, readFileSync(fileOf(client)))
  }
  const gatehouse = (...args: string[]) => runGatehouse(args, '', env)
  t.teardown(async () => {
    // A running instance owns this file. Most tests stop their instance themselves.
    if (existsSync(join(state, 'instance.json'))) await gatehouse('down')
    rmSync(home, { recursive: true, force: true, maxRetries: 5 })
  })
  const state = join(home, '.local/state/gatehouse/up')
  return {
    home,
    port,
    env,
    state,
    url: `http://127.0.0.1:${port}/mcp`,
    fileOf,
    read: (client: ConnectedClient) => readFileSync(fileOf(client), 'utf8'),
    /** Clients whose file differs from the original. */
    changed: () => clients.filter((client) => !originals.get(client)?.equals(readFileSync(fileOf(client)))),
    gatehouse,
    up: (...args: string[]) => gatehouse('up', '--yes', '--port', String(port), ...args),
    start: (...args: string[]) => startGatehouse(['up', '--yes', '--port', String(port), ...args], env),
    /** The servers in a client's file, read as an expression, because the file has a comment. */
    serversOf(client: ConnectedClient): Record<string, Record<string, unknown>> {
      const text = readFileSync(fileOf(client), 'utf8').replace(/^\{ \/\/.*$/m, '{')
      return untyped(JSON.parse(text))[clientFiles[client].key]
    },
    token: (client: ConnectedClient) => readFileSync(join(state, 'tokens', client), 'utf8'),
    instance: () => untyped(JSON.parse(readFileSync(join(state, 'instance.json'), 'utf8'))),
  }
}

/** Connects like the client itself: starts the program in its gateway entry. */
export async function connectThroughEntry(up: UpHome, client: ConnectedClient): Promise<Client> {
  const { command, args } = untyped(up.serversOf(client)['gatehouse'])
  const sdk = new Client({ name: client, version: '1' })
  await sdk.connect(new StdioClientTransport({ command, args, env: { ...up.env } as Record<string, string> }))
  return sdk
}
