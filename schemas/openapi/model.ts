/**
 * The data of the OpenAPI conversion: settings, tools and request plans. All types are plain JSON data, so a conversion
 * can be hashed, stored and passed between threads.
 */
import type { Fields } from '../validation/fields.ts'

/** Selects operations. Every field that is present must match, and a field matches if one of its values matches. */
export interface OperationFilter {
  readonly operationIds?: readonly string[]
  readonly tags?: readonly string[]
  /** Methods in any case, such as `POST`. */
  readonly methods?: readonly string[]
  /** Paths of the document, such as `/pets/{id}`; `*` matches any characters. */
  readonly paths?: readonly string[]
}

export interface ApiToolAnnotations {
  readonly readOnlyHint?: boolean
  readonly destructiveHint?: boolean
  readonly idempotentHint?: boolean
  readonly [name: string]: unknown
}

/** The header whose value the gateway sends as a query parameter. */
export interface CredentialParameter {
  readonly header: string
  readonly parameter: string
}

export interface OpenApiSettings {
  /** Arguments can set neither the header nor the parameter. */
  readonly apiKeyQuery?: CredentialParameter
  /** Names of the headers that the gateway sets. Arguments cannot set these headers. */
  readonly configuredHeaders?: readonly string[]
  readonly operations?: {
    /** Default: all GET and HEAD operations. Other methods require an entry that names the method or the operation. */
    readonly include?: readonly OperationFilter[]
    readonly exclude?: readonly OperationFilter[]
    readonly includeDeprecated?: boolean
  }
  /** Changes to tools, keyed by operationId or generated name. */
  readonly overrides?: Readonly<Record<string, ToolChange>>
  readonly response?: {
    /** Paths of response members to keep, such as `data.id`. For a list, the path applies to each item. */
    readonly fields?: readonly string[]
    /** Default: warn. */
    readonly output?: OutputMode
  }
}

/**
 * Use of response schemas. `off`: no output schemas. `warn`: output schemas describe the members without restricting
 * their values, so that a client accepts every response. `enforce`: the output schemas are the response schemas.
 */
export type OutputMode = 'off' | 'warn' | 'enforce'

export interface ToolChange {
  readonly name?: string
  readonly title?: string
  readonly description?: string
  readonly annotations?: Readonly<Record<string, string | boolean | null>>
  /** Fixed values, keyed by location and name, such as `query.api-version`. Clients cannot see or change them. */
  readonly set?: Readonly<Record<string, string>>
}

export type ParameterLocation = 'path' | 'query' | 'header'

/** OpenAPI style of a parameter; `json` for a parameter with `content`. */
export type ParameterStyle =
  | 'simple'
  | 'label'
  | 'matrix'
  | 'form'
  | 'spaceDelimited'
  | 'pipeDelimited'
  | 'deepObject'
  | 'json'

/** Describes where one argument is placed in the request. */
export interface RequestInput {
  /** Name of the argument. */
  readonly argument: string
  /** `body` is one member of the body; `wholeBody` is the complete body. */
  readonly in: ParameterLocation | 'body' | 'wholeBody'
  /** Name in the request; '' for the whole body. */
  readonly name: string
  readonly required: boolean
  readonly style: ParameterStyle
  readonly explode: boolean
  /** Keeps some reserved characters of a query value unencoded. */
  readonly allowReserved: boolean
  /** Value from the configuration, which arguments cannot change. */
  readonly fixed?: unknown
}

/** A part of the path: fixed text, already encoded, or the name of a path parameter. */
export type PathPart = { readonly text: string } | { readonly parameter: string }

export interface RequestPlan {
  /** Uppercase. */
  readonly method: string
  readonly path: readonly PathPart[]
  readonly inputs: readonly RequestInput[]
  readonly body?: {
    readonly mediaType: string
    readonly encoding: 'json' | 'form'
    readonly required: boolean
  }
  readonly response: ResponsePlan
  /** Query parameter that contains the credential. Arguments must not set it. */
  readonly credential?: string
}

export interface ResponsePlan {
  /** Content of a successful response. */
  readonly kind: 'json' | 'text' | 'binary' | 'empty'
  /** Value for the `Accept` header. */
  readonly accept?: string
  /**
   * True when structured content is always `{ result: <body> }`. Otherwise, only bodies other than objects are wrapped.
   */
  readonly isWrapped: boolean
  readonly fields?: readonly string[]
  /** Schema of the structured content, as the document describes it. Absent if `output` is off. */
  readonly schema?: Fields
}

export interface OpenApiTool {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly annotations: ApiToolAnnotations
  readonly inputSchema: Fields
  readonly outputSchema?: Fields
  readonly request: RequestPlan
}

/** A selected operation that cannot become a tool. */
export interface SkippedOperation {
  /** Method and path, such as `POST /pets`. */
  readonly operation: string
  readonly reason: string
  readonly message: string
  readonly fix: string
}

/** An operation that the settings do not select. */
export interface UnselectedOperation {
  readonly operation: string
  readonly reason: 'method' | 'deprecated' | 'excluded' | 'not_included'
}

/** Reports a part that the conversion changed or left out. The tool still works. */
export interface ConversionNotice {
  /** Method and path; absent if the notice concerns the whole document. */
  readonly operation?: string
  readonly code: string
  readonly message: string
}

export interface OpenApiConversion {
  readonly title: string
  /** The document's `openapi` field. */
  readonly version: string
  /** Number of operations in the document. */
  readonly operations: number
  readonly tools: readonly OpenApiTool[]
  readonly skipped: readonly SkippedOperation[]
  readonly unselected: readonly UnselectedOperation[]
  readonly notices: readonly ConversionNotice[]
}

/** A conversion that contains only the names of the tools. */
export interface OpenApiSummary extends Omit<OpenApiConversion, 'tools'> {
  readonly tools: readonly { readonly name: string }[]
}
