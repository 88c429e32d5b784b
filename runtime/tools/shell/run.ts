/**
 * Runs one operation of `tools`, `resources` or `prompts`: finds the server, opens the conversation, and reports
 * errors.
 */
import { GatehouseError, invalidConfig } from '../../../schemas/index.ts'
import type { ProxyInput } from '../../config/index.ts'
import { downWarning } from '../../toolkit/targets/down.ts'
import { loginFailed } from '../../toolkit/targets/proxy-flags.ts'
import { urlOfTarget } from '../../toolkit/targets/resolve.ts'
import { runningHint } from '../../toolkit/targets/running.ts'
import { requiredSignIns } from '../../toolkit/targets/sign-ins.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'
import { commandLog } from '../../toolkit/terminal/log.ts'
import { exitCode, printError } from '../../toolkit/terminal/output.ts'
import type { ArgumentFlags } from './arguments.ts'
import { ConversationOver, type McpClient, ServerError } from './client.ts'
import { converse, type Server } from './conversation.ts'
import { unreachable, unreachableText } from '../../toolkit/targets/kubernetes.ts'
import { answerElicitation } from './elicitation.ts'
import type { OutputFormat } from './operations.ts'
import { forTerminal, oneLine } from '../../toolkit/terminal/plain-text.ts'
import { ProgressLine } from './progress.ts'
import { splitOperands, variablesFrom } from './target.ts'

export interface ShellFlags extends ProxyInput, ArgumentFlags {
  readonly env: readonly string[]
  readonly namespace?: string
  readonly output: OutputFormat
  readonly timeout: number
  readonly verbose: boolean
}

/** An operation. `operands` contains the operands after TARGET. */
export type ShellOperation = (client: McpClient, operands: readonly string[]) => Promise<number>

export interface Operands {
  readonly words: readonly string[]
  /** Names of the required operands after TARGET. */
  readonly needed: readonly string[]
  /** True when name=value pairs may follow. */
  readonly pairs: boolean
}

const httpUnauthorized: ReadonlySet<number | undefined> = new Set([401, 403])

/** Returns the exit code. */
export async function runOperation(
  operands: Operands,
  flags: ShellFlags,
  operation: ShellOperation,
): Promise<number> {
  const { operands: words, command } = splitOperands(operands.words, process.argv)
  const rest = command ? words : words.slice(1)
  checkCount(words, rest, operands, command !== undefined)
  if (!command && flags.env.length > 0)
    throw invalidConfig('-e: applies to a command after --, but there is none')
  const server = command
    ? ({ kind: 'command', words: command, env: variablesFrom(flags.env) } as const)
    : ({ kind: 'url', url: await urlOfTarget(words[0] ?? '', flags.namespace) } as const)
  const log = commandLog({ level: flags.verbose ? 'debug' : 'error', name: 'shell' })
  const stop = new AbortController()
  void stopSignal(stop)
  const progress = new ProgressLine(process.stderr)
  const title = oneLine(command?.[0] ?? words[0] ?? '', 80)
  const client = {
    onProgress: progress.show,
    onLog: (level: string, text: string) => {
      if (flags.verbose || !quietLevels.has(level))
        progress.printAbove(`[${oneLine(level, 20)}] ${oneLine(text)}`)
    },
    elicit: (params: Parameters<typeof answerElicitation>[0]) => {
      progress.clear()
      return answerElicitation(params, title)
    },
    timeoutMs: flags.timeout * 1000,
    signal: stop.signal,
  }
  try {
    return await converse({ server, input: flags, verbose: flags.verbose, log, client }, (open) =>
      operation(open, rest).finally(() => progress.clear()),
    )
  } catch (error) {
    progress.clear()
    return reportFailure(error, server, stop.signal, log)
  } finally {
    // The operation can fail, or its result can be incomplete, because backends are down.
    if (server.kind === 'url') await warnAbout(server.url)
    log.flush()
  }
}

/** Prints the sign-ins that the server requires, and the other reasons why its backends are down. */
async function warnAbout(server: URL): Promise<void> {
  const signIns = await requiredSignIns(server)
  for (const { backend, url } of signIns)
    printError(`${oneLine(backend, 80)} requires a sign-in: open ${forTerminal(url)}`)
  for (const line of await downWarning(server, new Set(signIns.map(({ backend }) => backend))))
    printError(forTerminal(line))
}

/** Levels that are printed only with --verbose. */
const quietLevels: ReadonlySet<string> = new Set(['debug', 'info', 'notice'])

function checkCount(
  words: readonly string[],
  rest: readonly string[],
  { needed, pairs }: Operands,
  hasCommand: boolean,
): void {
  if (!hasCommand && words.length === 0)
    throw invalidConfig(
      `TARGET is missing: add a URL, the name of a running server, or a command after --; ${runningHint()}`,
    )
  const missing = needed[rest.length]
  if (missing !== undefined) {
    const hint = hasCommand ? '' : ' after TARGET'
    throw invalidConfig(`${missing} is missing${hint}`)
  }
  if (!pairs && rest.length > needed.length) {
    const hint = hasCommand ? '; TARGET and a command cannot be combined' : ''
    throw invalidConfig(`too many arguments: ${oneLine(rest.slice(needed.length).join(' '), 80)}${hint}`)
  }
}

function reportFailure(
  error: unknown,
  server: Server,
  stop: AbortSignal,
  log: ReturnType<typeof commandLog>,
): number {
  if (error instanceof ServerError) {
    const text =
      server.kind === 'url' && error.message === unreachable ? unreachableText(server.url) : error.message
    printError(`Error: ${forTerminal(text)}`)
    return httpUnauthorized.has(error.status) ? exitCode.authentication : exitCode.failed
  }
  if (error instanceof ConversationOver) {
    printError(`Error: ${error.message}`)
    return exitCode.failed
  }
  if (error instanceof GatehouseError && error.code === 'BACKEND_AUTH_FAILED')
    return loginFailed(error, stop, log)
  throw error
}
