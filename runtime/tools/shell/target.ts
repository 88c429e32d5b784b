/**
 * Resolves TARGET: a URL, a server that `gatehouse dev` or `gatehouse run` runs on this machine, or a resource in the
 * current cluster. A command after `--` replaces TARGET.
 */
import { invalidConfig, own } from '../../../schemas/index.ts'
import { environment } from '../../config/index.ts'
import { urlOfResource } from '../../toolkit/targets/kubernetes.ts'
import { runningServers } from '../../toolkit/targets/running.ts'
import { isUrl } from '../../toolkit/targets/proxy-flags.ts'
import type { Server } from './conversation.ts'

/** Splits operands at `--`, which the parser has removed. The words after it form a command. */
export function splitOperands(
  operands: readonly string[],
  argv: readonly string[],
): { readonly operands: readonly string[]; readonly command: readonly string[] | undefined } {
  const at = argv.indexOf('--')
  if (at < 0) return { operands, command: undefined }
  const command = argv.slice(at + 1)
  if (command.length === 0) throw invalidConfig('after --, add a command that runs an MCP server')
  return { operands: operands.slice(0, operands.length - command.length), command }
}

/** Throws INVALID_CONFIG for an invalid target, and NOT_FOUND or BACKEND_UNREACHABLE for errors from the cluster. */
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
    throw invalidConfig(`${inCluster}; no server ${target} runs on this machine either (running: ${names})`)
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
    throw invalidConfig('TARGET: the URL must not contain credentials; use --remote-auth-bearer-token-file')
  }
  return url
}

/** Parses the values of `-e NAME[=VALUE]`. */
export function variablesFrom(definitions: readonly string[]): Record<string, string> {
  const env = environment()
  return Object.fromEntries(
    definitions.map((text) => {
      const at = text.indexOf('=')
      if (at === 0 || text === '') throw invalidConfig('-e: must be NAME or NAME=VALUE')
      if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
      const value = own(env, text)
      if (value === undefined)
        throw invalidConfig(`-e ${text}: the variable is not set; set it, or write ${text}=VALUE`)
      return [text, value]
    }),
  )
}
