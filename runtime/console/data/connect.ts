/** Instructions for connecting clients: commands, files and links, without credentials. */
import { clientLink } from '../../config/index.ts'
import type { Connect } from '../api.ts'
import type { ConsoleView } from '../view.ts'
import { given } from './pages.ts'

const maxName = 32

export function connectPage(view: ConsoleView, firstCall: string | undefined): Connect {
  const { url, auth, isLocalOnly, accounts } = view.connection()
  const name = clientSafeName(view.server)
  const clients = clientsOf(name, url, auth)
  return {
    url,
    name,
    auth,
    isLocalOnly,
    clients: isLocalOnly ? clients.map(withBridge).filter(hasInstructions) : clients,
    ...given('firstCall', firstCall),
    ...given('accounts', accounts),
  }
}

/** Keeps only the instructions that start `gatehouse proxy stdio`, because clients cannot send the token themselves. */
function withBridge({
  id,
  label,
  add,
  command,
  file,
}: Connect['clients'][number]): Connect['clients'][number] {
  if (add === undefined) return { id, label, ...given('command', command) }
  return { id, label, add, ...given('file', id === 'claude-desktop' ? file : undefined) }
}

/** False for a client that can only be connected by a link. */
function hasInstructions({ add, command }: Connect['clients'][number]): boolean {
  return add !== undefined || command !== undefined
}

/** Returns a name that every client accepts. */
function clientSafeName(server: string): string {
  const safe = server
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, maxName)
  return safe === '' ? 'gatehouse' : safe
}

function clientsOf(name: string, url: string, auth: boolean): Connect['clients'] {
  const word = /^[\w./:@%+=-]+$/.test(url) ? url : `'${url.replaceAll("'", "'\\''")}'`
  const file = (path: string, servers: string, entry: unknown) => ({
    path,
    content: `${JSON.stringify({ [servers]: { [name]: entry } }, null, 2)}\n`,
  })
  const add = (client: string) => `gatehouse client add ${client} --name ${name} --url ${word}`
  const bridge = ['proxy', 'stdio', url, ...(auth ? ['--remote-auth'] : [])]
  return [
    {
      id: 'claude-desktop',
      label: 'Claude Desktop',
      add: add('claude-desktop'),
      file: file('claude_desktop_config.json', 'mcpServers', { command: 'gatehouse', args: bridge }),
    },
    {
      id: 'claude-code',
      label: 'Claude Code',
      add: add('claude-code'),
      command: `claude mcp add --transport http ${name} ${word}`,
    },
    {
      id: 'cursor',
      add: add('cursor'),
      label: 'Cursor',
      link: clientLink('cursor', name, url),
      file: file('~/.cursor/mcp.json', 'mcpServers', { url }),
    },
    {
      id: 'vscode',
      add: add('vscode'),
      label: 'VS Code',
      link: clientLink('vscode', name, url),
      file: file('.vscode/mcp.json', 'servers', { type: 'http', url }),
    },
    { id: 'codex', label: 'Codex', add: add('codex'), command: `codex mcp add ${name} --url ${word}` },
    {
      id: 'gemini',
      label: 'Gemini CLI',
      add: add('gemini'),
      command: `gemini mcp add --transport http ${name} ${word}`,
    },
    {
      id: 'windsurf',
      add: add('windsurf'),
      label: 'Windsurf',
      file: file('~/.codeium/windsurf/mcp_config.json', 'mcpServers', { serverUrl: url }),
    },
    { id: 'goose', label: 'Goose', add: add('goose'), link: clientLink('goose', name, url) },
    { id: 'lm-studio', label: 'LM Studio', link: clientLink('lm-studio', name, url) },
    {
      id: 'other',
      label: 'Any client with a local command',
      command: `gatehouse proxy stdio ${word}${auth ? ' --remote-auth' : ''}`,
    },
  ]
}
