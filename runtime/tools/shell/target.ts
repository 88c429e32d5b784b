/**
 * What TARGET names: a URL, a server that `gatehouse dev` or `gatehouse run` runs on this machine, or a resource of the
 * current cluster; or a command after `--` in its place.
 */
import { invalidConfig, own } from '../../../schemas/index.ts'
import { environment } from '../../config/index.ts'
import { urlOfResource } from '../../toolkit/targets/kubernetes.ts'
import { runningServers } from '../../toolkit/targets/running.ts'
import { isUrl } from '../../toolkit/targets/proxy-flags.ts'
import type { Server } from './conversation.ts'

/** Splits operands at `--`, which the parser has dropped: what stands behind it is a command. */
export function splitOperands(
  operands: readonly string[],
  argv: readonly string[],
): { readonly operands: readonly string[]; readonly command: readonly string[] | undefined } {
  const at = argv.indexOf('--')
  if (at < 0) return { operands, command: undefined }
  const command = argv.slice(at + 1)
  if (command.length === 0) throw invalidConfig('after -- stands a command that speaks MCP')
  return { operands: operands.slice(0, operands.length - command.length), command }
}

/** Throws INVALID_CONFIG for what names no server, NOT_FOUND and BACKEND_UNREACHABLE as the cluster says. */
export async function serverOf(target: string, namespace: string | undefined): Promise<Server> {
  if (isUrl(target)) return { kind: 'url', url: urlFrom(target) }
  const running = runningServers()
  const found = running.find(({ name }) => name === target)
  if (found && namespace === undefined) return { kind: 'url', url: urlFrom(found.url) }
  try {
    return { kind: 'url', url: urlFrom(await urlOfResource(target, namespace)) }
  } catch (error) {
    if (running.length === 0) throw error
    const names = [...new Set(running.map(({ name }) => name))].join(', ')
    const inCluster = error instanceof Error ? error.message : String(error)
    throw invalidConfig(`${inCluster}; ${target} does not run here either, where ${names} do`)
  }
}

function urlFrom(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw invalidConfig(
      'TARGET: must be an http or https URL, the name of a running server, or a resource name',
    )
  }
  if (url.username !== '' || url.password !== '') {
    throw invalidConfig('TARGET: a URL must not carry credentials; use --remote-auth-bearer-token-file')
  }
  return url
}

/** `-e NAME[=VALUE]` of a command. */
export function variablesFrom(given: readonly string[]): Record<string, string> {
  const env = environment()
  return Object.fromEntries(
    given.map((text) => {
      const at = text.indexOf('=')
      if (at === 0 || text === '') throw invalidConfig('-e: must be NAME or NAME=VALUE')
      if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
      const value = own(env, text)
      if (value === undefined)
        throw invalidConfig(`-e ${text}: is not set here; write ${text}=VALUE, or set it`)
      return [text, value]
    }),
  )
}
