/** A home folder with the files of every client, and `gatehouse` running in it. */
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { parse as parseToml } from 'smol-toml'
import { parse as parseYaml } from 'yaml'
import { runGatehouse } from '../gatehouse.ts'
import { untyped } from '../untyped.ts'

/**
 * Each client's file below the home folder, and the key of its servers. Deliberately independent of the product's
 * table.
 */
const files: Readonly<Record<string, readonly [file: string, key: string]>> = {
  'claude-desktop': ['.config/Claude/claude_desktop_config.json', 'mcpServers'],
  'claude-code': ['.claude.json', 'mcpServers'],
  cursor: ['.cursor/mcp.json', 'mcpServers'],
  vscode: ['.config/Code/User/mcp.json', 'servers'],
  copilot: ['.copilot/mcp-config.json', 'mcpServers'],
  windsurf: ['.codeium/windsurf/mcp_config.json', 'mcpServers'],
  codex: ['.codex/config.toml', 'mcp_servers'],
  gemini: ['.gemini/settings.json', 'mcpServers'],
  zed: ['.config/zed/settings.json', 'context_servers'],
  cline: ['.cline/data/settings/cline_mcp_settings.json', 'mcpServers'],
  goose: ['.config/goose/config.yaml', 'extensions'],
  opencode: ['.config/opencode/opencode.json', 'mcp'],
  junie: ['.junie/mcp/mcp.json', 'mcpServers'],
}

export interface ClientHome {
  readonly home: string
  readonly clients: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly fileOf: (client: string) => string
  /** Reads the gateway's entry with an independent parser for each client's format. */
  readonly entryOf: (client: string) => Record<string, unknown> | undefined
  /** Returns the clients whose files have changed. */
  readonly changed: () => readonly string[]
  readonly gatehouse: (...args: string[]) => ReturnType<typeof runGatehouse>
}

export function makeClientHome(t: { teardown: (work: () => void) => void }): ClientHome {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'gatehouse-clients-')))
  t.teardown(() => rmSync(home, { recursive: true, force: true }))
  cpSync('test/fixtures/clients/home', home, { recursive: true })
  const clients = Object.keys(files)
  const fileOf = (client: string) => join(home, files[client]?.[0] ?? '')
  const originals = new Map(clients.map((client) => [client, readFileSync(fileOf(client))]))
  const env = { ...process.env, HOME: home, XDG_STATE_HOME: join(home, 'state'), XDG_CONFIG_HOME: '' }
  return {
    home,
    clients,
    env,
    fileOf,
    entryOf(client) {
      const text = readFileSync(fileOf(client), 'utf8').replace(/^\ufeff/, '')
      return untyped(documentOf(fileOf(client), text))[files[client]?.[1] ?? ''].gatehouse
    },
    changed: () => clients.filter((client) => !originals.get(client)?.equals(readFileSync(fileOf(client)))),
    gatehouse: (...args) => runGatehouse(args, '', env),
  }
}

/** JSON with comments and trailing commas is a valid JavaScript expression. */
function documentOf(file: string, text: string): unknown {
  if (file.endsWith('.toml')) return parseToml(text)
  return file.endsWith('.yaml') ? parseYaml(text) : runInNewContext(`(${text}\n)`)
}
