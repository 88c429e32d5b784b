/**
 * Golden cases: test/hooks/<kind>/<case>/request.json is a hook request as Metacontroller sends it, response.json is
 * the hook's response. They define the expected behavior of a kind; review the diff before you accept a change.
 *
 * node test/hooks/golden.test.ts --update [KIND/CASE ...] writes both files of the given cases, or of all cases, from
 * the scenarios in cases.ts.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { type HookEntry, makeHooks } from '../../hooks/index.ts'
import { matchesRule } from '../../runtime/toolkit/local/cluster/related.ts'
import { type KindName, validateRuntime } from '../../schemas/index.ts'
import { validateStatus } from '../helpers/hooks/status.ts'
import { cases } from './cases.ts'
import { type Stored, testSettings } from './world.ts'

interface GoldenRequest extends Record<string, unknown> {
  readonly parent: Stored
  readonly related: Readonly<Record<string, Readonly<Record<string, Stored>>>>
}

const root = import.meta.dirname
const hooks = makeHooks(testSettings)

const [flag, ...named] = process.argv.slice(2)
if (flag === '--update') update(named.length === 0 ? undefined : new Set(named))

for (const { kind, name, request } of stored()) {
  t.test(`${kind}/${name}: the response matches the recording`, async (t) => {
    const hook = hooks.byKind(kind)
    if (!hook) return t.fail(`no hook for ${kind}`)
    const expected = JSON.parse(readFileSync(join(root, kind.toLowerCase(), name, 'response.json'), 'utf8'))
    const response = hook.sync(request)
    t.strictSame(JSON.parse(JSON.stringify(response)), expected)
    t.strictSame(
      JSON.parse(JSON.stringify(hook.sync(askedFor(hook, request)))),
      expected,
      'customize requests everything that the response needs',
    )
    t.strictSame(validateStatus(kind as KindName, response.status), [], 'the status fits its schema')
    const { relatedResources } = hook.customize({ controller: {}, parent: request.parent })
    for (const child of response.children) {
      const rules = relatedResources.filter((rule) => 'names' in rule)
      t.ok(
        rules.some((rule) =>
          matchesRule(structuredClone(child) as unknown as Stored, rule, child.metadata.namespace),
        ),
        `customize requests ${child.kind} ${child.metadata.name}, which may belong to another owner`,
      )
      if (child.kind !== 'ConfigMap') continue
      const data = (child['data'] ?? {}) as Record<string, string>
      for (const [file, text] of Object.entries(data)) {
        const runtime = runtimeFiles[file]
        if (runtime)
          t.strictSame(validateRuntime(runtime, parse(text)).violations, [], `${file} fits its schema`)
        else t.fail(`unexpected file ${file}`)
      }
    }
    return undefined
  })
}

/**
 * Returns the request that Metacontroller sends for the current rules of `customize`. It is cached by name and spec,
 * because the rules depend on nothing else.
 */
function askedFor(hook: HookEntry, request: GoldenRequest): GoldenRequest {
  const { metadata, ...parent } = request.parent
  const { name, namespace } = metadata
  const bare = { ...parent, metadata: { name, namespace }, status: undefined }
  const { relatedResources } = hook.customize({ controller: {}, parent: bare })
  const related = Object.entries(request.related).map(([kind, objects]) => {
    const asked = Object.entries(objects).filter(([, object]) =>
      relatedResources.some((rule) => matchesRule(object, rule, namespace)),
    )
    return [kind, Object.fromEntries(asked)]
  })
  return { ...request, related: Object.fromEntries(related) }
}

t.test('golden cases: every kind has a case, and every scenario is recorded', async (t) => {
  const recorded = stored().map(({ kind, name }) => `${kind}/${name}`)
  for (const hook of hooks)
    t.ok(
      recorded.some((key) => key.startsWith(`${hook.kind}/`)),
      hook.kind,
    )
  t.strictSame(recorded.sort(), Object.keys(cases).sort())
})

const runtimeFiles: Readonly<Record<string, 'vmcp' | 'authserver' | 'catalogue' | 'proxy'>> = {
  'catalogue.yaml': 'catalogue',
  'config.yaml': 'vmcp',
  'authserver-config.yaml': 'authserver',
  'proxy.yaml': 'proxy',
}

function stored(): { kind: string; name: string; request: GoldenRequest }[] {
  return [...hooks].flatMap(({ kind }) => {
    const folder = join(root, kind.toLowerCase())
    if (!existsSync(folder)) return []
    return readdirSync(folder).map((name) => ({
      kind,
      name,
      request: JSON.parse(readFileSync(join(folder, name, 'request.json'), 'utf8')) as GoldenRequest,
    }))
  })
}

/** Writes the given cases. Without arguments, writes all cases and removes those without a scenario. */
function update(only: ReadonlySet<string> | undefined): void {
  for (const key of only ?? [])
    if (!Object.hasOwn(cases, key)) throw new Error(`${key} is not a case of cases.ts (KIND/CASE)`)
  if (!only)
    for (const { kind } of hooks) rmSync(join(root, kind.toLowerCase()), { recursive: true, force: true })
  for (const [key, scenario] of Object.entries(cases)) {
    if (only && !only.has(key)) continue
    const [kind = '', name = ''] = key.split('/')
    const request = scenario()
    const folder = join(root, kind.toLowerCase(), name)
    mkdirSync(folder, { recursive: true })
    const response = hooks.byKind(kind)?.sync(request)
    writeFileSync(join(folder, 'request.json'), `${JSON.stringify(request, undefined, 2)}\n`)
    writeFileSync(join(folder, 'response.json'), `${JSON.stringify(response, undefined, 2)}\n`)
  }
}
