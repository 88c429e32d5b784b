/** Reads the example files of a checkout, each converted by `gatehouse import toolhive`. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { untyped } from '../../helpers/untyped.ts'

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly spec?: unknown
}

export interface ConvertedFile {
  readonly file: string
  /** Formats the number of documents by outcome. */
  readonly outcomes: string
  readonly manifests: readonly Manifest[]
}

/** Tools of steps in two of the workflows. The files do not name the backend of the tool. */
const stepTools = ['echo', 'add', 'longecho', 'sampleLLM'].map((tool) => `${tool}=yardstick-sse.${tool}`)

export async function convertedFiles(checkout: string): Promise<readonly ConvertedFile[]> {
  const folder = join(checkout, 'examples/operator')
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const result: ConvertedFile[] = []
  for (const file of files.filter((name) => name.endsWith('.yaml')).toSorted())
    result.push(await converted(folder, file))
  return result
}

async function converted(folder: string, file: string): Promise<ConvertedFile> {
  const args = ['import', 'toolhive', '-f', join(folder, file)]
  const means = [...stepTools, 'fetch=fetch.fetch'].flatMap((tool) => ['--tool', tool])
  const report = await runGatehouse([...args, ...means, '-o', 'json'])
  const counts = new Map<string, number>()
  for (const { outcome } of untyped(JSON.parse(report.stdout)).documents)
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1)
  const written = await runGatehouse([...args, ...means, '-o', 'yaml'])
  return {
    file,
    outcomes: [...counts].map(([outcome, count]) => `${count} ${outcome}`).join(', '),
    manifests: parseAllDocuments(written.stdout).flatMap((document) => document.toJSON() ?? []),
  }
}
