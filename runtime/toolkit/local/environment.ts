/**
 * What local processes inherit from this one: the way to programs and home, and nothing else, so that a server sees the
 * environment its manifest gives it and not the developer's secrets.
 */
import type { LogLevelName } from '../../../schemas/index.ts'
import { delimiter, dirname, resolve } from 'node:path'
import { selfCommand } from '../terminal/self.ts'

const inherited = new Set([
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
/** npm's settings (registry, proxy, cache) are needed by `npx`; credentials live in its files, not here. */
const inheritedPattern = /^(npm_config_|https?_proxy$|no_proxy$)/i

/**
 * The environment for children, and the command line that runs this program again. Children write debug lines when these
 * are wanted.
 */
export function localEnvironment(level?: LogLevelName): { baseEnv: Record<string, string>; self: string[] } {
  const baseEnv: Record<string, string> = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && (inherited.has(name) || inheritedPattern.test(name))) baseEnv[name] = value
  }
  const binaries = [resolve('node_modules/.bin'), dirname(process.execPath), process.env['PATH'] ?? '']
  baseEnv['PATH'] = binaries.join(delimiter)
  if (level === 'debug') baseEnv['GATEHOUSE_DEBUG'] = 'true'
  return { baseEnv, self: selfCommand() }
}
