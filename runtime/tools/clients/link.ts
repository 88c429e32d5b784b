/** `gatehouse client link` prints links that add a server to clients with one click. */
import { invalidConfig } from '../../../schemas/index.ts'
import { clientLinks } from '../../config/index.ts'
import { objectName, secretInUrl } from '../../toolkit/clients/index.ts'
import { runningServer, runningServerAt } from '../../toolkit/targets/running.ts'
import { urlOfTarget } from '../../toolkit/targets/resolve.ts'
import { exitCode, print, printError, printJson } from '../../toolkit/terminal/output.ts'

export interface ClientLinkOptions {
  readonly name?: string
  readonly namespace?: string
  readonly output: 'text' | 'json'
}

/** Throws INVALID_CONFIG for an unknown server, and for a URL that contains a secret. */
export async function printLinks(
  target: string,
  { name, namespace, output }: ClientLinkOptions,
): Promise<number> {
  const url = await urlOfTarget(target, namespace)
  const secret = secretInUrl(url)
  if (secret !== undefined) throw invalidConfig(`${secret}; a link must not contain a secret`)
  const chosen = name ?? (URL.canParse(target) ? 'gatehouse' : objectName(target))
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(chosen))
    throw invalidConfig('--name: must have 1 to 64 letters, digits, "_" and "-", which every client accepts')
  const links = clientLinks(chosen, url.href)
  if (output === 'json') printJson({ name: chosen, url: url.href, links })
  else for (const { title, link } of links) print(`${title}\n  ${link}`)
  const running = runningServer(target)
  if (running !== undefined && running.kind !== 'VirtualMCPServer')
    printError(
      `Warning: ${running.name} gets a new port at each start, so the links stop working; use the name of a virtual server`,
    )
  if (runningServerAt(url)?.token !== undefined)
    printError(
      'Warning: this server requires a token, which a link cannot contain; use gatehouse client add instead',
    )
  return exitCode.ok
}
