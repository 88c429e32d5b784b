/** A login as it is used and persisted: plain JSON that contains secrets. Performs no I/O. */
import { GatehouseError, isFields } from '../../../schemas/index.ts'
import type { OAuthSettings, RenewalPace, TargetAddress } from '../../config/index.ts'
import { isProofKey, type ProofKey, type TokenSet } from '../../oauth/index.ts'
import type { Located } from './locate.ts'
import type { PersistedLogin } from './persisted.ts'
import type { LoginClient } from './registration.ts'

/** Everything needed to use and renew a login. */
export interface KeptLogin extends LoginClient {
  readonly located: Located
  readonly tokens: TokenSet
  /** The key that the tokens are bound to. */
  readonly proofKey?: ProofKey | undefined
  /**
   * Unix milliseconds. If a login has two states, the later state is valid. Absent in files written by older versions.
   */
  readonly savedAtMs?: number | undefined
}

/** A token that expires sooner than this is no longer sent. */
export const marginMs = 10_000

export function isKeptLogin(value: unknown): value is KeptLogin {
  return (
    isFields(value) &&
    isFields(value['located']) &&
    isFields(value['client']) &&
    isFields(value['tokens']) &&
    (value['proofKey'] === undefined || isProofKey(value['proofKey']))
  )
}

/** Returns the key for the proofs of the current access token; undefined for a bearer token. */
export function keyOf({ tokens, proofKey }: KeptLogin): ProofKey | undefined {
  return tokens.tokenType === 'dpop' ? proofKey : undefined
}

/**
 * Returns a login that requires bound tokens, for a target that turned out to accept only bound tokens. A renewal can
 * obtain a bound token.
 */
export function withRequiredProof(login: KeptLogin): KeptLogin {
  if (login.located.dpop === 'required') return login
  return { ...login, located: { ...login.located, dpop: 'required' } }
}

/** Returns the persisted value when it is newer than `than`. Any login counts as newer when `than` is undefined. */
export function laterState(value: unknown, than: KeptLogin | undefined): KeptLogin | undefined {
  if (!isKeptLogin(value)) return undefined
  return than === undefined || (value.savedAtMs ?? 0) > (than.savedAtMs ?? 0) ? value : undefined
}

export function isDue({ tokens }: KeptLogin, nowMs: number): boolean {
  return tokens.expiresAt !== undefined && tokens.expiresAt - marginMs <= nowMs
}

export function isOver({ tokens }: KeptLogin, nowMs: number): boolean {
  return tokens.expiresAt !== undefined && tokens.expiresAt <= nowMs
}

/**
 * Returns the names under which a login may be persisted, the target's own name first. A target without a path usually
 * serves MCP at `/mcp`, so the targets with and without this path share a login.
 */
export function persistedNames(target: TargetAddress, settings: OAuthSettings): readonly string[] {
  const names = [persistedName(target, settings)]
  if (target.path === undefined) names.push(persistedName({ ...target, path: '/mcp' }, settings))
  else if (target.path === '/mcp') names.push(persistedName({ ...target, path: undefined }, settings))
  return names
}

/** Returns the first login that is persisted under one of the names. */
export function findKeptLogin(
  persisted: Pick<PersistedLogin, 'read'>,
  names: readonly string[],
): { readonly name: string; readonly login: KeptLogin } | undefined {
  for (const name of names) {
    const login = persisted.read(name)
    if (isKeptLogin(login)) return { name, login }
  }
  return undefined
}

/** Returns the name under which processes with these settings share a login. */
export function persistedName(target: TargetAddress, settings: OAuthSettings): string {
  const { issuer, tokenUrl, clientId, scopes, resource, dpop } = settings
  // A process that requires bound tokens, or never sends proofs, cannot use the login of a process with another
  // setting.
  const proofs = dpop === 'auto' ? [] : [dpop]
  return JSON.stringify(['login', uriOf(target), issuer, tokenUrl, clientId, scopes, resource, ...proofs])
}

export function uriOf({ origin, path = '' }: TargetAddress): string {
  return origin + path
}

/** Returns the error for requests that must wait until the login can be used. */
export function unavailable(text: string, cause?: unknown): GatehouseError {
  return new GatehouseError('BACKEND_UNAVAILABLE', {
    detail: text,
    headers: { 'Retry-After': '10' },
    ...(cause === undefined ? {} : { cause }),
  })
}

/**
 * Returns the delay until the next background renewal in milliseconds, after `failures` failures in a row, the first of
 * which was `sinceMs` ago. The delays grow at first, then stay constant. Returns `undefined` to give up.
 */
export function waitAfterFailure(pace: RenewalPace, failures: number, sinceMs: number): number | undefined {
  if (failures < pace.maxTries && sinceMs < pace.maxElapsedMs) {
    return Math.min(pace.initialMs * 2 ** Math.max(failures - 1, 0), pace.maxIntervalMs)
  }
  return sinceMs < pace.giveUpMs ? pace.tickMs : undefined
}
