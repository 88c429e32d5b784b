/**
 * Warns about unknown entity types, actions and attributes in policies. A policy that contains such a name is valid but
 * never matches or always fails.
 * Source: docs/guides/policies.md.
 */
import { isFields } from '../validation/fields.ts'
import { EngineFailure, type PolicyJson } from './engine.ts'
import { originTypes, readEntities } from './entities.ts'
import { policyJson, readPolicies } from './policies.ts'
import { toUid, type Uid } from './uid.ts'

/** Actions in policies for the web console, one per role. */
export const consoleActions = ['console:view', 'console:operate', 'console:audit'] as const

/** The target of the policies: client requests or the web console. */
type PolicySubjectMatter = 'clients' | 'console'

const actionsFor: Readonly<Record<PolicySubjectMatter, readonly string[]>> = {
  clients: ['call_tool', 'get_prompt', 'get_skill', 'read_resource'],
  console: consoleActions,
}
const typesFor: Readonly<Record<PolicySubjectMatter, readonly string[]>> = {
  clients: ['Prompt', 'Resource', 'Skill', 'Tool', ...originTypes],
  console: ['Console'],
}
const commonTypes: readonly string[] = ['Action', 'Client', 'MCP']
/** Facts about the caller's token: attributes of the principal, except `actor`, which is an attribute of the context. */
export const tokenFacts = ['kind', 'issuer', 'clientId', 'authMethod', 'actor'] as const
/**
 * Attributes of resources and actions. Attributes from claims and arguments start with a prefix (`claim_` or `arg_`).
 */
const attributes: readonly string[] = [
  'name',
  'operation',
  'feature',
  'uri',
  'backend',
  'original',
  'readOnlyHint',
  'destructiveHint',
  'idempotentHint',
  'openWorldHint',
  'appOnly',
  ...tokenFacts,
]
const prefixes = /^(?:claim_|arg_)/
const maxWarnings = 20

export interface PolicyTexts {
  readonly policies: readonly string[]
  readonly shadowPolicies?: readonly string[] | undefined
  readonly entitiesJson?: string | undefined
  readonly groupEntityType?: string | undefined
  /** Name of the server, if the policies are for its console. By default, the policies apply to client requests. */
  readonly consoleOf?: string | undefined
}

/**
 * Returns one line for each unknown name, with the path to the policy. Never throws. Skips policies that cannot be
 * parsed, because other checks report them.
 */
export function cedarWarnings(texts: PolicyTexts): readonly string[] {
  const { entitiesJson = '[]', groupEntityType = 'ServiceGroup', consoleOf } = texts
  const about: PolicySubjectMatter = consoleOf === undefined ? 'clients' : 'console'
  const configured = configuredNames(entitiesJson)
  const known = {
    types: new Set([...commonTypes, ...typesFor[about], groupEntityType, ...configured.types]),
    actions: new Set([...actionsFor[about], ...configured.actions]),
    attributes: new Set([...attributes, ...configured.attributes]),
    groupType: groupEntityType,
    consoles: new Set([...configured.consoles, ...(consoleOf === undefined ? [] : [consoleOf])]),
    offered: actionsFor[about].join(', '),
    consoleOf,
  }
  return [
    ...(consoleOf === undefined || permitsSomething(texts.policies)
      ? []
      : ['policies permit nothing: no user gets a role']),
    ...warningsOf(texts.policies, 'policies', known),
    ...warningsOf(texts.shadowPolicies ?? [], 'shadowPolicies', known),
  ].slice(0, maxWarnings)
}

function permitsSomething(texts: readonly string[]): boolean {
  const policies = readPolicies(texts).policies.flatMap((parts) =>
    parts.flatMap((text) => jsonOf(text) ?? []),
  )
  return policies.length === 0 || policies.some(({ effect }) => effect === 'permit')
}

interface Known extends Names {
  readonly groupType: string
  /** Known actions, as listed in warnings. */
  readonly offered: string
  readonly consoleOf: string | undefined
}

interface Names {
  readonly types: ReadonlySet<string>
  readonly actions: ReadonlySet<string>
  readonly attributes: ReadonlySet<string>
  readonly consoles: ReadonlySet<string>
}

function warningsOf(texts: readonly string[], member: string, known: Known): string[] {
  return readPolicies(texts).policies.flatMap((parts, index) => {
    const found = namesIn(parts.flatMap((text) => jsonOf(text) ?? []))
    const path = `${member}[${index}]`
    return [
      ...missing(found.types, known.types).map(
        (type) =>
          `${path} refers to entities of the unknown type ${type}; groups of callers are of type ${known.groupType}`,
      ),
      ...missing(found.actions, known.actions).map(
        (id) =>
          `${path} refers to the unknown action Action::${JSON.stringify(id)}; known actions: ${known.offered}`,
      ),
      ...missing(found.attributes, known.attributes)
        .filter((name) => !prefixes.test(name))
        .map(
          (name) =>
            `${path} reads the unknown attribute ${name}; use claim_<name> for claims and arg_<name> for arguments`,
        ),
      ...elsewhere(path, found.consoles, known),
    ]
  })
}

/**
 * Warns about policies for other consoles. A policy that also refers to this console causes no warning, because several
 * servers may share policies.
 */
function elsewhere(path: string, found: ReadonlySet<string>, { consoles, consoleOf }: Known): string[] {
  if (consoleOf === undefined || found.size === 0 || !found.isDisjointFrom(consoles)) return []
  const named = JSON.stringify([...found][0]).slice(0, 100)
  return [`${path} applies only to Console::${named}; this console is Console::${JSON.stringify(consoleOf)}`]
}

function missing(found: ReadonlySet<string>, known: ReadonlySet<string>): string[] {
  return [...found].filter((name) => !known.has(name)).map((name) => name.slice(0, 100))
}

function jsonOf(text: string): PolicyJson | undefined {
  try {
    return policyJson(text)
  } catch (error) {
    if (error instanceof EngineFailure) return undefined
    throw error
  }
}

/** Collects every entity, and every attribute that is read directly from a variable such as `principal`. */
function namesIn(value: unknown): Names {
  const found = {
    types: new Set<string>(),
    actions: new Set<string>(),
    attributes: new Set<string>(),
    consoles: new Set<string>(),
  }
  const waiting: unknown[] = [value]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next !== 'object' || next === null) continue
    const uid = toUid(next)
    if (uid) addUid(uid, found)
    const { attr, left, entity_type: type }: { attr?: unknown; left?: unknown; entity_type?: unknown } = next
    if (typeof type === 'string') found.types.add(type)
    if (isFields(left) && typeof left['Var'] === 'string')
      for (const name of Array.isArray(attr) ? attr.slice(0, 1) : [attr])
        if (typeof name === 'string') found.attributes.add(name)
    waiting.push(...Object.values(next))
  }
  return found
}

function addUid(
  { type, id }: Uid,
  found: { types: Set<string>; actions: Set<string>; consoles: Set<string> },
): void {
  found.types.add(type)
  if (type === 'Console') found.consoles.add(id)
  if (type === 'Action') found.actions.add(id)
}

/** Names that occur in the configured entities. */
function configuredNames(entitiesJson: string): Names {
  const entities = readEntities(entitiesJson).entities ?? []
  const uids = entities.flatMap(({ uid, parents }) => [uid, ...(Array.isArray(parents) ? parents : [])])
  const known = uids.flatMap((value) => toUid(value) ?? [])
  return {
    types: new Set(known.map(({ type }) => type)),
    actions: new Set(known.filter(({ type }) => type === 'Action').map(({ id }) => id)),
    // A policy can refer to any ancestor of a console instead of the console itself.
    consoles: new Set(known.filter(({ type }) => type === 'Console').map(({ id }) => id)),
    attributes: new Set(entities.flatMap(({ attrs }) => (isFields(attrs) ? Object.keys(attrs) : []))),
  }
}
