/**
 * The authorization server that the resource names: its host, its metadata in all forms, and whether it is who it should be.
 * Source: RFC 8414, OpenID Connect Discovery 1.0, MCP 2025-11-25 authorization.
 */
import { endpointViolation, serverMetadataUrls } from '../../../oauth/index.ts'
import { profileOf } from '../profiles/index.ts'
import { failed, ok, type CheckOutcome, warning } from '../report/finding.ts'
import { checkClock } from './endpoint.ts'
import { quoted, type RemoteFacts, text } from './facts.ts'
import { checkConnection, checkName, checkTls, portOf } from './network.ts'
import { type MetadataPlace, readPlace, tellingPlace } from './resource.ts'

function issuerUrl({ issuer, target }: RemoteFacts): URL {
  return new URL(issuer ?? target.origin)
}

export async function checkIssuerHost(facts: RemoteFacts): Promise<CheckOutcome> {
  const { peers, target } = facts
  const url = issuerUrl(facts)
  facts.profile ??= profileOf(url.href)
  if (url.host === target.host && portOf(url) === portOf(target)) return ok('the host of the server itself')
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
  const places = await Promise.all(urls.map((url) => readPlace(peers, new URL(url))))
  const found = bestDocument(places, facts.issuer)
  if (found === undefined) return noMetadata(facts, issuer, places)
  facts.server = found.document
  facts.serverReply = found.reply
  // Under a domain of its own a provider shows itself in its metadata alone.
  facts.profile ??= profileOf(text(found.document, 'issuer') ?? '')
  const forms = places.filter(({ kind }) => kind === 'document').map(({ url }) => url.pathname)
  return ok(`at ${forms.join(', ')}`)
}

/** The first document of the issuer itself, else the first document. */
function bestDocument(places: readonly MetadataPlace[], issuer: string | undefined) {
  const documents = places.filter((place) => place.kind === 'document')
  return documents.find(({ document }) => text(document, 'issuer') === issuer) ?? documents[0]
}

async function noMetadata(
  facts: RemoteFacts,
  issuer: URL,
  places: readonly MetadataPlace[],
): Promise<CheckOutcome> {
  const worst = tellingPlace(places)
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
      const place = await readPlace(facts.peers, new URL(url))
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
  const seen = `issuer is ${named}, authorization_servers says ${issuer ?? '(nothing)'}`
  const onlySlash = named.replace(/\/$/, '') === issuer?.replace(/\/$/, '')
  if (onlySlash) return warning('issuer.slash', seen)
  // The document for all tenants of a provider contains a template instead of the issuer.
  if (/[{}]/.test(named)) return failed('issuer.mismatch', seen)
  return failed('issuer.mismatch', seen, {
    fix: `Write ${named} into authorization_servers, or correct the public URL of the authorization server.`,
  })
}

export async function checkIssuerClock({ serverReply }: RemoteFacts): Promise<CheckOutcome> {
  return checkClock(serverReply, 'issuer-clock.skew')
}

export async function checkEndpoints({ server, target }: RemoteFacts): Promise<CheckOutcome> {
  const lacking = ['authorization_endpoint', 'token_endpoint'].filter(
    (name) => text(server, name) === undefined,
  )
  if (lacking.length > 0) return failed('endpoints.missing', `no ${lacking.join(', no ')}`)
  for (const name of ['authorization_endpoint', 'token_endpoint', 'registration_endpoint', 'jwks_uri']) {
    const value = text(server, name)
    if (value === undefined) continue
    // In front of a plain http server on a private network, the endpoints may be plain as well.
    const violation = endpointViolation(value, target.protocol === 'http:')
    if (violation !== undefined) return failed('endpoints.insecure', `${name} ${violation}: ${value}`)
  }
  return ok('authorization_endpoint and token_endpoint')
}
