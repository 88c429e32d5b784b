/** Facts that the remote server checks collect. Each check can read the facts that earlier checks collected. */
import type { LookupAddress } from 'node:dns'
import { isLoopbackHost } from '../../../net/index.ts'
import { canonicalResource, type Challenge, type JsonRecord } from '../../../oauth/index.ts'
import type { ProbeReply } from '../../../toolkit/mcp-client/exchange.ts'
import type { Peers } from '../../../toolkit/mcp-client/peers.ts'
import type { Profile } from '../profiles/index.ts'
import type { Clean } from '../report/text.ts'
import type { SignIn } from '../sign-in/state.ts'
import type { ReviewedTools } from '../directory/model.ts'

export interface RemoteOptions {
  /** A registered client's id. */
  readonly clientId?: string | undefined
  /** Default: the redirect URI of `gatehouse proxy`. */
  readonly redirectUri?: string | undefined
  /** Registers a client, then deletes it if the server supports that. */
  readonly register: boolean
  /** A browser client's origin. */
  readonly origin?: string | undefined
  /** How long an idle stream is watched. 0 checks only its headers. */
  readonly watchMs: number
}

export interface RemoteFacts {
  readonly target: URL
  readonly peers: Peers
  readonly clean: Clean
  readonly options: RemoteOptions
  /** Secrets to redact in text. A login adds its secrets to this list. */
  readonly secrets: string[]
  /** State of the login if --login is set. */
  readonly signIn?: SignIn | undefined
  /** The token from --token-file or from the login. */
  token?: string | undefined
  /** The server's response to the token. */
  verdict?: Verdict
  /** The target's addresses that may be dialed. */
  addresses?: readonly LookupAddress[]
  /** The response to `initialize` without a token. */
  first?: ProbeReply
  challenge?: Challenge
  /** True when the server does not require a login. */
  isOpen?: boolean
  /** True when the server supports only the deprecated HTTP+SSE transport. */
  isHttpSse?: boolean
  resource?: JsonRecord
  /** Issuer, as in the protected-resource document. */
  issuer?: string
  server?: JsonRecord
  serverReply?: ProbeReply
  profile?: Profile | undefined
  session?: { readonly id: string | undefined; readonly version: string }
  isStateless?: boolean
  /** All tools, if a directory's requirements are checked. */
  tools?: ReviewedTools
}

/** `scope`: the server requires different scopes. */
export type Verdict = 'accepted' | 'refused' | 'scope'

/** The redirect URI of `gatehouse proxy`. */
const usualRedirectUri = 'http://localhost:8666/callback'

export function redirectUriOf({ signIn, options }: RemoteFacts): string {
  return signIn?.ready?.redirectUri ?? options.redirectUri ?? usualRedirectUri
}

export function clientIdOf({ signIn, options }: RemoteFacts): string | undefined {
  return signIn?.ready?.client.clientId ?? options.clientId
}

/** Returns the RFC 8707 resource that a client sends. */
export function resourceOf({ resource, target }: RemoteFacts): string {
  return text(resource, 'resource') ?? canonicalResource(shownUrl(target))
}

export function isLocal({ target }: Pick<RemoteFacts, 'target'>): boolean {
  return isLoopbackHost(target.hostname)
}

/** Returns a URL without its query, for commands and messages. */
export function shownUrl(url: URL): string {
  return `${url.origin}${url.pathname}`
}

/** Returns at most 200 strings from a list in a document. */
export function strings(document: JsonRecord | undefined, name: string): readonly string[] | undefined {
  const value = document?.[name]
  if (!Array.isArray(value)) return undefined
  return value.filter((item): item is string => typeof item === 'string').slice(0, 200)
}

export function text(document: JsonRecord | undefined, name: string): string | undefined {
  const value = document?.[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Quotes a command argument for the user to copy. Peers control some of this text. */
export function quoted(value: string | URL): string {
  const plain = typeof value === 'string' ? value : shownUrl(value)
  return /^[\w./:@%+=[\]-]+$/.test(plain) ? plain : `'${plain.replaceAll("'", "'\\''")}'`
}

/** Formats a list on one line. */
export function joinList(items: readonly string[]): string {
  if (items.length === 0) return 'nothing'
  return items.length > 8 ? `${items.slice(0, 8).join(', ')} and ${items.length - 8} more` : items.join(', ')
}
