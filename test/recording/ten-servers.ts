/**
 * A home folder with the files of Claude Desktop, Cursor and VS Code, which contain ten servers: six from npm, two that
 * require a login, one that needs docker, and one that starts slowly. `memory` is in two files.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const slowSeconds = 40

const npx = (name: string, ...more: readonly string[]) => ({ command: 'npx', args: ['-y', name, ...more] })

const clientFiles = {
  'claude-desktop': '.config/Claude/claude_desktop_config.json',
  cursor: '.cursor/mcp.json',
  vscode: '.config/Code/User/mcp.json',
} as const

export type RecordedClient = keyof typeof clientFiles

export interface TenServers {
  readonly fileOf: (client: RecordedClient) => string
  /** The program in the gateway's entry of a client's file. */
  readonly entryOf: (client: RecordedClient) => { readonly command: string; readonly args: readonly string[] }
  /** Clients whose file differs from the original by at least one byte. */
  readonly changed: () => readonly RecordedClient[]
}

export function writeTenServers(
  home: string,
  remote: { readonly mail: string; readonly tracker: string },
): TenServers {
  const notes = join(home, 'notes')
  mkdirSync(notes)
  writeFileSync(join(notes, 'shopping.md'), '# Shopping\n')
  const memory = npx('@modelcontextprotocol/server-memory')
  const slow = `sleep ${slowSeconds}; exec npx -y @modelcontextprotocol/server-filesystem '${notes}'`
  const texts: Readonly<Record<RecordedClient, string>> = {
    'claude-desktop': `${JSON.stringify(
      {
        mcpServers: {
          filesystem: npx('@modelcontextprotocol/server-filesystem', notes),
          memory,
          github: {
            command: 'docker',
            args: ['run', '-i', '--rm', '-e', 'GITHUB_TOKEN', 'ghcr.io/github/github-mcp-server'],
            env: { GITHUB_TOKEN: 'not-a-real-token' },
          },
          'sequential-thinking': npx('@modelcontextprotocol/server-sequential-thinking'),
        },
        globalShortcut: 'Ctrl+Space',
      },
      undefined,
      2,
    )}\n`,
    cursor: `{"mcpServers": {\r\n    "memory": ${JSON.stringify(memory)},\r\n    "everything": ${JSON.stringify(
      npx('@modelcontextprotocol/server-everything'),
    )},\r\n    "docs": ${JSON.stringify(npx('@upstash/context7-mcp'))},\r\n    "mail": { "url": "${remote.mail}" } }}`,
    vscode: `{\n\t// Work\n\t"servers": {\n\t\t"tracker": { "type": "http", "url": "${remote.tracker}" },\n\t\t"browser": ${JSON.stringify(
      { type: 'stdio', ...npx('@playwright/mcp', '--headless') },
    )},\n\t\t"slow": ${JSON.stringify({ type: 'stdio', command: 'sh', args: ['-c', slow] })},\n\t},\n\t"inputs": [],\n}\n`,
  }
  const clients = Object.keys(clientFiles) as RecordedClient[]
  const fileOf = (client: RecordedClient) => join(home, clientFiles[client])
  const originals = new Map<RecordedClient, Buffer>()
  for (const client of clients) {
    mkdirSync(dirname(fileOf(client)), { recursive: true })
    writeFileSync(fileOf(client), texts[client])
    originals.set(client, readFileSync(fileOf(client)))
  }
  return {
    fileOf,
    entryOf(client) {
      const text = readFileSync(fileOf(client), 'utf8')
      // The entry is JSON without comments in all three files.
      const found = /"gatehouse":\s*(\{[^}]*\})/.exec(text)?.[1]
      if (found === undefined) throw new Error(`${fileOf(client)} has no gatehouse entry`)
      return JSON.parse(found)
    },
    changed: () => clients.filter((client) => !originals.get(client)?.equals(readFileSync(fileOf(client)))),
  }
}

/** Makes a folder that contains only the programs that the servers need, so that docker is absent. */
export function linkPrograms(folder: string): void {
  mkdirSync(folder)
  for (const name of ['node', 'npm', 'npx', 'sh', 'sleep']) {
    const path = execFileSync('/bin/sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim()
    symlinkSync(path, join(folder, name))
  }
}
