/**
 * Prints the servers that `gatehouse up` found, and the changes that it would make. Hides the values in other entries.
 */
import { clientRow, type Host, isClientId, maskedDiff, printableName } from '../../toolkit/clients/index.ts'
import { shortPath } from '../../toolkit/client-files/host.ts'
import { planPark, readOriginal } from '../../toolkit/client-files/park.ts'
import { defaultPort } from '../../toolkit/local/processes/ports.ts'
import { forTerminal, quantity } from '../../toolkit/terminal/plain-text.ts'
import type { UpPlan } from './plan.ts'
import { joinNames, titleOf } from './report.ts'
import { entryName, gatewayEntry } from './serve.ts'
import type { UpFile, UpState } from './state.ts'

/** Returns one line per finding. Without a host, returns only the first line. */
export function planLines(
  { files, chosen, skipped, conversion, targets }: UpPlan,
  host: Host | undefined,
): string[] {
  const clients = files.filter(({ entries }) => entries.some((entry) => chosen.includes(entry)))
  const count = conversion.members.length + skipped.length
  const lines = [
    `Found ${quantity(count, 'server')} in ${joinNames(clients.map(({ client, file }) => (client === 'plain' ? file : titleOf(client)))) || 'the clients’ files'}.`,
  ]
  if (!host) return lines
  lines.push(`  run       ${conversion.members.map(({ metadata }) => metadata.name).join(', ') || 'none'}`)
  const fresh = files.flatMap(({ entries, parkedNames }) =>
    parkedNames.length === 0
      ? []
      : entries.filter((entry) => chosen.includes(entry) && !parkedNames.includes(entry.name)),
  )
  if (fresh.length > 0) lines.push(`  new       ${fresh.map(({ name }) => printableName(name)).join(', ')}`)
  for (const { name, why } of skipped) lines.push(`  skipped   ${printableName(name)}: ${forTerminal(why)}`)
  for (const { file, error } of files)
    if (error !== undefined) lines.push(`  skipped   ${shortPath(file, host)}: ${forTerminal(error)}`)
  lines.push(`  files     ${targets.map(({ file }) => shortPath(file, host)).join(', ') || 'none'}`)
  return lines
}

export interface FilePreview {
  readonly client: string
  readonly file: string
  readonly diff: string
  readonly error: string | undefined
  /** The change or the error, formatted for the terminal. */
  readonly text: string
}

interface PreviewParts {
  readonly port: number | undefined
  readonly host: Host
  readonly state: UpState
}

export function previewLines(plan: UpPlan, parts: PreviewParts): readonly FilePreview[] {
  return plan.targets.map((target) => previewOf(target, plan, parts))
}

function previewOf(
  target: UpFile,
  { chosen }: UpPlan,
  { port = defaultPort, host, state }: PreviewParts,
): FilePreview {
  const { client, file } = target
  const shown = shortPath(file, host)
  try {
    if (!isClientId(client)) throw new Error('not the file of a known client')
    const original = readOriginal({ client, file }, state.journal)
    const servers = chosen.filter(({ source }) => source.file === file).map(({ name }) => name)
    const entry = gatewayEntry(client, `http://127.0.0.1:${port}/mcp`, state)
    const { text } = planPark({ ...target, client }, original, { name: entryName, entry, servers })
    const diff = maskedDiff(
      original.text.text,
      [{ offset: 0, removed: original.text.text, inserted: text.text }],
      shown,
      { format: clientRow(client).format, revealsInserted: false },
    )
    const command = Object.entries(entry)
      .flatMap(([field, value]) => (field === 'type' ? [] : value))
      .filter((word) => typeof word === 'string')
    return { client, file, diff, error: undefined, text: `${diff}The entry runs: ${command.join(' ')}` }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { client, file, diff: '', error: message, text: `${shown}: ${forTerminal(message)}` }
  }
}
