/** `gatehouse import toolhive` converts ToolHive documents. Does not start anything or change any input. */
import { invalidConfig } from '../../../schemas/index.ts'
import { resolve } from 'node:path'
import { saveFolder } from '../../toolkit/client-files/save.ts'
import { standardText } from '../../toolkit/terminal/input.ts'
import { readManifests } from '../../toolkit/manifests/read.ts'
import { exitCode, painter, print, printError, printJson } from '../../toolkit/terminal/output.ts'
import { readCluster } from './cluster.ts'
import { documentsText, migrationFiles } from './migration-files.ts'
import { reportLines, reportObject } from './print-report.ts'
import { type Migration, migrate, type SourceDocument } from './convert.ts'

export interface ToolhiveOptions {
  readonly filename: readonly string[]
  /** Name of a context, or true for the current one. */
  readonly context?: string | true
  readonly namespace?: string
  readonly save?: string
  readonly force: boolean
  readonly output: 'text' | 'json' | 'yaml'
  readonly tool: readonly string[]
}

/** Returns the exit code. */
export async function importToolhive(options: ToolhiveOptions): Promise<number> {
  const { validateResource } = await import('../../../hooks/index.ts')
  const migration = migrate(await readSources(options), {
    violationsOf: (manifest) => validateResource(manifest).violations,
    tools: new Map(options.tool.map(pairOf)),
  })
  const written = save(options, migration)
  if (options.output === 'json') printJson(reportObject(migration, written))
  else show(options, migration, written)
  const isIncomplete = migration.documents.some(
    ({ outcome }) => outcome === 'partly' || outcome === 'not converted',
  )
  return isIncomplete ? exitCode.failed : exitCode.ok
}

async function readSources(options: ToolhiveOptions): Promise<readonly SourceDocument[]> {
  const { filename, context, namespace } = options
  if (filename.length === 0 && context === undefined)
    throw invalidConfig('specify -f FILE, or --context for the objects in a cluster')
  if (namespace !== undefined && context === undefined)
    throw invalidConfig('--namespace: requires --context, because files contain their namespace')
  const files = readManifests(filename, standardText)
  return [...files, ...(context === undefined ? [] : await readCluster(context, namespace))]
}

function pairOf(text: string): readonly [string, string] {
  const [, from, to] = /^([^=]+)=(.+)$/.exec(text) ?? []
  if (from === undefined || to === undefined)
    throw invalidConfig('--tool: must be NAME=BACKEND.TOOL, such as echo=notes.echo')
  return [from, to]
}

/** Returns the names of the written files. */
function save({ save: folder, force, filename }: ToolhiveOptions, migration: Migration): readonly string[] {
  const files = folder === undefined ? [] : migrationFiles(migration, filename)
  return folder === undefined || files.length === 0
    ? []
    : saveFolder(resolve(folder), files, { force }).written
}

function show(options: ToolhiveOptions, migration: Migration, written: readonly string[]): void {
  const asYaml = options.output === 'yaml'
  const report = asYaml ? printError : print
  const stream = asYaml ? process.stderr : process.stdout
  for (const line of reportLines(migration, painter({ colour: stream.isTTY && stream.hasColors() })))
    report(line)
  if (asYaml) {
    const docs = [...[...migration.files.values()].flat(), ...migration.secrets]
    if (docs.length > 0) print(documentsText(docs))
    return
  }
  const { save: folder } = options
  if (folder === undefined) {
    print('Nothing was written. To write the manifests, run: gatehouse import toolhive … --save FOLDER')
    return
  }
  if (migration.files.size + migration.secrets.length === 0) {
    printError('Nothing was converted, so nothing was written')
    return
  }
  print(written.length > 0 ? `Written to ${folder}: ${written.join(', ')}` : `${folder} is up to date`)
  print(`Next: gatehouse validate -f ${folder}`)
}
