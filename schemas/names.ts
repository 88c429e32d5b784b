/**
 * Names that the hooks and the runtime must derive identically: environment variables, DNS labels, shortened names, and
 * the server's own tools.
 */
import { createHash } from 'node:crypto'

/** The command that `gatehouse dev` runs instead of a server's image. */
export const localCommandAnnotation = 'gatehouse.dev/local-command'

/** Annotation in which Metacontroller records the last desired state that it applied. */
export const lastAppliedAnnotation = 'metacontroller.k8s.io/last-applied-configuration'

/** File name of an embedded authorization server's configuration, in the folder of its host's file. */
export const authServerFile = 'authserver-config.yaml'

/** Variable that contains the client secret for the console login. */
export const consoleSecretVariable = 'GATEHOUSE_CONSOLE_CLIENT_SECRET'

/** Prefix of the running server's message about an excluded backend. */
export const excludedPrefix = 'Excluded: '

/**
 * Converts `name` to a part of an environment variable's name: uppercase, with `_` instead of every character except
 * A-Z and 0-9. Different names, such as `a-b` and `a_b`, can produce the same result. Callers that combine several
 * names must check for collisions.
 */
export function envName(name: string): string {
  return name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')
}

/**
 * True for a DNS label as defined by RFC 1123: 1 to 63 lowercase letters, digits and hyphens, with no hyphen at either
 * end.
 */
export function isDnsLabel(name: string): boolean {
  return name.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)
}

/**
 * True for a DNS subdomain as defined by RFC 1123, which Kubernetes requires for object names: labels joined by dots,
 * up to 253 characters.
 */
export function isDnsSubdomain(name: string): boolean {
  return name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name)
}

/**
 * Returns `base` when it has at most `max` characters, otherwise its beginning, a hyphen and 8 hex digits of its
 * SHA-256. The result is deterministic and never ends with a hyphen or dot. `max` is at least 10. 32 bits are enough,
 * because only the names of one owner can collide. Hooks also report two resources that claim the same object.
 */
export function shortName(base: string, max: number): string {
  if (base.length <= max) return base
  if (max < 10) throw new RangeError('shortName requires a maximum of at least 10 characters')
  const hash = createHash('sha256').update(base).digest('hex').slice(0, 8)
  return `${base.slice(0, max - 9).replace(/[-.]+$/, '')}-${hash}`
}

/** Tools that a virtual server adds (`config.optimizer`, `config.codeMode`). Workflows cannot use these names. */
export const serverTools = {
  findTool: 'find_tool',
  callTool: 'call_tool',
  executeToolScript: 'execute_tool_script',
} as const
