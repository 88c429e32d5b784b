/**
 * Applies every child of every golden case to a real API server. The stored objects must match the request, so that the
 * next apply finds nothing to change.
 */
import { readdirSync, readFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { kubeMissing, type KubeApiserver, startKubeApiserver } from '../helpers/kube/apiserver.ts'
import { arbitraryResources } from './arbitrary.ts'
import { World } from './world.ts'

const root = import.meta.dirname

const mergeKeys = ['containerPort', 'port', 'mountPath', 'name', 'uid', 'ip', 'path']

interface Child {
  apiVersion: string
  kind: string
  metadata: { name: string; [field: string]: unknown }
  [field: string]: unknown
}

type Case = readonly [name: string, children: readonly Child[]]

/** kubectl loads the schemas of the API server in each run, so one run gets many cases. */
const casesPerRun = 40

await t.test(
  'children: a real API server accepts and stores them unchanged',
  { skip: kubeMissing() },
  async (t) => {
    const server = await startKubeApiserver(t)
    server.must(['create', 'namespace', 'team'])
    const all = [...cases(), ...randomCases()].filter(([, children]) => children.length > 0)
    for (let at = 0; at < all.length; at += casesPerRun)
      checkCases(t, server, all.slice(at, at + casesPerRun))
  },
)

function checkCases(t: Test, server: KubeApiserver, cases: readonly Case[]): void {
  const items = cases.flatMap(([, children]) => children)
  const ran = server.kubectl(
    ['create', '--dry-run=server', '--validate=strict', '-o', 'json', '-f', '-'],
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
  )
  if (ran.code !== 0 && cases.length > 1) {
    // Identifies the cases that caused errors.
    for (const one of cases) checkCases(t, server, [one])
    return
  }
  const stored = storedObjects(ran.stdout)
  let next = 0
  for (const [name, children] of cases) {
    if (!t.equal(ran.code, 0, `${name}: accepted ${ran.stderr}`)) return
    for (const desired of children) {
      const live = stored[next++]
      t.strictSame(
        dynamicApply(live, desired, desired),
        live,
        `${name}: ${desired.kind} ${desired.metadata.name} would be written again at every sync`,
      )
    }
  }
  t.equal(stored.length, items.length)
}

/** Returns the children of random worlds, the same in each run. */
function randomCases(): [string, Child[]][] {
  return fc.sample(arbitraryResources(40), { numRuns: 12, seed: 7 }).map((resources, index) => {
    const world = new World().apply(...resources).ready()
    const parents = [...world.objects.values()].filter(({ kind }) => world.hooks.byKind(kind))
    const children = parents.flatMap(({ kind, metadata }) => [...world.sync(kind, metadata.name).children])
    return [`random ${index}`, children as unknown as Child[]]
  })
}

function cases(): [string, Child[]][] {
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap((kind) =>
      readdirSync(join(root, kind.name)).flatMap((name): [string, Child[]][] => {
        const file = join(root, kind.name, name, 'response.json')
        if (!existsSync(file)) return []
        const response = JSON.parse(readFileSync(file, 'utf8')) as { children: Child[] }
        return [[`${kind.name}/${name}`, response.children]]
      }),
    )
}

/** Splits the output of kubectl, which prints one indented JSON document after another. */
function storedObjects(text: string): unknown[] {
  return text
    .split(/(?<=^\})\n/m)
    .filter((part) => part.trim() !== '')
    .map((part) => JSON.parse(part) as unknown)
}

/**
 * Metacontroller's three-way merge: merges lists of objects by the first key that all items have, and replaces other
 * lists.
 */
function dynamicApply(live: unknown, before: unknown, desired: unknown): unknown {
  if (Array.isArray(desired)) return mergeList(asList(live), asList(before), desired)
  if (!isObject(desired)) return desired
  const result: Record<string, unknown> = { ...(isObject(live) ? live : {}) }
  for (const key of Object.keys(isObject(before) ? before : {})) if (!(key in desired)) delete result[key]
  for (const [key, value] of Object.entries(desired)) {
    // Metacontroller ignores the status of a desired object.
    if (
      key === 'status' &&
      'metadata' in desired &&
      'kind' in desired &&
      live !== undefined &&
      isObject(live) &&
      'metadata' in live
    ) {
      if (isTop(desired)) continue
    }
    result[key] = dynamicApply(result[key], isObject(before) ? before[key] : undefined, value)
  }
  return result
}

function isTop(value: Record<string, unknown>): boolean {
  return typeof value['apiVersion'] === 'string' && value['kind'] !== 'PersistentVolumeClaim'
}

function mergeList(live: unknown[], before: unknown[], desired: unknown[]): unknown {
  const all = [...live, ...before, ...desired]
  const key = mergeKeys.find((name) => all.length > 0 && all.every((item) => isObject(item) && name in item))
  if (!key) return desired
  const byKey = (list: unknown[], value: unknown) =>
    list.find((item) => isObject(item) && item[key] === value)
  const kept = live.filter((item) => !byKey(before, keyOf(item, key)) || byKey(desired, keyOf(item, key)))
  const merged = kept.map((item) => {
    const wanted = byKey(desired, keyOf(item, key))
    return wanted ? dynamicApply(item, byKey(before, keyOf(item, key)), wanted) : item
  })
  const added = desired.filter((item) => !byKey(live, keyOf(item, key)))
  return [...merged, ...added]
}

function keyOf(item: unknown, key: string): unknown {
  return isObject(item) ? item[key] : undefined
}

function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
