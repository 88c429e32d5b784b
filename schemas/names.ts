/**
 * Names that both halves must derive or know alike: environment variables, DNS labels, names cut to a length, the tools of
 * the server itself.
 */
import { createHash } from 'node:crypto'

/** The command that `gatehouse dev` runs in place of a server's image. */
export const localCommandAnnotation = 'gatehouse.dev/local-command'

/** Where Metacontroller records the desired state that it applied. */
export const lastAppliedAnnotation = 'metacontroller.k8s.io/last-applied-configuration'

/** The file of an embedded authorization server, in the folder of its host's file. */
export const authServerFile = 'authserver-config.yaml'

/** Holds the secret of the client that people sign in to the console with. */
export const consoleSecretVariable = 'GATEHOUSE_CONSOLE_CLIENT_SECRET'

/** How the running server's message about a backend starts that it has excluded. */
export const excludedPrefix = 'Excluded: '

/**
 * The part of an environment variable's name that stands for `name`: upper-cased, every character other than A-Z and
 * 0-9 becomes `_`. Two names can give one result (`a-b`, `a_b`); whoever composes several must check for that.
 */
export function envName(name: string): string {
  return name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')
}

/** True for a DNS label of RFC 1123: 1 to 63 lowercase letters, digits and hyphens, no hyphen at either end. */
export function isDnsLabel(name: string): boolean {
  return name.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)
}

/** True for a DNS subdomain of RFC 1123, which is what Kubernetes asks of object names: labels joined by dots, up to 253. */
export function isDnsSubdomain(name: string): boolean {
  return name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name)
}

/**
 * `base` when it has at most `max` characters, else its beginning, a hyphen and 8 hex digits of its SHA-256: always the
 * same for the same base, different for different bases, never ending in a hyphen or dot. `max` is at least 10.
 * 32 bits are enough: what can meet are a few names of one owner, and the hooks report two resources that claim one object.
 */
export function shortName(base: string, max: number): string {
  if (base.length <= max) return base
  if (max < 10) throw new RangeError('shortName needs space for at least 10 characters')
  const hash = createHash('sha256').update(base).digest('hex').slice(0, 8)
  return `${base.slice(0, max - 9).replace(/[-.]+$/, '')}-${hash}`
}

/** The tools that a virtual server adds itself (`config.optimizer`, `config.codeMode`). No workflow can have their names. */
export const serverTools = {
  findTool: 'find_tool',
  callTool: 'call_tool',
  executeToolScript: 'execute_tool_script',
} as const
