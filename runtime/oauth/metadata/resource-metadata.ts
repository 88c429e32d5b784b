/**
 * Finds and writes RFC 9728 protected-resource metadata.
 *
 * Tries the URL from a challenge, then the path form, then the root form. A document is accepted only when its
 * `resource` covers the target: another resource's document must not choose our authorization server.
 * Source: RFC 9728; MCP 2025-11-25 authorization ("Protected Resource Metadata Discovery Requirements").
 */
import { jsonFields } from '../../../schemas/index.ts'
import {
  type OAuthCallOptions,
  type JsonRecord,
  optionalStrings,
  readJson,
  requiredString,
  send,
} from '../call.ts'
import { OAuthClientError } from '../client-error.ts'
import { resourceCovers, resourceMetadataUrls } from '../urls.ts'

export interface ResourceMetadata {
  readonly resource: string
  readonly authorizationServers: readonly string[]
  readonly scopesSupported?: readonly string[]
  /** The document as received. */
  readonly document: JsonRecord
}

const what = 'the protected-resource document'

/**
 * Returns the document for `target`, or undefined when none exists. Rejects with OAuthClientError: `protocol` when a
 * document is malformed or belongs to another resource, `unreachable` when the host does not respond.
 */
export async function discoverResource(
  target: string,
  options: OAuthCallOptions & {
    /** `resource_metadata` from the challenge. */
    readonly metadataUrl?: string | undefined
    /**
     * Called for each response that is not a usable document, except when the status only means that no document exists
     * (404, 405, 410, 501).
     */
    readonly onSkipped?: ((url: string, reason: string) => void) | undefined
  },
): Promise<ResourceMetadata | undefined> {
  const named = options.metadataUrl === undefined ? [] : [options.metadataUrl]
  for (const url of [...named, ...resourceMetadataUrls(target)]) {
    try {
      return await fetchResource(url, target, options)
    } catch (error) {
      // Skip hosts without a document, whatever they return instead. Do not skip a document that is invalid or
      // describes another resource.
      if (!(error instanceof OAuthClientError) || !['absent', 'refused'].includes(error.kind)) throw error
      if (error.kind === 'refused' || error.responseStatus === undefined)
        options.onSkipped?.(url, error.message)
    }
  }
  return undefined
}

async function fetchResource(
  url: string,
  target: string,
  options: OAuthCallOptions,
): Promise<ResourceMetadata> {
  if (!URL.canParse(url)) throw new OAuthClientError('protocol', 'resource_metadata is not a URL')
  const response = await send(what, url, { headers: { accept: 'application/json' } }, options)
  const text = await response.text()
  // A catch-all page returns 200 with HTML for every path.
  if (response.status === 200 && jsonFields(text) === undefined) {
    const type = (response.headers.get('content-type') ?? 'none').replace(/[^\x20-\x7e]/g, ' ').slice(0, 100)
    throw new OAuthClientError('absent', `${what} is not a JSON object (content type: ${type})`)
  }
  const { status, headers } = response
  const document = await readJson(what, new Response(text, { status, headers }))
  const resource = requiredString(what, document, 'resource')
  if (!resourceCovers(resource, target)) {
    throw new OAuthClientError('protocol', `${what} belongs to another resource`, {
      cause: new Error(
        `the document at ${url} has the resource ${resource.slice(0, 300)}; the target is ${target}`,
      ),
    })
  }
  const scopes = optionalStrings(what, document, 'scopes_supported')
  return {
    resource,
    authorizationServers: optionalStrings(what, document, 'authorization_servers') ?? [],
    ...(scopes === undefined ? {} : { scopesSupported: scopes }),
    document,
  }
}
