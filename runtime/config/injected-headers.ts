/**
 * Headers that the proxy adds to every request to its target, plain or from a named secret.
 *
 * `Name=Value` is split at the first `=`. Headers that frame a request, route it or belong to the MCP session may not
 * be set; two settings of one header are a fault. A faulty value is never quoted: it may be a secret.
 * Source: spec document 1 (--remote-forward-headers, --remote-forward-headers-secret).
 */
import { headerNameProblem, headerValueProblem } from '../../schemas/index.ts'
import type { Environment } from './env.ts'
import type { Faults } from './faults.ts'
import { flagOf, type ProxyInput } from './proxy-flags.ts'
import { makeSecretsProvider, type SecretsProvider } from './secrets.ts'

export interface InjectedHeader {
  readonly name: string
  /** May be a secret: never log it. */
  readonly value: string
}

export function injectedHeaders(
  input: ProxyInput,
  env: Environment,
  faults: Faults,
): readonly InjectedHeader[] {
  const headers: InjectedHeader[] = []
  for (const [i, line] of (input.remoteForwardHeaders ?? []).entries()) {
    const found = split(line, 'remoteForwardHeaders', i, faults)
    if (found) accept(headers, found.name, found.rest, 'remoteForwardHeaders', faults)
  }
  const secretLines = input.remoteForwardHeadersSecret ?? []
  if (secretLines.length > 0) addSecrets(secretLines, env, headers, faults)
  return headers
}

function addSecrets(
  lines: readonly string[],
  env: Environment,
  headers: InjectedHeader[],
  faults: Faults,
): void {
  const provider: SecretsProvider | undefined = faults.attempt(
    () => makeSecretsProvider(env),
    flagOf('remoteForwardHeadersSecret'),
  )
  for (const [i, line] of lines.entries()) {
    const found = split(line, 'remoteForwardHeadersSecret', i, faults)
    if (!found || !provider) continue
    const secret = faults.attempt(
      () => provider.find(found.rest),
      `${flagOf('remoteForwardHeadersSecret')}: header ${JSON.stringify(found.name)}`,
    )
    if (secret) accept(headers, found.name, secret.reveal(), 'remoteForwardHeadersSecret', faults)
  }
}

type Key = 'remoteForwardHeaders' | 'remoteForwardHeadersSecret'

function split(
  line: string,
  key: Key,
  index: number,
  faults: Faults,
): { name: string; rest: string } | undefined {
  const at = line.indexOf('=')
  if (at > 0) return { name: line.slice(0, at).trim(), rest: line.slice(at + 1) }
  faults.about(
    key,
    `value ${index + 1} must be of the form Name=${key === 'remoteForwardHeaders' ? 'Value' : 'secret-name'}`,
  )
  return undefined
}

function accept(headers: InjectedHeader[], name: string, value: string, key: Key, faults: Faults): void {
  const lower = name.toLowerCase()
  const problem = headerNameProblem(name, 'injected')
  const valueProblem = headerValueProblem(value)
  if (problem !== undefined) faults.about(key, problem)
  else if (headers.some((header) => header.name.toLowerCase() === lower)) {
    faults.about(key, `the header ${name} is set twice`)
  } else if (valueProblem !== undefined) faults.about(key, `the value of ${name} ${valueProblem}`)
  else headers.push({ name, value })
}
