/**
 * Client authentication that outgoing strategies and upstream providers share. Private keys, tokens and the client
 * secrets of type `clientCredentials` are mounted as files, which the runtime reads again when they change.
 */
import type { ClientAuth, input, SecretRef, ServiceAccountToken } from '../../schemas/index.ts'
import { definedFields } from '../base/kube.ts'
import type { PodNeeds } from './needs.ts'

/**
 * Determines the volumes and directories for the files of one owner. Each file has its own directory, because different
 * Secrets may contain the files.
 */
export interface CredentialFiles {
  readonly needs: PodNeeds
  /** Returns the name of the volume for a file. */
  readonly volume: (file: string) => string
  /** Returns the directory for a file. */
  readonly directory: (file: string) => string
}

/**
 * Converts the settings and mounts the key or the token. `client` distinguishes the clients of one owner. `audience` is
 * the default audience of the token.
 */
export function clientAuthPart(
  auth: ClientAuth | undefined,
  client: string,
  audience: string,
  files: CredentialFiles,
): input.RuntimeClientAuth | undefined {
  if (!auth) return undefined
  const { method, privateKeyRef, serviceAccountToken, signingAlg, assertionAudience } = auth
  return definedFields({
    method,
    privateKeyPath: privateKeyRef && secretPath(`${client}-key`, privateKeyRef, files),
    assertionPath: serviceAccountToken && tokenPath(`${client}-token`, serviceAccountToken, audience, files),
    signingAlg,
    assertionAudience,
  })
}

/** Mounts one key of a Secret and returns the path of its file. */
export function secretPath(file: string, { name, key }: SecretRef, files: CredentialFiles): string {
  const directory = files.directory(file)
  files.needs.secretFiles(files.volume(file), directory, name, [{ key, path: file }])
  return `${directory}/${file}`
}

function tokenPath(
  file: string,
  token: ServiceAccountToken,
  audience: string,
  files: CredentialFiles,
): string {
  const directory = files.directory(file)
  files.needs.accountToken(files.volume(file), directory, {
    path: file,
    audience: token.audience ?? audience,
    expirationSeconds: token.expirationSeconds,
  })
  return `${directory}/${file}`
}
