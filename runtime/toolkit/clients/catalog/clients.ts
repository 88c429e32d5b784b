/** The table of MCP clients, one row per client. Defines all paths and entry formats. */
import { clientLink } from '../../../config/index.ts'
import type { BearerReference, ClientRow, EntryForm } from './client-row.ts'

/** Default values shared by most clients. */
const common: EntryForm = {
  command: 'command',
  env: 'env',
  urls: { url: 'auto' },
  type: 'type',
  headers: 'headers',
  own: ['timeout', 'autoApprove', 'alwaysAllow', 'description', 'trust', 'icon'],
}

const program = (command: string, args: readonly string[]) => ({ command, args })
const typedProgram = (command: string, args: readonly string[]) => ({ type: 'stdio', command, args })

/** Returns `{"headers": {…}}` with a reference to the token, or an empty object. */
function authorization(token: BearerReference | undefined): { headers?: Record<string, string> } {
  return token?.header === undefined ? {} : { headers: { Authorization: token.header } }
}

const vscodeExtension = (id: string, rest: string): string =>
  `{vscodeUser}/globalStorage/${id}/settings/${rest}`

const clients = {
  'claude-desktop': {
    title: 'Claude Desktop',
    format: 'json',
    key: ['mcpServers'],
    files: [
      { scope: 'user', on: ['darwin'], path: '{appSupport}/Claude/claude_desktop_config.json' },
      { scope: 'user', on: ['linux'], path: '{config}/Claude/claude_desktop_config.json' },
      {
        scope: 'user',
        on: ['win32'],
        path: '{localAppData}/Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json',
      },
      { scope: 'user', on: ['win32'], path: '{appData}/Claude/claude_desktop_config.json' },
    ],
    form: common,
    variables: 'none',
    program,
    pickUp: 'Quit Claude Desktop (including its tray icon) and start it again',
    rewrittenBy: ['Claude', 'Claude.exe', 'claude-desktop'],
  },
  'claude-code': {
    title: 'Claude Code',
    format: 'json',
    key: ['mcpServers'],
    files: [
      { scope: 'user', path: '{$CLAUDE_CONFIG_DIR:.}/.claude.json' },
      {
        scope: 'local',
        path: '{$CLAUDE_CONFIG_DIR:.}/.claude.json',
        key: ['projects', '{cwd}', 'mcpServers'],
      },
      { scope: 'project', path: '{cwd}/.mcp.json' },
    ],
    form: { ...common, own: [...common.own, 'alwaysLoad'] },
    variables: 'braces',
    remote: (url, token) => ({ type: 'http', url, ...authorization(token) }),
    program: typedProgram,
    reservedNames: ['workspace', 'computer-use', 'ide'],
    pickUp: 'Restart Claude Code',
    rewrittenBy: ['claude', 'claude.exe'],
    ownCommand: (name, url, scope) => [
      'claude',
      'mcp',
      'add',
      '--transport',
      'http',
      '--scope',
      scope,
      name,
      url,
    ],
  },
  cursor: {
    title: 'Cursor',
    format: 'json',
    key: ['mcpServers'],
    files: [
      { scope: 'user', path: '{home}/.cursor/mcp.json' },
      { scope: 'project', path: '{cwd}/.cursor/mcp.json' },
    ],
    form: common,
    variables: 'prefixed',
    remote: (url, token) => ({ url, ...authorization(token) }),
    program,
    pickUp: 'Restart Cursor',
    link: (name, url) => clientLink('cursor', name, url),
  },
  vscode: {
    title: 'VS Code',
    format: 'json',
    key: ['servers'],
    files: [
      { scope: 'user', path: '{vscodeUser}/mcp.json' },
      { scope: 'profile', path: '{vscodeUser}/profiles/*/mcp.json' },
      { scope: 'user', path: '{vscodeInsidersUser}/mcp.json' },
      { scope: 'user', path: '{home}/.vscode-server/data/User/mcp.json' },
      { scope: 'project', path: '{cwd}/.vscode/mcp.json' },
      { scope: 'user', path: '{vscodeUser}/settings.json', key: ['mcp', 'servers'], ifPresent: true },
    ],
    form: { ...common, own: [...common.own, 'dev', 'gallery', 'version'] },
    variables: 'prefixed',
    remote: (url, token) => ({ type: 'http', url, ...authorization(token) }),
    program: typedProgram,
    pickUp: 'VS Code applies the change and asks whether you trust the server',
    ownCommand: (name, url) => ['code', '--add-mcp', JSON.stringify({ name, type: 'http', url })],
    link: (name, url) => clientLink('vscode', name, url),
  },
  copilot: {
    title: 'GitHub Copilot CLI',
    format: 'json',
    key: ['mcpServers'],
    files: [
      { scope: 'user', path: '{$COPILOT_HOME:.copilot}/mcp-config.json' },
      { scope: 'project', path: '{cwd}/.github/mcp.json' },
    ],
    form: { ...common, allow: 'tools' },
    // github/copilot-cli#903
    variables: 'dollar',
    remote: (url) => ({ type: 'http', url, tools: ['*'] }),
    program: (command, args) => ({ type: 'local', command, args, tools: ['*'] }),
    pickUp: 'Restart Copilot',
  },
  windsurf: {
    title: 'Windsurf (Devin Desktop)',
    format: 'json',
    key: ['mcpServers'],
    files: [
      { scope: 'user', on: ['darwin', 'linux'], path: '{home}/.config/devin/mcp_config.json' },
      { scope: 'user', on: ['win32'], path: '{appData}/devin/mcp_config.json' },
      { scope: 'user', path: '{home}/.codeium/windsurf/mcp_config.json', ifPresent: true },
      { scope: 'project', path: '{cwd}/.devin/mcp_config.json' },
    ],
    form: { ...common, urls: { url: 'auto', serverUrl: 'auto' }, deny: 'disabledTools' },
    variables: 'prefixed',
    // Older versions read serverUrl; newer versions read both.
    remote: (url, token) => ({ serverUrl: url, ...authorization(token) }),
    program,
    pickUp: 'Refresh the list of MCP servers',
    ownCommand: (name, url) => ['devin', 'mcp', 'add', '-s', 'user', name, url],
  },
  codex: {
    title: 'Codex',
    format: 'toml',
    key: ['mcp_servers'],
    files: [
      { scope: 'user', path: '{$CODEX_HOME:.codex}/config.toml' },
      { scope: 'project', path: '{cwd}/.codex/config.toml' },
    ],
    form: {
      ...common,
      envNames: 'env_vars',
      urls: { url: 'streamable-http' },
      headers: 'http_headers',
      headerVariables: 'env_http_headers',
      bearerVariable: 'bearer_token_env_var',
      allow: 'enabled_tools',
      deny: 'disabled_tools',
      own: [
        ...common.own,
        'startup_timeout_sec',
        'startup_timeout_ms',
        'tool_timeout_sec',
        'required',
        'tools',
        'supports_parallel_tool_calls',
        'default_tools_approval_mode',
      ],
    },
    variables: 'none',
    remote: (url, token) => ({ url, ...(token && { bearer_token_env_var: token.variable }) }),
    program,
    pickUp: 'Restart Codex',
    ownCommand: (name, url) => ['codex', 'mcp', 'add', name, '--url', url],
  },
  gemini: {
    title: 'Gemini CLI',
    format: 'json',
    key: ['mcpServers'],
    files: [
      { scope: 'user', path: '{home}/.gemini/settings.json' },
      { scope: 'project', path: '{cwd}/.gemini/settings.json' },
    ],
    form: {
      ...common,
      // Without a type, the client tries streamable HTTP first.
      urls: { httpUrl: 'streamable-http', url: 'auto' },
      allow: 'includeTools',
      deny: 'excludeTools',
    },
    variables: 'dollar',
    remote: (url, token) => ({ httpUrl: url, ...authorization(token) }),
    program,
    pickUp: 'Restart Gemini CLI',
    ownCommand: (name, url) => ['gemini', 'mcp', 'add', '-s', 'user', '--transport', 'http', name, url],
  },
  zed: {
    title: 'Zed',
    format: 'json',
    key: ['context_servers'],
    files: [
      { scope: 'user', on: ['darwin', 'linux'], path: '{home}/.config/zed/settings.json' },
      { scope: 'user', on: ['win32'], path: '{appData}/Zed/settings.json' },
      { scope: 'project', path: '{cwd}/.zed/settings.json' },
    ],
    form: { ...common, own: [...common.own, 'source', 'remote', 'settings'] },
    variables: 'none',
    remote: (url) => ({ url }),
    program,
    pickUp: 'Zed applies the change immediately',
  },
  cline: {
    title: 'Cline',
    format: 'json',
    key: ['mcpServers'],
    files: [
      { scope: 'user', path: vscodeExtension('saoudrizwan.claude-dev', 'cline_mcp_settings.json') },
      { scope: 'user', path: '{home}/.cline/data/settings/cline_mcp_settings.json' },
    ],
    form: { ...common, urls: { url: 'sse' }, deny: 'disabledTools' },
    // cline/cline#8079
    variables: 'prefixed',
    remote: (url) => ({ type: 'streamableHttp', url }),
    program,
    pickUp: 'Cline applies the change immediately',
  },
  roo: {
    title: 'Roo Code',
    format: 'json',
    key: ['mcpServers'],
    files: [
      { scope: 'user', path: vscodeExtension('rooveterinaryinc.roo-cline', 'mcp_settings.json') },
      { scope: 'project', path: '{cwd}/.roo/mcp.json' },
    ],
    form: { ...common, deny: 'disabledTools', own: [...common.own, 'watchPaths'] },
    variables: 'prefixed',
    pickUp: 'Roo Code is discontinued',
  },
  goose: {
    title: 'Goose',
    format: 'yaml',
    key: ['extensions'],
    files: [
      { scope: 'user', on: ['darwin', 'linux'], path: '{home}/.config/goose/config.yaml' },
      { scope: 'user', on: ['win32'], path: '{appData}/Block/goose/config/config.yaml' },
    ],
    form: {
      ...common,
      command: 'cmd',
      env: 'envs',
      envNames: 'env_keys',
      headersUseEnv: true,
      urls: { uri: 'streamable-http' },
      allow: 'available_tools',
      emptyAllowsAll: true,
      own: [...common.own, 'name', 'display_name', 'bundled'],
    },
    variables: 'none',
    remote: (url) => ({
      enabled: true,
      type: 'streamable_http',
      name: 'gatehouse',
      description: 'MCP servers behind Gatehouse',
      uri: url,
      envs: {},
      env_keys: [],
      headers: {},
      timeout: 300,
    }),
    program: (command, args) => ({
      enabled: true,
      type: 'stdio',
      name: 'gatehouse',
      description: 'MCP servers behind Gatehouse',
      cmd: command,
      args,
      envs: {},
      env_keys: [],
      timeout: 300,
    }),
    pickUp: 'Start a new Goose session',
    link: (name, url) => clientLink('goose', name, url),
  },
  opencode: {
    title: 'OpenCode',
    format: 'json',
    key: ['mcp'],
    files: [
      // The .jsonc file takes precedence over the .json file.
      { scope: 'user', path: '{home}/.config/opencode/opencode.jsonc', ifPresent: true },
      { scope: 'user', path: '{home}/.config/opencode/opencode.json' },
      { scope: 'project', path: '{cwd}/opencode.jsonc', ifPresent: true },
      { scope: 'project', path: '{cwd}/opencode.json' },
    ],
    form: { ...common, env: 'environment' },
    variables: 'bare-braces',
    remote: (url, token) => ({ type: 'remote', url, enabled: true, ...authorization(token) }),
    program: (command, args) => ({ type: 'local', command: [command, ...args], enabled: true }),
    pickUp: 'Restart OpenCode',
  },
  junie: {
    title: 'JetBrains Junie',
    format: 'json',
    key: ['mcpServers'],
    files: [
      { scope: 'user', path: '{home}/.junie/mcp/mcp.json' },
      { scope: 'project', path: '{cwd}/.junie/mcp/mcp.json' },
    ],
    form: common,
    variables: 'none',
    remote: (url) => ({ url }),
    program,
    pickUp: 'Restart the IDE',
  },
} as const satisfies Record<string, ClientRow>

export type ClientId = keyof typeof clients

export const clientIds = Object.keys(clients) as readonly ClientId[]

export function isClientId(name: string): name is ClientId {
  return Object.hasOwn(clients, name)
}

export function clientRow(id: ClientId): ClientRow {
  return clients[id]
}

/** Entry format for unknown clients' files. Accepts every field name that a known client uses for the same purpose. */
export const plainForm: EntryForm = {
  ...common,
  urls: { url: 'auto', httpUrl: 'streamable-http', serverUrl: 'auto', uri: 'streamable-http' },
}

/** Paths of server maps in unknown clients' files. */
export const plainKeys: readonly (readonly string[])[] = [['mcpServers'], ['servers']]
