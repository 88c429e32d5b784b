/** The output of `gatehouse add`. Text from a registry is escaped and shortened. */
import { oneLine } from '../../toolkit/terminal/plain-text.ts'
import type { RegistryEntry } from './entry.ts'
import type { FolderPlan } from './folder.ts'
import type { InputValues } from './inputs.ts'
import type { ChosenTarget } from './target.ts'

export interface PreparedServer {
  readonly entry: RegistryEntry
  readonly registry: string
  readonly chosen: ChosenTarget
  readonly plan: FolderPlan
  readonly object: string
  readonly group: string
  readonly kind: string
  /** Values from `registry.lock` and `--set`. */
  readonly values: InputValues
  readonly allowPrivate: boolean
}

const maxTextLength = 200
const maxDiffLines = 400

/** Returns what will run, which secrets are needed, and the diff. */
export function planText({ entry, registry, chosen, plan, object, kind }: PreparedServer): string {
  const { server, status, ignored } = entry
  const title = server.title === undefined ? '' : ` (${oneLine(server.title, 100)})`
  return [
    `${server.name}@${server.version}${title} from ${oneLine(registry, maxTextLength)}`,
    `  ${oneLine(server.description, maxTextLength)}`,
    ...(status === 'deprecated' ? ['Warning: the registry marks this version as deprecated.'] : []),
    `${chosen.source === 'remote' ? 'Connects to' : 'Runs'}: ${oneLine(chosen.runs, 2048)}   as ${kind}/${object}`,
    ...secretLines(chosen),
    ...plan.notes.map((note) => `Note: ${oneLine(note)}`),
    ...ignored.map((path) => `Note: ${oneLine(path, maxTextLength)} is unknown and has no effect`),
    ...plan.files.flatMap(({ name, change, secret, diff }) => {
      if (change === 'unchanged') return []
      return secret ? ['', `${name}: ${change}, values hidden`] : ['', ...diffLines(diff)]
    }),
  ].join('\n')
}

function diffLines(diff: string): readonly string[] {
  const lines = diff.trimEnd().split('\n')
  const rest = lines.length - maxDiffLines
  return rest > 0 ? [...lines.slice(0, maxDiffLines), `… and ${rest} more lines`] : lines
}

function secretLines({ secrets }: ChosenTarget): readonly string[] {
  if (secrets.length === 0) return ['Secrets: none']
  return [
    'Secrets:',
    ...secrets.map(({ name, description, isRequired }) => {
      const about = description === undefined ? '' : `: ${oneLine(description, maxTextLength)}`
      return `  ${oneLine(name, 256)}${isRequired ? '' : ' (optional)'}${about}`
    }),
  ]
}

/** Returns the value that `--format json` prints for one server. */
export function planObject(
  { entry, registry, chosen, plan, object, kind }: PreparedServer,
  written: readonly string[],
): object {
  const { server, status, sha256, ignored } = entry
  return {
    name: server.name,
    version: server.version,
    registry,
    status,
    entrySha256: sha256,
    source: chosen.source,
    runs: chosen.runs,
    ...(chosen.digest !== undefined && { digest: chosen.digest }),
    object: `${kind}/${object}`,
    secrets: chosen.secrets.map(({ name, isRequired }) => ({ name, required: isRequired })),
    emptySecrets: plan.emptySecrets,
    ignored,
    notes: plan.notes,
    files: plan.files.map(({ name, change, diff }) => ({ name, change, diff })),
    written,
  }
}
