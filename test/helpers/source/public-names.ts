/**
 * All names that users, dashboards and scripts rely on, one per line: error codes, reasons of conditions, metrics with
 * their labels, events, types of audit lines, flags with their defaults, and environment variables. The source is the
 * tables and commands that declare them, and the responses of the hooks in the golden cases.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Command, Option } from 'commander'
import { CliCommand } from '../../../runtime/cli/command.ts'
import { commandsOf } from '../../../runtime/cli/commands.ts'
import { addCertificatesCommand } from '../../../hooks/certificates/command.ts'
import { addCheckCommand } from '../../../hooks/check/command.ts'
import { auditEvents } from '../../../runtime/observe/audit/events.ts'
import { eventTable } from '../../../runtime/observe/events/table.ts'
import { errors } from '../../../schemas/errors.ts'
import { byText } from '../../../schemas/index.ts'
import { type MetricRow, programMetrics, prometheusName } from '../../../schemas/metrics/index.ts'
import { conditionReasons, podReasons } from '../../../schemas/reasons/index.ts'

const root = resolve(import.meta.dirname, '../../..')

/** Returns the sorted lines without duplicates. */
export async function publicNames(): Promise<readonly string[]> {
  const lines = [
    ...errorLines(),
    ...reasonLines(),
    ...conditionLines(),
    ...metricLines(),
    ...Object.keys(eventTable).map((type) => `event ${type}`),
    ...Object.keys(auditEvents).map((type) => `audit event ${type}`),
    ...(await flagLines()),
    ...hooksFlagLines(),
    ...variableLines(),
  ]
  return [...new Set(lines)].toSorted(byText)
}

function errorLines(): readonly string[] {
  return Object.entries(errors).map(([code, row]) => {
    const { status, rpc, oauth } = row as { status: number; rpc?: number; oauth?: string }
    return `error ${code} status=${status}${member('rpc', rpc)}${member('oauth', oauth)}`
  })
}

/** Returns ` name=value`, or an empty string without a value. */
function member(name: string, value: string | number | undefined): string {
  return value === undefined ? '' : ` ${name}=${value}`
}

function reasonLines(): readonly string[] {
  const named = (what: string, rows: typeof podReasons) =>
    rows.flatMap(({ reasons }) => reasons.map((reason) => `${what} ${reason}`))
  return [...named('reason', conditionReasons), ...named('pod reason', podReasons)]
}

interface GoldenResponse {
  readonly status?: {
    readonly conditions?: readonly Readonly<Record<string, string>>[]
    readonly phase?: string
  }
}

/** Conditions in the golden cases, including the conditions of successes. */
function conditionLines(): readonly string[] {
  const folder = join(root, 'test/hooks')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('response.json'),
  )
  return files.flatMap((path) => {
    const { status = {} } = JSON.parse(readFileSync(join(folder, path), 'utf8')) as GoldenResponse
    const kind = path.split('/')[0] ?? ''
    const conditions = (status.conditions ?? []).map(
      ({ type, status: holds, reason }) => `condition ${kind} ${type}=${holds} ${reason}`,
    )
    return [...conditions, ...(status.phase === undefined ? [] : [`phase ${kind} ${status.phase}`])]
  })
}

function metricLines(): readonly string[] {
  return Object.entries(programMetrics).flatMap(([program, rows]) =>
    rows.map((row: MetricRow) => {
      const labels = row.labels.map((label) => (row.legacy?.includes(label) ? `(${label})` : label))
      return `metric ${program} ${prometheusName(row)} ${row.kind} {${labels.join(',')}}`
    }),
  )
}

async function flagLines(): Promise<readonly string[]> {
  const program = new CliCommand('gatehouse').enablePositionalOptions()
  for (const { load } of Object.values(commandsOf(program, async () => {}))) await load()
  const hooks = new CliCommand('gatehouse-hooks')
  addCertificatesCommand(hooks)
  addCheckCommand(hooks)
  return [...program.commands, ...hooks.commands].flatMap((command) => linesOf(command))
}

function linesOf(command: Command): readonly string[] {
  const name = nameOf(command)
  const operands = command.registeredArguments.map((one) =>
    one.required ? `<${one.name()}>` : `[${one.name()}]`,
  )
  return [
    `command ${[name, ...operands].join(' ')}`,
    ...command.options.map((option) => `flag ${name} ${optionText(option)}`),
    ...command.commands.flatMap((below) => linesOf(below)),
  ]
}

function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`
}

function optionText({
  flags,
  defaultValue,
  defaultValueDescription,
  argChoices,
  description,
  mandatory,
  hidden,
}: Option) {
  const said = /\(default:? ([^)]*)\)/.exec(description)?.[1]
  const value = defaultValueDescription ?? (defaultValue === undefined ? said : JSON.stringify(defaultValue))
  return `${flags}${member('default', value)}${member('choices', argChoices?.join('|'))}${mandatory ? ' mandatory' : ''}${hidden ? ' hidden' : ''}`
}

/** Flags of the hooks server, read from its help, because importing its file would run it. */
function hooksFlagLines(): readonly string[] {
  const program = join(root, 'hooks/server/main.ts')
  const help = execFileSync(process.execPath, [program, '--help'], { encoding: 'utf8' })
  const options = (help.split('Options:\n')[1] ?? '').split('\n\n')[0] ?? ''
  const joined = options.replaceAll(/\n {10,}/g, ' ').split('\n')
  return joined.flatMap((line) => {
    const [, flags, text = ''] = /^ {2}(-\S.*?) {2,}(.*)$/.exec(line) ?? []
    if (flags === undefined) return []
    const choices = /choices: ((?:"[^"]*"(?:, )?)+)/
      .exec(text)?.[1]
      ?.replaceAll(/"|, $/g, '')
      .replaceAll(', ', '|')
    return [
      `flag gatehouse-hooks ${flags}${member('default', /default: ("[^"]*"|\w+)\)/.exec(text)?.[1])}${member('choices', choices)}`,
    ]
  })
}

/** Variables on the page, which `test/unit/docs/environment.test.ts` compares with the sources. */
function variableLines(): readonly string[] {
  const page = readFileSync(join(root, 'docs/reference/environment.md'), 'utf8')
  const names = page.split('\n').flatMap((line) => {
    const cell = /^\| (`[^|]*`) \|/.exec(line)?.[1] ?? ''
    return [...cell.matchAll(/`([A-Z][A-Z0-9_]*)`/g)].map(([, name = '']) => name)
  })
  return names.map((name) => `variable ${name}`)
}
