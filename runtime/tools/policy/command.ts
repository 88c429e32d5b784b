/** `gatehouse policy` tests and explains authorization policies, and replays audit logs against these policies. */
import { createReadStream, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type Fields, GatehouseError, invalidConfig } from '../../../schemas/index.ts'
import { systemReason } from '../../config/index.ts'
import {
  explainDecision,
  type Flip,
  type PolicyTest,
  type PolicyTestRun,
  replayAtPoint,
  replayDecisions,
  runPointTests,
  runPolicyTests,
} from '../../policy/index.ts'
import { refuseIdle, collect, jsonObject } from '../../toolkit/terminal/options.ts'
import { claimStandardInput } from '../../toolkit/terminal/input.ts'
import { exitCode, print, printError, printJson } from '../../toolkit/terminal/output.ts'
import { forTerminal } from '../../toolkit/terminal/plain-text.ts'
import {
  askOption,
  pointExitCode,
  pointExplanationText,
  explainAtPoint,
  withPoint,
} from './external-point.ts'
import { readFixtures } from './fixtures.ts'
import { reportExplanation, reportReplay, reportTests, type TestFormat, testsObject } from './report.ts'
import { readPolicies, type PolicySource } from '../../toolkit/local/servers.ts'

const policiesHelp =
  'manifests, a virtual server’s file, a document with policies, or .cedar files; repeatable'

export function addPolicyCommand(program: Command): void {
  const policy = program
    .command('policy')
    .summary('test, explain and replay authorization policies')
    .description('Evaluates authorization policies with the server’s code, but without a running server.')
  addTest(policy)
  addExplain(policy)
  addReplay(policy)
}

interface TestOptions {
  readonly filename: string[]
  readonly policies: string[]
  readonly server?: string
  readonly ask: boolean
  readonly output: TestFormat
}

function addTest(policy: Command): void {
  policy
    .command('test')
    .summary('run policy tests')
    .description(
      'Runs tests that state which caller may call which tool with which arguments. Also lists policies that no test depends on.',
    )
    .requiredOption(
      '-f, --filename <path>',
      'file or folder with tests, or - for standard input; repeatable (required)',
      collect,
    )
    .option(
      '-p, --policies <path>',
      `${policiesHelp} (default: the policies that the test file refers to)`,
      collect,
      [],
    )
    .option('--server <name>', 'name of the virtual server, if several of them have policies')
    .addOption(askOption())
    .addOption(
      new Option('-o, --output <format>', 'output format').choices(['text', 'json', 'junit']).default('text'),
    )
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse policy test -f policy-tests.yaml -p manifests/\n' +
        '\nExit codes: 0 all passed, 1 a test failed, 2 invalid usage, invalid input, or a test that an external decision point decides (see --ask).',
    )
    .action(async (options: TestOptions) => {
      const runs = []
      const fixtures = readFixtures(options.filename)
      for (const { file, policies, tests } of fixtures) {
        const ownPaths = policies === undefined ? [] : [resolve(dirname(file), policies)]
        const paths = options.policies.length > 0 ? options.policies : ownPaths
        if (paths.length === 0)
          throw new GatehouseError('INVALID_CONFIG', {
            detail: `${file}: requires policies; add them to the file, or use --policies`,
          })
        runs.push({ file, run: await runAll(await readPolicies(paths, options.server), tests, options.ask) })
      }
      if (options.output === 'json') printJson(testsObject(runs))
      else print(forTerminal(reportTests(runs, options.output)))
      const results = runs.flatMap(({ run }) => run.results)
      if (results.some(({ failures }) => failures.length > 0)) process.exitCode = exitCode.failed
      else process.exitCode = results.some(({ elsewhere }) => elsewhere) ? exitCode.usage : exitCode.ok
    })
}

function runAll(source: PolicySource, tests: readonly PolicyTest[], ask: boolean): Promise<PolicyTestRun> {
  if (source.kind === 'policies') return runPolicyTests(source.set, tests)
  const { about } = source
  return withPoint(about, ask, (point) => runPointTests(about.point.settings.http.url, point, tests))
}

interface ExplainOptions {
  readonly policies: string[]
  readonly server?: string
  readonly claims: Fields
  readonly tool?: string
  readonly prompt?: string
  readonly resource?: string
  readonly backend?: string
  readonly original?: string
  readonly args?: Fields
  readonly ask: boolean
  readonly output: 'text' | 'json'
}

function addExplain(policy: Command): void {
  policy
    .command('explain')
    .summary('explain why policies allow or deny a call')
    .description(
      'Prints the policies that determine the decision and, for every other policy, the first condition that is not met.',
    )
    .requiredOption('-p, --policies <path>', policiesHelp, collect)
    .option('--server <name>', 'name of the virtual server, if several of them have policies')
    .option('--claims <json>', 'the caller’s claims, as JSON or @file', jsonObject, {})
    .option('--tool <name>', 'tool name that clients see')
    .option('--prompt <name>', 'prompt name that clients see')
    .option('--resource <uri>', 'URI of the resource')
    .option('--backend <name>', 'the item’s backend; empty for a workflow')
    .option('--original <name>', 'the item’s name on the backend (default: the name that clients see)')
    .option('--args <json>', 'call arguments, as JSON or @file', jsonObject)
    .addOption(askOption())
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse policy explain -p manifests/ --claims \'{"sub":"ada","groups":["ops"]}\' --tool github_search --backend github --original search\n' +
        '\nExit codes: 0 allowed, 1 denied, 2 invalid usage, invalid input, or no decision (see --ask).',
    )
    .action(async (options: ExplainOptions, command: Command) => {
      refuseIdle(command, [['original', options.backend !== undefined, 'has no effect without --backend']])
      const { claims, backend, original, args, tool, prompt, resource } = options
      const named = [
        ['call_tool', tool],
        ['get_prompt', prompt],
        ['read_resource', resource],
      ] as const
      const [only, another] = named.filter(([, name]) => name !== undefined)
      const id = only?.[1]
      if (!only || another || id === undefined)
        throw new GatehouseError('INVALID_CONFIG', {
          detail: 'specify one of --tool, --prompt and --resource',
        })
      const question = {
        action: only[0],
        id,
        claims,
        arguments: args,
        ...(backend === undefined ? {} : { origin: { backend, original: original ?? id } }),
      }
      const shown = (value: object, text: string): void =>
        options.output === 'json' ? printJson(value) : print(forTerminal(text))
      const source = await readPolicies(options.policies, options.server)
      if (source.kind === 'point') {
        const external = await explainAtPoint(source.about, options.ask, question)
        shown(external, pointExplanationText(external))
        process.exitCode = pointExitCode(external)
        return
      }
      const explained = await explainDecision(source.set, question)
      shown(explained, reportExplanation(explained))
      process.exitCode = explained.decision === 'permitted' ? exitCode.ok : exitCode.failed
    })
}

interface ReplayOptions {
  readonly audit: string
  readonly new: string[]
  readonly server?: string
  readonly expect: Expected[]
  readonly ask: boolean
  readonly output: 'text' | 'json'
}

type Expected = Readonly<Record<string, string>>
const selectors = ['principal', 'target', 'policy', 'to']

function addReplay(policy: Command): void {
  policy
    .command('replay')
    .summary('show which recorded decisions new policies would change')
    .description(
      'Evaluates new policies for the decisions in an audit log, and lists the decisions that would change by principal,\n' +
        'target and policy. Lines that lack a policy’s inputs are inconclusive; record more with audit.policyInputs.\n' +
        'Also lists policies that no recorded decision depends on.',
    )
    .requiredOption('--audit <file>', 'audit log, or - for standard input (required)')
    .requiredOption('--new <path>', policiesHelp, collect)
    .option('--server <name>', 'name of the virtual server, if several of them have policies')
    .option(
      '--expect <selector>',
      `expected changes, such as principal=ben,to=deny; keys: ${selectors.join(', ')}; repeatable`,
      collectExpectation,
      [],
    )
    .addOption(askOption())
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse policy replay --audit audit.log --new manifests/ --expect policy=policies[4]\n' +
        '\nExit codes: 0 no unexpected change, 1 a decision would change, 2 invalid usage, invalid input, or nothing was compared (see --ask).',
    )
    .action(async (options: ReplayOptions) => {
      const source = await readPolicies(options.new, options.server, '--new')
      const lines = await linesOf(options.audit)
      const replay =
        source.kind === 'policies'
          ? await replayDecisions(source.set, lines)
          : await withPoint(source.about, options.ask, (point) => replayAtPoint(source.about, point, lines))
      const flips = replay.flips.map((flip) => ({
        ...flip,
        expected: options.expect.some((expected) => matches(flip, expected)),
      }))
      const report = { ...replay, flips }
      if (options.output === 'json') printJson(report)
      else print(forTerminal(reportReplay(report)))
      const isElsewhere = source.kind === 'point' && !options.ask
      const hasChanged = flips.some(({ expected }) => !expected)
      if (replay.decisions === 0)
        printError(
          `${options.audit}: no line contains a decision; use an audit log from a server with policies`,
        )
      process.exitCode =
        isElsewhere || replay.decisions === 0 ? exitCode.usage : hasChanged ? exitCode.failed : exitCode.ok
    })
}

/** Rejects with INVALID_CONFIG when the file cannot be opened. */
async function linesOf(path: string): Promise<AsyncIterable<string>> {
  if (path === '-') claimStandardInput('--audit')
  const input = path === '-' ? process.stdin : createReadStream(path)
  if (input !== process.stdin) {
    await new Promise<void>((done, fail) => {
      input.once('ready', done)
      input.once('error', (cause: unknown) =>
        fail(
          new GatehouseError('INVALID_CONFIG', {
            detail: `${path}: cannot be read: ${systemReason(cause)}`,
            cause,
          }),
        ),
      )
    })
    if (statSync(path).isDirectory()) {
      input.destroy()
      throw invalidConfig(`${path}: is a folder, not a file`)
    }
  }
  return createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
}

function matches(flip: Flip, expected: Expected): boolean {
  const { policy, ...rest } = expected
  const values: Readonly<Record<string, string>> = {
    principal: flip.principal,
    target: flip.target,
    to: flip.to,
  }
  return (
    (policy === undefined || flip.policies.includes(policy)) &&
    Object.entries(rest).every(([key, value]) => values[key] === value)
  )
}

function collectExpectation(text: string, before: readonly Expected[]): Expected[] {
  const pairs = text.split(',').map((pair) => {
    const [, key = '', value] = /^([a-z]+)=(.*)$/s.exec(pair) ?? []
    if (!selectors.includes(key) || value === undefined)
      throw new InvalidArgumentError(`Must be KEY=VALUE with one of the keys ${selectors.join(', ')}.`)
    return [key, value] as const
  })
  return [...before, Object.fromEntries(pairs)]
}
