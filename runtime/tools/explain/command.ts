/** `gatehouse explain` explains why a caller can or cannot use an item, based on manifests or a running server. */
import { type Command, Option } from 'commander'
import { type Fields, invalidConfig } from '../../../schemas/index.ts'
import { readTextFile } from '../../config/index.ts'
import { explain } from './explain.ts'
import type { ExplainQuestion, Explanation } from './types.ts'
import { exitCode, print, printJson } from '../../toolkit/terminal/output.ts'
import { readServers } from '../../toolkit/local/servers.ts'
import { oneLine } from '../../toolkit/terminal/plain-text.ts'
import { explainLive } from './live.ts'
import { readState } from './state.ts'
import { NamedArgument } from '../../toolkit/terminal/command.ts'
import { runningHint, runningServer, runningServers } from '../../toolkit/targets/running.ts'
import { collect, jsonObject } from '../../toolkit/terminal/options.ts'

interface Options {
  readonly filename: string[]
  readonly server?: string
  readonly state?: string
  readonly url?: string
  readonly tokenFile?: string
  readonly claims?: Fields
  readonly tool?: string
  readonly prompt?: string
  readonly resource?: string
  readonly args?: Fields
  readonly output: 'text' | 'json'
  /** Name of a server that runs on this machine. */
  readonly running?: string | undefined
}

export function addExplainCommand(program: Command): void {
  program
    .command('explain')
    .summary('explain why a caller can or cannot use a tool')
    .description(
      'Follows a name through the stages of a call: name, conflict, filter, pin, policy, limits, credential, backend. The\n' +
        'first failed check is the reason; later failed checks would also block the call. Uses manifests or a virtual server’s file\n' +
        '(-f), with the state of backends from a file (--state), or a running server through its console (--url).',
    )
    .addArgument(
      new NamedArgument(
        '[SERVER]',
        'name of a virtual server started by "gatehouse up", "run" or "dev"',
        () => runningServers().flatMap(({ name, consoleUrl }) => (consoleUrl === undefined ? [] : [name])),
      ),
    )
    .option('-f, --filename <path>', 'manifests, or a virtual server’s file; repeatable', collect, [])
    .option('--server <name>', 'name of the virtual server, if there are several')
    .option(
      '--state <file>',
      'file that contains the backends’ state: backends.<name>.{tools, health, error, circuit}',
    )
    .option('--url <url>', 'console URL of a running server')
    .option(
      '--token-file <file>',
      'file with the console’s token, the part after #launch= in the printed URL',
    )
    .option(
      '--claims <json>',
      'the caller’s claims, as JSON or @file (default: none, or the console user’s claims)',
      jsonObject,
    )
    .option('--tool <name>', 'tool name that clients see')
    .option('--prompt <name>', 'prompt name that clients see; only for a running server')
    .option('--resource <uri>', 'URI of the resource; only for a running server')
    .option('--args <json>', 'call arguments, as JSON or @file', jsonObject)
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .addHelpText(
      'after',
      '\nExamples:\n  gatehouse explain -f manifests/ --claims \'{"sub":"ada"}\' --tool github_search\n' +
        '  gatehouse explain gatehouse --tool github_search\n' +
        '  gatehouse explain --url http://127.0.0.1:21875/ --token-file token --tool github_search\n' +
        '\nExit codes: 0 the item can be used, 1 it cannot, 2 invalid usage or invalid input.',
    )
    .action(async (name: string | undefined, typed: Options) => {
      const options = { ...typed, running: name }
      const explained = await explainItem(options)
      if (options.output === 'json') printJson(explained)
      else print(textOf(explained))
      process.exitCode = explained.decision === 'allow' ? exitCode.ok : exitCode.failed
    })
}

function questionOf({ claims, tool, prompt, resource, args }: Options): ExplainQuestion {
  const named = [
    { action: 'call_tool', name: tool },
    { action: 'get_prompt', name: prompt },
    { action: 'read_resource', name: resource },
  ] as const
  const [only, another] = named.filter(({ name }) => name !== undefined)
  if (!only || another) throw invalidConfig('specify one of --tool, --prompt and --resource')
  const { action, name = '' } = only
  return { action, name, claims: claims ?? {}, ...(args ? { arguments: args } : {}) }
}

async function explainItem(options: Options): Promise<Explanation> {
  const { filename, server, state, claims } = options
  const live = consoleOf(options)
  const question = questionOf(options)
  if (live) {
    const { claims: _claims, ...rest } = question
    return explainLive(live.url, live.token, { ...rest, ...(claims ? { claims } : {}) })
  }
  if (question.action !== 'call_tool')
    throw invalidConfig(
      'only a running server lists prompts and resources: set --url to the URL of its console',
    )
  const servers = await readServers(filename)
  const found = server === undefined ? servers : servers.filter(({ name }) => name === server)
  const [config] = found
  if (!config) throw invalidConfig(`${filename.join(', ')}: virtual server not found`)
  if (found.length > 1)
    throw invalidConfig(`choose a virtual server with --server: ${found.map(({ name }) => name).join(', ')}`)
  const { snapshotOffline } = await import('../../vmcp/index.ts')
  return explain(snapshotOffline(config, readState(state)), question)
}

/** Returns the console to query, or undefined if --filename is set. */
function consoleOf({
  filename,
  url,
  tokenFile,
  running,
}: Options): { url: string; token: string } | undefined {
  const ways = [filename.length > 0, url !== undefined, running !== undefined].filter(Boolean)
  if (ways.length !== 1)
    throw invalidConfig(
      `specify one of SERVER, --filename and --url; ${runningHint({ kind: 'VirtualMCPServer' })}`,
    )
  if (tokenFile !== undefined && url === undefined)
    throw invalidConfig('--token-file: has no effect without --url')
  if (url !== undefined) return { url, token: readFileText(tokenFile ?? '').trim() }
  if (running === undefined) return undefined
  const found = runningServer(running)?.consoleUrl
  if (found === undefined)
    throw invalidConfig(
      `no virtual server named ${running}; ${runningHint({ kind: 'VirtualMCPServer', wanted: running })}`,
    )
  const { origin, pathname, hash } = new URL(found)
  return { url: `${origin}${pathname}`, token: hash.replace('#launch=', '') }
}

/** Maximum length of a line. Names and messages contain text from backends. */
const maxLine = 1_000

const marks = { pass: 'ok  ', stop: 'STOP', note: 'note' } as const

function textOf({ decision, steps }: Explanation): string {
  const reason = steps.find(({ verdict }) => verdict === 'stop')
  const head = {
    allow: 'the item can be used',
    undecided: 'the external decision point decides: query it directly',
    deny: `the item cannot be used: ${reason?.message ?? ''}`,
    not_found: `the item does not exist: ${reason?.message ?? ''}`,
  }[decision]
  return [
    oneLine(head, maxLine),
    ...steps.flatMap(({ stage, verdict, message, details = [] }) => [
      `  ${marks[verdict]} ${stage.padEnd(10)} ${oneLine(message, maxLine)}`,
      ...details.map((line) => `                  ${oneLine(line, maxLine)}`),
    ]),
  ].join('\n')
}

/** Throws INVALID_CONFIG, which contains the path. */
function readFileText(path: string): string {
  if (path === '') throw invalidConfig('--url requires --token-file')
  return readTextFile(path, `${path}:`)
}
