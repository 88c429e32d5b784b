/** The login options of `gatehouse up`. */
import { resolve } from 'node:path'
import { invalidConfig } from '../../../../schemas/index.ts'
import { readSecretFile, readVariable, variables } from '../../../config/index.ts'
import type { Host } from '../../../toolkit/clients/index.ts'
import type { LoginSettings } from '../state.ts'
import { allowPattern } from './allowed-accounts.ts'

export interface UpLoginOptions {
  /** True for the built-in identity provider, or the URL of another issuer. */
  readonly login?: true | string
  readonly loginClientId?: string
  readonly loginClientSecretFile?: string
  readonly loginAllow: readonly string[]
  readonly publicUrl?: string
  readonly share: boolean
}

/** Returns undefined without `--login`. Throws INVALID_CONFIG, which lists all errors. */
export function loginSettings(options: UpLoginOptions, host: Host): LoginSettings | undefined {
  const violations = [...violationsIn(options)]
  if (violations.length > 0) throw invalidConfig(violations.join('\n'))
  const {
    login,
    loginClientId: clientId,
    loginClientSecretFile: file,
    loginAllow,
    publicUrl,
    share,
  } = options
  if (login === undefined) return undefined
  const base = {
    allow: loginAllow,
    share,
    ...(publicUrl !== undefined && { publicUrl: originOf(publicUrl) }),
  }
  if (login === true) return base
  const clientSecretFile = file === undefined ? undefined : resolve(host.cwd, file)
  if (clientSecretFile !== undefined) readSecretFile(clientSecretFile)
  const clientSecret =
    clientSecretFile === undefined ? readVariable(host.env, variables.loginClientSecret) : undefined
  return { ...base, issuer: login, clientId, clientSecretFile, clientSecret }
}

function* violationsIn(options: UpLoginOptions): Generator<string> {
  const { login, loginClientId, loginClientSecretFile, loginAllow, publicUrl, share } = options
  if (login === undefined) {
    if (share)
      yield '--share: requires --login, because the address must not be open to everyone who reaches it'
    if (publicUrl !== undefined) yield '--public-url: requires --login'
  }
  if (publicUrl !== undefined && originOf(publicUrl) === undefined)
    yield '--public-url: must be an https URL without a path, such as https://tools.example.com'
  if (typeof login !== 'string') {
    if (loginClientId !== undefined) yield '--login-client-id: requires --login with an issuer URL'
    if (loginClientSecretFile !== undefined)
      yield '--login-client-secret-file: requires --login with an issuer URL'
    if (loginAllow.length > 0) yield '--login-allow: requires --login with an issuer URL'
    return
  }
  if (!URL.canParse(login) || new URL(login).protocol !== 'https:')
    yield '--login: the issuer must be an https URL'
  if (loginClientId === undefined) yield '--login-client-id: is required with an issuer URL'
  if (loginAllow.length === 0)
    yield "--login-allow: is required with an issuer URL; pass email addresses, @example.com, or '*' for every account of the issuer"
  for (const rule of loginAllow)
    if (!allowPattern.test(rule))
      yield `--login-allow: ${JSON.stringify(rule)} must be an email address, @ and a domain, or *`
}

/** Returns the origin of an https URL that consists only of an origin. */
function originOf(value: string): string | undefined {
  if (!URL.canParse(value)) return undefined
  const { protocol, origin, href } = new URL(value)
  return protocol === 'https:' && href === `${origin}/` ? origin : undefined
}
