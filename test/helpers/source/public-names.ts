/**
 * Lists the names that users, dashboards and scripts rely on, one per line: error codes, reasons of conditions, metrics
 * with their labels, events, types of audit lines, flags with their defaults, environment variables, and the fields of
 * every kind. Reads them from the tables and commands that declare them, the CRDs, and the responses in the golden
 * cases.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Command, Option } from 'commander'
import { parse } from 'yaml'
import { CliCommand } from '../../../runtime/toolkit/terminal/command.ts'
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
    ...fieldLines(),
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

/** Variables on the documentation page, which `test/unit/docs/environment.test.ts` compares with the sources. */
function variableLines(): readonly string[] {
  const page = readFileSync(join(root, 'docs/reference/environment.md'), 'utf8')
  const names = page.split('\n').flatMap((line) => {
    const cell = /^\| (`[^|]*`) \|/.exec(line)?.[1] ?? ''
    return [...cell.matchAll(/`([A-Z][A-Z0-9_]*)`/g)].map(([, name = '']) => name)
  })
  return names.map((name) => `variable ${name}`)
}

interface FieldNode {
  readonly type?: string
  readonly format?: string
  readonly default?: unknown
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, FieldNode>>
  readonly required?: readonly string[]
  readonly items?: FieldNode
  readonly additionalProperties?: FieldNode
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
}

interface Definition {
  readonly spec: {
    readonly names: { readonly kind: string }
    readonly versions: readonly [{ readonly schema: { readonly openAPIV3Schema: FieldNode } }]
  }
}

/** Fields of every CRD, as `field Kind spec.list[].name! type default=value values=a|b`; `!` marks required fields. */
function fieldLines(): readonly string[] {
  const folder = join(root, 'manifests/crds')
  return readdirSync(folder).flatMap((file) => {
    const { spec }: Definition = parse(readFileSync(join(folder, file), 'utf8'))
    const { spec: fields, status } = spec.versions[0].schema.openAPIV3Schema.properties ?? {}
    return [...fieldsBelow('spec', fields), ...fieldsBelow('status', status)].map(
      (line) => `field ${spec.names.kind} ${line}`,
    )
  })
}

function fieldsBelow(path: string, node: FieldNode | undefined): readonly string[] {
  if (!node) return []
  const own = Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    const required = node.required?.includes(name) ? '!' : ''
    const values = child.enum && ` values=${child.enum.join('|')}`
    const preset = child.default !== undefined && ` default=${JSON.stringify(child.default)}`
    return [
      `${path}.${name}${required} ${typeOf(child)}${preset || ''}${values ?? ''}`,
      ...fieldsBelow(`${path}.${name}`, child),
    ]
  })
  return [
    ...own,
    ...fieldsBelow(`${path}[]`, node.items),
    ...fieldsBelow(`${path}{}`, node.additionalProperties),
  ]
}

function typeOf(node: FieldNode): string {
  if (node.items) return `list of ${typeOf(node.items)}`
  if (node.additionalProperties) return `map to ${typeOf(node.additionalProperties)}`
  if (node['x-kubernetes-preserve-unknown-fields']) return 'free'
  return node.format ?? node.type ?? 'any'
}
