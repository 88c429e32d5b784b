/** The generator: checked-in files are current, and misleading sources are rejected. */
import { spawnSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { loadBundle } from '../../../schemas/generate/load.ts'
import { validatorFiles } from '../../../schemas/generate/validators.ts'
import type { Schema } from '../../../schemas/schema.ts'

const root = join(import.meta.dirname, '../../..')

await t.test('generate --check: all generated files are current', async (t) => {
  const { status, stderr } = spawnSync(process.execPath, ['schemas/generate/main.ts', '--check'], {
    cwd: root,
    encoding: 'utf8',
  })
  t.equal(status, 0, stderr)
})

await t.test('generate --check: names a stale file and an unexpected file, and exits with 1', async (t) => {
  const folder = copyOf(t)
  writeFileSync(join(folder, 'schemas/generated/types.ts'), 'export {}\n')
  writeFileSync(join(folder, 'manifests/crds/leftover.yaml'), 'x: 1\n')
  const run = () =>
    spawnSync(process.execPath, ['schemas/generate/main.ts', '--check'], { cwd: folder, encoding: 'utf8' })
  const { status, stderr } = run()
  t.equal(status, 1)
  t.match(stderr, /^stale: schemas\/generated\/types\.ts$/m)
  t.match(stderr, /^unexpected file: manifests\/crds\/leftover\.yaml$/m)
  t.notMatch(stderr, /mcpgroups/)
  const write = spawnSync(process.execPath, ['schemas/generate/main.ts'], { cwd: folder, encoding: 'utf8' })
  t.equal(write.status, 0, write.stderr)
  t.equal(run().status, 0, 'writing makes it current')
})

/** Copies the generator's input to its own folder and links the packages. */
function copyOf(t: Test): string {
  const folder = t.testdir({
    docs: {},
    manifests: {},
    node_modules: t.fixture('symlink', join(root, 'node_modules')),
  })
  for (const path of [
    'schemas',
    'manifests/crds',
    'docs/reference/kinds',
    'docs/guides/external-auth.md',
    'docs/guides/troubleshooting.md',
    'package.json',
  ]) {
    cpSync(join(root, path), join(folder, path), { recursive: true })
  }
  return folder
}

function sources(t: Test, defs: Record<string, unknown>): string {
  const file = JSON.stringify({ title: 'x', $defs: defs })
  return t.testdir({ kinds: { 'a.json': file }, common: {}, runtime: {} })
}

await t.test('sources: an object without additionalProperties is rejected', async (t) => {
  const folder = sources(t, {
    A: {
      type: 'object',
      properties: { b: { type: 'object', properties: { c: { type: 'string' } } } },
      additionalProperties: false,
    },
  })
  t.throws(() => loadBundle(folder), { message: /A\.b: an object must have "additionalProperties": false/ })
})

await t.test('sources: a keyword that no validator supports is rejected', async (t) => {
  const defs: Record<string, Schema> = { A: { type: 'array', items: { type: 'string' } } }
  Object.assign(defs['A'] ?? {}, { minContains: 2 })
  await t.rejects(validatorFiles({ kinds: [], runtime: { a: 'A' }, defs }), { message: /unknown keyword/ })
})

await t.test('sources: a dangling reference is rejected', async (t) => {
  t.throws(() => loadBundle(sources(t, { A: { $ref: 'other.json#/$defs/Nothing' } })), {
    message: /unresolved reference/,
  })
})

await t.test('sources: a reference names the file that contains its definition', async (t) => {
  const folders = ['kinds', 'common', 'runtime'].map((name) => join(root, 'schemas', name))
  const files = folders.flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.json'))
      .map((name) => join(folder, name)),
  )
  let count = 0
  for (const file of files) {
    for (const [, path = '', name = ''] of readFileSync(file, 'utf8').matchAll(
      /"\$ref": "([^"#]+)#\/\$defs\/(\w+)"/g,
    )) {
      count++
      const target = join(dirname(file), path)
      const defines = files.includes(target) && name in JSON.parse(readFileSync(target, 'utf8')).$defs
      if (!defines) t.fail(`${file}: ${path} does not define ${name}`)
    }
  }
  t.ok(count > 100, 'references were found')
})

await t.test('sources: two definitions cannot have the same name', async (t) => {
  const folder = t.testdir({
    kinds: {
      'a.json': JSON.stringify({ $defs: { A: { type: 'string' } } }),
      'b.json': JSON.stringify({ $defs: { A: { type: 'integer' } } }),
    },
    common: {},
    runtime: {},
  })
  t.throws(() => loadBundle(folder), { message: /A exists twice/ })
})

await t.test('sources: a reference next to other keywords extends the referenced definition', async (t) => {
  const folder = t.testdir({
    kinds: {
      'a.json': JSON.stringify({
        $defs: {
          Base: {
            type: 'object',
            additionalProperties: false,
            required: ['a'],
            properties: { a: { type: 'string' }, b: { type: 'string' } },
          },
        },
      }),
    },
    common: {},
    runtime: {
      'f.json': JSON.stringify({
        title: 'F',
        'x-runtime': 'f',
        $defs: {
          F: {
            $ref: '../kinds/a.json#/$defs/Base',
            required: ['b'],
            properties: { b: { default: 'x' }, c: { type: 'integer' } },
          },
        },
      }),
    },
  })
  const { defs, runtime } = loadBundle(folder)
  t.same(runtime, { f: 'F' })
  t.same(defs['F'], {
    type: 'object',
    additionalProperties: false,
    required: ['a', 'b'],
    properties: { a: { type: 'string' }, b: { type: 'string', default: 'x' }, c: { type: 'integer' } },
  })
  t.notOk(defs['Base'], 'a base definition is not generated')
})

await t.test('documentation: each kind has a page that names every field of its spec', async (t) => {
  const bundle = loadBundle(join(root, 'schemas'))
  for (const { kind, singular } of bundle.kinds) {
    const page = readFileSync(join(root, 'docs/reference/kinds', `${singular}.md`), 'utf8')
    for (const field of Object.keys(bundle.defs[`${kind}Spec`]?.properties ?? {})) {
      if (!page.includes(`\n| ${field} |`)) t.fail(`${singular}.md does not name ${field}`)
    }
    t.match(page, `# ${kind}`)
  }
})
