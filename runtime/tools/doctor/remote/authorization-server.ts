/**
 * Checks the authorization server that the resource refers to: its host, all forms of its metadata, and its issuer.
 * Source: RFC 8414, OpenID Connect Discovery 1.0, MCP 2025-11-25 authorization.
 */
import { endpointViolation, serverMetadataUrls } from '../../../oauth/index.ts'
import { profileOf } from '../profiles/index.ts'
import { failed, ok, type CheckOutcome, warning } from '../report/finding.ts'
import { checkClock } from './endpoint.ts'
import { quoted, type RemoteFacts, text } from './facts.ts'
import { checkConnection, checkName, checkTls, portOf } from './network.ts'
import { type MetadataResponse, readMetadata, mostRelevantFailure } from './resource.ts'

function issuerUrl({ issuer, target }: RemoteFacts): URL {
  return new URL(issuer ?? target.origin)
}

export async function checkIssuerHost(facts: RemoteFacts): Promise<CheckOutcome> {
  const { peers, target } = facts
  const url = issuerUrl(facts)
  facts.profile ??= profileOf(url.href)
  if (url.host === target.host && portOf(url) === portOf(target)) return ok('same host as the server')
  const { outcome, addresses } = await checkName(url, peers)
  if (outcome.result === 'failed') {
    return outcome.code === 'address.refused' ? outcome : failed('issuer-host.dns', outcome.observed)
  }
  const connection = await checkConnection(url, addresses, peers.timeoutMs)
  if (connection.result === 'failed') return { ...connection, code: 'issuer-host.connect' }
  const tls = await checkTls(url, addresses, peers)
  return tls.result === 'failed' ? { ...tls, code: 'issuer-host.tls' } : ok(tls.observed)
}

export async function checkIssuerDocument(facts: RemoteFacts): Promise<CheckOutcome> {
  const { peers } = facts
  const issuer = issuerUrl(facts)
  const urls = serverMetadataUrls(issuer.href)
  const documents = await Promise.all(urls.map((url) => readMetadata(peers, new URL(url))))
  const found = bestDocument(documents, facts.issuer)
  if (found === undefined) return noMetadata(facts, issuer, documents)
  facts.server = found.document
  facts.serverReply = found.reply
  // A provider on a custom domain can be recognized only from its metadata.
  facts.profile ??= profileOf(text(found.document, 'issuer') ?? '')
  const forms = documents.filter(({ kind }) => kind === 'document').map(({ url }) => url.pathname)
  return ok(`at ${forms.join(', ')}`)
}

/** Returns the first document that matches the issuer. If no document matches, returns the first document. */
function bestDocument(places: readonly MetadataResponse[], issuer: string | undefined) {
  const documents = places.filter((place) => place.kind === 'document')
  return documents.find(({ document }) => text(document, 'issuer') === issuer) ?? documents[0]
}

async function noMetadata(
  facts: RemoteFacts,
  issuer: URL,
  places: readonly MetadataResponse[],
): Promise<CheckOutcome> {
  const worst = mostRelevantFailure(places)
  const seen = places.map((place) => `${place.url.pathname}: ${'seen' in place ? place.seen : ''}`).join('; ')
  const proof = `curl -si ${quoted(worst?.url ?? issuer)}`
  switch (worst?.kind) {
    case 'login':
      return failed('issuer-document.login', seen, { proof })
    case 'html':
      return failed('issuer-document.html', seen, { proof })
    case 'malformed':
      return failed('issuer-document.malformed', seen, { proof })
    case 'error':
    case 'unreachable':
      return failed('issuer-document.error', seen, { proof })
    default:
      break
  }
  if (issuer.pathname !== '/') {
    for (const url of serverMetadataUrls(issuer.origin)) {
      const place = await readMetadata(facts.peers, new URL(url))
      if (place.kind !== 'document') continue
      const other = text(place.document, 'issuer')
      return failed('issuer-document.root', `only at the root of the host, for issuer ${other ?? '(none)'}`, {
        proof,
      })
    }
  }
  return failed('issuer-document.missing', seen, { proof })
}

export async function checkIssuer({ server, issuer }: RemoteFacts): Promise<CheckOutcome> {
  const named = text(server, 'issuer')
  if (named === undefined) return failed('issuer-document.malformed', 'no issuer')
  if (named === issuer) return ok(named)
  const seen = `issuer is ${named}, but authorization_servers contains ${issuer ?? '(nothing)'}`
  const onlySlash = named.replace(/\/$/, '') === issuer?.replace(/\/$/, '')
  if (onlySlash) return warning('issuer.slash', seen)
  // A provider's multi-tenant document contains a template instead of the issuer.
  if (/[{}]/.test(named)) return failed('issuer.mismatch', seen)
  return failed('issuer.mismatch', seen, {
    fix: `Write ${named} in authorization_servers, or correct the authorization server’s public URL.`,
  })
}

export async function checkIssuerClock({ serverReply }: RemoteFacts): Promise<CheckOutcome> {
  return checkClock(serverReply, 'issuer-clock.skew')
}

export async function checkEndpoints({ server, target }: RemoteFacts): Promise<CheckOutcome> {
  const missing = ['authorization_endpoint', 'token_endpoint'].filter(
    (name) => text(server, name) === undefined,
  )
  if (missing.length > 0) return failed('endpoints.missing', `no ${missing.join(', no ')}`)
  for (const name of ['authorization_endpoint', 'token_endpoint', 'registration_endpoint', 'jwks_uri']) {
    const value = text(server, name)
    if (value === undefined) continue
    // A server that uses plain HTTP on a private network may also have plain HTTP endpoints.
    const violation = endpointViolation(value, target.protocol === 'http:')
    if (violation !== undefined) return failed('endpoints.insecure', `${name} ${violation}: ${value}`)
  }
  return ok('authorization_endpoint and token_endpoint')
}
