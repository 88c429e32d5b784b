/**
 * What the checks of one remote server know so far: each check may read what those before it found.
 */
import type { LookupAddress } from 'node:dns'
import { isLoopbackHost } from '../../../net/index.ts'
import { canonicalResource, type Challenge, type JsonRecord } from '../../../oauth/index.ts'
import type { ProbeReply } from '../../../toolkit/mcp-client/exchange.ts'
import type { Peers } from '../../../toolkit/mcp-client/peers.ts'
import type { Profile } from '../profiles/index.ts'
import type { Clean } from '../report/text.ts'
import type { SignIn } from '../sign-in/state.ts'

export interface RemoteOptions {
  /** A client that was registered by hand. */
  readonly clientId?: string | undefined
  /** Default: where `gatehouse proxy` listens. */
  readonly redirectUri?: string | undefined
  /** Registers a client, and deletes it again when the server allows it. */
  readonly register: boolean
  /** Of a client in a browser. */
  readonly origin?: string | undefined
  /** How long the stream of a session is watched; 0: its headers only. */
  readonly watchMs: number
}

export interface RemoteFacts {
  readonly target: URL
  readonly peers: Peers
  readonly clean: Clean
  readonly options: RemoteOptions
  /** What no text may show; a login adds to it. */
  readonly secrets: string[]
  /** A login that is walked for real. */
  readonly signIn?: SignIn | undefined
  /** Handed in, or given by the login. */
  token?: string | undefined
  /** What the server said to the token. */
  verdict?: Verdict
  /** Addresses of the target that may be dialled. */
  addresses?: readonly LookupAddress[]
  /** The response to `initialize` without a token. */
  first?: ProbeReply
  challenge?: Challenge
  /** The server wants no login. */
  isOpen?: boolean
  /** It speaks the HTTP+SSE (deprecated) transport only. */
  isHttpSse?: boolean
  resource?: JsonRecord
  /** As the protected-resource document names it. */
  issuer?: string
  server?: JsonRecord
  serverReply?: ProbeReply
  profile?: Profile | undefined
  session?: { readonly id: string | undefined; readonly version: string }
  isStateless?: boolean
}

/** `scope`: it wants others. */
export type Verdict = 'accepted' | 'refused' | 'scope'

/** Where `gatehouse proxy` listens for the redirect. */
const usualRedirectUri = 'http://localhost:8666/callback'

export function redirectUriOf({ signIn, options }: RemoteFacts): string {
  return signIn?.ready?.redirectUri ?? options.redirectUri ?? usualRedirectUri
}

export function clientIdOf({ signIn, options }: RemoteFacts): string | undefined {
  return signIn?.ready?.client.clientId ?? options.clientId
}

/** The RFC 8707 indicator that a client sends. */
export function resourceOf({ resource, target }: RemoteFacts): string {
  return text(resource, 'resource') ?? canonicalResource(shownUrl(target))
}

export function isLocal({ target }: Pick<RemoteFacts, 'target'>): boolean {
  return isLoopbackHost(target.hostname)
}

/** A URL without its query, for commands and messages. */
export function shownUrl(url: URL): string {
  return `${url.origin}${url.pathname}`
}

/** The strings of a list of a document, bounded. */
export function strings(document: JsonRecord | undefined, name: string): readonly string[] | undefined {
  const value = document?.[name]
  if (!Array.isArray(value)) return undefined
  return value.filter((item): item is string => typeof item === 'string').slice(0, 200)
}

export function text(document: JsonRecord | undefined, name: string): string | undefined {
  const value = document?.[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** An argument of a command that people copy: peers choose some of these texts. */
export function quoted(value: string | URL): string {
  const plain = typeof value === 'string' ? value : shownUrl(value)
  return /^[\w./:@%+=[\]-]+$/.test(plain) ? plain : `'${plain.replaceAll("'", "'\\''")}'`
}

/** A list for one line. */
export function listed(items: readonly string[]): string {
  if (items.length === 0) return 'nothing'
  return items.length > 8 ? `${items.slice(0, 8).join(', ')} and ${items.length - 8} more` : items.join(', ')
}
