/**
 * Creates configurations from a group name and a list of backends. `vmcp init` writes such a configuration to a starter
 * file; the quick mode of `vmcp serve --group` serves it directly. Quick mode has no file and listens only on loopback
 * addresses.
 */
import { writeYaml } from '../../../schemas/yaml/index.ts'
import { renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { GatehouseError, byText, invalidConfig } from '../../../schemas/index.ts'
import { parseVmcpConfig, systemReason, type VmcpConfig } from '../../config/index.ts'
import { isLoopbackHost } from '../../net/index.ts'

const hint =
  '# Serve this file: gatehouse vmcp serve --config FILE. Check it: gatehouse vmcp validate --config FILE.\n'

/** Creates a configuration. Throws INVALID_CONFIG when a backend does not have the form `name=URL`. */
export function starterFile(group: string, backends: readonly string[]): string {
  const text = hint + writeYaml(document(`${group}-vmcp`, group, backends))
  parseVmcpConfig(text)
  return text
}

/**
 * Writes the file atomically, with read access only for its owner. Throws INVALID_CONFIG when the file cannot be
 * written. Also throws for an existing file that is not empty, which may contain edits.
 */
export function writeStarter(path: string, text: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.size)
    throw invalidConfig(`${path} already exists: remove it, or choose another file`)
  const unfinished = `${path}.${process.pid}.tmp`
  try {
    writeFileSync(unfinished, text, { mode: 0o600, flag: 'wx' })
    renameSync(unfinished, path)
  } catch (cause) {
    rmSync(unfinished, { force: true })
    throw invalidConfig(`cannot write ${path}: ${systemReason(cause)}`, cause)
  }
}

/**
 * Creates the configuration of quick mode. Throws INVALID_CONFIG when there is no group, or when the host is not a
 * loopback address.
 */
export function quickConfig(
  group: string | undefined,
  backends: readonly string[],
  host: string,
): VmcpConfig {
  if (group === undefined)
    throw new GatehouseError('INVALID_CONFIG', { detail: 'either --config or --group is required' })
  if (!isLoopbackHost(host)) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail:
        '--host: must be a loopback address, because there is no authentication without a configuration file',
    })
  }
  return parseVmcpConfig(writeYaml(document(group, group, backends)))
}

function document(name: string, group: string, backends: readonly string[]): unknown {
  return {
    name,
    groupRef: group,
    incomingAuth: { type: 'anonymous' },
    outgoingAuth: { source: 'inline' },
    aggregation: { conflictResolution: 'prefix', conflictResolutionConfig: { prefixFormat: '{workload}_' } },
    backends: backends.map(readBackend).sort((a, b) => byText(a.name, b.name)),
  }
}

function readBackend(text: string): { name: string; url: string; transport: string } {
  const [, name, url] = /^([^=]+)=(.+)$/.exec(text) ?? []
  if (name === undefined || url === undefined || !URL.canParse(url) || new URL(url).host.includes(',')) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail:
        '--backend: must be a single name=URL pair, such as files=http://127.0.0.1:8001/mcp; repeat the flag for each backend',
    })
  }
  return { name, url, transport: new URL(url).pathname.endsWith('/sse') ? 'sse' : 'streamable-http' }
}
