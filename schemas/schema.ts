/**
 * The subset of JSON Schema (draft 2020-12) that the sources use: what maps both to an ajv validator and to a
 * structural CRD schema. See schemas/generate for the two mappings.
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
  /** What a pattern accepts, in words: completes the sentence "expected …". */
  readonly 'x-expects'?: string
  /** The address of a service: metadata and link-local addresses are refused (addresses.ts). */
  readonly 'x-address'?: boolean
}

/** A CEL rule; the same text runs in the API server and here (cel.ts). */
export interface CelRule {
  readonly rule: string
  readonly message: string
  readonly reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate'
  /** Field below the ruled object that the message is about, as `.a.b`. */
  readonly fieldPath?: string
}

export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly jsonPath: string
  readonly priority?: number
  readonly description?: string
}

/** What a kind is called. `columns` are those of `kubectl get`. */
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
  /** Specs by name, for the reference page and for tests; running programs go without. */
  readonly examples?: Readonly<Record<string, unknown>>
}

/** What a generated validator says of one part of a document. */
export interface SchemaError {
  /** JSON pointer to the part. */
  readonly instancePath: string
  readonly keyword: string
  /** The name of the field that is missing or not known, or the bound. */
  readonly detail?: string | number
}

/** All definitions by name, with `$ref: '#/$defs/<name>'` between them, and the names of the documents. */
export interface Bundle {
  readonly kinds: readonly KindInfo[]
  /** Name of a runtime file -> its definition. */
  readonly runtime: Readonly<Record<string, string>>
  readonly defs: Readonly<Record<string, Schema>>
}

export const apiGroup = 'gatehouse.dev'
export const apiVersion = 'gatehouse.dev/v1beta1'
export const category = 'gatehouse'
