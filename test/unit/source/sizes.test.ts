/**
 * No file of the product or its tests is longer than 400 lines, and no function of the product is longer than 120
 * lines, because a longer function does more than one thing.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { type Node, SyntaxKind } from 'typescript/unstable/ast'
import { allSourceFiles } from '../../helpers/source/tree.ts'

const root = resolve(import.meta.dirname, '../../..')
const most = 400

/** Tables with one row per entry; splitting them would only hide a row. */
const tables: ReadonlyMap<string, string> = new Map([
  ['runtime/console/web/texts.ts', 'every text of the pages, as one object that a translation repeats'],
  [
    'test/helpers/console/fixture-data.ts',
    'the responses of the server to the console, one for each request',
  ],
  ['test/hooks/cases.ts', 'the golden cases'],
  ['test/unit/schemas/tables/auth-server.ts', 'fields of one schema'],
  ['test/unit/schemas/tables/other-kinds.ts', 'fields of one schema'],
  ['test/unit/schemas/tables/virtual-server.ts', 'fields of one schema'],
  ['test/unit/schemas/tables/vmcp-config.ts', 'fields of one schema'],
])

t.test('sizes: no file is longer than 400 lines', async (t) => {
  const files = execFileSync('git', ['ls-files', '-z', 'hooks', 'runtime', 'schemas', 'manifests', 'test'], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\0')
    .filter((path) => /\.(ts|tsx|css)$/.test(path) && !path.includes('generated/'))
  t.ok(files.length > 1000, `${files.length} files`)
  const long = files.filter((path) => readFileSync(join(root, path), 'utf8').split('\n').length - 1 > most)
  t.same(
    long.filter((path) => !tables.has(path)),
    [],
    'split it by subject',
  )
  t.same(long.toSorted(), [...tables.keys()].toSorted(), 'every exception is in use')
})

const mostOfFunction = 120

/** `file:name`, and why it is not split. */
const longFunctions: ReadonlyMap<string, string> = new Map([
  [
    'runtime/expr/starlark/vm/machine.ts:runFrame',
    'the loop of the interpreter: a call for each instruction costs speed',
  ],
])

const kinds: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.FunctionDeclaration,
  SyntaxKind.FunctionExpression,
  SyntaxKind.ArrowFunction,
  SyntaxKind.MethodDeclaration,
  SyntaxKind.Constructor,
])

t.test('sizes: no function is longer than 120 lines', async (t) => {
  const files = allSourceFiles()
  const long: string[] = []
  for (const [path, tree] of files) {
    if (path.startsWith('test/') || path.includes('generated/')) continue
    const visit = (node: Node): void => {
      const isLong = () => tree.text.slice(node.pos, node.end).trim().split('\n').length > mostOfFunction
      if (kinds.has(node.kind) && isLong()) {
        const { name } = node as { name?: { text?: string } }
        long.push(`${path}:${name?.text ?? 'without a name'}`)
      }
      node.forEachChild((child) => {
        visit(child)
      })
    }
    visit(tree)
  }
  t.same(
    long.filter((at) => !longFunctions.has(at)),
    [],
    'split it into named steps, or make it a class',
  )
  t.same(long.toSorted(), [...longFunctions.keys()].toSorted(), 'every exception is in use')
})
