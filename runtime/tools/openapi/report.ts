/** The output of `gatehouse openapi`: tools, skipped operations, and advice. */
import type { BuiltRequest, OpenApiConversion, OpenApiTool } from '../../../schemas/openapi/index.ts'
import { oneLine, quantity } from '../../toolkit/terminal/plain-text.ts'

/** Number of tools above which models choose tools less reliably. */
const manyTools = 40
/** Number of tokens in output schemas above which the report advises shortening them. */
const manyTokens = 10_000
const maxNameLength = 64
/** Maximum number of lines per list in the text output. `--json` prints every line. */
const maxListed = 20

/** Returns the value that `--json` prints. */
export function conversionObject(conversion: OpenApiConversion): object {
  return { ...conversion, tokens: tokensOf(conversion.tools), lint: lintOf(conversion) }
}

export function conversionText(conversion: OpenApiConversion): string {
  const { title, version, operations, tools, skipped, unselected, notices } = conversion
  const head = `${oneLine(title, 80) || 'Untitled'} (OpenAPI ${version}): ${quantity(operations, 'operation')}, ${quantity(tools.length, 'tool')}, about ${tokensOf(tools)} tokens in a list`
  const rows = tools.map(({ name, request, inputSchema }) => [
    name,
    pathOf(request),
    argumentsOf(inputSchema),
  ])
  return [
    head,
    '',
    ...aligned([['TOOL', 'REQUEST', 'ARGUMENTS'], ...rows]),
    ...section(
      'Skipped',
      skipped.map((one) => `${one.operation}: ${one.message} (${one.reason}). ${one.fix}`),
    ),
    ...section('Not selected', [...Map.groupBy(unselected, ({ reason }) => reason)].map(unselectedLine)),
    ...section(
      'Notes',
      notices.map(
        ({ operation, code, message }) =>
          `${operation === undefined ? '' : `${operation}: `}${message} (${code})`,
      ),
    ),
    ...section('Advice', lintOf(conversion)),
  ].join('\n')
}

export function requestText({ method, path, query, headers, body }: BuiltRequest): string {
  const target = query === '' ? path : `${path}?${query}`
  const lines = [`${method} ${target}`, ...headers.map(([name, value]) => `${name}: ${value}`)]
  return body === undefined ? lines.join('\n') : [...lines, '', body].join('\n')
}

/** Estimates the number of tokens in a list of these tools, at four characters per token. */
function tokensOf(tools: readonly OpenApiTool[]): number {
  return Math.ceil(
    tools.reduce((sum, { request: _, ...listed }) => sum + JSON.stringify(listed).length, 0) / 4,
  )
}

/** Returns advice about tools that work, but that models might use poorly. */
function lintOf({ tools }: OpenApiConversion): readonly string[] {
  const lines: string[] = []
  const report = (found: readonly OpenApiTool[], advice: string): void => {
    if (found.length === 0) return
    const names = found.slice(0, 3).map(({ name }) => name)
    const more = found.length > 3 ? ` and ${found.length - 3} more` : ''
    lines.push(`${advice}: ${names.join(', ')}${more}`)
  }
  if (tools.length > manyTools)
    lines.push(
      `${tools.length} tools are more than models handle well: select fewer, or use tool search (config.optimizer)`,
    )
  const outputTokens = tokensOf(tools) - tokensOf(tools.map(({ outputSchema: _, ...tool }) => tool))
  if (outputTokens > manyTokens)
    lines.push(
      `Output schemas take about ${outputTokens} of the tokens: keep some members with --field, or use --no-output-schemas`,
    )
  report(
    tools.filter(({ description }) => description === ''),
    'Add a description to these operations',
  )
  report(
    tools.filter(({ title }) => title === undefined),
    'Add a summary, which becomes the title, to these operations',
  )
  report(
    tools.filter(({ name }) => name.length > maxNameLength),
    `Clients see shortened names for these tools, because the names are longer than ${maxNameLength} characters`,
  )
  return lines
}

const unselectedTexts = {
  method: 'with methods other than GET and HEAD; select them with --include',
  deprecated: 'marked as deprecated; select them with --include-deprecated',
  excluded: 'excluded',
  not_included: 'not included',
} as const

function unselectedLine([reason, all]: readonly [keyof typeof unselectedTexts, readonly unknown[]]): string {
  return `${quantity(all.length, 'operation')} ${unselectedTexts[reason]}`
}

function pathOf({ method, path }: OpenApiTool['request']): string {
  return `${method} ${path.map((part) => ('text' in part ? part.text : `{${part.parameter}}`)).join('')}`
}

/** Lists the arguments, with optional arguments in brackets. */
function argumentsOf({ properties, required }: OpenApiTool['inputSchema']): string {
  const needed = new Set<unknown>(Array.isArray(required) ? required : [])
  return Object.keys(properties ?? {})
    .map((name) => (needed.has(name) ? name : `[${name}]`))
    .join(' ')
}

function section(title: string, lines: readonly string[]): readonly string[] {
  if (lines.length === 0) return []
  const more =
    lines.length > maxListed ? [`  … and ${lines.length - maxListed} more; use --json for all`] : []
  return ['', `${title}:`, ...lines.slice(0, maxListed).map((line) => `  ${oneLine(line)}`), ...more]
}

function aligned(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = [0, 1].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('   ')
      .trimEnd(),
  )
}
