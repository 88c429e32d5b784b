/**
 * The page that a browser shows for the server's address. The page describes the server and explains how to connect a
 * client.
 */
import { type Exchange, html, page, sendBody, type Stage } from '../../net/index.ts'

export interface BrowserPageFacts {
  /** Name of the server. */
  readonly name: string
  /** Address of the MCP endpoint. If the address is undefined, the page shows `path` instead. */
  readonly url: string | undefined
  readonly path: string
  /** True if clients must sign in. */
  readonly requiresAuth: boolean
}

/** True for a request from a browser. Browsers accept HTML, while MCP clients accept JSON or event streams. */
export function isBrowserRequest({ req }: Exchange): boolean {
  const { accept = '' } = req.headers
  return (
    (req.method === 'GET' || req.method === 'HEAD') &&
    accept.includes('text/html') &&
    !accept.includes('text/event-stream')
  )
}

export function browserPage({ name, url, path, requiresAuth }: BrowserPageFacts): Stage<Exchange> {
  return ({ res }) => {
    const address = url ?? `the address of this page, with the path ${path}`
    const { html: body, headers } = page(
      name,
      html`<h1>${name}</h1>
<p>This is an MCP server: programs such as coding assistants connect to it and use its tools. There is nothing to see here in a
browser.</p>
<dl>
<div><dt>Address for clients</dt><dd>${address}</dd></div>
<div><dt>Signing in</dt><dd>${requiresAuth ? 'required; the client opens a sign-in page' : 'not required'}</dd></div>
</dl>
<p>To connect, add the address to the client's configuration as a server of type http (streamable HTTP). A client that
can only start commands uses:</p>
<p><code>gatehouse proxy stdio ${url ?? 'ADDRESS'}${requiresAuth ? ' --remote-auth' : ''}</code></p>`,
    )
    sendBody(res, 200, 'text/html; charset=utf-8', body, {
      ...headers,
      'Cache-Control': 'no-store',
      'Referrer-Policy': 'no-referrer',
    })
  }
}
