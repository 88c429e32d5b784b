/**
 * Configures headers that are added to every request to a remote server, without writing secret values to a file.
 *
 * An identifier has the form `HEADER_FORWARD_<HEADER>_<OWNER>`, and the environment variable
 * `GATEHOUSE_SECRET_<identifier>` contains its value. A proxy lists identifiers in its file. A virtual server has
 * several remote servers, each with a variable `GATEHOUSE_HEADER_FORWARD_<OWNER>`, which contains a JSON object with
 * plain values and identifiers.
 */
import {
  canonicalJson,
  envName,
  hashOf,
  type HeaderForwardConfig,
  type input,
  type Violation,
} from '../../schemas/index.ts'
import type { PodNeeds } from './needs.ts'

/**
 * Returns the plain headers and the identifiers of the secret headers, and adds their variables to the pod. Returns
 * undefined if there are no headers.
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
 * Adds a hash (32 bits, unique within a pod) when the identifier is already in use: header `A` of `b-c` and `A-B` of
 * `c` collide.
 */
function freeIdentifier(needs: PodNeeds, header: string, owner: string): string {
  const plain = `HEADER_FORWARD_${envName(header)}_${envName(owner)}`
  if (!needs.has(`GATEHOUSE_SECRET_${plain}`)) return plain
  return `${plain}_${hashOf([header, owner]).slice(0, 8).toUpperCase()}`
}

/**
 * Adds the variables for one backend of a virtual server, under a unique variable name. Returns the variable name for
 * the file. The name must be unique because a running pod reads a changed file before a pod with the new environment
 * replaces it.
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
 * Returns the part of a variable name that identifies an object. Hyphens and dots both become `_`, so a hash is
 * appended to names with a dot. `a-b` and `a.b` then stay distinct.
 */
export function variablePart(name: string): string {
  return name.includes('.') ? `${envName(name)}_${hashOf(name).slice(0, 8).toUpperCase()}` : envName(name)
}

/** Reports headers that are set more than once, ignoring case. The schema rejects restricted names. */
export function headerForwardViolations(config: HeaderForwardConfig | undefined, path: string): Violation[] {
  const violations: Violation[] = []
  const seen = new Map<string, string>()
  const addHeader = (name: string, where: string) => {
    const other = seen.get(name.toLowerCase())
    if (other === undefined) seen.set(name.toLowerCase(), where)
    else violations.push({ path: where, message: `sets the same header as ${other}` })
  }
  for (const name of Object.keys(config?.addPlaintextHeaders ?? {}).sort()) {
    addHeader(name, `${path}.addPlaintextHeaders[${JSON.stringify(name.slice(0, 80))}]`)
  }
  for (const [index, { headerName }] of (config?.addHeadersFromSecret ?? []).entries()) {
    addHeader(headerName, `${path}.addHeadersFromSecret[${index}].headerName`)
  }
  return violations
}
