/**
 * Converts real OpenAPI documents and prints the table of docs/evidence/openapi.md: `node test/bench/openapi/main.ts
 * [FOLDER]`. Fetches the packages with `npm pack` into the folder, or into a temporary folder that is deleted
 * at the end.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { documents } from './documents.ts'

interface Row {
  readonly kibibytes: number
  readonly milliseconds: number
  readonly mebibytes: number
  readonly rule?: string
  readonly operations?: number
  readonly tools?: number
  readonly tokens?: number
  readonly skipped?: readonly string[]
  readonly invalid?: readonly string[]
}

const [, , given] = process.argv
const folder = given ?? mkdtempSync(join(tmpdir(), 'openapi-documents-'))
if (given === undefined) process.on('exit', () => rmSync(folder, { recursive: true }))

/** Returns the folder of the unpacked package. */
function unpacked(name: string): string {
  const target = join(folder, name.replaceAll(/[^A-Za-z0-9.-]/g, '_'))
  if (existsSync(target)) return target
  mkdirSync(target, { recursive: true })
  const archive = execFileSync('npm', ['pack', '--silent', name], { cwd: folder, encoding: 'utf8' }).trim()
  execFileSync('tar', ['xzf', join(folder, archive), '-C', target, '--exclude', '*.deref.json'])
  return target
}

function measure(file: string, selection: 'default' | 'all'): Row {
  const script = resolve(import.meta.dirname, 'measure.ts')
  return JSON.parse(execFileSync(process.execPath, [script, file, selection], { encoding: 'utf8' })) as Row
}

function reasonsText(skipped: readonly string[]): string {
  const counts = [...Map.groupBy(skipped, (reason) => reason)]
  return counts.map(([reason, all]) => `${all.length} ${reason}`).join(', ') || 'none'
}

function cells(row: Row): readonly unknown[] {
  if (row.rule !== undefined) return ['', '', '', `rejected: ${row.rule}`]
  return [row.operations, row.tools, row.tokens, reasonsText(row.skipped ?? [])]
}

console.log('| Document | KiB | Selection | Operations | Tools | Tokens | Skipped | CPU ms | Peak MiB |')
console.log('|---|---|---|---|---|---|---|---|---|')
const invalid: string[] = []
for (const document of documents) {
  const file = join(unpacked(document.package), 'package', document.path)
  const name = `${document.package.replace(/@[\d.]+$/, '')} ${document.path}`
  for (const selection of ['default', 'all'] as const) {
    const row = measure(file, selection)
    invalid.push(...(row.invalid ?? []).map((line) => `${name}: ${line}`))
    const line = [name, row.kibibytes, selection, ...cells(row), row.milliseconds, row.mebibytes]
    console.log(`| ${line.join(' | ')} |`)
    if (row.rule !== undefined && row.rule !== 'no-operations') break
  }
}
console.log(`\n${documents.length} documents; schemas that do not compile: ${invalid.length}`)
for (const line of invalid) console.log(`- ${line}`)
