/**
 * References as data. Each kind has one table of the fields that refer to other objects in its namespace. The table
 * declares the condition that reports each object, and the object's conversion to runtime configuration.
 *
 * `resolveReferences` reads the whole table before the build starts, so one sync reports all failures. The same table
 * determines which objects `customize` requests and which resources refer to an object.
 */
import type { KindName, Kinds } from '../../schemas/index.ts'
import { fieldsOf, filledTextOf, type KubeObject, listOf, textOf } from '../base/kube.ts'
import type { ConfigPart, SyncFailure } from '../sync/conditions.ts'
import type { AnyContext } from '../sync/context.ts'
import { type ConfigCondition, configCalled, configHashOf, groupFailure } from './resolve.ts'

/** Input for resolving any reference. Kinds with pods add the objects that their configuration needs. */
export interface ReferenceTarget {
  readonly context: AnyContext & { readonly spec: unknown }
}

export interface KindReference<Target, Value> {
  /** Paths at which an object contains the names. `[]` follows a list's name, `{}` a map's name. */
  readonly names: readonly string[]
  /** Kind of the referenced objects. */
  readonly kind: KindName
  /** Status field for the hash of the referenced configuration. */
  readonly hash?: string | undefined
  /** True when a failure is reported but does not stop the sync. */
  readonly isAdvisory?: boolean
  /** Sets the condition. Returns the resolved part of the configuration, or the failure. */
  readonly resolve: (target: Target) => ConfigPart<Value>
}

export type ReferenceTable<Target> = Readonly<Record<string, KindReference<Target, unknown>>>

type ValueOf<R> = R extends { readonly resolve: (target: never) => ConfigPart<infer Value> } ? Value : never

export interface ResolvedReferences<Table> {
  /** The parts of the configuration; undefined after a failure. */
  readonly values: { readonly [Name in keyof Table]: ValueOf<Table[Name]> | undefined }
  /** Failures that stop the sync, in the order of the table. */
  readonly failures: { readonly [Name in keyof Table]?: SyncFailure }
  /** Hashes of the referenced configurations, keyed by status field. */
  readonly hashes: Readonly<Record<string, string | undefined>>
}

/** Resolves every reference in a table and sets the references' conditions. */
export function resolveReferences<Target extends ReferenceTarget, const Table extends ReferenceTable<Target>>(
  table: Table,
  target: Target,
): ResolvedReferences<Table> {
  const values: Record<string, unknown> = {}
  const failures: Record<string, SyncFailure> = {}
  const hashes: Record<string, string | undefined> = {}
  for (const [name, reference] of Object.entries(table)) {
    const { value, failure } = reference.resolve(target)
    values[name] = value
    if (failure && !reference.isAdvisory) failures[name] = failure
    if (reference.hash === undefined) continue
    const [named] = namesAt({ spec: target.context.spec }, reference.names)
    hashes[reference.hash] =
      named === undefined ? undefined : configHashOf(target.context, reference.kind, named)
  }
  // The cast is safe, because the loop adds an entry for each name in the table.
  return { values, failures, hashes } as unknown as ResolvedReferences<Table>
}

/** Type of the field at the given path in an object. */
type FieldAt<T, Path extends string> = Path extends `${infer Head}.${infer Rest}`
  ? Head extends keyof T
    ? FieldAt<NonNullable<T[Head]>, Rest>
    : never
  : Path extends keyof T
    ? NonNullable<T[Path]>
    : never

interface ConfigReference<Target extends ReferenceTarget, Field extends string, K extends KindName, Value> {
  readonly field: Field
  readonly kind: K
  readonly condition: ConfigCondition
  readonly hash?: string
  /** Builds this reference's part of the configuration. The field may contain settings in addition to the name. */
  readonly toConfig: (
    config: Kinds[K],
    field: FieldAt<Target['context'], Field>,
    target: Target,
  ) => ConfigPart<Value>
  /** Returns false when another field makes this reference irrelevant. Default: true. */
  readonly isRead?: (target: Target) => boolean
  /** Returns the part of the configuration to use when the field is absent. Default: undefined. */
  readonly otherwise?: (target: Target) => ConfigPart<Value>
}

/** Returns a function that declares a reference to a configuration object. */
export function configReferences<Target extends ReferenceTarget>() {
  return <Field extends string, K extends KindName, Value>(
    reference: ConfigReference<Target, Field, K, Value>,
  ): KindReference<Target, Value | undefined> => {
    const { field, kind, hash, condition, toConfig, isRead, otherwise } = reference
    return {
      names: [`${field}.name`],
      kind,
      hash,
      resolve(target) {
        if (isRead && !isRead(target)) return { value: undefined }
        const { context } = target
        const [value] = valuesAt({ spec: context.spec }, field)
        if (value === undefined) return otherwise?.(target) ?? { value: undefined }
        const config = configCalled(context, kind, textOf(fieldsOf(value)['name']) ?? '', condition)
        const part = config.failure
          ? config
          : // The cast is safe, because the spec matches its schema.
            toConfig(config.value, value as FieldAt<Target['context'], Field>, target)
        const message = condition.message ?? `The ${kind} is valid`
        context.conditions.check(condition.type, part.failure, condition.valid, message)
        return part
      },
    }
  }
}

interface GroupReference {
  /** The reason and message while the group is ready. */
  readonly valid: string
  readonly message: string
  readonly isAdvisory?: boolean
}

/** Declares `spec.groupRef`. */
export function groupReference({
  valid,
  message,
  ...rest
}: GroupReference): KindReference<ReferenceTarget, string | undefined> {
  const names = ['spec.groupRef.name']
  return {
    names,
    kind: 'MCPGroup',
    ...rest,
    resolve({ context }) {
      const [name] = namesAt({ spec: context.spec }, names)
      if (name === undefined) return { value: undefined }
      const failure = groupFailure(context, name)
      context.conditions.check('GroupRefValidated', failure, valid, message)
      return failure ? { failure } : { value: name }
    },
  }
}

/** Lists the kinds that a table's references refer to, without duplicates. */
export function kindsNamedBy(table: ReferenceTable<never>): readonly KindName[] {
  return [...new Set(Object.values(table).map(({ kind }) => kind))]
}

/** Returns the names that an object refers to, by kind. The spec may be invalid. */
export function namesByKind(
  table: ReferenceTable<never>,
  object: KubeObject,
): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(kindsNamedBy(table).map((kind) => [kind, namesOf(table, kind, object)]))
}

/** Returns the names of the objects of one kind that an object refers to. The object may be invalid. */
export function namesOf(table: ReferenceTable<never>, kind: string, object: KubeObject): readonly string[] {
  return Object.values(table)
    .filter((reference) => reference.kind === kind)
    .flatMap(({ names }) => namesAt(object, names))
}

function namesAt(object: object, paths: readonly string[]): readonly string[] {
  return paths.flatMap((path) => valuesAt(object, path)).flatMap((value) => filledTextOf(value) ?? [])
}

/** Returns the values at a path in an object of any shape. */
function valuesAt(value: unknown, path: string): readonly unknown[] {
  return path.split('.').reduce<readonly unknown[]>(
    (values, step) =>
      values.flatMap((outer) => {
        const inner = fieldsOf(outer)[step.replace(/\[\]$|\{\}$/, '')]
        if (step.endsWith('[]')) return listOf(inner)
        if (step.endsWith('{}')) return Object.values(fieldsOf(inner))
        return inner === undefined || inner === null ? [] : [inner]
      }),
    [value],
  )
}
