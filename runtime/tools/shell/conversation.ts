/**
 * Opens and ends a conversation with a server. Uses either the transparent proxy (which handles transports, protocol
 * eras and logins) or a command that it starts.
 */
import { PassThrough } from 'node:stream'
import { GatehouseError } from '../../../schemas/index.ts'
import {
  environment,
  offeredLogin,
  type ProxySettings,
  type ProxyInput,
  readVariable,
  resolveProxyConfig,
  variables,
} from '../../config/index.ts'
import { runProgram, runStdio, watchGroups } from '../../proxy/index.ts'
import type { RootLog } from '../../observe/index.ts'
import { localEnvironment } from '../../toolkit/local/environment.ts'
import { startedCommand } from '../../toolkit/local/processes/npx.ts'
import { printError } from '../../toolkit/terminal/output.ts'
import { version } from '../../toolkit/terminal/self.ts'
import { type ClientOptions, ConversationOver, McpClient } from './client.ts'
import { forTerminal } from '../../toolkit/terminal/plain-text.ts'
import { unreachableText } from '../../toolkit/targets/kubernetes.ts'
import { withLocalToken } from '../../toolkit/targets/running.ts'

export type Server =
  | { readonly kind: 'url'; readonly url: URL }
  | {
      readonly kind: 'command'
      readonly words: readonly string[]
      readonly env: Readonly<Record<string, string>>
    }

export interface ConversationOptions {
  readonly server: Server
  /** The proxy flags that affect the connection to the server. */
  readonly input: ProxyInput
  readonly verbose: boolean
  readonly log: RootLog
  readonly client: Omit<ClientOptions, 'toServer' | 'fromServer'>
}

/** Number of output lines to print when a command exits unexpectedly. */
const maxLines = 20

/**
 * Opens a conversation, calls `work` with its client, and ends the conversation. Throws the errors that `work` throws.
 */
export async function converse<T>(
  options: ConversationOptions,
  work: (client: McpClient) => Promise<T>,
): Promise<T> {
  const toServer = new PassThrough()
  const fromServer = new PassThrough()
  const client = new McpClient({ ...options.client, toServer, fromServer })
  const streams = { input: toServer, output: fromServer, log: options.log, signal: options.client.signal }
  const carried =
    options.server.kind === 'url'
      ? carryToUrl(options.server.url, options, streams)
      : carryToCommand(options.server, options, streams)
  const over = carried.then(
    (why) => client.end(new ConversationOver(why)),
    (error: unknown) => {
      client.end(error instanceof Error ? error : new ConversationOver(String(error)))
    },
  )
  try {
    await client.open()
    return await work(client)
  } finally {
    toServer.end()
    await over
  }
}

interface Streams {
  readonly input: PassThrough
  readonly output: PassThrough
  readonly log: RootLog
  readonly signal: AbortSignal
}

/** Resolves with the reason why the conversation ended. */
async function carryToUrl(url: URL, { input }: ConversationOptions, streams: Streams): Promise<string> {
  const reached = await runStdio({
    ...streams,
    config: configFor(url, input),
    path: url.pathname,
    notify: printError,
    browser: readVariable(environment(), variables.browser),
    drainMs: 1_000,
  })
  return reached ? 'the conversation ended' : unreachableText(url)
}

/**
 * Returns the settings of the proxy. For a server that `gatehouse up` runs, the settings contain the token that the
 * server requires. On a terminal, the proxy offers the login that the server requires.
 */
function configFor(url: URL, input: ProxyInput): ProxySettings {
  const env = environment()
  const targetUri = url.origin + url.search
  const config = resolveProxyConfig('shell', { ...input, targetUri, requestTimeout: '0s' }, env)
  if (config.exchange && config.remote.kind !== 'oauth') {
    throw new GatehouseError('INVALID_CONFIG', {
      detail:
        '--token-exchange-url: requires --remote-auth here, because there is no other token to exchange',
    })
  }
  const local = withLocalToken(config, url)
  if (local !== config) return local
  const offered = process.stderr.isTTY ? offeredLogin(config, env) : undefined
  // A shared proxy can forward its clients' credentials. This command has no other credentials, so it waits for the
  // login.
  return offered ? { ...config, remote: { ...offered, optional: false } } : config
}

async function carryToCommand(
  { words, env }: Extract<Server, { kind: 'command' }>,
  { verbose }: ConversationOptions,
  streams: Streams,
): Promise<string> {
  const lines: string[] = []
  watchGroups()
  const { baseEnv } = localEnvironment()
  const full = { ...baseEnv, ...env }
  const cwd = process.cwd()
  const why = await runProgram({
    ...streams,
    command: startedCommand(words, cwd, full),
    env: full,
    cwd,
    info: JSON.stringify({ name: 'gatehouse', version }),
    onLine(line) {
      if (verbose) printError(forTerminal(line))
      else lines.splice(0, Math.max(0, lines.push(line) - maxLines))
    },
  })
  const printed = lines.map((line) => `\n  ${forTerminal(line)}`).join('')
  return `${words[0] ?? 'the command'}: ${why}${printed}`
}
