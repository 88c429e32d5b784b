/** `gatehouse explain`: why somebody can or cannot use something, of manifests or of a running server. */
import { type Command, Option } from 'commander'
import { type Fields, invalidConfig } from '../../../schemas/index.ts'
import { readTextFile } from '../../config/index.ts'
import { type ExplainQuestion, type Explanation, explain } from './index.ts'
import { exitCode, print, printJson } from '../../toolkit/terminal/output.ts'
import { readServers } from '../../toolkit/local/servers.ts'
import { oneLine } from '../../toolkit/terminal/plain-text.ts'
import { explainLive } from './live.ts'
import { readState } from './state.ts'
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
}

export function addExplainCommand(program: Command): void {
  program
    .command('explain')
    .summary('say why somebody can or cannot use a tool')
    .description(
      'Follows a name in the order of a call: name, conflict, filter, pin, policy, limits, credential, backend. The first\n' +
        'stop is the reason; later ones would stop the call too. Of manifests or the file of a virtual server (-f), with the\n' +
        'lists and the health of backends from a file (--state), or of a running server through its console (--url).',
    )
    .option('-f, --filename <path>', 'manifests or the file of a virtual server; repeatable', collect, [])
    .option('--server <name>', 'the virtual server, where there are several')
    .option(
      '--state <file>',
      'what backends offer and how they are: backends.<name>.{tools, health, error, circuit}',
    )
    .option('--url <url>', 'address of the console of a running server')
    .option(
      '--token-file <file>',
      'the console’s token, the part after #launch= of the address that it prints',
    )
    .option(
      '--claims <json>',
      'claims of the caller, as JSON or @file; default: nobody, or who asks the console',
      jsonObject,
    )
    .option('--tool <name>', 'the tool, as clients call it')
    .option('--prompt <name>', 'the prompt, as clients call it')
    .option('--resource <uri>', 'the resource')
    .option('--args <json>', 'arguments of the call, as JSON or @file', jsonObject)
    .addOption(new Option('-o, --output <format>', 'how to report').choices(['text', 'json']).default('text'))
    .addHelpText(
      'after',
      '\nExamples:\n  gatehouse explain -f manifests/ --claims \'{"sub":"ada"}\' --tool github_search\n' +
        '  gatehouse explain --url http://127.0.0.1:21875/ --token-file token --tool github_search\n' +
        '\nExit codes: 0 it can be used, 1 it cannot, 2 wrong usage or input that cannot be used.',
    )
    .action(async (options: Options) => {
      const explained = await answer(options, questionOf(options))
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
  if (!only || another) throw invalidConfig('name one of --tool, --prompt and --resource')
  const { action, name = '' } = only
  return { action, name, claims: claims ?? {}, ...(args ? { arguments: args } : {}) }
}

async function answer(options: Options, question: ExplainQuestion): Promise<Explanation> {
  const { filename, server, state, url, tokenFile, claims } = options
  if ((filename.length === 0) === (url === undefined)) throw invalidConfig('give either --filename or --url')
  if (url !== undefined) {
    const token = readFileText(tokenFile ?? '').trim()
    const { claims: _nobody, ...rest } = question
    return explainLive(url, token, { ...rest, ...(claims ? { claims } : {}) })
  }
  if (question.action !== 'call_tool')
    throw invalidConfig(
      'prompts and resources are known to a running server only: ask its console with --url',
    )
  const servers = await readServers(filename)
  const found = server === undefined ? servers : servers.filter(({ name }) => name === server)
  const [config] = found
  if (!config) throw invalidConfig(`${filename.join(', ')}: no such virtual server`)
  if (found.length > 1)
    throw invalidConfig(`name a virtual server with --server: ${found.map(({ name }) => name).join(', ')}`)
  const { snapshotOffline } = await import('../../vmcp/index.ts')
  return explain(snapshotOffline(config, readState(state)), question)
}

/** Names and messages hold texts of backends. */
const maxLine = 1_000

const marks = { pass: 'ok  ', stop: 'STOP', note: 'note' } as const

function textOf({ decision, steps }: Explanation): string {
  const reason = steps.find(({ verdict }) => verdict === 'stop')
  const head = {
    allow: 'it can be used',
    undecided: 'the external decision point has the last word: ask it',
    deny: `it cannot be used: ${reason?.message ?? ''}`,
    not_found: `there is no such thing: ${reason?.message ?? ''}`,
  }[decision]
  return [
    oneLine(head, maxLine),
    ...steps.flatMap(({ stage, verdict, message, details = [] }) => [
      `  ${marks[verdict]} ${stage.padEnd(10)} ${oneLine(message, maxLine)}`,
      ...details.map((line) => `                  ${oneLine(line, maxLine)}`),
    ]),
  ].join('\n')
}

/** Throws INVALID_CONFIG naming the file. */
function readFileText(path: string): string {
  if (path === '') throw invalidConfig('--url needs --token-file')
  return readTextFile(path, `${path}:`)
}
