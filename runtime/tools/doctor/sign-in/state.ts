/** The options and the state of a login. Contains secrets. */
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
  /** Prints a message for the user immediately, outside the report. */
  readonly notify: (line: string) => void
  /** Opens a browser and returns false on failure. Absent when the address is only printed. */
  readonly open?: ((url: string) => Promise<boolean>) | undefined
  /** Time limit for the login in the browser. */
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
  /** All issued tokens, to be revoked. */
  readonly issued: { readonly refresh: Set<string>; readonly access: Set<string> }
}

/** A client and its redirect URI. */
export interface ReadyClient {
  readonly server: ServerMetadata
  readonly callback: Callback
  readonly redirectUri: string
  readonly client: OAuthClient
  /** Set when the client was registered for this login. The registration is deleted at the end. */
  readonly registration?: Registration | undefined
  readonly scopes: readonly string[]
  readonly resource: string
}
