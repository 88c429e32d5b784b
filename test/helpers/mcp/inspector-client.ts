/**
 * Uses the MCP Inspector like a person at a terminal: its command line prints where to sign in, waits for the browser
 * on its own callback address, and stores the tokens in files for the next run.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from '../gatehouse.ts'
import type { Landing, SeenLogin, WorkingClient } from '../authserver/signed-in-client.ts'

const program = join(
  import.meta.dirname,
  '../../../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
)

interface InspectorOptions {
  readonly url: string
  /** Trusted certificates in addition to the system's. */
  readonly caFile: string
  /** Publishes a metadata document for a redirect URI. Undefined: the Inspector registers. */
  readonly documentFor: (redirectUri: string) => Promise<string | undefined>
  readonly login: (landing: Landing, start: URL) => Promise<SeenLogin>
}

interface Run {
  readonly output: string
  readonly code: number | null
}

/** Signs in by listing the tools. Later runs use only stored tokens, and fail when they need the user. */
export async function connectInspector(
  t: Pick<Test, 'testdir'>,
  options: InspectorOptions,
): Promise<WorkingClient> {
  const dir = t.testdir({})
  const redirectUri = `http://127.0.0.1:${await freePort()}/oauth/callback`
  const document = await options.documentFor(redirectUri)
  const base = [
    ...[options.url, '--transport', 'http', '--format', 'json', '--callback-url', redirectUri],
    ...(document === undefined ? [] : ['--client-metadata-url', document]),
  ]
  const env = {
    ...process.env,
    HOME: dir,
    MCP_STORAGE_DIR: dir,
    MCP_INSPECTOR_SECRET_STORE: 'file',
    // Without a terminal, the Inspector prints the address only when it can open a browser. This browser does nothing.
    MCP_AUTO_OPEN_ENABLED: 'true',
    BROWSER: 'true',
    NODE_EXTRA_CA_CERTS: options.caFile,
  }
  const run = async (args: readonly string[], onUrl?: (url: URL) => void): Promise<Run> => {
    const child = spawn(process.execPath, [program, '--cli', ...base, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env,
    })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
    let said = ''
    let told = false
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
      const [, href] = /navigate to: (\S+)\n/.exec(said) ?? []
      if (href === undefined || told) return
      told = true
      onUrl?.(new URL(href))
    })
    const [code] = (await once(child, 'close')) as [number | null]
    return { output: code === 0 ? output : `${output}${said}`, code }
  }

  let login: Promise<SeenLogin> | undefined
  // The Inspector itself serves its callback address, so its response is ignored.
  const landing: Landing = { redirectUri, next: async () => new URLSearchParams() }
  const first = await run(['--method', 'tools/list'], (start) => {
    login = options.login(landing, start)
  })
  if (first.code !== 0 || login === undefined) throw new Error(`the Inspector failed: ${first.output}`)

  const stored = async (...args: readonly string[]): Promise<string> => {
    const { output, code } = await run(['--stored-auth-only', ...args])
    if (code !== 0) throw new Error(`the Inspector failed: ${output}`)
    return output
  }
  return {
    login: await login,
    clientId: () => storedValue(dir, /"client_?id"\s*:\s*"([^"]+)"/i),
    accessToken: () => storedValue(dir, /"access_token\\?"\s*:\s*\\?"([^"\\]+)/),
    async listTools() {
      const { result } = JSON.parse(await stored('--method', 'tools/list')) as {
        result: { tools: { name: string }[] }
      }
      return result.tools.map(({ name }) => name)
    },
    async call(name) {
      const text = await stored('--method', 'tools/call', '--tool-name', name)
      const { result } = JSON.parse(text) as {
        result: { isError?: boolean; content: { text?: string }[] }
      }
      return `${result.isError === true ? '!' : ''}${result.content[0]?.text ?? ''}`
    },
    close: async () => {},
  }
}

/** Returns a value from the Inspector's files. */
function storedValue(dir: string, pattern: RegExp): string {
  for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
    const path = join(dir, name)
    const [, value] =
      (existsSync(path) && name.endsWith('.json') && pattern.exec(readFileSync(path, 'utf8'))) || []
    if (value !== undefined) return value
  }
  throw new Error('the Inspector has stored nothing of the kind')
}
