/**
 * The scenarios from the examples of the schemas. Each example is synced alone; a way to authenticate is also synced
 * with a proxy that uses it. A new example needs no change here.
 */
import { kinds } from '../../schemas/index.ts'
import { examplesOf } from '../helpers/hooks/examples.ts'
import { remote, resource, secret, world } from './resources.ts'
import type { Stored, World } from './world.ts'

/** Returns an example with the Secrets that it names, in a settled world. */
function settled(kind: string, name: string, spec: unknown, ...others: Stored[]): World {
  return world(resource(kind, name, spec), ...secretsIn(spec), ...others).settle()
}

/** Returns a Secret for each `{name, key}` of a spec. */
function secretsIn(value: unknown): Stored[] {
  const keys = new Map<string, Record<string, string>>()
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    if ('name' in node && 'key' in node && Object.keys(node).length === 2) {
      const { name, key } = node as { name: string; key: string }
      keys.set(name, { ...keys.get(name), [key]: 'value' })
    }
    for (const child of Object.values(node)) visit(child)
  }
  visit(value)
  return [...keys].map(([name, data]) => secret(name, data))
}

type Scenarios = Readonly<Record<string, () => Record<string, unknown>>>

const alone: Scenarios = Object.fromEntries(
  kinds.flatMap(({ kind }) =>
    Object.entries(examplesOf(kind)).map(([name, spec]) => [
      `${kind}/example-${name}`,
      () => settled(kind, name, spec).request(kind, name),
    ]),
  ),
)

const usedByProxy: Scenarios = Object.fromEntries(
  Object.entries(examplesOf('MCPExternalAuthConfig')).map(([name, spec]) => {
    const proxy = remote('crm', { externalAuthConfigRef: { name } })
    return [
      `MCPRemoteProxy/example-${name}`,
      () => settled('MCPExternalAuthConfig', name, spec, proxy).request('MCPRemoteProxy', 'crm'),
    ]
  }),
)

export const exampleCases: Scenarios = { ...alone, ...usedByProxy }
