/**
 * The environment of local processes. Local processes inherit only the variables that programs need to start, so that a
 * server gets its manifest's environment and not the developer's secrets.
 */
import type { LogLevelName } from '../../../schemas/index.ts'
import { delimiter, dirname, resolve } from 'node:path'
import { selfCommand } from '../terminal/self.ts'

const inheritedNames = new Set([
  'HOME',
  'USER',
  'LANG',
  'LC_ALL',
  'TZ',
  'TMPDIR',
  'SSL_CERT_FILE',
  'NODE_EXTRA_CA_CERTS',
  'GATEHOUSE_PROXY_RESOLVES_NAMES',
])
/** `npx` needs npm's settings (registry, proxy, cache). npm keeps credentials in files, not in these variables. */
const inheritedPattern = /^(npm_config_|https?_proxy$|no_proxy$)/i

/**
 * Returns the environment for child processes and the command that starts this program again. At level `debug`, child
 * processes also write debug lines.
 */
export function localEnvironment(level?: LogLevelName): { baseEnv: Record<string, string>; self: string[] } {
  const baseEnv: Record<string, string> = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && (inheritedNames.has(name) || inheritedPattern.test(name)))
      baseEnv[name] = value
  }
  const binaries = [resolve('node_modules/.bin'), dirname(process.execPath), process.env['PATH'] ?? '']
  baseEnv['PATH'] = binaries.join(delimiter)
  if (level === 'debug') baseEnv['GATEHOUSE_DEBUG'] = 'true'
  return { baseEnv, self: selfCommand() }
}
