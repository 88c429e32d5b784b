/**
 * Creates the report for `import`: the outcome, the reasons and the next steps for each file and server. The report
 * contains names, never values.
 */
import {
  type Conversion,
  type ConvertedEntry,
  clientRow,
  type Host,
  type ConversionOutcome,
  printableName,
} from '../../toolkit/clients/index.ts'
import type { painter } from '../../toolkit/terminal/output.ts'
import { forTerminal } from '../../toolkit/terminal/plain-text.ts'
import { shortPath } from '../../toolkit/client-files/host.ts'
import type { Source } from '../../toolkit/client-files/sources.ts'

const labels: Readonly<Record<ConversionOutcome, readonly [string, 'green' | 'yellow' | 'red' | 'dim']>> = {
  taken: ['imported', 'green'],
  partly: ['partial', 'yellow'],
  same: ['duplicate', 'dim'],
  off: ['skipped', 'dim'],
  'not taken': ['rejected', 'red'],
}

export function reportLines(
  sources: readonly Source[],
  conversion: Conversion,
  host: Host,
  paint: ReturnType<typeof painter>,
): readonly string[] {
  const lines: string[] = []
  const width = Math.max(6, ...conversion.entries.map(({ entry }) => printableName(entry.name).length))
  for (const source of sources) {
    lines.push(paint('bold', `${titleOf(source)}  ${shortPath(source.file, host)}`))
    if (source.error !== undefined)
      lines.push(`  ${paint('red', 'unreadable')}  ${forTerminal(source.error)}`)
    const own = conversion.entries.filter(({ entry }) => source.entries.includes(entry))
    if (source.error === undefined && own.length === 0) lines.push(paint('dim', '  no servers'))
    for (const converted of own) lines.push(...entryLines(converted, width, paint))
    lines.push('')
  }
  return lines
}

function titleOf({ client }: Source): string {
  return client === undefined || client === 'plain' ? 'File' : clientRow(client).title
}

function entryLines(
  converted: ConvertedEntry,
  width: number,
  paint: ReturnType<typeof painter>,
): readonly string[] {
  const { entry, outcome, object, secrets, notes } = converted
  const [label, style] = labels[outcome]
  const within = entry.source.within === undefined ? [] : [`in ${printableName(entry.source.within)}`]
  const why = [...within, ...notes, ...(secrets.length > 0 ? [`in Secrets: ${secrets.join(', ')}`] : [])]
  const first = `  ${paint(style, label.padEnd(9))}  ${printableName(entry.name).padEnd(width)}`
  const [only] = why
  if (object === undefined) return [`${first}  ${why.join('; ')}`.trimEnd()]
  const head = `${first}  ${object}`
  if (only === undefined) return [head]
  return [head, ...why.map((line) => paint('dim', `  ${' '.repeat(9)}  ${' '.repeat(width)}  ${line}`))]
}

/** Returns the report for `-o json`. */
export function reportObject(sources: readonly Source[], conversion: Conversion, written: readonly string[]) {
  return {
    schema: 'gatehouse.dev/import/v1',
    sources: sources.map(({ client, file, error, entries }) => ({
      client: client ?? null,
      file,
      servers: entries.length,
      ...(error !== undefined && { error }),
    })),
    servers: conversion.entries.map(({ entry, outcome, object, secrets, notes }) => ({
      client: entry.source.client,
      scope: entry.source.scope,
      file: entry.source.file,
      ...(entry.source.within !== undefined && { within: entry.source.within }),
      name: entry.name,
      outcome,
      ...(object !== undefined && { object }),
      secrets,
      notes,
    })),
    missing: conversion.secrets.missing,
    written,
  }
}
