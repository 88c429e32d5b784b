/**
 * Header forwarding of a remote backend, as environment of the pod: one JSON variable per backend with plain values and
 * with identifiers of secret ones, and one variable per secret value.
 *
 * `GATEHOUSE_HEADER_FORWARD_<BACKEND>` = {"addPlaintextHeaders":{…},"addHeadersFromSecret":{"<Header>":"<identifier>"}};
 * the value of an identifier is in `GATEHOUSE_SECRET_<identifier>`. Names that would become one variable get a hash.
 */
import { canonicalJson, envName, hashOf, type HeaderForwardConfig } from '../schemas/index.ts'
import type { PodNeeds } from './needs.ts'

/** Adds the variables of one backend. */
export function addHeaderForward(
  needs: PodNeeds,
  backend: string,
  config: HeaderForwardConfig | undefined,
): void {
  const plain = config?.addPlaintextHeaders ?? {}
  const secret = config?.addHeadersFromSecret ?? []
  if (Object.keys(plain).length === 0 && secret.length === 0) return
  const identifiers: [string, string][] = secret.map(({ headerName, valueSecretRef }) => {
    const identifier = `HEADER_FORWARD_${headerVariable(headerName)}_${backendVariable(backend)}`
    needs.secretEnv(`GATEHOUSE_SECRET_${identifier}`, valueSecretRef)
    return [headerName, identifier]
  })
  needs.literal(
    `GATEHOUSE_HEADER_FORWARD_${backendVariable(backend)}`,
    canonicalJson({
      ...(Object.keys(plain).length > 0 && { addPlaintextHeaders: plain }),
      ...(identifiers.length > 0 && { addHeadersFromSecret: Object.fromEntries(identifiers) }),
    }),
  )
}

/**
 * The part of a variable that stands for an object's name. Names have hyphens and dots, which both become `_`, so a name
 * with a dot gets a hash: `a-b` and `a.b` stay apart.
 */
export function backendVariable(name: string): string {
  return name.includes('.') ? `${envName(name)}_${hashOf(name).slice(0, 8).toUpperCase()}` : envName(name)
}

function headerVariable(header: string): string {
  const lower = header.toLowerCase()
  return /^[a-z0-9-]+$/.test(lower)
    ? envName(lower)
    : `${envName(lower)}_${hashOf(lower).slice(0, 8).toUpperCase()}`
}
