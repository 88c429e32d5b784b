/**
 * No boolean traps: a bare `true` or `false` as an argument of a project function does not explain itself. Use a named
 * option, a string, or two functions.
 */
import { relative, resolve } from 'node:path'
import t from 'tap'
import { isCallExpression, isNewExpression, type Node, SyntaxKind } from 'typescript/unstable/ast'
import { openSourceTree } from '../../helpers/source/tree.ts'

const root = resolve(import.meta.dirname, '../../..')

/** `file parameter`, and why a bare literal is clear enough. */
const exceptions: ReadonlyMap<string, string> = new Map([
  [
    'test/unit/schemas/tables/table.ts value',
    'the default of the field in the row: the row is a line of a table',
  ],
])

const { files, checker, close } = openSourceTree()
t.teardown(close)

function isLiteral({ kind }: Node): boolean {
  return kind === SyntaxKind.TrueKeyword || kind === SyntaxKind.FalseKeyword
}

/** Calls `found` with `file parameter` for each bare literal passed to a project function. */
function findLiterals(node: Node, found: (to: string, node: Node) => void): void {
  const { arguments: given = [] } = isCallExpression(node) || isNewExpression(node) ? node : {}
  for (const [index, argument] of given.entries()) {
    if (!isLiteral(argument)) continue
    const signature = checker.getResolvedSignature(node)
    const file = signature?.declaration && relative(root, signature.declaration.path)
    if (file === undefined || !files.has(file)) continue
    const parameters = signature?.getParameters() ?? []
    found(`${file} ${parameters[Math.min(index, parameters.length - 1)]?.name}`, node)
  }
  node.forEachChild((child) => {
    findLiterals(child, found)
  })
}

t.test('arguments: no bare boolean literal is passed to a project function', async (t) => {
  const used = new Set<string>()
  for (const [path, tree] of files)
    findLiterals(tree, (to, node) => {
      if (exceptions.has(to)) used.add(to)
      else {
        const line = tree.text.slice(0, node.end).split('\n').length
        t.fail(`${path}:${line} passes a bare literal to ${to}`)
      }
    })
  t.same([...used].sort(), [...exceptions.keys()].sort(), 'every exception is in use')
})
