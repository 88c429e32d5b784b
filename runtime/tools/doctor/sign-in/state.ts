/** What a login that is walked for real needs, and what it has so far. Holds secrets. */
import type {
  Callback,
  LoginSecrets,
  OAuthClient,
  Redirect,
  Registration,
  ServerMetadata,
  TokenSet,
} from '../../../oauth/index.ts'

export interface SignInOptions {
  readonly clientSecret?: string | undefined
  /** Tells the user something at once; not part of the report. */
  readonly notify: (line: string) => void
  /** Opens a browser; false when that did not work. Absent: the address is only told. */
  readonly open?: ((url: string) => Promise<boolean>) | undefined
  /** How long the browser may take to come back. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

export interface SignIn {
  readonly options: SignInOptions
  ready?: ReadyClient
  secrets?: LoginSecrets
  redirect?: Redirect
  code?: string
  tokens?: TokenSet
  /** All that were given, to be revoked. */
  readonly issued: { readonly refresh: Set<string>; readonly access: Set<string> }
}

/** A client, and the address that it is called back at. */
export interface ReadyClient {
  readonly server: ServerMetadata
  readonly callback: Callback
  readonly redirectUri: string
  readonly client: OAuthClient
  /** Of our own; given back at the end. */
  readonly registration?: Registration | undefined
  readonly scopes: readonly string[]
  readonly resource: string
}
