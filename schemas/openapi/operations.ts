/** Lists the operations of a document and selects the ones that become tools. */
import { type Fields, isFields, listOf } from '../validation/fields.ts'
import type { OpenApiDocument } from './document/document.ts'
import { documentRejected, OperationSkipped } from './failures.ts'
import type { OpenApiSettings, OperationFilter, UnselectedOperation } from './model.ts'
import type { References } from './document/references.ts'

const methods = ['get', 'head', 'post', 'put', 'patch', 'delete', 'options', 'trace'] as const
const readMethods: ReadonlySet<string> = new Set(['GET', 'HEAD'])
const maxOperations = 2_000

export interface ApiOperation {
  /** Method and path, such as `POST /pets`. */
  readonly label: string
  readonly method: string
  readonly path: string
  readonly operationId?: string
  /**
   * The operationId, or a name generated from the method and the path. Not yet restricted to the characters of tool
   * names.
   */
  readonly id: string
  readonly fields: Fields
  /** Parameters of the path item, which apply to each of its operations. */
  readonly commonParameters: readonly unknown[]
}

/** Throws INVALID_CONFIG when the document has no paths or more than 2,000 operations. */
export function operationsOf(
  { root, is30 }: OpenApiDocument,
  references: References,
): readonly ApiOperation[] {
  const { paths } = root
  // A document with webhooks alone is valid since 3.1.
  if (paths === undefined && !is30) return []
  if (!isFields(paths)) throw documentRejected('structure', 'the document has no paths')
  const found: ApiOperation[] = []
  for (const [path, item] of Object.entries(paths)) {
    if (!path.startsWith('/')) continue
    const pathItem = itemOf(item, references)
    for (const name of methods) {
      const fields = pathItem[name]
      if (!isFields(fields)) continue
      found.push(operation(name.toUpperCase(), path, fields, listOf(pathItem['parameters'])))
      if (found.length > maxOperations)
        throw documentRejected('operation-count', `the document has more than ${maxOperations} operations`)
    }
  }
  return found
}

/** Returns the path item; an empty object, which has no operations, if it is unusable. */
function itemOf(item: unknown, references: References): Fields {
  try {
    return references.object(item, 'the path item')
  } catch (error) {
    if (error instanceof OperationSkipped) return {}
    throw error
  }
}

function operation(
  method: string,
  path: string,
  fields: Fields,
  commonParameters: readonly unknown[],
): ApiOperation {
  const { operationId } = fields
  const hasId = typeof operationId === 'string' && operationId !== ''
  return {
    label: `${method} ${path}`,
    method,
    path,
    ...(hasId && { operationId }),
    id: hasId ? operationId : generatedId(method, path),
    fields,
    commonParameters,
  }
}

/** Returns `get_users_by_id` for `GET /users/{id}`. */
function generatedId(method: string, path: string): string {
  const words = path
    .split('/')
    .filter((segment) => segment !== '')
    .map((segment) => segment.replaceAll('{', 'by_').replaceAll('}', ''))
  return [method.toLowerCase(), ...(words.length > 0 ? words : ['root'])].join('_')
}

export interface Selection {
  readonly selected: readonly ApiOperation[]
  readonly unselected: readonly UnselectedOperation[]
  /** Filters that match no operation, such as `include filter 2`. */
  readonly unused: readonly string[]
}

export function selectOperations(
  operations: readonly ApiOperation[],
  { operations: filters = {} }: OpenApiSettings,
): Selection {
  const { include = [], exclude = [], includeDeprecated = false } = filters
  const selected: ApiOperation[] = []
  const unselected: UnselectedOperation[] = []
  for (const one of operations) {
    const matching = include.filter((filter) => matches(filter, one))
    const reason = unselectedReason(one, { matching, include, exclude, includeDeprecated })
    if (reason === undefined) selected.push(one)
    else unselected.push({ operation: one.label, reason })
  }
  const unusedOf = (list: readonly OperationFilter[], name: string) =>
    list.flatMap((filter, index) =>
      operations.some((one) => matches(filter, one)) ? [] : [`${name} filter ${index + 1}`],
    )
  return { selected, unselected, unused: [...unusedOf(include, 'include'), ...unusedOf(exclude, 'exclude')] }
}

interface Rules {
  readonly matching: readonly OperationFilter[]
  readonly include: readonly OperationFilter[]
  readonly exclude: readonly OperationFilter[]
  readonly includeDeprecated: boolean
}

function unselectedReason(one: ApiOperation, rules: Rules): UnselectedOperation['reason'] | undefined {
  if (rules.exclude.some((filter) => matches(filter, one))) return 'excluded'
  if (rules.include.length > 0 && rules.matching.length === 0)
    return readMethods.has(one.method) ? 'not_included' : 'method'
  if (!readMethods.has(one.method) && !rules.matching.some(namesMethod)) return 'method'
  if (one.fields['deprecated'] === true && !rules.includeDeprecated) return 'deprecated'
  return undefined
}

/** True when an entry names the method or the operation itself. All methods except GET and HEAD require this. */
function namesMethod({ methods: named = [], operationIds = [] }: OperationFilter): boolean {
  return named.length > 0 || operationIds.length > 0
}

/** An entry without fields matches nothing, so that a mistyped key does not select every operation. */
function matches(filter: OperationFilter, one: ApiOperation): boolean {
  const { operationIds, tags, methods: named, paths } = filter
  const own = listOf(one.fields['tags'])
  const rules = [
    operationIds?.includes(one.id),
    tags?.some((tag) => own.includes(tag)),
    named?.some((method) => method.toUpperCase() === one.method),
    paths?.some((path) => matchesPath(path, one.path)),
  ].filter((rule) => rule !== undefined)
  return rules.length > 0 && rules.every(Boolean)
}

/** Matches a path against a pattern in which `*` stands for any characters, in time proportional to both lengths. */
function matchesPath(pattern: string, path: string): boolean {
  const [start = '', ...rest] = pattern.split('*')
  const end = rest.pop()
  if (end === undefined) return pattern === path
  if (!path.startsWith(start)) return false
  let at = start.length
  for (const part of rest) {
    const found = path.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return path.length - at >= end.length && path.endsWith(end)
}
