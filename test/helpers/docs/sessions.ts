/**
 * Sessions that `test/e2e/docs/commands.test.ts` runs. A session contains commands of the guides, word for word, which
 * run one after the other. Each session has its own working folder and home folder.
 */

export interface Step {
  readonly page: string
  /** The command as printed in the page. */
  readonly command: string
  /** Set for a command that keeps running. The next step starts when the output matches. */
  readonly ready?: RegExp
  /** Exit code of a command that ends. Default: 0. */
  readonly code?: number
  /** Pattern in the output of a command that ends. Lines that the page prints below the command are checked too. */
  readonly prints?: RegExp
  /** Stops all running commands before this one starts. */
  readonly isAlone?: true
}

export interface Session {
  readonly name: string
  /** Text of each file in the session's folder. The path of a page stands for the manifest in that page. */
  readonly files?: Readonly<Record<string, string>>
  /** Ports on which server-everything listens before the first step. */
  readonly servers?: readonly number[]
  /** Commands that no page contains. They start before the first step and run until the session ends. */
  readonly peers?: readonly { readonly command: string; readonly ready: RegExp }[]
  /** Environment variables that the session needs. */
  readonly env?: Readonly<Record<string, string>>
  readonly steps: readonly Step[]
}

const guide = (name: string): string => `docs/guides/${name}.md`

/** Cursor's configuration in the sessions that import it. */
const cursor = JSON.stringify({
  mcpServers: {
    everything: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'] },
    memory: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-memory'] },
  },
})

const myServer = `#!/bin/sh\nexec npx -y @modelcontextprotocol/server-memory\n`
const responding = /(?:The server is|All servers are) responding/
const isReady = /backends: /

export const sessions: readonly Session[] = [
  {
    name: 'the first commands of the README',
    files: { 'home/.cursor/mcp.json': '{"mcpServers":{}}' },
    steps: [
      {
        page: 'README.md',
        command: 'gatehouse run -- npx -y @modelcontextprotocol/server-everything',
        ready: responding,
      },
      { page: 'README.md', command: 'gatehouse client add cursor' },
      { page: 'README.md', command: 'gatehouse tools call gatehouse echo message=hello' },
    ],
  },
  {
    name: 'the quickstart, from the shell',
    steps: [
      {
        page: guide('dev'),
        command: 'gatehouse dev -f manifests/examples/quickstart',
        ready: /backends: everything, files, memory/,
      },
      {
        page: guide('shell'),
        command: 'gatehouse tools call quickstart everything_echo message=hello',
        prints: /^Echo: hello$/m,
      },
      {
        page: guide('shell'),
        command: 'gatehouse tools call get-sum a=1 b=2 -- npx -y @modelcontextprotocol/server-everything',
        prints: /\b3\b/,
      },
      {
        page: guide('shell'),
        command: 'gatehouse resources list quickstart',
        prints: /demo:\/\/resource\/static/,
      },
      {
        page: guide('shell'),
        command: 'gatehouse resources read quickstart demo://resource/static/document/features.md',
        prints: /Everything Server/,
      },
      {
        page: guide('shell'),
        command: 'gatehouse prompts get quickstart everything_args-prompt city=Bern',
        prints: /Bern/,
      },
      {
        page: guide('kind'),
        command: 'gatehouse tools call http://127.0.0.1:4483/mcp everything_echo message=hello',
        prints: /^Echo: hello$/m,
      },
      {
        page: guide('quickstart-cluster'),
        command:
          'npx @modelcontextprotocol/inspector --cli http://127.0.0.1:4483/mcp --transport http --method tools/list',
        prints: /memory_read_graph/,
      },
    ],
  },
  {
    name: 'import from a client, and run it',
    files: { 'home/.cursor/mcp.json': cursor, '.mcp.json': cursor },
    steps: [
      { page: guide('clients'), command: 'gatehouse import', prints: /memory/ },
      { page: guide('clients'), command: 'gatehouse import cursor --save mcp/', prints: /Written to mcp/ },
      { page: guide('clients'), command: 'gatehouse import .mcp.json --save project/ --resolve-env' },
      { page: guide('clients'), command: 'gatehouse dev -f mcp/', ready: isReady },
    ],
  },
  {
    name: 'import from a client, for dev',
    files: { 'home/.cursor/mcp.json': cursor },
    steps: [
      { page: guide('dev'), command: 'gatehouse import cursor --save mcp', prints: /Written to mcp/ },
      { page: guide('dev'), command: 'gatehouse dev -f mcp', ready: isReady },
    ],
  },
  {
    name: 'run without manifests, and connect clients',
    files: {
      'home/.cursor/mcp.json': cursor,
      'home/.codex/config.toml': 'model = "gpt-5"\n',
      'home/.claude.json': '{}',
      'bin/my-server': myServer,
    },
    servers: [8000],
    env: { GITHUB_TOKEN: 'not-a-token' },
    steps: [
      { page: guide('clients'), command: 'gatehouse run --url http://localhost:8000/mcp', ready: responding },
      {
        page: guide('clients'),
        command:
          'gatehouse run -e GITHUB_TOKEN --server files="npx -y @modelcontextprotocol/server-filesystem ." -- my-server',
        ready: responding,
        isAlone: true,
      },
      {
        page: guide('clients'),
        command: 'gatehouse run --from cursor --connect claude-code',
        ready: responding,
        isAlone: true,
      },
      {
        page: guide('clients'),
        command: 'gatehouse run -- npx -y @modelcontextprotocol/server-everything',
        ready: responding,
        isAlone: true,
      },
      { page: guide('clients'), command: 'gatehouse client add cursor --dry-run', prints: /4483/ },
      {
        page: guide('clients'),
        command: 'gatehouse client add cursor codex',
        prints: /Codex: "gatehouse" connects/,
      },
      { page: guide('clients'), command: 'gatehouse client add vscode --print', prints: /4483/ },
      {
        page: guide('clients'),
        command: 'gatehouse client status --check',
        prints: /cursor +user +connected/,
      },
      { page: guide('clients'), command: 'gatehouse client undo cursor', prints: /Cursor/ },
    ],
  },
  {
    name: 'the virtual server of the guide',
    files: { 'team.yaml': guide('virtual-server') },
    steps: [
      { page: guide('virtual-server'), command: 'gatehouse validate -f team.yaml', prints: /0 invalid/ },
      {
        page: guide('virtual-server'),
        command: 'gatehouse dev -f team.yaml',
        ready: /backends: archive, notes/,
      },
      { page: guide('virtual-server'), command: 'gatehouse tools list http://127.0.0.1:4483/mcp' },
    ],
  },
  {
    name: 'a virtual server without manifests',
    servers: [3001],
    steps: [
      {
        page: guide('virtual-server'),
        command: 'gatehouse vmcp init --group team --backend files=http://127.0.0.1:3001/mcp -o tools.yaml',
      },
      {
        page: guide('virtual-server'),
        command: 'gatehouse vmcp serve --config tools.yaml',
        ready: /listening/,
      },
    ],
  },
  {
    name: 'explain policies',
    steps: [
      {
        page: guide('policies'),
        command: `gatehouse policy explain -p manifests/examples/authz --claims '{"sub":"ada"}' --tool x`,
        code: 1,
      },
    ],
  },
  {
    name: 'pin one server',
    servers: [9000],
    steps: [
      {
        page: guide('tool-pinning'),
        command: 'gatehouse lock --url notes=http://127.0.0.1:9000/mcp > notes.lock.yaml',
      },
      {
        page: guide('tool-pinning'),
        command: 'gatehouse proxy --target-uri http://127.0.0.1:9000 --tool-lock notes.lock.yaml notes',
        ready: /on port/,
      },
    ],
  },
  {
    name: 'trust one server on first use',
    servers: [9000],
    steps: [
      {
        page: guide('tool-pinning'),
        command: 'gatehouse proxy --target-uri http://127.0.0.1:9000 --pin-first notes.lock.yaml notes',
        ready: /on port/,
      },
    ],
  },
]
