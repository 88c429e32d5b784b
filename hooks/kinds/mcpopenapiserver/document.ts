/**
 * Checks the OpenAPI document of an MCPOpenAPIServer and sets the condition DocumentReady.
 *
 * The hooks convert a document in a ConfigMap with the code of the running servers. They cannot download a document,
 * because a sync depends only on its request. The condition of a document at a URL therefore comes from the reports of
 * the virtual servers, and is Unknown until a server has read the document.
 */
import { createHash } from 'node:crypto'
import {
  canonicalJson,
  GatehouseError,
  hiddenInLine,
  type MCPOpenAPIServer,
  unicodeEscape,
} from '../../../schemas/index.ts'
import {
  type ConversionNotice,
  type OpenApiSettings,
  summarizeOpenApi,
} from '../../../schemas/openapi/index.ts'
import { definedFields, fieldsOf, type KubeObject } from '../../base/kube.ts'
import { failed, type ConfigPart, type SyncFailure } from '../../sync/conditions.ts'
import type { SyncContext } from '../../sync/context.ts'
import { reportedDocument } from './reported.ts'

type Context = SyncContext<'MCPOpenAPIServer'>
type Spec = MCPOpenAPIServer['spec']
type Status = NonNullable<MCPOpenAPIServer['status']>

/** The status fields that describe a valid document. */
export type DocumentStatus = Required<
  Pick<Status, 'documentSha256' | 'operationCount' | 'skipped' | 'skippedCount' | 'toolCount'>
>

/** A converted document, and the first filters and overrides that match no operation. */
export interface ConvertedDocument {
  readonly status: DocumentStatus
  readonly unused: readonly ConversionNotice[]
}

interface CheckedDocument {
  readonly failure?: SyncFailure | undefined
  /** The last valid document; undefined if there is none, or if the document is at a URL. */
  readonly document?: DocumentStatus | undefined
}

const condition = 'DocumentReady'

/** Sets the condition. Returns the last valid document and the failure of the current document. */
export function checkDocument(context: Context): CheckedDocument {
  const { conditions, spec } = context
  const { configMapRef } = spec.document
  if (!configMapRef) return checkReports(context)
  const text = documentText(context.configMap(configMapRef.name), configMapRef)
  const { value, failure } = text.failure ? text : convertedDocument(text.value, spec)
  conditions.check(condition, failure, 'DocumentValid', messageOf(value))
  return { failure, document: value?.status ?? lastDocument(context) }
}

function checkReports(context: Context): CheckedDocument {
  const { failure, unused, isInUse } = reportedDocument(context)
  if (failure !== undefined) {
    const reported = { reason: 'DocumentInvalid', message: visible(failure, maxFailure) }
    context.conditions.check(condition, reported, '', '')
    return { failure: reported }
  }
  const used = 'A virtual server uses the document'
  if (isInUse)
    context.conditions.set(
      condition,
      'True',
      'DocumentValid',
      visible(unused === undefined ? used : `${used}. ${unused}`, maxFailure),
    )
  else
    context.conditions.set(condition, 'Unknown', 'DocumentAtURL', 'No virtual server has read the document')
  return {}
}

function messageOf(document: ConvertedDocument | undefined): string {
  if (!document) return ''
  const { toolCount, operationCount, skippedCount } = document.status
  const counts = `Tools: ${toolCount}, operations: ${operationCount}, skipped: ${skippedCount}`
  const unused = document.unused.map(({ message }) => message).join('; ')
  return visible(
    `The document is valid. ${counts}${unused === '' ? '' : `. Unused settings: ${unused}`}`,
    maxFailure,
  )
}

/** Returns the status of the last valid document in the ConfigMap. */
export function lastDocument({ stored, spec }: Context): DocumentStatus | undefined {
  if (fieldsOf(fieldsOf(spec)['document'])['configMapRef'] === undefined) return undefined
  const { documentSha256, operationCount, skipped, skippedCount, toolCount } = fieldsOf(stored['status'])
  if (documentSha256 === undefined) return undefined
  // A previous sync wrote the status, so it has the right form.
  return definedFields({
    documentSha256,
    operationCount,
    skipped,
    skippedCount,
    toolCount,
  }) as unknown as DocumentStatus
}

/** Returns the text of a document, or the reason why it cannot be read. */
export function documentText(
  map: KubeObject | undefined,
  { name, key }: { readonly name: string; readonly key: string },
): ConfigPart<string> {
  if (!map) return failed('DocumentNotFound', `ConfigMap ${name} does not exist`)
  const text = fieldsOf(map['data'])[key]
  if (typeof text === 'string') return { value: text }
  return Object.hasOwn(fieldsOf(map['binaryData']), key)
    ? failed('DocumentInvalid', `ConfigMap ${name}: the key ${key} must contain UTF-8 text`)
    : failed('DocumentNotFound', `ConfigMap ${name} has no key ${key}`)
}

/**
 * Results of recent conversions. A conversion can take a second, and most syncs see an unchanged document. A result
 * depends only on its key, so the cache does not change any response.
 */
const recent = new Map<string, ConfigPart<ConvertedDocument>>()
const maxRecent = 100

/** Converts a document and summarizes the result, or returns the reason why the document is rejected. */
export function convertedDocument(text: string, spec: Spec): ConfigPart<ConvertedDocument> {
  const documentSha256 = createHash('sha256').update(text).digest('hex')
  const { apiKeyQuery, operations, overrides, response } = spec
  const settings = { apiKeyQuery, operations, overrides, response, configuredHeaders: addedHeaders(spec) }
  const key = `${documentSha256} ${canonicalJson(settings)}`
  const found = recent.get(key) ?? convert(text, definedFields(settings), documentSha256)
  recent.delete(key)
  recent.set(key, found)
  const [oldest] = recent.keys()
  if (recent.size > maxRecent && oldest !== undefined) recent.delete(oldest)
  return found
}

/** Returns the names of the added headers. Those of the authentication depend on the virtual server. */
export function addedHeaders({ headerForward = {} }: Spec): readonly string[] {
  const { addPlaintextHeaders = {}, addHeadersFromSecret = [] } = headerForward
  return [...Object.keys(addPlaintextHeaders), ...addHeadersFromSecret.map(({ headerName }) => headerName)]
}

const maxSkipped = 50
const maxUnused = 20
const maxOperation = 256
const maxMessage = 512
const maxFailure = 1_024

function convert(
  text: string,
  settings: OpenApiSettings,
  documentSha256: string,
): ConfigPart<ConvertedDocument> {
  try {
    const { tools, operations, skipped, notices } = summarizeOpenApi(text, settings)
    return {
      value: {
        status: {
          documentSha256,
          operationCount: operations,
          toolCount: tools.length,
          skippedCount: skipped.length,
          skipped: skipped.slice(0, maxSkipped).map(({ operation, reason, message, fix }) => ({
            operation: visible(operation, maxOperation),
            reason,
            message: visible(`${message}. ${fix}`, maxMessage),
          })),
        },
        unused: notices
          .slice(0, maxUnused)
          .map(({ code, message }) => ({ code, message: visible(message, maxMessage) })),
      },
    }
  } catch (error) {
    if (!(error instanceof GatehouseError)) throw error
    return failed('DocumentInvalid', visible(error.message, maxFailure))
  }
}

/** Escapes hidden characters and limits the length. The text contains names from the document. */
function visible(text: string, maxLength: number): string {
  const escaped = text.replaceAll(hiddenInLine, unicodeEscape)
  if (escaped.length <= maxLength) return escaped
  // Not every JSON parser accepts half of a surrogate pair.
  return `${escaped.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, '')}…`
}
