/**
 * Headers that the proxy adds to every request to its target, with a literal value or a named secret.
 *
 * `Name=Value` is split at the first `=`. Headers that frame or route a request, or that belong to the MCP session,
 * must not be set. Setting a header twice is an error. Messages never quote an invalid value, because it may be a
 * secret.
 * Source: docs/reference/specification/proxy-command.md (--remote-forward-headers, --remote-forward-headers-secret).
 */
import { headerNameViolation, headerValueViolation } from '../../../schemas/index.ts'
import type { Environment } from './env.ts'
import type { SettingErrors } from '../common/setting-errors.ts'
import { flagOf, type ProxyInput } from './flags.ts'
import { makeSecretsProvider, type SecretsProvider } from '../common/secrets.ts'

export interface InjectedHeader {
  readonly name: string
  /** Never log this value, which may be a secret. */
  readonly value: string
}

export function injectedHeaders(
  input: ProxyInput,
  env: Environment,
  violations: SettingErrors,
): readonly InjectedHeader[] {
  const headers: InjectedHeader[] = []
  for (const [i, line] of (input.remoteForwardHeaders ?? []).entries()) {
    const found = split(line, 'remoteForwardHeaders', i, violations)
    if (found) accept(headers, found.name, found.rest, 'remoteForwardHeaders', violations)
  }
  const secretLines = input.remoteForwardHeadersSecret ?? []
  if (secretLines.length > 0) addSecrets(secretLines, env, headers, violations)
  return headers
}

function addSecrets(
  lines: readonly string[],
  env: Environment,
  headers: InjectedHeader[],
  violations: SettingErrors,
): void {
  const provider: SecretsProvider | undefined = violations.attempt(
    () => makeSecretsProvider(env),
    flagOf('remoteForwardHeadersSecret'),
  )
  for (const [i, line] of lines.entries()) {
    const found = split(line, 'remoteForwardHeadersSecret', i, violations)
    if (!found || !provider) continue
    const secret = violations.attempt(
      () => provider.find(found.rest),
      `${flagOf('remoteForwardHeadersSecret')}: header ${JSON.stringify(found.name)}`,
    )
    if (secret) accept(headers, found.name, secret.reveal(), 'remoteForwardHeadersSecret', violations)
  }
}

type Key = 'remoteForwardHeaders' | 'remoteForwardHeadersSecret'

function split(
  line: string,
  key: Key,
  index: number,
  violations: SettingErrors,
): { name: string; rest: string } | undefined {
  const at = line.indexOf('=')
  if (at > 0) return { name: line.slice(0, at).trim(), rest: line.slice(at + 1) }
  violations.about(
    key,
    `value ${index + 1} must be of the form Name=${key === 'remoteForwardHeaders' ? 'Value' : 'secret-name'}`,
  )
  return undefined
}

function accept(
  headers: InjectedHeader[],
  name: string,
  value: string,
  key: Key,
  violations: SettingErrors,
): void {
  const lower = name.toLowerCase()
  const problem = headerNameViolation(name, 'injected')
  const valueViolation = headerValueViolation(value)
  if (problem !== undefined) violations.about(key, problem)
  else if (headers.some((header) => header.name.toLowerCase() === lower)) {
    violations.about(key, `the header ${name} is set twice`)
  } else if (valueViolation !== undefined) violations.about(key, `the value of ${name} ${valueViolation}`)
  else headers.push({ name, value })
}
