/**
 * Configures headers that are added to every request to a remote server, without writing secret values to a file.
 *
 * The environment variable `GATEHOUSE_SECRET_<identifier>` contains the value of an identifier, which is
 * `HEADER_FORWARD_<HEADER>_<OWNER>`. A proxy lists identifiers in its file. A virtual server has several remote
 * servers, each with `GATEHOUSE_HEADER_FORWARD_<OWNER>`, a JSON object with plain values and identifiers.
 */
import { canonicalJson, envName, hashOf, type HeaderForwardConfig, type input } from '../../schemas/index.ts'
import type { PodNeeds } from './needs.ts'

/**
 * Returns plain headers and the identifiers of secret ones, and adds their variables to the pod. Returns undefined
 * without headers.
 */
export function headerIdentifiers(
  needs: PodNeeds,
  owner: string,
  config: HeaderForwardConfig | undefined,
): input.ProxyHeaderForward | undefined {
  const plain = config?.addPlaintextHeaders ?? {}
  const secret = config?.addHeadersFromSecret ?? []
  if (Object.keys(plain).length === 0 && secret.length === 0) return undefined
  const identifiers = secret.map(({ headerName, valueSecretRef }): [string, string] => {
    const identifier = freeIdentifier(needs, headerName, owner)
    needs.secretEnv(`GATEHOUSE_SECRET_${identifier}`, valueSecretRef)
    return [headerName, identifier]
  })
  return {
    ...(Object.keys(plain).length > 0 && { addPlaintextHeaders: plain }),
    ...(identifiers.length > 0 && { addHeadersFromSecret: Object.fromEntries(identifiers) }),
  }
}

/**
 * Adds a hash (32 bits, unique within a pod) when the identifier is taken: header `A` of `b-c` and `A-B` of `c`
 * collide.
 */
function freeIdentifier(needs: PodNeeds, header: string, owner: string): string {
  const plain = `HEADER_FORWARD_${envName(header)}_${envName(owner)}`
  if (!needs.has(`GATEHOUSE_SECRET_${plain}`)) return plain
  return `${plain}_${hashOf([header, owner]).slice(0, 8).toUpperCase()}`
}

/**
 * Adds the variables of one backend of a virtual server, whose variable name must be unique. Returns the name for the
 * file, because a pod reads a changed file before it is replaced by one with the new environment.
 */
export function addHeaderForward(
  needs: PodNeeds,
  backend: string,
  config: HeaderForwardConfig | undefined,
): string | undefined {
  const headers = headerIdentifiers(needs, backend, config)
  if (!headers) return undefined
  const variable = `GATEHOUSE_HEADER_FORWARD_${envName(backend)}`
  needs.literal(variable, canonicalJson(headers))
  return variable
}

/**
 * Returns the part of a variable name for an object. Hyphens and dots both become `_`, so a name with a dot gets a hash
 * to keep `a-b` and `a.b` distinct.
 */
export function variablePart(name: string): string {
  return name.includes('.') ? `${envName(name)}_${hashOf(name).slice(0, 8).toUpperCase()}` : envName(name)
}
