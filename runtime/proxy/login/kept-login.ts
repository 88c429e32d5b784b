/** A login as it is used and persisted: plain JSON, with secrets in it. Does no I/O. */
import { isFields } from '../../../schemas/index.ts'
import type { OAuthSettings, TargetAddress } from '../../config/index.ts'
import type { TokenSet } from '../../oauth/index.ts'
import type { Located } from './locate.ts'
import type { LoginClient } from './registration.ts'

/** All that is needed to use and renew a login. */
export interface KeptLogin extends LoginClient {
  readonly located: Located
  readonly tokens: TokenSet
  /** Unix milliseconds; of two states of one login the later one counts. Absent in files of older versions. */
  readonly savedAtMs?: number | undefined
}

/** A token is not sent any more when it ends this soon. */
const marginMs = 10_000

export function isKeptLogin(value: unknown): value is KeptLogin {
  return (
    isFields(value) && isFields(value['located']) && isFields(value['client']) && isFields(value['tokens'])
  )
}

/** The persisted value when it is a later state than this one. */
export function laterState(value: unknown, than: KeptLogin): KeptLogin | undefined {
  return isKeptLogin(value) && (value.savedAtMs ?? 0) > (than.savedAtMs ?? 0) ? value : undefined
}

export function isDue({ tokens }: KeptLogin, nowMs: number): boolean {
  return tokens.expiresAt !== undefined && tokens.expiresAt - marginMs <= nowMs
}

export function isOver({ tokens }: KeptLogin, nowMs: number): boolean {
  return tokens.expiresAt !== undefined && tokens.expiresAt <= nowMs
}

/** The name under which processes with these settings share a login. */
export function persistedName(target: TargetAddress, settings: OAuthSettings): string {
  const { issuer, tokenUrl, clientId, scopes, resource } = settings
  return JSON.stringify(['login', uriOf(target), issuer, tokenUrl, clientId, scopes, resource])
}

export function uriOf({ origin, path = '' }: TargetAddress): string {
  return origin + path
}
