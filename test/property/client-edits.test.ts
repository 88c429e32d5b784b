/**
 * Edits generated files of clients: every change can be reverted exactly, and only the entry differs, in any formatting
 * style.
 */
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { stringify as stringifyToml } from 'smol-toml'
import t from 'tap'
import { stringify as stringifyYaml } from 'yaml'
import { parseDocument } from '../../runtime/toolkit/clients/document/document.ts'
import { applyChanges, invertChanges } from '../../runtime/toolkit/clients/edit/changes.ts'
import { dropEntry, type EditTarget, putEntry } from '../../runtime/toolkit/clients/edit/edit.ts'

const runs = { numRuns: 300 }
const entry = { url: 'http://127.0.0.1:4483/mcp', args: ['a, b', '}'] }

const name = fc
  .oneof(
    fc.constantFrom('a', 'b-c', '__proto__', 'x y', 'é"', 'env', '// no', '{'),
    fc.string({ maxLength: 6 }),
  )
  .filter((each) => each !== 'gatehouse' && each !== 'mcpServers')
const leaf = fc.oneof(fc.string({ maxLength: 8 }), fc.integer(), fc.boolean(), fc.constant(null))
const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, leaf, fc.array(tie('value'), { maxLength: 3 }), tie('map')),
  map: fc.array(fc.tuple(name, tie('value')), { maxLength: 3 }).map(unique),
})).value
const map = fc.array(fc.tuple(name, value), { maxLength: 4 }).map(unique)

/** An object without repeated names, `__proto__` included. */
function unique(pairs: readonly (readonly [string, unknown])[]): object {
  return Object.fromEntries(new Map(pairs))
}

interface Style {
  readonly newline: string
  readonly unit: string
  readonly trailingComma: boolean
  readonly comments: boolean
  readonly oneLine: boolean
}

const style: fc.Arbitrary<Style> = fc.record({
  newline: fc.constantFrom('\n', '\r\n'),
  unit: fc.constantFrom('  ', '\t', '    ', ''),
  trailingComma: fc.boolean(),
  comments: fc.boolean(),
  oneLine: fc.boolean(),
})

/** JSON in a random style. */
function written(node: unknown, how: Style, indent = ''): string {
  const isList = Array.isArray(node)
  if (typeof node !== 'object' || node === null) return JSON.stringify(node)
  const items = isList
    ? node.map((item) => written(item, how, indent + how.unit))
    : Object.entries(node).map(
        ([key, item]) => `${JSON.stringify(key)}: ${written(item, how, indent + how.unit)}`,
      )
  const [open, close] = isList ? ['[', ']'] : ['{', '}']
  if (items.length === 0) return how.comments ? `${open} /* , } */ ${close}` : `${open}${close}`
  const comma = how.trailingComma ? ',' : ''
  if (how.oneLine) return `${open}${items.join(how.comments ? ' /* " */, ' : ',')}${comma}${close}`
  const inner = indent + how.unit
  const remark = how.comments ? ' // , } "' : ''
  const lines = items.map(
    (item, index) => `${inner}${item}${index < items.length - 1 ? ',' : comma}${remark}`,
  )
  return `${open}${how.newline}${lines.join(how.newline)}${how.newline}${indent}${close}`
}

function check(target: EditTarget): boolean {
  const put = putEntry(target, entry)
  const restored = applyChanges(put.text, invertChanges(put.changes))
  const dropped = dropEntry({ ...target, text: put.text }).text
  const before = parseDocument(target.format, target.text, 'f')
  const [parent = ''] = target.path
  const servers = (document: Readonly<Record<string, unknown>>) => ({
    ...document,
    [parent]: document[parent] ?? {},
  })
  const isSame = isDeepStrictEqual(servers(parseDocument(target.format, dropped, 'f')), servers(before))
  return restored === target.text && isSame
}

t.test('json: adding and removing the entry changes nothing else, in any style', async () => {
  fc.assert(
    fc.property(
      map,
      fc.option(map, { nil: undefined }),
      style,
      fc.boolean(),
      (others, servers, how, first) => {
        const parts =
          servers === undefined
            ? [others]
            : first
              ? [{ mcpServers: servers }, others]
              : [others, { mcpServers: servers }]
        const document = Object.fromEntries(parts.flatMap((part) => Object.entries(part)))
        return check({
          format: 'json',
          text: written(document, how),
          path: ['mcpServers', 'gatehouse'],
          file: 'f',
        })
      },
    ),
    runs,
  )
})

t.test('toml: adding and removing the entry changes nothing else, with any tables around it', async () => {
  const text = fc.string({ maxLength: 8 })
  const server = fc.record({
    command: text,
    args: fc.array(text, { maxLength: 3 }),
    env: fc.dictionary(text, text, { maxKeys: 2 }),
  })
  fc.assert(
    fc.property(
      fc.dictionary(
        text.filter((each) => each !== 'gatehouse'),
        server,
        { maxKeys: 3 },
      ),
      fc.boolean(),
      (servers, remark) => {
        const document = stringifyToml({
          model: 'x',
          mcp_servers: servers,
          projects: { '/a.b': { trust: 'y' } },
        })
        const source = remark ? `# [mcp_servers.gatehouse]\n${document}\n# end` : document
        // Some generated headers without members are inline tables, which the editor rejects.
        return check({ format: 'toml', text: source, path: ['mcp_servers', 'gatehouse'], file: 'f' })
      },
    ),
    runs,
  )
})

t.test(
  'yaml: adding and removing the entry changes nothing else, with any extensions around it',
  async () => {
    const text = fc.string({ maxLength: 8 })
    const extension = fc.record({
      enabled: fc.boolean(),
      cmd: text,
      args: fc.array(text, { maxLength: 3 }),
      note: fc.string({ unit: fc.constantFrom('a', '\n', ' ', '#', ':') }),
    })
    fc.assert(
      fc.property(
        fc.dictionary(
          text.filter((each) => each !== 'gatehouse'),
          extension,
          { minKeys: 1, maxKeys: 3 },
        ),
        fc.constantFrom(2, 4),
        fc.boolean(),
        (extensions, indent, last) => {
          const document = last ? { GOOSE_MODE: 'auto', extensions } : { extensions, GOOSE_MODE: 'auto' }
          return check({
            format: 'yaml',
            text: stringifyYaml(document, { indent }),
            path: ['extensions', 'gatehouse'],
            file: 'f',
          })
        },
      ),
      runs,
    )
  },
)
