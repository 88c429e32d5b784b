/**
 * Headers added to every request to one remote server, without their secret values in any file.
 *
 * The value of an identifier is in the environment variable `GATEHOUSE_SECRET_<identifier>`; the identifier is
 * `HEADER_FORWARD_<HEADER>_<OWNER>`. A proxy names identifiers in its file. A virtual server has several remote
 * servers, each with `GATEHOUSE_HEADER_FORWARD_<OWNER>`, a JSON of plain values and identifiers.
 */
import { canonicalJson, envName, hashOf, type HeaderForwardConfig, type input } from '../../schemas/index.ts'
import type { PodNeeds } from './needs.ts'

/** Plain headers and identifiers of secret ones, whose variables it asks of the pod; undefined when there are none. */
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

/** `A` of `b-c` and `A-B` of `c` would be one identifier: the second gets a hash, 32 bits among the headers of one pod. */
function freeIdentifier(needs: PodNeeds, header: string, owner: string): string {
  const plain = `HEADER_FORWARD_${envName(header)}_${envName(owner)}`
  if (!needs.has(`GATEHOUSE_SECRET_${plain}`)) return plain
  return `${plain}_${hashOf([header, owner]).slice(0, 8).toUpperCase()}`
}

/**
 * Adds the variables of one backend of a virtual server, whose name is its own to the environment; returns the name of the
 * one that the file must name: a pod reads a changed file before it is replaced by one with the new environment.
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
 * The part of a variable that stands for an object's name. Names have hyphens and dots, which both become `_`, so a name
 * with a dot gets a hash: `a-b` and `a.b` stay apart.
 */
export function variablePart(name: string): string {
  return name.includes('.') ? `${envName(name)}_${hashOf(name).slice(0, 8).toUpperCase()}` : envName(name)
}
