/**
 * A file's exports are for other files. Production code exports nothing that only tests use. A test may import what the
 * file itself uses, such as a step of a larger function or a limit.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { type Export, moduleGraph } from '../../helpers/source/exports.ts'
import { allSourceFiles } from '../../helpers/source/tree.ts'

const files = allSourceFiles()
const graph = moduleGraph(files)

const generatedRules = readFileSync('schemas/generated/rules.ts', 'utf8')

/** Returns true for names that are looked up by name at run time, or that generated code calls. */
function isLookedUp({ file, name }: Export): boolean {
  if (file === 'schemas/validation/rule-functions.ts') return generatedRules.includes(`${name}(`)
  // `test/group.ts` passes this file to tap instead of a package.
  if (file === 'test/uncaught-errors.ts') return name === 'Domain'
  return file.startsWith('test/bench/') && file.split('/').length === 3
}

const isTest = (file: string): boolean => file.startsWith('test/')

const codeOf = new Map<string, string>()

/** Returns a file's text without comments. */
function code(file: string): string {
  const known = codeOf.get(file)
  if (known !== undefined) return known
  const text = files.get(file)?.text.replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, '') ?? ''
  codeOf.set(file, text)
  return text
}

function uses({ file, name }: Export): number {
  return code(file).split(new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}(?![\\w$])`)).length - 2
}

t.test('exports: every name is imported, or is the type of an exported name', async (t) => {
  t.ok(graph.exports.length > 1000, 'exports were found')
  for (const entry of graph.exports) {
    if (isLookedUp(entry) || graph.importers(entry).size > 0) continue
    if (entry.isType && entry.from === undefined && uses(entry) > 0) continue
    t.fail(`${entry.file} exports ${entry.name}, which no file imports`)
  }
})

t.test('exports: production code exports no name that only tests use', async (t) => {
  for (const entry of graph.exports) {
    const importers = [...graph.importers(entry)]
    if (isTest(entry.file) || importers.length === 0 || !importers.every(isTest)) continue
    if (entry.from !== undefined) t.fail(`${entry.file} re-exports ${entry.name} for tests`)
    else if (uses(entry) === 0) t.fail(`${entry.file}: only tests use ${entry.name}`)
  }
})
