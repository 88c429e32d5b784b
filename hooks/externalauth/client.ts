/**
 * Client authentication that several types share. Private keys, tokens and the client secrets of type
 * `clientCredentials` are mounted as files, which the runtime reads again when they change.
 */
import type { ClientAuth, input, SecretRef, ServiceAccountToken } from '../../schemas/index.ts'
import { definedFields } from '../base/kube.ts'
import type { StrategyTarget } from './module.ts'

/** Distinguishes the clients of one configuration; only the type `xaa` has two. */
type ClientName = 'client' | 'idp' | 'target'

/** Converts the settings and mounts the key or the token. `audience` is the token's default audience. */
export function clientAuthPart(
  auth: ClientAuth | undefined,
  client: ClientName,
  audience: string,
  target: StrategyTarget,
): input.RuntimeClientAuth | undefined {
  if (!auth) return undefined
  const { method, privateKeyRef, serviceAccountToken, signingAlg, assertionAudience } = auth
  return definedFields({
    method,
    privateKeyPath: privateKeyRef && secretPath(`${client}-key`, privateKeyRef, target),
    assertionPath: serviceAccountToken && tokenPath(`${client}-token`, serviceAccountToken, audience, target),
    signingAlg,
    assertionAudience,
  })
}

/** Mounts one key of a Secret and returns the path of its file. */
export function secretPath(what: string, { name, key }: SecretRef, { needs, name: config }: StrategyTarget) {
  const directory = directoryOf(config, what)
  needs.secretFiles(`external-auth-${what}-${config}`, directory, name, [{ key, path: what }])
  return `${directory}/${what}`
}

function tokenPath(
  what: string,
  token: ServiceAccountToken,
  audience: string,
  { needs, name }: StrategyTarget,
): string {
  const directory = directoryOf(name, what)
  needs.accountToken(`external-auth-${what}-${name}`, directory, {
    path: what,
    audience: token.audience ?? audience,
    expirationSeconds: token.expirationSeconds,
  })
  return `${directory}/${what}`
}

/** Each file has its own directory, because the files may come from different Secrets. */
function directoryOf(config: string, what: string): string {
  return `/etc/gatehouse/external-auth/${config}/${what}`
}
