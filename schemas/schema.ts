/**
 * The subset of JSON Schema (draft 2020-12) that the sources use. It maps to both an ajv validator and a structural CRD
 * schema; see schemas/generate for the mappings.
 */
export interface Schema {
  readonly $ref?: string
  readonly title?: string
  readonly description?: string
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  readonly nullable?: boolean
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly required?: readonly string[]
  readonly minProperties?: number
  readonly maxProperties?: number
  readonly items?: Schema
  readonly minItems?: number
  readonly maxItems?: number
  readonly enum?: readonly (string | number | boolean)[]
  readonly pattern?: string
  readonly format?: 'int32' | 'int64' | 'date-time'
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly 'x-kubernetes-validations'?: readonly CelRule[]
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: 'atomic' | 'granular'
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
  /** Describes the values that a pattern accepts. Completes the sentence "expected …". */
  readonly 'x-expects'?: string
  /** True for a service's address. The validator rejects metadata and link-local addresses (addresses.ts). */
  readonly 'x-address'?: boolean
}

/** A CEL rule. The API server and Gatehouse (cel.ts) evaluate the same text. */
export interface CelRule {
  readonly rule: string
  readonly message: string
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate'
  /** The field that the message concerns, as a path such as `.a.b` below the object with the rule. */
  readonly fieldPath?: string
}

export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly jsonPath: string
  readonly priority?: number
  readonly description?: string
}

/** Names of a kind, and the columns of `kubectl get`. */
export interface KindInfo {
  readonly kind: string
  readonly plural: string
  readonly singular: string
  readonly listKind: string
  readonly shortNames: readonly string[]
  readonly description: string
  /** True when the kind has a scale subresource on spec.replicas. */
  readonly scale: boolean
  readonly columns: readonly PrinterColumn[]
  /** Example specs by name, for the reference page and tests. Running programs do not contain the examples. */
  readonly examples?: Readonly<Record<string, unknown>>
}

/** An error from a generated validator. */
export interface SchemaError {
  /** JSON pointer to the invalid part. */
  readonly instancePath: string
  readonly keyword: string
  /** Name of the missing or unknown field, or the limit. */
  readonly detail?: string | number
}

/** All definitions by name, with `$ref: '#/$defs/<name>'` between them, and the names of the documents. */
export interface Bundle {
  readonly kinds: readonly KindInfo[]
  /** Maps the name of a runtime file to its definition. */
  readonly runtime: Readonly<Record<string, string>>
  readonly defs: Readonly<Record<string, Schema>>
}

export const apiGroup = 'gatehouse.dev'
export const apiVersion = 'gatehouse.dev/v1beta1'
export const category = 'gatehouse'
