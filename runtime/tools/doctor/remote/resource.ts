/**
 * Checks the protected-resource document: its location, whether clients can read it, and whether it describes this URL.
 * Source: RFC 9728; MCP 2025-11-25 authorization.
 */
import { jsonFields } from '../../../../schemas/index.ts'
import {
  canonicalResource,
  type JsonRecord,
  resourceMetadataUrls,
  serverMetadataUrls,
} from '../../../oauth/index.ts'
import { header, isFailure, mediaType, type ProbeReply } from '../../../toolkit/mcp-client/exchange.ts'
import { type NetworkFailure, networkFailureText } from '../../../net/index.ts'
import type { Peers } from '../../../toolkit/mcp-client/peers.ts'
import { failed, ok, type CheckOutcome, warning } from '../report/finding.ts'
import { joinList, quoted, type RemoteFacts, shownUrl, strings, text } from './facts.ts'

/** The response at a well-known URL. */
export type MetadataResponse =
  | {
      readonly kind: 'document'
      readonly url: URL
      readonly document: JsonRecord
      readonly reply: ProbeReply
    }
  | {
      readonly kind: 'malformed' | 'html' | 'login' | 'error' | 'absent'
      readonly url: URL
      readonly seen: string
    }
  | {
      readonly kind: 'unreachable'
      readonly url: URL
      readonly seen: string
      readonly failure: NetworkFailure
    }

/** Reads a document from a well-known location. A redirect to the same host is followed once. */
export async function readMetadata(peers: Peers, url: URL): Promise<MetadataResponse> {
  const first = await peers.ask(url, { method: 'GET', headers: { accept: 'application/json' } })
  const next = isFailure(first) ? undefined : sameHostRedirect(first, url)
  const reply =
    next === undefined
      ? first
      : await peers.ask(next, { method: 'GET', headers: { accept: 'application/json' } })
  if (isFailure(reply)) return { kind: 'unreachable', url, seen: networkFailureText(reply), failure: reply }
  const { status } = reply
  const type = mediaType(reply)
  const seen = `status ${status}${type === '' ? '' : `, ${type}`}`
  if (status === 401 || status === 403 || (status >= 300 && status < 400)) return { kind: 'login', url, seen }
  if (status === 404 || status === 405 || status === 410) return { kind: 'absent', url, seen }
  if (status !== 200) return { kind: 'error', url, seen }
  if (!/^application\/(?:[\w.-]+\+)?json$/.test(type)) return { kind: 'html', url, seen }
  const document = reply.ended === 'end' ? jsonFields(reply.body) : undefined
  return document === undefined
    ? { kind: 'malformed', url, seen }
    : { kind: 'document', url, document, reply }
}

function sameHostRedirect(reply: ProbeReply, from: URL): URL | undefined {
  if (![301, 302, 307, 308].includes(reply.status)) return undefined
  const location = header(reply, 'location')
  if (location === undefined || !URL.canParse(location, from.href)) return undefined
  const to = new URL(location, from)
  return to.host === from.host && to.protocol === from.protocol ? to : undefined
}

const rank = ['login', 'html', 'malformed', 'error', 'unreachable', 'absent'] as const

/** Returns the most relevant failure among the URLs that returned no document. */
export function mostRelevantFailure(
  places: readonly MetadataResponse[],
): Exclude<MetadataResponse, { kind: 'document' }> | undefined {
  for (const kind of rank) {
    const place = places.find((candidate) => candidate.kind === kind)
    if (place !== undefined && place.kind !== 'document') return place
  }
  return undefined
}

export async function checkResourceDocument(facts: RemoteFacts): Promise<CheckOutcome> {
  const { target, peers, challenge } = facts
  const named = challenge?.params.get('resource_metadata')
  const usual = resourceMetadataUrls(target.href)
  const urls = [...new Set([...(named !== undefined && URL.canParse(named) ? [named] : []), ...usual])]
  const places = await Promise.all(urls.map((url) => readMetadata(peers, new URL(url))))
  const index = places.findIndex(({ kind }) => kind === 'document')
  const found = places[index]
  if (found?.kind !== 'document') return noDocument(facts, places)
  facts.resource = found.document
  const [first] = places
  const proof = `curl -si ${quoted(first?.url ?? found.url)}`
  if (named !== undefined && index > 0 && first !== undefined && first.kind !== 'document') {
    return failed('resource-document.challenge-url', `${shownUrl(first.url)}: ${first.seen}`, {
      proof,
      fix: `Set resource_metadata to ${shownUrl(found.url)}, the URL of the document.`,
    })
  }
  return checkServers(facts, found.document, proof) ?? formOf(found.url, usual, named)
}

function formOf(url: URL, usual: readonly string[], named: string | undefined): CheckOutcome {
  const rootOnly = named === undefined && usual.length > 1 && url.href === usual[1]
  return rootOnly ? warning('resource-document.root-only', 'only at the root URL') : ok(`at ${shownUrl(url)}`)
}

function checkServers(facts: RemoteFacts, document: JsonRecord, proof: string): CheckOutcome | undefined {
  const servers = strings(document, 'authorization_servers') ?? []
  const [issuer] = servers
  if (issuer === undefined)
    return failed('resource-document.no-servers', 'no authorization_servers', { proof })
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  const isWeb = url?.protocol === 'https:' || (url?.protocol === 'http:' && facts.target.protocol === 'http:')
  if (!isWeb || url.username !== '' || url.search !== '' || url.hash !== '') {
    return failed('resource-document.server-url', `authorization_servers: ${joinList(servers)}`, { proof })
  }
  facts.issuer = issuer
  return undefined
}

async function noDocument(facts: RemoteFacts, places: readonly MetadataResponse[]): Promise<CheckOutcome> {
  const worst = mostRelevantFailure(places)
  const proof = `curl -si ${quoted(worst?.url ?? facts.target)}`
  const seen = places.map((place) => `${place.url.pathname}: ${'seen' in place ? place.seen : ''}`).join('; ')
  switch (worst?.kind) {
    case 'login':
      return failed('resource-document.login', seen, { proof })
    case 'html':
      return failed('resource-document.html', seen, { proof })
    case 'malformed':
      return failed('resource-document.malformed', seen, { proof })
    case 'error':
    case 'unreachable':
      return failed('resource-document.error', seen, { proof })
    default:
      break
  }
  // MCP 2025-03-26: the server is its own authorization server.
  for (const url of serverMetadataUrls(facts.target.origin)) {
    const place = await readMetadata(facts.peers, new URL(url))
    if (place.kind !== 'document') continue
    facts.issuer = text(place.document, 'issuer') ?? facts.target.origin
    return warning(
      'resource-document.legacy',
      'no protected-resource document, but metadata at the root of the host',
    )
  }
  return failed('resource-document.missing', seen, { proof })
}

/** Checks that the document describes this URL, and reports which part differs. */
export async function checkResource({ resource: document, target }: RemoteFacts): Promise<CheckOutcome> {
  if (document === undefined) return ok('no document')
  const resource = text(document, 'resource')
  if (resource === undefined || !URL.canParse(resource)) {
    return failed('resource.missing', `resource is ${JSON.stringify(document['resource']) ?? 'missing'}`)
  }
  const own = new URL(resource)
  const seen = `resource is ${resource}`
  if (own.protocol !== target.protocol) return failed('resource.scheme', seen)
  if (own.host !== target.host) return failed('resource.host', seen)
  const ownPath = withoutSlash(own.pathname)
  const path = withoutSlash(target.pathname)
  if (ownPath === path) return ok(seen)
  if (!`${path}/`.startsWith(`${ownPath}/`)) return failed('resource.path', seen)
  return warning('resource.parent', seen, {
    fix: `Set resource to ${canonicalResource(shownUrl(target))}: some clients require both to be equal.`,
  })
}

function withoutSlash(path: string): string {
  return path.replace(/\/+$/, '')
}
