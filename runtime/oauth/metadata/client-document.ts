/**
 * Client-id metadata documents: the client_id is an https URL, and its document describes the client.
 *
 * Fetches a document and checks its identity. The authorization server checks all other members and caches documents.
 * Redirects are rejected: the document must come from the client_id itself.
 * Source: draft-ietf-oauth-client-id-metadata-document-02; MCP 2025-11-25 authorization.
 */
import { isLoopbackHost } from '../../net/index.ts'
import { type OAuthCallOptions, type JsonRecord, readJson, requiredString, send } from '../call.ts'
import { OAuthClientError } from '../client-error.ts'

const what = 'the client metadata document'

/** True when the client_id can only be a metadata document URL. */
export function isClientDocumentUrl(clientId: string): boolean {
  return clientDocumentUrlViolation(clientId) === undefined
}

/** Returns the reason why a client_id is not a valid metadata document URL, or undefined when it is valid. */
export function clientDocumentUrlViolation(clientId: string): string | undefined {
  if (!URL.canParse(clientId)) return 'must be an absolute URL'
  const url = new URL(clientId)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopbackHost(url.hostname))) {
    return 'must be https'
  }
  if (url.username !== '' || url.password !== '') return 'must not contain a user name or password'
  if (clientId.includes('#')) return 'must not have a fragment'
  if (url.pathname === '/' || url.pathname === '') return 'must have a path'
  // Check the original text: the parser has already resolved dot segments.
  const path = clientId.replace(/^[^:]+:\/\/[^/?#]*/, '').split('?', 1)[0] ?? ''
  if (path.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment))) return 'must not have dot segments'
  return undefined
}

/**
 * Fetches and checks a client_id's document. Rejects with OAuthClientError. The URL comes from an untrusted client. The
 * fetch must therefore check addresses, must not follow redirects and should cap the response at a few kilobytes.
 */
export async function fetchClientDocument(clientId: string, options: OAuthCallOptions): Promise<JsonRecord> {
  const problem = clientDocumentUrlViolation(clientId)
  if (problem !== undefined) throw new OAuthClientError('protocol', `the client_id ${problem}`)
  const response = await send(what, clientId, { headers: { accept: 'application/json' } }, options)
  const type = response.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  // Stricter than for server documents: a page or file that an attacker could place at this address is not a client
  // document.
  if (response.status === 200 && type !== 'application/json' && !/^application\/[\w.+-]+\+json$/.test(type)) {
    throw new OAuthClientError('protocol', `${what} does not have a JSON content type`)
  }
  const document = await readJson(what, response)
  if (requiredString(what, document, 'client_id') !== clientId) {
    throw new OAuthClientError('protocol', `${what} names another client_id`)
  }
  return document
}
